#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "benchmarks/tool/commands.h"
#include "benchmarks/tool/options.h"
#include "src/platform/cpu_list.h"

namespace plait {
namespace {

Status Devices(const CommonOptions& options, bool suggest) {
  if (suggest) {
    const LaneOptions suggested = SuggestLanes();
    std::string clusters;
    for (const std::vector<int>& cpus : suggested.clusters) clusters += (clusters.empty() ? "" : "/") + FormatCpuList(cpus);
    if (!clusters.empty()) std::printf("--clusters\n%s\n", clusters.c_str());
    if (!suggested.opencl_cpus.empty()) std::printf("--opencl-cpu\n%s\n", FormatCpuList(suggested.opencl_cpus).c_str());
    return Status();
  }
  PLAIT_ASSIGN_OR_RETURN(const LaneSet set, OpenLanes(options));
  nlohmann::json rows = nlohmann::json::array();
  for (size_t i = 0; i < set.lanes.size(); ++i) {
    const Lane& lane = *set.lanes[i];
    if (options.json_file != "-") {
      std::printf("%-6s %s%s\n", lane.name().c_str(), set.descriptions[i].c_str(), lane.coherent() ? "" : ", memory not coherent with the host");
    }
    rows.push_back({{"name", lane.name()}, {"kind", lane.kind() == LaneKind::kGpu ? "gpu" : "cpu"}, {"description", set.descriptions[i]},
                    {"cpus", set.cpus[i]}, {"backend", lane.rules().name()}, {"coherent", lane.coherent()}});
  }
  if (options.json_file != "-") {
    for (const std::string& reason : set.refused) std::printf("not used: %s\n", reason.c_str());
  }
  if (options.json_file.empty()) return Status();
  return WriteOutput(options.json_file, nlohmann::json({{"lanes", rows}, {"refused", set.refused}}).dump(2) + "\n");
}

}  // namespace

void AddDevicesCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<CommonOptions>();
  auto suggest = std::make_shared<bool>(false);
  CLI::App* command = app->add_subcommand("devices", "What lanes this machine has, what was refused and why");
  command->footer("Examples:\n  plait devices\n  plait devices --clusters 0-3/4-6/7\n  plait devices --clusters 0 --opencl-cpu 1");
  AddLaneOptions(command, options.get());
  AddJsonOption(command, options.get());
  command->add_flag("--suggest-lanes", *suggest, "Print only the options that show two lanes on a machine with one cluster and no GPU, one a line");
  command->callback([=] { *exit_code = ExitCode(Devices(*options, *suggest)); });
}

}  // namespace plait
