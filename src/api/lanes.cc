#include "src/api/lanes.h"

#include <algorithm>

#include "backends/reference/reference.h"
#ifdef PLAIT_WITH_OPENCL
#include "backends/opencl/opencl.h"
#endif
#ifdef PLAIT_WITH_XNNPACK
#include "backends/xnnpack/xnnpack.h"
#endif
#include "src/graph/passes.h"
#include "src/partition/storage.h"
#include "src/platform/affinity.h"
#include "src/platform/cpu_list.h"
#include "src/platform/topology.h"
#include "src/runtime/session.h"

namespace plait {
namespace {

std::string Cores(const std::vector<int>& cpus) {
  return StrCat(cpus.size() == 1 ? "core " : "cores ", FormatCpuList(cpus));
}

Result<std::vector<std::shared_ptr<CpuBackend>>> CpuBackends(const LaneOptions& options, std::vector<std::string>* refused) {
  std::vector<std::shared_ptr<CpuBackend>> backends;
#ifdef PLAIT_WITH_XNNPACK
  XnnpackOptions xnnpack_options;
  xnnpack_options.owns_process = options.owns_process;
  Result<std::shared_ptr<XnnpackBackend>> xnnpack = CreateXnnpackBackend(xnnpack_options);
  if (xnnpack.ok()) {
    backends.push_back(std::move(xnnpack).value());
  } else {
    refused->push_back("XNNPACK: " + xnnpack.status().message());
  }
#else
  (void)options;
  refused->push_back("XNNPACK: this build was made without it (PLAIT_XNNPACK=OFF)");
#endif
  backends.push_back(CreateReferenceBackend());
  return backends;
}

Status OpenGpu(const LaneOptions& options, LaneSet* set) {
#ifdef PLAIT_WITH_OPENCL
  OpenClLaneConfig config;
  config.name = "gpu0";
  config.allow_cpu_device = !options.opencl_cpus.empty();
  config.cpus = options.opencl_cpus;
  config.strict = options.strict;
  config.cache_dir = options.cache_dir;
  config.context = options.opencl_context;
  config.device = options.opencl_device;
  config.queue = options.opencl_queue;
  PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, CreateOpenClLane(config));
  const OpenClDeviceInfo& device = OpenClDeviceOf(*lane);
  std::string description = StrCat(device.device, " (", device.platform, ")");
  if (!options.opencl_cpus.empty()) description += " on " + Cores(options.opencl_cpus);
  set->lanes.push_back(std::move(lane));
  set->descriptions.push_back(std::move(description));
  set->cpus.push_back(options.opencl_cpus);
  return Status();
#else
  (void)options;
  (void)set;
  return Unsupported("this build was made without OpenCL (PLAIT_OPENCL=OFF)");
#endif
}

Result<std::shared_ptr<Lane>> OpenCpuLane(const std::string& name, const std::vector<int>& cpus,
                                          const std::vector<std::shared_ptr<CpuBackend>>& backends) {
  CpuLaneConfig config;
  config.name = name;
  config.cpus = cpus;
  config.threads = static_cast<int>(cpus.size());
  config.backends = backends;
  PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, CreateCpuLane(config));
  return std::shared_ptr<Lane>(std::move(lane));
}

}  // namespace

std::vector<PlanningLane> LaneSet::Planning() const {
  LaneId last_cpu = -1;
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i]->kind() == LaneKind::kCpu) last_cpu = static_cast<LaneId>(i);
  }
  std::vector<PlanningLane> out;
  DomainId next_domain = kHostDomain + 1;
  for (const std::shared_ptr<Lane>& lane : lanes) {
    PlanningLane planning;
    planning.spec.name = lane->name();
    planning.spec.kind = lane->kind();
    if (lane->kind() == LaneKind::kGpu) {
      planning.spec.domain = next_domain++;
      planning.spec.host = last_cpu;
    }
    planning.rules = rules.empty() ? &lane->rules() : rules[out.size()].get();
    planning.coherent = lane->coherent();
    out.push_back(std::move(planning));
  }
  return out;
}

Result<LaneSet> OpenLanes(const LaneOptions& options) {
  LaneSet set;
  // The GPU comes first in time (a CPU device can be confined only before anything else has touched it), last in order.
  LaneSet gpu;
  if (!options.gpu) {
    set.refused.push_back("gpu0: switched off");
  } else if (Status status = OpenGpu(options, &gpu); !status.ok()) {
    if (options.gpu_required || !options.opencl_cpus.empty() || options.opencl_context != nullptr) return status.Annotated("gpu0");
    set.refused.push_back("gpu0: " + status.message());
  }

  const std::vector<int> allowed = ThreadAffinity();
  std::vector<std::vector<int>> clusters = options.clusters;
  if (clusters.empty()) {
    for (const Cluster& cluster : ReadTopology(SysFs(), allowed).clusters) {
      std::vector<int> cpus;
      for (int cpu : cluster.cpus) {
        if (std::find(options.opencl_cpus.begin(), options.opencl_cpus.end(), cpu) == options.opencl_cpus.end()) cpus.push_back(cpu);
      }
      if (!cpus.empty()) clusters.push_back(std::move(cpus));
    }
  }
  PLAIT_ASSIGN_OR_RETURN(const auto backends, CpuBackends(options, &set.refused));
  std::string kernels = "reference kernels";
#ifdef PLAIT_WITH_XNNPACK
  if (backends.size() > 1) kernels = DescribeXnnpack();
#endif
  for (const std::vector<int>& cpus : clusters) {
    const std::string name = StrCat("cpu", set.lanes.size());
    PLAIT_ASSIGN_OR_RETURN(std::shared_ptr<Lane> lane, OpenCpuLane(name, cpus, backends));
    set.descriptions.push_back(StrCat(kernels, " on ", Cores(cpus)));
    set.lanes.push_back(std::move(lane));
    set.cpus.push_back(cpus);
    set.all_cpus.insert(set.all_cpus.end(), cpus.begin(), cpus.end());
  }
  if (set.lanes.empty()) {
    return NotFound("no core is left for a CPU lane: the CPU OpenCL device has taken ", Cores(options.opencl_cpus), ", so confine it to fewer");
  }
  for (size_t i = 0; i < gpu.lanes.size(); ++i) {
    set.lanes.push_back(gpu.lanes[i]);
    set.descriptions.push_back(gpu.descriptions[i]);
    set.cpus.push_back(gpu.cpus[i]);
    set.all_cpus.insert(set.all_cpus.end(), gpu.cpus[i].begin(), gpu.cpus[i].end());
  }
  std::sort(set.all_cpus.begin(), set.all_cpus.end());
  set.all_cpus.erase(std::unique(set.all_cpus.begin(), set.all_cpus.end()), set.all_cpus.end());
  if (set.all_cpus.size() > 1) {
    PLAIT_ASSIGN_OR_RETURN(set.all_cpu, OpenCpuLane("all-cpu", set.all_cpus, backends));
  }
  return set;
}

LaneOptions SuggestLanes() {
  LaneOptions suggested;
  const Topology topology = ReadTopology(SysFs(), ThreadAffinity());
  if (topology.clusters.size() != 1 || topology.cores.size() < 2) return suggested;
#ifdef PLAIT_WITH_OPENCL
  for (const OpenClDeviceInfo& device : ListOpenClDevices()) {
    if (device.is_gpu) return suggested;
  }
  suggested.clusters = {{topology.cores[0].id}};
  suggested.opencl_cpus = {topology.cores[1].id};
#else
  suggested.clusters = {{topology.cores[0].id}, {topology.cores[1].id}};
#endif
  return suggested;
}

Result<Graph> PrepareGraph(const Graph& graph, const std::vector<PlanningLane>& lanes) {
  PLAIT_ASSIGN_OR_RETURN(const Graph optimized, Optimize(graph));
  return PlaceCopies(optimized, [&lanes](const Graph& g, OpId op, int operand) {
    return std::all_of(lanes.begin(), lanes.end(), [&](const PlanningLane& lane) { return lane.rules->Strided(g, op, operand); });
  });
}

}  // namespace plait
