#include "benchmarks/tool/schedule_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "src/base/clock.h"
#include "src/base/file_io.h"
#include "src/schedule/bounds.h"
#include "src/schedule/instance.h"
#include "src/schedule/search.h"
#include "src/schedule/timeline.h"

namespace plait {
namespace {

struct ScheduleOptions {
  std::string instance, output, effort = "default", json;
  int64_t evaluations = 0;
  uint64_t seed = 1;
  bool bound = false, baselines = false, contention = false;
};

Status WriteReport(const ScheduleOptions& options, const nlohmann::json& report) {
  const std::string text = report.dump(2) + "\n";
  if (options.json != "-") return WriteFileAtomically(options.json, text);
  std::fputs(text.c_str(), stdout);
  return Status();
}

double Us(Tick ticks) { return static_cast<double>(ticks) / 10.0; }

Status SolveInstance(const ScheduleOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(const Problem problem, LoadInstance(options.instance));
  SearchOptions search;
  search.effort = options.effort == "fast" ? Effort::kFast : options.effort == "high" ? Effort::kHigh : Effort::kDefault;
  search.evaluations = options.evaluations;
  search.seed = options.seed;
  const int64_t begin = NowNs();
  PLAIT_ASSIGN_OR_RETURN(const Solution solution, Solve(problem, search));
  const double search_ms = static_cast<double>(NowNs() - begin) / 1e6;
  nlohmann::json report = {{"instance", problem.name}, {"operators", problem.ops.size()}, {"lanes", problem.lanes.size()}, {"effort", options.effort},
                           {"seed", options.seed}, {"makespan_us", Us(solution.assignment.makespan)}, {"strategy", solution.strategy}, {"optimal", solution.optimal},
                           {"evaluations", solution.evaluations}, {"search_ms", search_ms}};
  const bool text = options.json != "-";
  if (text) {
    std::printf("%s: %s us (%s), %lld evaluations in %.1f ms\n", problem.name.c_str(), TickText(solution.assignment.makespan).c_str(),
                (solution.strategy + (solution.optimal ? ", proven optimal" : "")).c_str(),
                static_cast<long long>(solution.evaluations), search_ms);
  }
  if (options.bound) {
    const int64_t bound_begin = NowNs();
    const Tick bound = solution.optimal ? solution.assignment.makespan : LowerBound(problem, solution.assignment.makespan);
    report["bound_ms"] = static_cast<double>(NowNs() - bound_begin) / 1e6;
    const double gap = bound > 0 ? Us(solution.assignment.makespan) / Us(bound) - 1 : 0;
    report["lower_bound_us"] = Us(bound);
    report["gap"] = gap;
    if (text) std::printf("lower bound %s us, gap %.2f %%\n", TickText(bound).c_str(), gap * 100);
  }
  if (options.baselines) {
    for (const Solution::Reference& b : solution.baselines) {
      report["baselines"][b.name] = Us(b.makespan);
      if (text) std::printf("  %-16s %s us, %.3fx\n", b.name.c_str(), TickText(b.makespan).c_str(), Us(b.makespan) / std::max(0.1, Us(solution.assignment.makespan)));
    }
  }
  if (options.contention) {
    PLAIT_ASSIGN_OR_RETURN(const ContendedTimeline contended, EvaluateContended(problem, solution.assignment));
    report["contended_us"] = contended.makespan_us;
    if (text) std::printf("with contention %.1f us\n", contended.makespan_us);
  }
  if (!options.output.empty()) PLAIT_RETURN_IF_ERROR(SaveScheduleFile(problem, solution.assignment, options.output));
  return options.json.empty() ? Status() : WriteReport(options, report);
}

}  // namespace

void AddScheduleCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<ScheduleOptions>();
  CLI::App* command = app->add_subcommand("schedule", "Solve a scheduling instance (docs/formats.md, plait-instance)");
  command->footer("Example:\n  plait schedule resnet50.json -o resnet50.schedule.json --bound --baselines");
  command->add_option("instance", options->instance, "A plait-instance file")->required();
  command->add_option("-o,--output", options->output, "Write the schedule to this file");
  command->add_option("--effort", options->effort, "How long to search")->check(CLI::IsMember({"fast", "default", "high"}))->capture_default_str();
  command->add_option("--evaluations", options->evaluations, "Splits to optimise at most; 0: by effort")->check(CLI::NonNegativeNumber);
  command->add_option("--seed", options->seed, "Seed of the search")->capture_default_str();
  command->add_flag("--bound", options->bound, "Compute a lower bound, too");
  command->add_flag("--baselines", options->baselines, "List the simple strategies");
  command->add_flag("--contention", options->contention, "Re-time the schedule under the instance's contention");
  command->add_option("--json", options->json, "Write a report to this file; -: standard output");
  command->callback([=] {
    const Status status = SolveInstance(*options);
    if (!status.ok()) std::fprintf(stderr, "plait: %s\n", status.message().c_str());
    *exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace plait
