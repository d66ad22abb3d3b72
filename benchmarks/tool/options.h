// Options that several commands share, and what they open: lanes, profile, plan.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/api/lanes.h"
#include "src/api/planning.h"
#include "src/graph/graph.h"
#include "src/runtime/session.h"

namespace CLI {
class App;
}

namespace plait {

struct CommonOptions {
  std::string clusters;      // --clusters, PLAIT_CLUSTERS
  std::string opencl_cpu;    // --opencl-cpu, PLAIT_OPENCL_CPU
  bool no_gpu = false;
  std::string cache_dir;     // --cache, else $XDG_CACHE_HOME/plait or ~/.cache/plait
  bool strict = false;
  double handoff_latency_us = 0;
  std::vector<std::string> shapes;  // --shape NAME=1x3x224x224

  std::string plan_file;
  bool has_random_plan = false;
  uint64_t random_plan = 0;
  std::string effort = "default";
  int64_t evaluations = 0;
  uint64_t seed = 1;
  bool no_tune = false;

  std::string json_file;
  std::string trace_file;
  bool quiet = false;
};

void AddLaneOptions(CLI::App* command, CommonOptions* options);   // clusters, opencl-cpu, cache, ...
void AddPlanOptions(CLI::App* command, CommonOptions* options);   // plan, random-plan, effort, evaluations, seed
void AddJsonOption(CLI::App* command, CommonOptions* options);

Result<LaneSet> OpenLanes(const CommonOptions& options);
Result<Graph> LoadModel(const CommonOptions& options, const std::string& model);

// The folder for profiles, plans and program binaries, created if need be; empty with a warning if none can be made.
std::string CacheDir(const CommonOptions& options);

// `graph`, which `model` names in messages, made ready for `lanes`, with a plan as the options ask: a file, a random one, or searched (calibrating first what the profile lacks),
// with progress on standard error.
Result<PlannedModel> PlanModel(const CommonOptions& options, const LaneSet& lanes, const std::string& model, const Graph& graph);
// By one of SimpleStrategies(), from what is known of the costs; not tuned.
Result<PlannedModel> PlanBySimpleStrategy(const CommonOptions& options, const LaneSet& lanes, const Graph& graph, const std::string& strategy);

class Progress;
// Outlived by `progress`.
PlanRequest MakePlanRequest(const CommonOptions& options, Progress* progress);

// Writes `text` to the file, or to standard output for "-".
Status WriteOutput(const std::string& file, const std::string& text);

// One line of progress on standard error, overwritten in place on a terminal, printed at most every few seconds elsewhere.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  void Show(const std::string& line);
  void Done();

 private:
  bool quiet_, terminal_, shown_ = false;
  int64_t last_ns_ = 0;
};

}  // namespace plait
