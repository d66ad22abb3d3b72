// What the executor adds to kernels, what waking lanes costs, and what a handoff between lanes takes, on XNNPACK kernels.
//
// RunOperator/200 calls XNNPACK's run call for a chain of tiny operators in a bare loop on this thread, Kernels/200 the backend's kernels of the same
// chain; Chain/N runs such chains through a session on the first core. A chain of 2000 minus one of 200, divided by 1800, is a step without
// waking; minus RunOperator's time an operator, what Plait adds to XNNPACK's run call. PingPong/N hands every tensor to the other lane.
#include <benchmark/benchmark.h>
#include <xnnpack.h>

#include <limits>
#include <memory>
#include <vector>

#include "backends/xnnpack/xnnpack.h"
#include "src/calibrate/measuring.h"
#include "src/graph/builder.h"
#include "src/platform/affinity.h"
#include "src/runtime/session.h"

namespace plait {
namespace {

std::shared_ptr<const Graph> MakeChain(int length) {
  GraphBuilder b("chain");
  TensorId t = b.Input("x", {1, 64});
  UnaryAttrs relu;
  relu.kind = UnaryKind::kClamp;
  relu.clamp = kRelu;
  for (int i = 0; i < length; ++i) t = b.Add("op" + std::to_string(i), OpKind::kUnary, {t}, relu);
  b.Output(t);
  return std::make_shared<Graph>(std::move(b.Build()).value());
}

LanesToMeasure MakeLanes(int count) {
  static const std::shared_ptr<CpuBackend> backend = std::move(CreateXnnpackBackend()).value();
  const std::vector<int> cores = ThreadAffinity();
  LanesToMeasure lanes;
  for (int l = 0; l < count; ++l) {
    CpuLaneConfig config;
    config.name = "cpu" + std::to_string(l);
    config.cpus = {cores[static_cast<size_t>(l) % cores.size()]};
    config.backends = {backend};
    lanes.lanes.push_back(std::move(CreateCpuLane(config)).value());
    PlanningLane planning;
    planning.spec.name = config.name;
    planning.rules = &lanes.lanes.back()->rules();
    lanes.planning.push_back(planning);
  }
  return lanes;
}

// Operators in turn on the lanes.
Result<std::unique_ptr<Session>> Open(const std::shared_ptr<const Graph>& graph, const LanesToMeasure& lanes) {
  Schedule schedule;
  schedule.lanes.resize(lanes.lanes.size());
  for (OpId op = 0; op < graph->op_count(); ++op) {
    Part part;
    part.op = op;
    part.lane = static_cast<LaneId>(static_cast<size_t>(op) % lanes.lanes.size());
    part.region = Region::Whole(graph->output(graph->op(op)).shape);
    schedule.lanes[static_cast<size_t>(part.lane)].push_back(op);
    schedule.parts.push_back(part);
  }
  PLAIT_ASSIGN_OR_RETURN(Plan plan, Lower(*graph, lanes.planning, schedule));
  return OpenForMeasuring(graph, std::make_shared<Plan>(std::move(plan)), lanes, {}, false);
}

void RunSession(benchmark::State& state, int lane_count) {
  const int length = static_cast<int>(state.range(0));
  const auto graph = MakeChain(length);
  const LanesToMeasure lanes = MakeLanes(lane_count);
  Result<std::unique_ptr<Session>> session = Open(graph, lanes);
  if (!session.ok()) {
    state.SkipWithError(session.status().message().c_str());
    return;
  }
  for (auto _ : state) {
    if (!(*session)->Run().ok()) state.SkipWithError("an inference failed");
  }
  state.counters["us_per_operator"] =
      benchmark::Counter(static_cast<double>(length) * 1e-6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void Chain(benchmark::State& state) { RunSession(state, 1); }
void PingPong(benchmark::State& state) { RunSession(state, 2); }
BENCHMARK(Chain)->Arg(1)->Arg(200)->Arg(2000)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(PingPong)->Arg(2)->Arg(20)->Arg(200)->UseRealTime()->Unit(benchmark::kMicrosecond);

void Kernels(benchmark::State& state) {
  const int length = static_cast<int>(state.range(0));
  const auto graph = MakeChain(length);
  Result<std::shared_ptr<CpuBackend>> backend = CreateXnnpackBackend();
  if (!backend.ok() || !SetThreadAffinity(std::vector<int>{ThreadAffinity().front()}).ok()) {
    state.SkipWithError("no backend, or no core");
    return;
  }
  Result<std::unique_ptr<CpuContext>> context = (*backend)->CreateContext(1);
  struct alignas(64) Line {
    float values[16];
  };
  std::vector<Line> arena(static_cast<size_t>(length + 2) * 8);
  View view;
  view.tensor = 0;
  view.region = Region::Whole({1, 64});
  view.strides = {64, 1};
  std::vector<std::unique_ptr<CpuKernel>> kernels;
  for (OpId op = 0; op < graph->op_count(); ++op) {
    KernelRequest request;
    request.graph = graph.get();
    request.op = op;
    request.region = view.region;
    request.reads = {{&view, &arena[static_cast<size_t>(op) * 8]}};
    request.write = {&view, &arena[static_cast<size_t>(op + 1) * 8]};
    Result<std::unique_ptr<CpuKernel>> kernel = (*backend)->CreateKernel(context->get(), request);
    if (!kernel.ok()) {
      state.SkipWithError(kernel.status().message().c_str());
      return;
    }
    kernels.push_back(std::move(kernel).value());
  }
  for (auto _ : state) {
    for (const std::unique_ptr<CpuKernel>& kernel : kernels) {
      if (!kernel->Run().ok()) state.SkipWithError("a kernel failed");
    }
  }
  state.counters["us_per_operator"] =
      benchmark::Counter(static_cast<double>(length) * 1e-6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

struct OperatorDeleter {
  void operator()(xnn_operator_t op) const { xnn_delete_operator(op); }
};

void RunOperator(benchmark::State& state) {
  const size_t length = static_cast<size_t>(state.range(0));
  xnn_status status = xnn_initialize(nullptr);
  if (!SetThreadAffinity(std::vector<int>{ThreadAffinity().front()}).ok()) status = xnn_status_unsupported_hardware;
  xnn_unary_params relu;
  relu.clamp.min = 0;
  relu.clamp.max = std::numeric_limits<float>::infinity();
  std::vector<float> arena((length + 2) * 128);
  std::vector<std::unique_ptr<xnn_operator, OperatorDeleter>> operators;
  for (size_t i = 0; i < length && status == xnn_status_success; ++i) {
    xnn_operator_t op = nullptr;
    status = xnn_create_unary_elementwise_nc(xnn_unary_clamp, xnn_datatype_fp32, xnn_datatype_fp32, &relu, nullptr, nullptr, 0, &op);
    if (status != xnn_status_success) break;
    operators.emplace_back(op);
    status = xnn_reshape_unary_elementwise_nc(op, 1, 64, 64, 64, nullptr);
    if (status == xnn_status_success) status = xnn_setup_unary_elementwise_nc(op, &arena[i * 128], &arena[(i + 1) * 128]);
  }
  if (status != xnn_status_success) {
    state.SkipWithError("XNNPACK refuses the chain, or no core");
    return;
  }
  for (auto _ : state) {
    for (const auto& op : operators) {
      if (xnn_run_operator(op.get(), nullptr) != xnn_status_success) state.SkipWithError("an operator failed");
    }
  }
  state.counters["us_per_operator"] =
      benchmark::Counter(static_cast<double>(length) * 1e-6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
// Last: they pin the main thread.
BENCHMARK(RunOperator)->Arg(200)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(Kernels)->Arg(200)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace plait

BENCHMARK_MAIN();
