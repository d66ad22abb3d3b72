// Parts, concats and splits lie in place for the kernels of the real lanes, too.
#include <gtest/gtest.h>

#include "src/api/lanes.h"
#include "src/api/planning.h"
#include "src/platform/affinity.h"
#include "src/zoo/zoo.h"
#include "tests/lanes/devices.h"

namespace plait {
namespace {

bool IsCopy(const Graph& graph, OpId op) {
  const Operator& o = graph.op(op);
  return o.kind == OpKind::kUnary && o.as<UnaryAttrs>().kind == UnaryKind::kCopy;
}

// A constant is copied where it is an operand of a Concat (the vision transformers' class token); nothing that is computed is.
TEST(Copies, RealKernelsNeedNoneInAnyNetwork) {
  const std::vector<int> cores = ThreadAffinity();
  LaneOptions options;
  options.clusters = {{cores.front()}, {cores.back()}};
  options.opencl_cpus = {cores.back()};
  Result<LaneSet> lanes = OpenLanes(options);
  if (!lanes.ok() && !HasOpenClDevice()) {  // the CPU lanes alone
    options.opencl_cpus.clear();
    options.gpu = false;
    lanes = OpenLanes(options);
  }
  ASSERT_TRUE(lanes.ok()) << lanes.status().message();
  for (const ZooEntry& entry : ZooEntries()) {
    if (entry.name == "vit_b_16") continue;  // as vit_ti_16, with many more weights
    SCOPED_TRACE(entry.name);
    const Result<Graph> graph = BuildZooModel(std::string(entry.name));
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      const Result<PlannedModel> plan = RandomPlan(*graph, *lanes, seed);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      for (const auto& steps : plan->plan->program.steps) {
        for (const Step& step : steps) {
          EXPECT_NE(step.kind, StepKind::kConvert);
          if (step.kind != StepKind::kCompute || !IsCopy(*plan->graph, step.op)) continue;
          EXPECT_TRUE(plan->graph->tensor(plan->graph->op(step.op).inputs[0]).is_constant()) << plan->graph->op(step.op).name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace plait
