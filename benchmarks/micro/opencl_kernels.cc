// The OpenCL kernels on PoCL confined to one core against XNNPACK on one core, for layers of real networks. Both read and
// write the same kind of memory; the OpenCL lane runs each layer several times in a segment, so that what is compared is kernels,
// not handoffs. PLAIT_OPENCL_CPU names the device's core (default 1); the calling thread stays on core 0.
//
//   plait_micro_opencl_kernels --benchmark_enable_random_interleaving=true --benchmark_repetitions=5 --benchmark_out=F.json
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "backends/opencl/opencl.h"
#include "backends/xnnpack/xnnpack.h"
#include "src/base/checked.h"
#include "src/base/clock.h"
#include "src/graph/builder.h"
#include "src/platform/affinity.h"

namespace plait {
namespace {

constexpr int kRepeats = 8;  // steps a segment

std::vector<float> Values(int64_t count) {
  static std::mt19937 rng(1);
  std::uniform_real_distribution<float> uniform(-0.5f, 0.5f);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = uniform(rng);
  return values;
}

Graph Finish(GraphBuilder& b, TensorId out) {
  b.Output(out);
  Result<Graph> graph = b.Build();
  if (!graph.ok()) std::fprintf(stderr, "%s\n", graph.status().message().c_str());
  return graph.ok() ? std::move(graph).value() : Graph();
}

Graph Conv(int64_t hw, int64_t ci, int64_t co, int64_t k, int32_t stride) {
  GraphBuilder b("conv");
  const auto pad = static_cast<int32_t>(k / 2);
  const TensorId x = b.Input("x", {1, hw, hw, ci});
  const TensorId w = b.Constant("w", {co, k, k, ci}, Values(co * k * k * ci));
  const TensorId bias = b.Constant("b", {co}, Values(co));
  return Finish(b, b.Add("conv", OpKind::kConv2D, {x, w, bias}, Conv2DAttrs{stride, stride, 1, 1, 1, {pad, pad, pad, pad}, kRelu6}));
}
Graph Depthwise(int64_t hw, int64_t c, int64_t k, int32_t stride) {
  GraphBuilder b("depthwise");
  const auto pad = static_cast<int32_t>(k / 2);
  const TensorId x = b.Input("x", {1, hw, hw, c});
  const TensorId w = b.Constant("w", {k, k, c}, Values(k * k * c));
  const TensorId bias = b.Constant("b", {c}, Values(c));
  return Finish(b, b.Add("dw", OpKind::kDepthwiseConv2D, {x, w, bias}, Conv2DAttrs{stride, stride, 1, 1, 1, {pad, pad, pad, pad}, kRelu6}));
}
Graph Linear(int64_t rows, int64_t ci, int64_t co) {
  GraphBuilder b("linear");
  const TensorId x = b.Input("x", {rows, ci});
  const TensorId w = b.Constant("w", {co, ci}, Values(co * ci));
  const TensorId bias = b.Constant("b", {co}, Values(co));
  return Finish(b, b.Add("fc", OpKind::kFullyConnected, {x, w, bias}, FullyConnectedAttrs{}));
}
Graph MatMul(Dims a, Dims c, bool transposed) {
  GraphBuilder b("matmul");
  const TensorId left = b.Input("a", a), right = b.Input("b", c);
  return Finish(b, b.Add("matmul", OpKind::kMatMul, {left, right}, MatMulAttrs{transposed}));
}
Graph One(Dims shape, OpKind kind, OpAttrs attrs) {
  GraphBuilder b("one");
  const TensorId x = b.Input("x", shape);
  return Finish(b, b.Add("op", kind, {x}, std::move(attrs)));
}
Graph Binary(Dims a, Dims c, BinaryKind kind) {
  GraphBuilder b("binary");
  const TensorId left = b.Input("a", a), right = b.Input("b", c);
  return Finish(b, b.Add("binary", OpKind::kBinary, {left, right}, BinaryAttrs{kind, {}}));
}
Graph Norm(Dims shape) {
  GraphBuilder b("norm");
  const int64_t c = shape.back();
  const TensorId x = b.Input("x", shape);
  return Finish(b, b.Add("norm", OpKind::kLayerNorm, {x, b.Constant("g", {c}, Values(c)), b.Constant("b", {c}, Values(c))}, NormAttrs{}));
}

// A one-operator graph with its tensors in `memory`.
struct Bench {
  std::shared_ptr<const Graph> graph;
  std::vector<int64_t> offsets;  // by tensor
  int64_t bytes = 0;

  explicit Bench(Graph g) : graph(std::make_shared<const Graph>(std::move(g))) {
    for (const Tensor& tensor : graph->tensors) {
      offsets.push_back(bytes);
      if (!tensor.is_constant()) bytes += RoundUp(tensor.bytes() + kBufferSlack, kBufferAlignment);
    }
  }
  View ViewOf(TensorId id, BufferId buffer) const {
    View view;
    view.buffer = graph->tensor(id).is_constant() ? kConstantBuffer : buffer;
    view.tensor = id;
    view.region = Region::Whole(graph->tensor(id).shape);
    view.strides = DenseStrides(graph->tensor(id).shape);
    if (view.buffer != kConstantBuffer) view.offset = offsets[static_cast<size_t>(id)];
    return view;
  }
  void Fill(void* memory) const {
    for (TensorId id : graph->inputs) {
      const std::vector<float> values = Values(graph->tensor(id).shape.Count());
      std::memcpy(static_cast<char*>(memory) + offsets[static_cast<size_t>(id)], values.data(), values.size() * sizeof(float));
    }
  }
};

Lane* SharedLane() {
  static const std::unique_ptr<Lane> lane = [] {
    OpenClLaneConfig config;
    config.allow_cpu_device = true;
    const char* core = std::getenv("PLAIT_OPENCL_CPU");
    config.cpus = {core != nullptr ? std::atoi(core) : 1};
    Result<std::unique_ptr<Lane>> made = CreateOpenClLane(config);
    if (!made.ok()) std::fprintf(stderr, "%s\n", made.status().message().c_str());
    return made.ok() ? std::move(made).value() : nullptr;
  }();
  return lane.get();
}

int64_t CpuNs(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Times `run`, which does kRepeats steps. Counters, a step's least: best_us by the wall clock, cpu_us by the processor time of the threads that
// compute, which is what to compare where other programs disturb the machine. `on_caller`: the calling thread computes; else it waits.
template <typename F>
void Measure(benchmark::State& state, bool on_caller, F run) {
  int64_t best = std::numeric_limits<int64_t>::max(), best_cpu = best;
  for (auto _ : state) {
    const int64_t start = NowNs(), process = CpuNs(CLOCK_PROCESS_CPUTIME_ID), thread = CpuNs(CLOCK_THREAD_CPUTIME_ID);
    run();
    const int64_t on_thread = CpuNs(CLOCK_THREAD_CPUTIME_ID) - thread;
    const int64_t elsewhere = CpuNs(CLOCK_PROCESS_CPUTIME_ID) - process - on_thread;
    best = std::min(best, NowNs() - start);
    best_cpu = std::min(best_cpu, on_caller ? on_thread : elsewhere);
  }
  state.SetItemsProcessed(state.iterations() * kRepeats);
  state.counters["best_us"] = static_cast<double>(best) * 1e-3 / kRepeats;
  state.counters["cpu_us"] = static_cast<double>(best_cpu) * 1e-3 / kRepeats;
}

void OpenCl(benchmark::State& state, const std::function<Graph()>& make) {
  const Bench bench(make());
  Lane* lane = SharedLane();
  if (lane == nullptr) return state.SkipWithError("no OpenCL device");
  auto program = std::make_shared<StepProgram>();
  program->lanes.push_back({"gpu0", LaneKind::kGpu, 1, -1});
  program->buffers.push_back({kNoTensor, BufferRole::kActivation, bench.bytes, 0});
  program->arena_bytes = bench.bytes;
  Step step;
  step.op = 0;
  step.region = Region::Whole(bench.graph->output(bench.graph->op(0)).shape);
  for (TensorId id : bench.graph->op(0).inputs) step.reads.push_back(id == kNoTensor ? View() : bench.ViewOf(id, 0));
  step.write = bench.ViewOf(bench.graph->op(0).output, 0);
  program->steps.emplace_back(kRepeats, step);
  program->steps[0].emplace_back().kind = StepKind::kSubmit;
  Result<std::unique_ptr<SharedMemory>> memory = lane->AllocateShared(bench.bytes + 64);
  if (!memory.ok() || *memory == nullptr) return state.SkipWithError("no shared memory");
  bench.Fill((*memory)->host());
  std::vector<LaneCounter> counters(1);
  Result<std::unique_ptr<BoundLane>> bound = lane->Bind({bench.graph, program, 0, (*memory)->host(), counters, {}});
  if (!bound.ok()) return state.SkipWithError(bound.status().message().c_str());
  uint64_t n = 0;
  const auto run = [&] {
    (*bound)->Submit(n++);
    while ((*bound)->Poll() != LaneState::kIdle && (*bound)->error().ok()) {
    }
  };
  run();  // the driver compiles at the first launch
  Measure(state, false, run);
}

void Xnnpack(benchmark::State& state, const std::function<Graph()>& make) {
  const Bench bench(make());
  Result<std::shared_ptr<CpuBackend>> backend = CreateXnnpackBackend();
  if (!backend.ok()) return state.SkipWithError(backend.status().message().c_str());
  Result<std::unique_ptr<CpuContext>> context = (*backend)->CreateContext(1);
  std::vector<char> storage(static_cast<size_t>(bench.bytes) + 256);
  char* memory = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
  bench.Fill(memory);
  std::vector<View> views;
  views.reserve(8);
  const auto bind = [&](TensorId id) {
    if (id == kNoTensor) return BoundView();
    views.push_back(bench.ViewOf(id, 0));
    const Tensor& tensor = bench.graph->tensor(id);
    void* data = tensor.is_constant() ? const_cast<void*>(tensor.data->data()) : memory + bench.offsets[static_cast<size_t>(id)];
    return BoundView{&views.back(), data};
  };
  KernelRequest request;
  request.graph = bench.graph.get();
  request.op = 0;
  request.region = Region::Whole(bench.graph->output(bench.graph->op(0)).shape);
  for (TensorId id : bench.graph->op(0).inputs) request.reads.push_back(bind(id));
  request.write = bind(bench.graph->op(0).output);
  Result<std::unique_ptr<CpuKernel>> kernel = (*backend)->CreateKernel(context->get(), request);
  if (!kernel.ok()) return state.SkipWithError(kernel.status().message().c_str());
  Measure(state, true, [&] {
    for (int i = 0; i < kRepeats; ++i) (void)(*kernel)->Run();
  });
}

void Register(const std::string& name, const std::function<Graph()>& make) {
  benchmark::RegisterBenchmark((name + "/opencl").c_str(), [make](benchmark::State& s) { OpenCl(s, make); })->Unit(benchmark::kMicrosecond)->UseRealTime();
  benchmark::RegisterBenchmark((name + "/xnnpack").c_str(), [make](benchmark::State& s) { Xnnpack(s, make); })->Unit(benchmark::kMicrosecond)->UseRealTime();
}

// A chain of 100 steps that do next to nothing: what a step and a segment cost, as medians. submit_us: enqueueing, a step; step_us: a step
// of the chain from first to last; segment_us: a segment of one step from submission until its counter moves.
void Dispatch(benchmark::State& state) {
  const Bench bench(One({1, 16}, OpKind::kUnary, UnaryAttrs{UnaryKind::kNegate, {}}));
  Lane* lane = SharedLane();
  if (lane == nullptr) return state.SkipWithError("no OpenCL device");
  Step step;
  step.op = 0;
  step.region = Region::Whole({1, 16});
  step.reads.push_back(bench.ViewOf(bench.graph->op(0).inputs[0], 0));
  step.write = bench.ViewOf(bench.graph->op(0).output, 0);
  Result<std::unique_ptr<SharedMemory>> memory = lane->AllocateShared(bench.bytes + 64);
  if (!memory.ok() || *memory == nullptr) return state.SkipWithError("no shared memory");
  bench.Fill((*memory)->host());
  const auto bind = [&](size_t steps, std::vector<LaneCounter>& counters) {
    auto program = std::make_shared<StepProgram>();
    program->lanes.push_back({"gpu0", LaneKind::kGpu, 1, -1});
    program->buffers.push_back({kNoTensor, BufferRole::kActivation, bench.bytes, 0});
    program->arena_bytes = bench.bytes;
    program->steps.emplace_back(steps, step);
    program->steps[0].emplace_back().kind = StepKind::kSubmit;
    return std::move(lane->Bind({bench.graph, program, 0, (*memory)->host(), counters, {}})).value();
  };
  constexpr size_t kSteps = 100;
  std::vector<LaneCounter> chain_counters(1), one_counters(1);
  const std::unique_ptr<BoundLane> chain = bind(kSteps, chain_counters), one = bind(1, one_counters);
  std::vector<int64_t> submits, chains, segments;
  uint64_t n = 0;
  for (auto _ : state) {
    chain->Submit(n);
    int64_t start = NowNs();
    LaneState now = chain->Poll();
    submits.push_back(NowNs() - start);
    while (now != LaneState::kIdle && now != LaneState::kFailed) now = chain->Poll();
    chains.push_back(NowNs() - start);
    start = NowNs();
    one->Submit(n++);
    do now = one->Poll();
    while (now != LaneState::kIdle && now != LaneState::kFailed);
    segments.push_back(NowNs() - start);
  }
  const auto median_us = [](std::vector<int64_t>& ns) {
    std::nth_element(ns.begin(), ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2), ns.end());
    return static_cast<double>(ns[ns.size() / 2]) * 1e-3;
  };
  state.counters["submit_us"] = median_us(submits) / kSteps;
  state.counters["step_us"] = median_us(chains) / kSteps;
  state.counters["segment_us"] = median_us(segments);
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kSteps));
}

void RegisterAll() {
  benchmark::RegisterBenchmark("dispatch", Dispatch)->Unit(benchmark::kMicrosecond)->UseRealTime();
  Register("gemm/mbv2_stem_3x3s2_3-32@224", [] { return Conv(224, 3, 32, 3, 2); });
  Register("gemm/mbv2_pw_16-96@112", [] { return Conv(112, 16, 96, 1, 1); });
  Register("gemm/mbv2_pw_144-24@56", [] { return Conv(56, 144, 24, 1, 1); });
  Register("gemm/mbv2_pw_32-192@28", [] { return Conv(28, 32, 192, 1, 1); });
  Register("gemm/mbv2_pw_96-576@14", [] { return Conv(14, 96, 576, 1, 1); });
  Register("gemm/mbv2_pw_320-1280@7", [] { return Conv(7, 320, 1280, 1, 1); });
  Register("gemm/mbv2_fc_1280-1000", [] { return Linear(1, 1280, 1000); });
  Register("gemm/rn50_stem_7x7s2_3-64@224", [] { return Conv(224, 3, 64, 7, 2); });
  Register("gemm/rn50_1x1_64-256@56", [] { return Conv(56, 64, 256, 1, 1); });
  Register("gemm/rn50_1x1s2_256-512@56", [] { return Conv(56, 256, 512, 1, 2); });
  Register("gemm/rn50_1x1_1024-256@14", [] { return Conv(14, 1024, 256, 1, 1); });
  Register("gemm/rn50_1x1_512-2048@7", [] { return Conv(7, 512, 2048, 1, 1); });
  Register("gemm/rn50_3x3_64@56", [] { return Conv(56, 64, 64, 3, 1); });
  Register("gemm/rn50_3x3_128@28", [] { return Conv(28, 128, 128, 3, 1); });
  Register("gemm/rn50_3x3_256@14", [] { return Conv(14, 256, 256, 3, 1); });
  Register("gemm/rn50_3x3_512@7", [] { return Conv(7, 512, 512, 3, 1); });
  Register("gemm/vit_192-768x197", [] { return Linear(197, 192, 768); });
  Register("gemm/vit_768-3072x197", [] { return Linear(197, 768, 3072); });
  Register("gemm/vit_3072-768x197", [] { return Linear(197, 3072, 768); });
  Register("gemm/vit_scores_12x197x64x197", [] { return MatMul({12, 197, 64}, {12, 197, 64}, true); });
  Register("gemm/vit_values_12x197x197x64", [] { return MatMul({12, 197, 197}, {12, 197, 64}, false); });
  Register("other/dw3_32@112", [] { return Depthwise(112, 32, 3, 1); });
  Register("other/dw3s2_96@112", [] { return Depthwise(112, 96, 3, 2); });
  Register("other/dw3_144@56", [] { return Depthwise(56, 144, 3, 1); });
  Register("other/dw3_384@14", [] { return Depthwise(14, 384, 3, 1); });
  Register("other/dw3_960@7", [] { return Depthwise(7, 960, 3, 1); });
  Register("other/dw5_240@28", [] { return Depthwise(28, 240, 5, 1); });
  Register("other/dw5s2_144@56", [] { return Depthwise(56, 144, 5, 2); });
  Register("other/add_256@56", [] { return Binary({1, 56, 56, 256}, {1, 56, 56, 256}, BinaryKind::kAdd); });
  Register("other/scale_120@28", [] { return Binary({1, 28, 28, 120}, {1, 1, 1, 120}, BinaryKind::kMul); });
  Register("other/hardswish_64@56", [] { return One({1, 56, 56, 64}, OpKind::kUnary, UnaryAttrs{UnaryKind::kHardSwish, {}}); });
  Register("other/silu_96@56", [] { return One({1, 56, 56, 96}, OpKind::kUnary, UnaryAttrs{UnaryKind::kSilu, {}}); });
  Register("other/gelu_197x3072", [] { return One({197, 3072}, OpKind::kUnary, UnaryAttrs{UnaryKind::kGelu, {}}); });
  Register("other/copy_256@28", [] { return One({1, 28, 28, 256}, OpKind::kUnary, UnaryAttrs{UnaryKind::kCopy, {}}); });
  Register("other/softmax_2364x197", [] { return One({12, 197, 197}, OpKind::kSoftmax, SoftmaxAttrs{}); });
  Register("other/layernorm_197x768", [] { return Norm({197, 768}); });
  Register("other/maxpool_64@112", [] { return One({1, 112, 112, 64}, OpKind::kMaxPool2D, Pool2DAttrs{3, 3, 2, 2, {1, 1, 1, 1}, false, {}}); });
  Register("other/avgpool_192@35", [] { return One({1, 35, 35, 192}, OpKind::kAveragePool2D, Pool2DAttrs{3, 3, 1, 1, {1, 1, 1, 1}, false, {}}); });
  Register("other/mean_2048@7", [] { return One({1, 7, 7, 2048}, OpKind::kReduceMean, ReduceAttrs{{1, 2}, false}); });
  Register("other/nchw-nhwc_3@224", [] { return One({1, 3, 224, 224}, OpKind::kTranspose, TransposeAttrs{{0, 2, 3, 1}}); });
  Register("other/nhwc-nchw_256@28", [] { return One({1, 28, 28, 256}, OpKind::kTranspose, TransposeAttrs{{0, 3, 1, 2}}); });
  Register("other/heads_197x12x64", [] { return One({1, 197, 12, 64}, OpKind::kTranspose, TransposeAttrs{{0, 2, 1, 3}}); });
  Register("other/pad_64@56", [] { return One({1, 56, 56, 64}, OpKind::kPad, PadAttrs{{0, 1, 1, 0}, {0, 1, 1, 0}, 0}); });
}

}  // namespace
}  // namespace plait

int main(int argc, char** argv) {
  const int core[] = {0};
  (void)plait::SetThreadAffinity(core);
  benchmark::Initialize(&argc, argv);
  plait::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
}
