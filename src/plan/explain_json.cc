#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/plan/describe.h"
#include "src/plan/explain.h"
#include "src/plan/predicted.h"

namespace plait {
namespace {

using nlohmann::json;

json StepJson(const Graph& graph, const StepProgram& program, const Step& step, const StepTiming& time) {
  json out = {{"step", Name(step.kind)}, {"start_us", static_cast<double>(time.start_ns) / 1e3}, {"us", static_cast<double>(time.end_ns - time.start_ns) / 1e3}};
  if (step.kind == StepKind::kCompute) {
    out["operator"] = graph.op(step.op).name;
    out["kind"] = Name(graph.op(step.op).kind);
    out["part"] = DescribePart(graph, step);
    out["begin"] = std::vector<int64_t>(step.region.begin.begin(), step.region.begin.end());
    out["size"] = std::vector<int64_t>(step.region.size.begin(), step.region.size.end());
    out["kernel"] = step.kernel;
  }
  json waits = json::array();
  for (const Wait& wait : step.waits) waits.push_back({{"lane", program.lanes[static_cast<size_t>(wait.lane)].name}, {"step", wait.steps - 1}});
  if (!waits.empty()) out["waits"] = std::move(waits);
  return out;
}

}  // namespace

std::string ExplainPlanJson(const Graph& graph, const Plan& plan) {
  const Result<std::vector<std::vector<StepTiming>>> timings = PredictedTimings(plan.program);
  if (!timings.ok()) return json({{"error", timings.status().message()}}).dump() + "\n";
  const ProgramStats stats = StatsOf(plan.program);
  json lanes = json::array();
  for (size_t lane = 0; lane < plan.program.lanes.size(); ++lane) {
    double busy_us = 0;
    json steps = json::array();
    for (size_t n = 0; n < plan.program.steps[lane].size(); ++n) {
      const StepTiming& time = (*timings)[lane][n];
      busy_us += static_cast<double>(time.end_ns - time.start_ns) / 1e3;
      steps.push_back(StepJson(graph, plan.program, plan.program.steps[lane][n], time));
    }
    const LaneSpec& spec = plan.program.lanes[lane];
    lanes.push_back({{"name", spec.name}, {"kind", spec.kind == LaneKind::kCpu ? "cpu" : "gpu"}, {"busy_us", busy_us}, {"steps", std::move(steps)}});
  }
  const json out = {{"model", graph.name}, {"strategy", plan.schedule.strategy}, {"soc", plan.soc}, {"predicted_us", plan.schedule.predicted_us},
                    {"lower_bound_us", plan.schedule.lower_bound_us}, {"parts", stats.compute_steps}, {"handoffs", stats.handoffs},
                    {"segments", stats.segments}, {"memory_bytes", plan.program.arena_bytes}, {"lanes", std::move(lanes)}};
  return out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace plait
