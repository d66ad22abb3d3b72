// The lanes of this machine, opened from what the user asked for or what the system shows. The one place that knows the concrete backends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/interface/lane.h"
#include "src/schedule/schedule.h"

namespace plait {

struct LaneOptions {
  std::vector<std::vector<int>> clusters;   // cores of each CPU lane; empty: from sysfs, strongest first
  std::vector<int> opencl_cpus;             // take a CPU OpenCL device as gpu0, confined to these cores; empty: real GPUs only
  bool gpu = true;                          // false: no GPU lane
  bool gpu_required = false;                // no GPU lane is an error
  bool strict = false;                      // GPU lanes in strict mode (see BindOptions); planned as not coherent
  std::string cache_dir;                    // for program binaries; empty: none
  // The application's own OpenCL objects (see OpenClLaneConfig): gpu0 is theirs, and the cores of `opencl_cpus` are those that the application says its device occupies.
  void* opencl_context = nullptr;
  void* opencl_device = nullptr;
  void* opencl_queue = nullptr;
  bool owns_process = false;                // see XnnpackOptions: nothing else in this process uses XNNPACK
};

struct LaneSet {
  std::vector<std::shared_ptr<Lane>> lanes;          // cpu0, cpu1, ..., gpu0
  std::vector<std::string> descriptions;             // [lane]: "XNNPACK on core 0", "PoCL ... on core 1"
  std::vector<std::vector<int>> cpus;                // [lane]: cores it occupies
  std::vector<std::string> refused;                  // what was not opened, and why
  std::shared_ptr<Lane> all_cpu;                     // every core of all lanes as one pool; no lane of plans
  std::vector<int> all_cpus;
  std::vector<std::shared_ptr<const KernelRules>> rules;  // [lane] what planning goes by instead of the lane's own; empty: the lanes' own

  std::vector<PlanningLane> Planning() const;        // in the order of `lanes`; a GPU lane is hosted by the last CPU lane
};

// At least one CPU lane, or a Status. Must be called before anything else in the process touches OpenCL, so that a CPU device can be confined.
Result<LaneSet> OpenLanes(const LaneOptions& options);

// `clusters` and `opencl_cpus` that make two lanes where the machine has one cluster of at least two cores and no GPU; none elsewhere.
LaneOptions SuggestLanes();

// Optimize, then PlaceCopies for what the kernels of all `lanes` can do: the graph that plans refer to.
Result<Graph> PrepareGraph(const Graph& graph, const std::vector<PlanningLane>& lanes);

}  // namespace plait
