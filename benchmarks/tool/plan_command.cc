#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "benchmarks/tool/commands.h"
#include "benchmarks/tool/options.h"
#include "src/plan/explain.h"

namespace plait {
namespace {

struct PlanOptions {
  CommonOptions common;
  std::string model, output;
  bool explain = false;
};

Status MakePlan(const PlanOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(const Graph graph, LoadModel(options.common, options.model));
  PLAIT_ASSIGN_OR_RETURN(const LaneSet lanes, OpenLanes(options.common));
  PLAIT_ASSIGN_OR_RETURN(const PlannedModel planned, PlanModel(options.common, lanes, options.model, graph));
  const Schedule& schedule = planned.plan->schedule;
  const ProgramStats stats = StatsOf(planned.plan->program);
  const bool text = options.common.json_file != "-";
  const double gap = schedule.lower_bound_us > 0 ? schedule.predicted_us / schedule.lower_bound_us - 1 : 0;
  if (text) {
    std::printf("%s: predicted %.0f us, lower bound %.0f us (gap %.1f %%), %d compute steps, %d handoffs, %d GPU segments; searched in %.1f ms%s\n",
                options.model.c_str(), schedule.predicted_us, schedule.lower_bound_us, gap * 100, stats.compute_steps, stats.handoffs, stats.segments,
                planned.planning_us / 1000, planned.from_cache ? " (from the cache)" : "");
    for (size_t i = 0; i < planned.rounds.size(); ++i) {
      const TuneRound& round = planned.rounds[i];
      std::printf("candidate %zu: predicted %.0f us, measured %.0f us, best single lane beside it %.0f us\n", i + 1, round.predicted_us, round.measured_us,
                  round.best_single_us);
    }
    if (planned.measured_us > 0) {
      std::printf("measured: %.0f us, best single lane %.0f us; %d options measured, %d avoided\n", planned.measured_us, planned.best_single_us,
                  planned.measured, planned.avoided);
    }
    if (options.explain) std::printf("%s", ExplainPlan(*planned.graph, *planned.plan).c_str());
  }
  if (!options.output.empty()) {
    PLAIT_RETURN_IF_ERROR(SavePlan(*planned.plan, options.output));
    if (text) std::printf("written to %s\n", options.output.c_str());
  }
  if (options.common.json_file.empty()) return Status();
  nlohmann::json rounds = nlohmann::json::array();
  for (const TuneRound& round : planned.rounds) {
    rounds.push_back({{"predicted_us", round.predicted_us}, {"measured_us", round.measured_us}, {"best_single_us", round.best_single_us}});
  }
  nlohmann::json row = {{"candidates", rounds}, {"model", options.model}, {"strategy", schedule.strategy}, {"predicted_us", schedule.predicted_us},
                        {"lower_bound_us", schedule.lower_bound_us}, {"gap", gap}, {"planning_us", planned.planning_us},
                        {"compute_steps", stats.compute_steps}, {"handoffs", stats.handoffs}, {"segments", stats.segments}, {"waits", stats.waits},
                        {"measured_options", planned.measured}, {"avoided_options", planned.avoided}, {"from_cache", planned.from_cache},
                        {"measured_us", planned.measured_us}, {"best_single_us", planned.best_single_us}};
  if (options.explain) row["explanation"] = ExplainPlan(*planned.graph, *planned.plan);
  return WriteOutput(options.common.json_file, row.dump(2) + "\n");
}

}  // namespace

void AddPlanCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app->add_subcommand("plan", "Search for a plan: how to cut each operator, on which lanes, in which order");
  command->footer("Examples:\n  plait plan resnet50 --explain\n  plait plan resnet50 -o resnet50.plan.json --clusters 0 --opencl-cpu 1");
  command->add_option("model", options->model, "A file or a zoo name")->required();
  command->add_option("-o,--output", options->output, "Write the plan to this file");
  command->add_flag("--explain", options->explain, "Show the schedule, its critical path, the lanes' utilisation and the handoffs that matter");
  AddLaneOptions(command, &options->common);
  AddPlanOptions(command, &options->common);
  AddJsonOption(command, &options->common);
  command->callback([=] { *exit_code = ExitCode(MakePlan(*options)); });
}

}  // namespace plait
