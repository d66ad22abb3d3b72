#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "benchmarks/tool/commands.h"
#include "benchmarks/tool/inputs.h"
#include "benchmarks/tool/options.h"
#include "backends/reference/reference.h"
#include "src/base/clock.h"
#include "src/plan/trace.h"

namespace plait {
namespace {

struct RunOptions {
  CommonOptions common;
  std::string model, output_dir, lane;
  std::vector<std::string> inputs;
  bool reference = false;
};

Status Run(const RunOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(const Graph graph, LoadModel(options.common, options.model));
  PLAIT_ASSIGN_OR_RETURN(LaneSet lanes, OpenLanes(options.common));
  PlannedModel planned;
  if (options.lane.empty()) {
    PLAIT_ASSIGN_OR_RETURN(planned, PlanModel(options.common, lanes, options.model, graph));
  } else {
    LaneId lane = 0;
    const LaneId count = static_cast<LaneId>(lanes.lanes.size());
    while (lane < count && lanes.lanes[static_cast<size_t>(lane)]->name() != options.lane) ++lane;
    if (lane == count) return NotFound("--lane ", options.lane, ": there is no such lane here; `plait devices` lists them");
    PLAIT_ASSIGN_OR_RETURN(planned, SingleLanePlan(graph, lanes, lane));
  }
  SessionOptions session_options;
  session_options.bind.strict = options.common.strict;
  session_options.bind.handoff_latency_us = options.common.handoff_latency_us;
  session_options.bind.timings = !options.common.trace_file.empty();
  const Result<std::unique_ptr<Session>> opened = OpenSession(planned, lanes, session_options);
  if (!opened.ok()) return opened.status().Annotated(options.model);
  Session* const session = opened->get();
  PLAIT_RETURN_IF_ERROR(FillInputs(*planned.graph, options.inputs, options.common.seed, session));
  const int64_t start_ns = NowNs();
  PLAIT_RETURN_IF_ERROR(session->Run());
  const double us = static_cast<double>(NowNs() - start_ns) / 1000;

  int reference_steps = 0;
  std::string used;
  for (const LaneReport& report : session->reports()) {
    reference_steps += report.reference_steps;
    if (report.compute_steps > 0) used += (used.empty() ? "" : ", ") + report.name + ": " + std::to_string(report.compute_steps) + " steps";
  }
  std::printf("%s: one inference in %.0f us (the first one; `plait bench` measures), %s\n", options.model.c_str(), us, used.c_str());
  if (reference_steps > 0) std::printf("%d steps fell back to the slow reference kernels\n", reference_steps);
  if (options.reference) {
    std::vector<const void*> inputs;
    for (size_t i = 0; i < planned.graph->inputs.size(); ++i) inputs.push_back(session->input(static_cast<int>(i)).data());
    std::vector<std::vector<std::byte>> expected;
    PLAIT_RETURN_IF_ERROR(EvaluateReference(graph, inputs, &expected));
    std::printf("largest difference from the reference, relative to the largest magnitude: %.2e\n",
                MaxRelativeError(CopyOutputs(*planned.graph, *session), expected));
  }
  if (!options.output_dir.empty()) PLAIT_RETURN_IF_ERROR(SaveOutputs(*planned.graph, *session, options.output_dir));
  if (!options.common.trace_file.empty()) {
    PLAIT_RETURN_IF_ERROR(WriteOutput(options.common.trace_file, TraceJson(*planned.graph, planned.plan->program, session->timings())));
  }
  return Status();
}

}  // namespace

void AddRunCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app->add_subcommand("run", "Run one inference and keep its outputs");
  command->footer("Examples:\n  plait run model.onnx --input image=cat.npy --output-dir out\n  plait run resnet50 --lane cpu0 --reference\n"
                  "  plait run resnet50 --random-plan 7 --clusters 0 --opencl-cpu 1 --strict");
  command->add_option("model", options->model, "A file or a zoo name")->required();
  command->add_option("--input", options->inputs, "NAME=FILE.npy (repeatable); inputs not given are seeded random");
  command->add_option("--output-dir", options->output_dir, "Folder for the outputs, one NAME.npy each");
  CLI::Option* const lane = command->add_option("--lane", options->lane, "Run everything on this lane, e.g. cpu0");
  command->add_flag("--reference", options->reference, "Compare the outputs with the reference backend's (slow)");
  command->add_option("--trace", options->common.trace_file, "Write a Chrome/Perfetto trace of the inference to this file");
  AddLaneOptions(command, &options->common);
  AddPlanOptions(command, &options->common);
  lane->excludes(command->get_option("--plan"))->excludes(command->get_option("--random-plan"));
  command->callback([=] { *exit_code = ExitCode(Run(*options)); });
}

}  // namespace plait
