// A backend and a GPU lane of the tests' own, and programs made by hand.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/interface/cpu_kernels.h"
#include "backends/interface/lane.h"
#include "src/runtime/session.h"

namespace plait::testing {

// Computes out = sum of inputs + 1 over dense float views. `before_run` sees every run and may block, count or fail it.
struct FakeBackendOptions {
  std::string name = "fake";
  std::function<Status(OpId)> before_run;
  std::function<bool(OpId)> refuses;     // CreateKernel answers Unsupported
  std::function<bool(OpId)> supports;    // rules; empty: everything
};

class FakeBackend final : public CpuBackend, public KernelRules {
 public:
  explicit FakeBackend(FakeBackendOptions options = {}) : options_(std::move(options)) {}

  const KernelRules& rules() const override { return *this; }
  std::string_view name() const override { return options_.name; }
  KernelSupport Supports(const Graph&, OpId op) const override {
    if (options_.supports && !options_.supports(op)) return {false, "", "not in the fake"};
    return {true, options_.name + ".sum", ""};
  }
  CutRule Cut(const Graph&, OpId, SplitAxis) const override { return {1, 1}; }
  bool Strided(const Graph&, OpId, int) const override { return true; }

  Result<std::unique_ptr<CpuContext>> CreateContext(int threads) override {
    context_threads = threads;
    context_thread_id = std::this_thread::get_id();
    ++contexts;
    return std::unique_ptr<CpuContext>(std::make_unique<Context>(this));
  }
  Result<std::unique_ptr<CpuKernel>> CreateKernel(CpuContext* context, const KernelRequest& request) override {
    if (context == nullptr) return InvalidArgument("no context");
    if (options_.refuses && options_.refuses(request.op)) return Unsupported("the fake refuses operator ", request.op);
    return std::unique_ptr<CpuKernel>(std::make_unique<Kernel>(this, request));
  }

  std::atomic<int> contexts{0}, parks{0}, runs{0};
  int context_threads = 0;
  std::thread::id context_thread_id;
  std::atomic<std::thread::id> run_thread_id{};  // of the last run

 private:
  struct Context final : CpuContext {
    explicit Context(FakeBackend* b) : backend(b) {}
    void Park() noexcept override { ++backend->parks; }
    FakeBackend* backend;
  };
  struct Kernel final : CpuKernel {
    Kernel(FakeBackend* b, const KernelRequest& request) : backend(b), op(request.op), count(request.region.Count()) {
      for (const BoundView& read : request.reads) reads.push_back(static_cast<const float*>(read.data));
      write = static_cast<float*>(request.write.data);
    }
    Status Run() noexcept override {
      if (backend->options_.before_run) {
        const Status status = backend->options_.before_run(op);
        if (!status.ok()) return status;
      }
      for (int64_t i = 0; i < count; ++i) {
        float sum = 1.0f;
        for (const float* read : reads) sum += read[i];
        write[i] = sum;
      }
      backend->run_thread_id = std::this_thread::get_id();
      ++backend->runs;
      return Status();
    }
    FakeBackend* backend;
    OpId op;
    int64_t count;
    std::vector<const float*> reads;
    float* write = nullptr;
  };
  const FakeBackendOptions options_;
};

// Does what a GPU lane does, on the host: its steps run when polled, `polls_per_step` polls each. It copies nothing.
class FakeGpuLane final : public Lane {
 public:
  struct Options {
    int polls_per_step = 3;
    int64_t hangs_at = -1;   // step that never ends
    int64_t fails_at = -1;   // step that fails
    bool allocates = true;   // AllocateShared
  };
  FakeGpuLane(std::string name, std::shared_ptr<FakeBackend> backend, Options options)
      : name_(std::move(name)), backend_(std::move(backend)), options_(options) {}

  const std::string& name() const override { return name_; }
  LaneKind kind() const override { return LaneKind::kGpu; }
  const KernelRules& rules() const override { return *backend_; }
  bool coherent() const override { return true; }
  Status Start(bool is_own_thread) override {
    started_on_own_thread = is_own_thread;
    ++starts;
    return Status();
  }
  void Park() noexcept override { ++parks; }
  Result<std::unique_ptr<SharedMemory>> AllocateShared(int64_t bytes) override {
    if (!options_.allocates) return std::unique_ptr<SharedMemory>();
    ++allocations;
    return std::unique_ptr<SharedMemory>(std::make_unique<Shared>(bytes));
  }
  Result<std::unique_ptr<BoundLane>> Bind(const BindRequest& request) override {
    auto bound = std::make_unique<Bound>(this, request);
    for (const Step& step : request.program->steps[static_cast<size_t>(request.lane)]) {
      if (step.kind != StepKind::kCompute) {
        bound->kernels.push_back(nullptr);
        continue;
      }
      KernelRequest kernel;
      kernel.graph = request.graph.get();
      kernel.op = step.op;
      kernel.region = step.region;
      for (const View& view : step.reads) kernel.reads.push_back(bound->Address(view));
      kernel.write = bound->Address(step.write);
      PLAIT_ASSIGN_OR_RETURN(const KernelSupport support, Result<KernelSupport>(backend_->Supports(*request.graph, step.op)));
      if (!support.supported) return Unsupported(support.reason);
      PLAIT_ASSIGN_OR_RETURN(bound->context, backend_->CreateContext(1));
      PLAIT_ASSIGN_OR_RETURN(auto made, backend_->CreateKernel(bound->context.get(), kernel));
      bound->kernels.push_back(std::move(made));
    }
    return std::unique_ptr<BoundLane>(std::move(bound));
  }

  std::atomic<int> starts{0}, parks{0}, allocations{0}, abandons{0};
  bool started_on_own_thread = false;
  std::thread::id poll_thread_id;

 private:
  struct Shared final : SharedMemory {
    explicit Shared(int64_t bytes) : memory(static_cast<size_t>(bytes) / 64 + 1) {}
    void* host() const override { return const_cast<Line*>(memory.data()); }
    struct alignas(64) Line { std::byte bytes[64]; };
    std::vector<Line> memory;
  };
  struct Bound final : BoundLane {
    Bound(FakeGpuLane* l, const BindRequest& r) : lane(l), request(r) {}
    BoundView Address(const View& view) const {
      const BufferSpec& buffer = request.program->buffers[static_cast<size_t>(view.buffer)];
      return {&view, static_cast<std::byte*>(request.arena) + buffer.offset + view.offset};
    }
    const std::vector<Step>& steps() const { return request.program->steps[static_cast<size_t>(request.lane)]; }
    void Submit(uint64_t n) noexcept override {
      inference = n;
      next = 0;
      polls = 0;
    }
    LaneState Poll() noexcept override {
      lane->poll_thread_id = std::this_thread::get_id();
      if (next == steps().size()) return LaneState::kIdle;
      if (static_cast<int64_t>(next) == lane->options_.fails_at) {
        status = DeviceLost("the fake device fell off");
        return LaneState::kFailed;
      }
      if (static_cast<int64_t>(next) == lane->options_.hangs_at) return LaneState::kWaiting;
      for (const Wait& wait : steps()[next].waits) {
        const uint64_t target = inference * static_cast<uint64_t>(request.program->step_count(wait.lane)) + static_cast<uint64_t>(wait.steps);
        if (request.counters[static_cast<size_t>(wait.lane)].finished.load(std::memory_order_acquire) < target) return LaneState::kWaiting;
      }
      if (++polls < lane->options_.polls_per_step) return LaneState::kWaiting;
      polls = 0;
      if (kernels[next] != nullptr) status = kernels[next]->Run();
      if (!status.ok()) return LaneState::kFailed;
      ++next;
      request.counters[static_cast<size_t>(request.lane)].finished.store(inference * steps().size() + next, std::memory_order_release);
      return next == steps().size() ? LaneState::kIdle : LaneState::kProgress;
    }
    void Abandon() noexcept override {
      next = steps().size();
      ++lane->abandons;
    }
    Status error() const override { return status; }
    std::span<const StepTiming> timings() const override { return {}; }

    FakeGpuLane* lane;
    BindRequest request;
    std::unique_ptr<CpuContext> context;
    std::vector<std::unique_ptr<CpuKernel>> kernels;
    uint64_t inference = 0;
    size_t next = 0;
    int polls = 0;
    Status status;
  };

  const std::string name_;
  const std::shared_ptr<FakeBackend> backend_;
  const Options options_;
};

// Graph and program in one: add operators lane by lane. Every tensor is dense, has its own buffer, and holds `elements` floats.
class ProgramMaker {
 public:
  explicit ProgramMaker(int64_t elements = 16) : elements_(elements) { graph_.name = "hand-made"; }

  LaneId Lane(const std::string& name, LaneKind kind = LaneKind::kCpu, LaneId host = -1) {
    plan_.program.lanes.push_back({name, kind, kind == LaneKind::kCpu ? kHostDomain : 1, host});
    plan_.program.steps.emplace_back();
    return static_cast<LaneId>(plan_.program.lanes.size()) - 1;
  }
  TensorId Input() {
    const TensorId id = NewTensor(BufferRole::kInput);
    graph_.inputs.push_back(id);
    return id;
  }
  // The output of an operator over `reads`, run on `lane` after `waits`.
  TensorId Op(LaneId lane, const std::vector<TensorId>& reads, std::vector<Wait> waits = {}, bool is_output = false) {
    const TensorId out = NewTensor(is_output ? BufferRole::kOutput : BufferRole::kActivation);
    if (is_output) graph_.outputs.push_back(out);
    Operator op;
    op.name = "op" + std::to_string(graph_.ops.size());
    op.kind = reads.size() == 2 ? OpKind::kBinary : OpKind::kUnary;
    if (reads.size() == 2) op.attrs = BinaryAttrs{};
    else op.attrs = UnaryAttrs{};
    op.inputs = reads;
    op.output = out;
    Step step;
    step.op = static_cast<OpId>(graph_.ops.size());
    step.region = Region::Whole({elements_});
    for (TensorId read : reads) step.reads.push_back(ViewOf(read));
    step.write = ViewOf(out);
    step.waits = std::move(waits);
    graph_.ops.push_back(op);
    plan_.program.steps[static_cast<size_t>(lane)].push_back(step);
    return out;
  }
  Step& LastStep(LaneId lane) { return plan_.program.steps[static_cast<size_t>(lane)].back(); }
  StepProgram& program() { return plan_.program; }
  int64_t Count(LaneId lane) const { return plan_.program.step_count(lane); }

  std::shared_ptr<const Graph> graph() const { return std::make_shared<Graph>(graph_); }
  std::shared_ptr<const Plan> plan() const { return std::make_shared<Plan>(plan_); }

 private:
  View ViewOf(TensorId tensor) const {
    View view;
    view.buffer = tensor;
    view.tensor = tensor;
    view.region = Region::Whole({elements_});
    view.strides = {1};
    return view;
  }
  TensorId NewTensor(BufferRole role) {
    const TensorId id = graph_.tensor_count();
    graph_.tensors.push_back({"t" + std::to_string(id), DType::kF32, {elements_}, nullptr});
    StepProgram& p = plan_.program;
    p.buffers.push_back({id, role, elements_ * 4, p.arena_bytes});
    p.arena_bytes += (elements_ * 4 + kBufferSlack + 63) / 64 * 64;
    return id;
  }

  int64_t elements_;
  Graph graph_;
  Plan plan_;
};

inline std::shared_ptr<Lane> MakeCpuLane(const std::string& name, std::vector<std::shared_ptr<CpuBackend>> backends, std::vector<int> cpus = {}) {
  CpuLaneConfig config;
  config.name = name;
  config.cpus = std::move(cpus);
  config.backends = std::move(backends);
  return std::move(CreateCpuLane(config)).value();
}

inline void FillInput(Session* session, int i, float value) {
  const std::span<std::byte> bytes = session->input(i);
  float* data = reinterpret_cast<float*>(bytes.data());
  for (size_t k = 0; k < bytes.size() / 4; ++k) data[k] = value + static_cast<float>(k);
}
inline const float* Output(const Session& session, int i = 0) { return reinterpret_cast<const float*>(session.output(i).data()); }

}  // namespace plait::testing
