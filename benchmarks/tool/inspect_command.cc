#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "benchmarks/tool/commands.h"
#include "benchmarks/tool/options.h"
#include "src/graph/operators.h"
#include "src/zoo/zoo.h"

namespace plait {
namespace {

Status ListZoo(const CommonOptions& options) {
  nlohmann::json rows = nlohmann::json::array();
  if (options.json_file != "-") std::printf("The zoo:\n");
  for (const ZooEntry& entry : ZooEntries()) {
    const std::string name(entry.name), description(entry.description);
    if (options.json_file != "-") std::printf("  %-20s %s\n", name.c_str(), description.c_str());
    rows.push_back({{"name", name}, {"description", description}});
  }
  if (options.json_file.empty()) return Status();
  return WriteOutput(options.json_file, nlohmann::json({{"zoo", rows}}).dump(2) + "\n");
}

std::string LanesOf(const Graph& graph, OpId op, const std::vector<PlanningLane>& lanes) {
  if (IsView(graph.op(op).kind)) return "view";
  std::string out;
  for (const PlanningLane& lane : lanes) {
    const KernelSupport support = lane.rules->Supports(graph, op);
    out += (out.empty() ? "" : " ") + lane.spec.name + ":" + (support.supported ? support.kernel : "none (" + support.reason + ")");
  }
  return out;
}

Status Inspect(const CommonOptions& options, const std::string& model) {
  if (model.empty()) return ListZoo(options);
  PLAIT_ASSIGN_OR_RETURN(const Graph source, LoadModel(options, model));
  PLAIT_ASSIGN_OR_RETURN(const LaneSet set, OpenLanes(options));
  const std::vector<PlanningLane> lanes = set.Planning();
  PLAIT_ASSIGN_OR_RETURN(const Graph graph, PrepareGraph(source, lanes));
  const bool text = options.json_file != "-";
  nlohmann::json rows = nlohmann::json::array();
  if (text) std::printf("%-44s %-16s %-18s %12s %12s  %s\n", "operator", "kind", "output", "MACs", "weight bytes", "lanes");
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Operator& op = graph.op(id);
    const Work work = WorkOf(graph, op);
    const std::string where = LanesOf(graph, id, lanes);
    if (text) {
      std::printf("%-44s %-16s %-18s %12lld %12lld  %s\n", op.name.c_str(), std::string(Name(op.kind)).c_str(), ToString(graph.output(op).shape).c_str(),
                  static_cast<long long>(work.macs), static_cast<long long>(work.weight_bytes), where.c_str());
    }
    rows.push_back({{"name", op.name}, {"kind", Name(op.kind)}, {"output", ToString(graph.output(op).shape)}, {"macs", work.macs},
                    {"weight_bytes", work.weight_bytes}, {"output_bytes", work.output_bytes}, {"lanes", where}});
  }
  nlohmann::json inputs = nlohmann::json::array(), outputs = nlohmann::json::array();
  for (TensorId t : source.inputs) inputs.push_back({{"name", source.tensor(t).name}, {"shape", ToString(source.tensor(t).shape)}, {"dtype", Name(source.tensor(t).dtype)}});
  for (TensorId t : source.outputs) outputs.push_back({{"name", source.tensor(t).name}, {"shape", ToString(source.tensor(t).shape)}, {"dtype", Name(source.tensor(t).dtype)}});
  if (text) {
    for (const auto& [what, list] : {std::pair("input", &inputs), std::pair("output", &outputs)}) {
      for (const auto& t : *list) {
        std::printf("%s %s: %s %s\n", what, t["name"].get<std::string>().c_str(), t["dtype"].get<std::string>().c_str(), t["shape"].get<std::string>().c_str());
      }
    }
    std::printf("%s: %d operators in the file, %d after the passes; %.1f M parameters, %.0f M MACs\n", model.c_str(), source.op_count(), graph.op_count(),
                static_cast<double>(ParameterCount(source)) / 1e6, static_cast<double>(TotalMacs(source)) / 1e6);
  }
  if (options.json_file.empty()) return Status();
  return WriteOutput(options.json_file,
                     nlohmann::json({{"model", model}, {"parameters", ParameterCount(source)}, {"macs", TotalMacs(source)}, {"inputs", inputs},
                                     {"outputs", outputs}, {"operators", rows}}).dump(2) + "\n");
}

}  // namespace

void AddInspectCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<CommonOptions>();
  auto model = std::make_shared<std::string>();
  CLI::App* command = app->add_subcommand("inspect", "Operators, shapes, work, and which lane supports what; without MODEL: the zoo");
  command->footer("Examples:\n  plait inspect\n  plait inspect resnet50\n  plait inspect model.onnx --json -");
  command->add_option("model", *model, "A file or a zoo name");
  AddLaneOptions(command, options.get());
  AddJsonOption(command, options.get());
  command->callback([=] { *exit_code = ExitCode(Inspect(*options, *model)); });
}

}  // namespace plait
