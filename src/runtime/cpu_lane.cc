#include "src/runtime/cpu_lane.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/platform/affinity.h"
#include "src/platform/cpu_list.h"

namespace plait {
namespace {

constexpr std::string_view kReferenceName = "reference";

struct PreparedWait {
  const std::atomic<uint64_t>* finished = nullptr;
  uint64_t steps_per_inference = 0;
  uint64_t steps = 0;
};

struct PreparedStep {
  std::unique_ptr<CpuKernel> kernel;  // nullptr: bookkeeping, nothing to do on the host
  uint32_t first_wait = 0, end_wait = 0;
};

class BoundCpuLane final : public BoundLane {
 public:
  explicit BoundCpuLane(const BindRequest& request)
      : graph_(request.graph), program_(request.program), lane_(request.lane), arena_(static_cast<std::byte*>(request.arena)),
        counters_(request.counters), elsewhere_(request.elsewhere), has_timings_(request.options.timings) {}

  Status Prepare(const BackendList& backends, const std::vector<CpuContext*>& contexts);

  void Submit(uint64_t n) noexcept override {
    inference_ = n;
    base_ = n * steps_.size();
    next_ = 0;
  }
  LaneState Poll() noexcept override;
  void Abandon() noexcept override { next_ = steps_.size(); }
  Status error() const override { return error_; }
  std::span<const StepTiming> timings() const override { return timings_; }
  int reference_steps() const override { return reference_steps_; }

 private:
  Status PrepareStep(const Step& step, const BackendList& backends, const std::vector<CpuContext*>& contexts, PreparedStep* prepared);
  Result<BoundView> Address(const View& view) const;
  const std::vector<Step>& program_steps() const { return program_->steps[static_cast<size_t>(lane_)]; }

  const std::shared_ptr<const Graph> graph_;
  const std::shared_ptr<const StepProgram> program_;
  const LaneId lane_;
  std::byte* const arena_;
  const std::span<LaneCounter> counters_;
  std::span<std::byte* const> elsewhere_;  // while Prepare runs
  const bool has_timings_;
  std::vector<PreparedStep> steps_;
  std::vector<PreparedWait> waits_;
  std::vector<StepTiming> timings_;
  uint64_t inference_ = 0;
  uint64_t base_ = 0;   // steps finished before this inference
  size_t next_ = 0;
  int reference_steps_ = 0;
  Status error_;
};

LaneState BoundCpuLane::Poll() noexcept {
  if (next_ == steps_.size()) return LaneState::kIdle;
  const PreparedStep& step = steps_[next_];
  for (uint32_t i = step.first_wait; i < step.end_wait; ++i) {
    const PreparedWait& wait = waits_[i];
    if (wait.finished->load(std::memory_order_acquire) < inference_ * wait.steps_per_inference + wait.steps) return LaneState::kWaiting;
  }
  const int64_t start_ns = has_timings_ ? NowNs() : 0;
  if (step.kernel != nullptr) {
    const Status status = step.kernel->Run();
    if (!status.ok()) {
      const Step& planned = program_steps()[next_];
      error_ = status.Annotated("step " + std::to_string(next_) + (planned.op == kNoOp ? "" : ", operator " + graph_->op(planned.op).name));
      next_ = steps_.size();
      return LaneState::kFailed;
    }
  }
  if (has_timings_) timings_[next_] = {start_ns, NowNs()};
  ++next_;
  counters_[static_cast<size_t>(lane_)].finished.store(base_ + next_, std::memory_order_release);
  return next_ == steps_.size() ? LaneState::kIdle : LaneState::kProgress;
}

Status BoundCpuLane::Prepare(const BackendList& backends, const std::vector<CpuContext*>& contexts) {
  const std::vector<Step>& planned = program_steps();
  steps_.reserve(planned.size());
  for (size_t i = 0; i < planned.size(); ++i) {
    const Step& step = planned[i];
    PreparedStep prepared;
    prepared.first_wait = static_cast<uint32_t>(waits_.size());
    for (const Wait& wait : step.waits) {
      if (wait.lane < 0 || static_cast<size_t>(wait.lane) >= program_->lanes.size() || wait.steps > program_->step_count(wait.lane)) {
        return Corrupt("step ", i, " waits for step ", wait.steps, " of lane ", wait.lane, ", which the program does not have");
      }
      if (wait.lane == lane_ && wait.steps <= static_cast<int64_t>(i)) continue;  // the order of the lane has it
      waits_.push_back({&counters_[static_cast<size_t>(wait.lane)].finished, static_cast<uint64_t>(program_->step_count(wait.lane)),
                        static_cast<uint64_t>(wait.steps)});
    }
    prepared.end_wait = static_cast<uint32_t>(waits_.size());
    PLAIT_RETURN_IF_ERROR(PrepareStep(step, backends, contexts, &prepared).Annotated("step " + std::to_string(i)));
    steps_.push_back(std::move(prepared));
  }
  elsewhere_ = {};
  next_ = steps_.size();
  if (has_timings_) timings_.resize(steps_.size());
  return Status();
}

Status BoundCpuLane::PrepareStep(const Step& step, const BackendList& backends, const std::vector<CpuContext*>& contexts,
                                 PreparedStep* prepared) {
  if (step.kind == StepKind::kAcquire || step.kind == StepKind::kPublish || step.kind == StepKind::kSubmit) return Status();
  if (step.kind != StepKind::kCompute) return Unsupported("a CPU lane runs no ", Name(step.kind), " steps");
  if (step.op < 0 || step.op >= graph_->op_count()) return Corrupt("operator ", step.op, " is not in the graph");
  const Operator& op = graph_->op(step.op);

  KernelRequest request;
  request.graph = graph_.get();
  request.op = step.op;
  request.region = step.region;
  for (const View& view : step.reads) {
    PLAIT_ASSIGN_OR_RETURN(const BoundView bound, Address(view));
    request.reads.push_back(bound);
  }
  PLAIT_ASSIGN_OR_RETURN(request.write, Address(step.write));
  if (request.write.data == nullptr || step.write.buffer == kConstantBuffer) return Corrupt("operator ", op.name, " writes no buffer");

  Status refusal = Unsupported("operator ", op.name, " (", Name(op.kind), "): no backend of the lane has kernel \"", step.kernel, "\"");
  for (size_t candidate : backends.Candidates(*graph_, step.op, step.kernel)) {
    CpuBackend& backend = *backends.backends()[candidate];
    const std::string prefix = std::string(backend.rules().name()) + ".";
    // A kernel id binds only the backend that it belongs to: another one that steps in chooses its own.
    request.kernel = step.kernel.rfind(prefix, 0) == 0 ? step.kernel : "";
    Result<std::unique_ptr<CpuKernel>> kernel = backend.CreateKernel(contexts[candidate], request);
    if (kernel.ok()) {
      prepared->kernel = std::move(kernel).value();
      if (backend.rules().name() == kReferenceName) ++reference_steps_;
      return Status();
    }
    refusal = kernel.status().Annotated(StrCat("operator ", op.name, " (", Name(op.kind), ") on ", backend.rules().name()));
    if (refusal.code() != PLAIT_UNSUPPORTED) return refusal;
  }
  return refusal;
}

Result<BoundView> BoundCpuLane::Address(const View& view) const {
  if (view.tensor == kNoTensor && view.buffer == kConstantBuffer) return BoundView{&view, nullptr};
  if (view.buffer != kConstantBuffer) {
    if (view.buffer < 0 || static_cast<size_t>(view.buffer) >= program_->buffers.size()) {
      return Corrupt("buffer ", view.buffer, " is not in the program");
    }
    const BufferSpec& buffer = program_->buffers[static_cast<size_t>(view.buffer)];
    if (view.offset < 0 || view.offset > buffer.bytes) return Corrupt("buffer ", view.buffer, " is left by a view at ", view.offset);
    std::byte* const elsewhere = elsewhere_.empty() ? nullptr : elsewhere_[static_cast<size_t>(view.buffer)];
    return BoundView{&view, (elsewhere == nullptr ? arena_ + buffer.offset : elsewhere) + view.offset};
  }
  if (view.tensor < 0 || view.tensor >= graph_->tensor_count() || !graph_->tensor(view.tensor).is_constant()) {
    return Corrupt("tensor ", view.tensor, " is read as a constant and is none");
  }
  const ConstData& data = *graph_->tensor(view.tensor).data;
  if (view.offset < 0 || view.offset > data.bytes()) return Corrupt("constant ", view.tensor, " is left by a view at ", view.offset);
  // Kernels take reads as pointers to void; none writes through them.
  return BoundView{&view, static_cast<std::byte*>(const_cast<void*>(data.data())) + view.offset};
}

}  // namespace

const KernelRules* BackendList::First(const Graph& graph, OpId op) const {
  for (const std::shared_ptr<CpuBackend>& backend : backends_) {
    if (backend->rules().Supports(graph, op).supported) return &backend->rules();
  }
  return nullptr;
}

KernelSupport BackendList::Supports(const Graph& graph, OpId op) const {
  std::string reasons;
  for (const std::shared_ptr<CpuBackend>& backend : backends_) {
    KernelSupport support = backend->rules().Supports(graph, op);
    if (support.supported) return support;
    reasons += StrCat(reasons.empty() ? "" : "; ", backend->rules().name(), ": ", support.reason);
  }
  return {false, "", reasons};
}

CutRule BackendList::Cut(const Graph& graph, OpId op, SplitAxis axis) const {
  const KernelRules* rules = First(graph, op);
  return rules == nullptr ? CutRule{} : rules->Cut(graph, op, axis);
}

bool BackendList::Strided(const Graph& graph, OpId op, int operand) const {
  const KernelRules* rules = First(graph, op);
  return rules != nullptr && rules->Strided(graph, op, operand);
}

std::vector<size_t> BackendList::Candidates(const Graph& graph, OpId op, const std::string& kernel) const {
  const std::string owner = kernel.substr(0, kernel.find('.'));
  size_t first = 0;
  if (!kernel.empty()) {
    while (first < backends_.size() && backends_[first]->rules().name() != owner) ++first;
  }
  std::vector<size_t> candidates;
  for (size_t i = first; i < backends_.size(); ++i) {
    if (backends_[i]->rules().Supports(graph, op).supported) candidates.push_back(i);
  }
  return candidates;
}

CpuLane::CpuLane(CpuLaneConfig config) : config_(std::move(config)), backends_(config_.backends), pid_(::getpid()) {}

CpuLane::~CpuLane() {
  if (::getpid() == pid_) return;
  // Pools wait for their threads when they are destroyed, and after fork() these do not exist.
  for (std::unique_ptr<CpuContext>& context : contexts_) static_cast<void>(context.release());
}

void CpuLane::Pin() {
  const Status status = SetThreadAffinity(config_.cpus);
  affinity_ = status.ok() ? ThreadAffinity() : std::vector<int>();
  if (!status.ok()) {
    Log(LogLevel::kWarning, "lane " + config_.name + " runs unpinned: " + status.message());
  } else if (affinity_ != config_.cpus) {
    Log(LogLevel::kWarning, "lane " + config_.name + " was to run on cores " + FormatCpuList(config_.cpus) + "; the system confined it to " +
                                FormatCpuList(affinity_));
  }
}

Status CpuLane::Start(bool is_own_thread) {
  if (!is_own_thread) return InvalidArgument("a CPU lane needs a thread of its own");
  if (::getpid() != pid_) {
    return Status(PLAIT_WRONG_PROCESS, "lane " + config_.name + " was made before a fork() and cannot be used in the child; make it again there");
  }
  const std::lock_guard lock(mutex_);
  // Workers inherit the mask of the thread that makes their pool.
  if (!config_.cpus.empty()) Pin();
  contexts_.clear();
  for (const std::shared_ptr<CpuBackend>& backend : config_.backends) {
    Result<std::unique_ptr<CpuContext>> context = backend->CreateContext(config_.threads);
    if (!context.ok()) return context.status().Annotated(std::string(backend->rules().name()));
    contexts_.push_back(std::move(context).value());
  }
  return Status();
}

void CpuLane::Park() noexcept {
  for (const std::unique_ptr<CpuContext>& context : contexts_) {
    if (context != nullptr) context->Park();
  }
}

Result<std::unique_ptr<SharedMemory>> CpuLane::AllocateShared(int64_t) { return std::unique_ptr<SharedMemory>(); }

std::vector<int> CpuLane::affinity() const {
  const std::lock_guard lock(mutex_);
  return affinity_;
}

Result<std::unique_ptr<BoundLane>> CpuLane::Bind(const BindRequest& request) {
  std::vector<CpuContext*> contexts;
  {
    const std::lock_guard lock(mutex_);
    if (contexts_.size() != config_.backends.size()) return Internal("lane ", config_.name, " is bound before it was started");
    for (const std::unique_ptr<CpuContext>& context : contexts_) contexts.push_back(context.get());
  }
  auto bound = std::make_unique<BoundCpuLane>(request);
  PLAIT_RETURN_IF_ERROR(bound->Prepare(backends_, contexts).Annotated("lane " + config_.name));
  return std::unique_ptr<BoundLane>(std::move(bound));
}

Result<std::unique_ptr<Lane>> CreateCpuLane(const CpuLaneConfig& config) {
  if (config.name.empty()) return InvalidArgument("a CPU lane needs a name");
  if (config.threads < 1) return InvalidArgument("lane ", config.name, ": ", config.threads, " threads; at least one is needed");
  if (config.backends.empty()) return InvalidArgument("lane ", config.name, " has no backend");
  CpuLaneConfig copy = config;
  std::sort(copy.cpus.begin(), copy.cpus.end());
  for (const std::shared_ptr<CpuBackend>& backend : copy.backends) {
    if (backend == nullptr) return InvalidArgument("lane ", config.name, " has a backend that is null");
  }
  if (!copy.cpus.empty() && (copy.cpus.front() < 0 || copy.cpus.back() > kMaxCpuId)) {
    return InvalidArgument("lane ", config.name, ": core numbers are 0 to ", kMaxCpuId);
  }
  return std::unique_ptr<Lane>(std::make_unique<CpuLane>(std::move(copy)));
}

}  // namespace plait
