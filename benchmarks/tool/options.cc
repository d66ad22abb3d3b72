#include "benchmarks/tool/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "src/api/models.h"
#include "src/base/clock.h"
#include "src/base/file_io.h"
#include "src/base/log.h"
#include "src/platform/cpu_list.h"

namespace plait {
namespace {

Result<Dims> ParseShape(const std::string& text, const std::string& option) {
  Dims dims;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t end = std::min(text.find('x', at), text.size());
    char* stop = nullptr;
    const std::string number = text.substr(at, end - at);
    const long long value = std::strtoll(number.c_str(), &stop, 10);
    if (number.empty() || *stop != '\0' || value < 1 || dims.rank() == kMaxRank) {
      return InvalidArgument("--shape ", option, ": expected NAME=1x3x224x224 with up to ", kMaxRank, " positive sizes");
    }
    dims.push_back(value);
    at = end + 1;
  }
  return dims;
}

}  // namespace

void AddLaneOptions(CLI::App* command, CommonOptions* options) {
  command->add_option("--clusters", options->clusters, "Cores of the CPU lanes, clusters parted by '/', e.g. 0-3/4-6/7 (default: from the system)")
      ->envname("PLAIT_CLUSTERS");
  command->add_option("--opencl-cpu", options->opencl_cpu, "Take a CPU OpenCL device as gpu0, confined to these cores, e.g. 1")
      ->envname("PLAIT_OPENCL_CPU");
  command->add_flag("--no-gpu", options->no_gpu, "Open no GPU lane");
  command->add_option("--cache", options->cache_dir, "Folder for SoC profiles, plans and program binaries (default: $XDG_CACHE_HOME/plait)");
  command->add_flag("--strict", options->strict, "GPU lanes see only what Acquire and Publish declare (for tests)");
  command->add_option("--handoff-latency", options->handoff_latency_us, "Latency injected into every handoff to and from a GPU lane, in microseconds")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--shape", options->shapes, "Fix an input's shape, NAME=1x3x224x224 (repeatable)");
  command->add_flag("--quiet", options->quiet, "No progress");
}

void AddPlanOptions(CLI::App* command, CommonOptions* options) {
  CLI::Option* const plan = command->add_option("--plan", options->plan_file, "Use this plan file instead of searching");
  command->add_option_function<uint64_t>(
      "--random-plan", [options](uint64_t seed) { options->has_random_plan = true, options->random_plan = seed; },
      "Use a random legal plan made from this seed (for tests)")->excludes(plan);
  command->add_option("--effort", options->effort, "How long to search")->check(CLI::IsMember({"fast", "default", "high"}));
  command->add_option("--evaluations", options->evaluations, "Search budget in evaluated schedules (default: by effort)")->check(CLI::NonNegativeNumber);
  command->add_option("--seed", options->seed, "Seed of the search and of random inputs");
  command->add_flag("--no-tune", options->no_tune, "Trust the predictions: do not run candidate plans to choose among them");
}

void AddJsonOption(CLI::App* command, CommonOptions* options) {
  command->add_option("--json", options->json_file, "Write the results as JSON to this file ('-': standard output)");
}

std::string CacheDir(const CommonOptions& options) {
  std::string dir = options.cache_dir;
  if (dir.empty()) {
    const char* xdg = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    if (xdg != nullptr && *xdg != '\0') {
      dir = std::string(xdg) + "/plait";
    } else if (home != nullptr && *home != '\0') {
      dir = std::string(home) + "/.cache/plait";
    } else {
      return "";
    }
  }
  if (Status status = MakeFolders(dir); !status.ok()) {
    Log(LogLevel::kWarning, StrCat("the cache folder ", status.message(), "; nothing will be kept (choose another with --cache)"));
    return "";
  }
  return dir;
}

Result<LaneSet> OpenLanes(const CommonOptions& options) {
  LaneOptions lanes;
  if (!options.clusters.empty()) {
    Result<std::vector<std::vector<int>>> clusters = ParseClusters(options.clusters);
    if (!clusters.ok()) return clusters.status().Annotated("--clusters");
    lanes.clusters = std::move(clusters).value();
  }
  if (!options.opencl_cpu.empty()) {
    Result<std::vector<int>> cpus = ParseCpuList(options.opencl_cpu);
    if (!cpus.ok()) return cpus.status().Annotated("--opencl-cpu");
    lanes.opencl_cpus = std::move(cpus).value();
  }
  lanes.gpu = !options.no_gpu;
  lanes.strict = options.strict;
  lanes.cache_dir = CacheDir(options);
  lanes.owns_process = true;
  Result<LaneSet> opened = OpenLanes(lanes);
  if (!opened.ok() && !options.opencl_cpu.empty()) return opened.status().Annotated("--opencl-cpu " + options.opencl_cpu);
  return opened;
}

Result<Graph> LoadModel(const CommonOptions& options, const std::string& model) {
  std::map<std::string, Dims> shapes;
  for (const std::string& option : options.shapes) {
    const size_t equals = option.rfind('=');
    if (equals == std::string::npos) return InvalidArgument("--shape ", option, ": expected NAME=1x3x224x224");
    PLAIT_ASSIGN_OR_RETURN(shapes[option.substr(0, equals)], ParseShape(option.substr(equals + 1), option));
  }
  return LoadModel(model, shapes);
}

PlanRequest MakePlanRequest(const CommonOptions& options, Progress* progress) {
  PlanRequest request;
  request.search.effort = options.effort == "fast" ? Effort::kFast : options.effort == "high" ? Effort::kHigh : Effort::kDefault;
  request.search.evaluations = options.evaluations;
  request.search.seed = options.seed;
  request.bind.strict = options.strict;
  request.bind.handoff_latency_us = options.handoff_latency_us;
  request.cache_dir = CacheDir(options);
  request.tune = !options.no_tune;
  request.progress = [progress](const std::string& what, double done, double seconds_left) {
    std::string line = StrCat(what, " ", static_cast<int>(done * 100), " %");
    if (seconds_left >= 0) line += StrCat(", ", static_cast<int>(seconds_left + 0.5), " s left");
    progress->Show(line);
  };
  return request;
}

Result<PlannedModel> PlanModel(const CommonOptions& options, const LaneSet& lanes, const std::string& model, const Graph& graph) {
  if (!options.plan_file.empty()) return LoadPlanFor(graph, lanes, options.plan_file);
  if (options.has_random_plan) return RandomPlan(graph, lanes, options.random_plan);
  Progress progress(options.quiet);
  Result<PlannedModel> planned = PlanGraph(graph, lanes, MakePlanRequest(options, &progress));
  if (!planned.ok()) return planned.status().Annotated(model);
  return planned;
}

Result<PlannedModel> PlanBySimpleStrategy(const CommonOptions& options, const LaneSet& lanes, const Graph& graph, const std::string& strategy) {
  Progress progress(options.quiet);
  PlanRequest request = MakePlanRequest(options, &progress);
  request.strategy = [&strategy](const Graph& prepared, const std::vector<PlanningLane>& planning, const PlanningCosts& costs, const SearchOptions&) {
    return SimpleSchedule(prepared, planning, costs, strategy);
  };
  Result<PlannedModel> planned = PlanGraph(graph, lanes, request);
  if (!planned.ok()) return planned.status().Annotated("strategy " + strategy);
  return planned;
}

Status WriteOutput(const std::string& file, const std::string& text) {
  if (file != "-") return WriteFileAtomically(file, text);
  std::cout << text << std::flush;
  return std::cout.good() ? Status() : IoError("standard output cannot be written");
}

Progress::Progress(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { Done(); }

void Progress::Show(const std::string& line) {
  if (quiet_) return;
  const int64_t now = NowNs();
  const int64_t pause_ns = terminal_ ? 100'000'000 : 5'000'000'000;
  if (last_ns_ != 0 && now - last_ns_ < pause_ns) return;
  last_ns_ = now;
  shown_ = true;
  std::fprintf(stderr, terminal_ ? "\r\033[Kplait: %s" : "plait: %s\n", line.c_str());
  std::fflush(stderr);
}

void Progress::Done() {
  if (shown_ && terminal_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace plait
