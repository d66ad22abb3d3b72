#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "benchmarks/tool/commands.h"
#include "benchmarks/tool/options.h"
#include "src/base/clock.h"
#include "src/zoo/zoo.h"

namespace plait {
namespace {

struct CalibrateOptions {
  CommonOptions common;
  std::vector<std::string> models;
  double seconds_per_lane = 30;
  std::string output;
};

Status Calibrate(const CalibrateOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(const LaneSet lanes, OpenLanes(options.common));
  std::vector<std::string> models = options.models;
  if (models.empty()) {
    for (const ZooEntry& entry : ZooEntries()) models.emplace_back(entry.name);
  }
  Progress progress(options.common.quiet);
  PlanRequest request = MakePlanRequest(options.common, &progress);
  // The budget is for all models together; what one leaves over is the next one's.
  double seconds_left = options.seconds_per_lane;
  nlohmann::json rows = nlohmann::json::array();
  for (size_t i = 0; i < models.size(); ++i) {
    PLAIT_ASSIGN_OR_RETURN(const Graph graph, LoadModel(options.common, models[i]));
    request.calibration_seconds_per_lane = seconds_left / static_cast<double>(models.size() - i);
    PLAIT_ASSIGN_OR_RETURN(const CalibrationReport report, CalibrateGraph(graph, lanes, request));
    seconds_left = std::max(1.0, seconds_left - report.seconds / static_cast<double>(lanes.lanes.size()));
    progress.Done();
    if (options.common.json_file != "-") {
      std::printf("%-20s %d operators and cuts measured in %.1f s, %d known already\n", models[i].c_str(), report.measured, report.seconds, report.known);
      std::fflush(stdout);
    }
    rows.push_back({{"model", models[i]}, {"measured", report.measured}, {"known", report.known}, {"seconds", report.seconds}});
  }
  const SocProfile profile = LoadCachedProfile(lanes, request);
  nlohmann::json handoffs = nlohmann::json::array();
  for (size_t from = 0; from < profile.lanes.size(); ++from) {
    for (size_t to = 0; to < profile.lanes.size(); ++to) {
      if (from == to) continue;
      const HandoffProfile& handoff = profile.handoffs[from][to];
      if (options.common.json_file != "-") {
        std::printf("handoff %s -> %s: %.1f us\n", profile.lanes[from].name.c_str(), profile.lanes[to].name.c_str(), handoff.sync_us);
      }
      handoffs.push_back({{"from", profile.lanes[from].name}, {"to", profile.lanes[to].name}, {"sync_us", handoff.sync_us}});
    }
  }
  if (!options.output.empty()) PLAIT_RETURN_IF_ERROR(SaveSocProfile(profile, options.output));
  if (options.common.json_file.empty()) return Status();
  return WriteOutput(options.common.json_file, nlohmann::json({{"soc", profile.soc}, {"models", rows}, {"handoffs", handoffs}}).dump(2) + "\n");
}

}  // namespace

void AddCalibrateCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = app->add_subcommand("calibrate", "Measure operators and handoffs on this machine's lanes; kept for later plans");
  command->footer("Examples:\n  plait calibrate\n  plait calibrate model.onnx --clusters 0 --opencl-cpu 1 -o soc.json");
  command->add_option("models", options->models, "Files or zoo names whose operators are measured (default: the zoo)");
  command->add_option("--seconds-per-lane", options->seconds_per_lane, "Bound on measuring, all models together")->check(CLI::Range(1.0, 3600.0));
  command->add_option("-o,--output", options->output, "Also write the SoC profile to this file");
  AddLaneOptions(command, &options->common);
  AddJsonOption(command, &options->common);
  command->callback([=] { *exit_code = ExitCode(Calibrate(*options)); });
}

}  // namespace plait
