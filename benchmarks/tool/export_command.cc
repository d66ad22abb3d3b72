#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "benchmarks/tool/commands.h"
#include "benchmarks/tool/options.h"
#include "src/base/file_io.h"
#include "src/formats/json_graph.h"
#include "src/formats/onnx_export.h"

namespace plait {
namespace {

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Status Export(const CommonOptions& options, const std::string& model, const std::string& output) {
  if (!EndsWith(output, ".onnx") && !EndsWith(output, ".json")) {
    return InvalidArgument("--output ", output, ": the name has to end in .onnx or .json, which says the format");
  }
  PLAIT_ASSIGN_OR_RETURN(const Graph graph, LoadModel(options, model));
  if (EndsWith(output, ".json")) {
    PLAIT_RETURN_IF_ERROR(WriteGraphJsonFile(graph, output));
  } else {
    PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ExportOnnx(graph));
    PLAIT_RETURN_IF_ERROR(WriteFileAtomically(output, bytes));
  }
  std::printf("%s: %d operators, written to %s\n", model.c_str(), graph.op_count(), output.c_str());
  return Status();
}

}  // namespace

void AddExportCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<CommonOptions>();
  auto model = std::make_shared<std::string>();
  auto output = std::make_shared<std::string>();
  CLI::App* command = app->add_subcommand("export", "Write a network for other runtimes (.onnx), or as Plait's own JSON");
  command->footer("Examples:\n  plait export resnet50 -o resnet50.onnx\n  plait export model.onnx -o model.json");
  command->add_option("model", *model, "A file or a zoo name")->required();
  command->add_option("-o,--output", *output, "The file to write: .onnx or .json")->required();
  command->add_option("--shape", options->shapes, "Fix an input's shape, NAME=1x3x224x224 (repeatable)");
  command->callback([=] { *exit_code = ExitCode(Export(*options, *model, *output)); });
}

}  // namespace plait
