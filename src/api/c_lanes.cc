#include "src/api/c_objects.h"
#include "src/base/file_io.h"
#include "src/platform/cpu_list.h"

namespace plait::c_api {
namespace {

Result<LaneOptions> ReadLaneOptions(const plait_lanes_options& given) {
  LaneOptions options;
  if (given.gpu < PLAIT_GPU_OFF || given.gpu > PLAIT_GPU_REQUIRED) return InvalidArgument("plait_lanes_options::gpu is ", given.gpu, ", no plait_gpu_use");
  options.gpu = given.gpu != PLAIT_GPU_OFF;
  options.gpu_required = given.gpu == PLAIT_GPU_REQUIRED;
  options.strict = given.strict != 0;
  if (given.clusters != nullptr) {
    Result<std::vector<std::vector<int>>> clusters = ParseClusters(given.clusters);
    if (!clusters.ok()) return clusters.status().Annotated("plait_lanes_options::clusters");
    options.clusters = std::move(clusters).value();
  }
  if (given.opencl_cpu != nullptr) {
    Result<std::vector<int>> cpus = ParseCpuList(given.opencl_cpu);
    if (!cpus.ok()) return cpus.status().Annotated("plait_lanes_options::opencl_cpu");
    if (cpus->empty()) return InvalidArgument("plait_lanes_options::opencl_cpu names no core");
    options.opencl_cpus = std::move(cpus).value();
  }
  if (given.cache_dir != nullptr) {
    PLAIT_RETURN_IF_ERROR(MakeFolders(given.cache_dir).Annotated("plait_lanes_options::cache_dir"));
    options.cache_dir = given.cache_dir;
  }
  options.opencl_context = given.opencl_context;
  options.opencl_device = given.opencl_device;
  options.opencl_queue = given.opencl_queue;
  if (given.opencl_context == nullptr && (given.opencl_device != nullptr || given.opencl_queue != nullptr)) {
    return InvalidArgument("plait_lanes_options::opencl_device and opencl_queue need opencl_context");
  }
  if (given.opencl_context != nullptr && given.gpu == PLAIT_GPU_OFF) {
    return InvalidArgument("plait_lanes_options::opencl_context was given and gpu is PLAIT_GPU_OFF");
  }
  return options;
}

}  // namespace

plait_lane_info DescribeLane(const LaneSet& lanes, size_t lane, const std::vector<int32_t>& cpus) {
  plait_lane_info info = PLAIT_LANE_INFO_INIT;
  info.name = lanes.lanes[lane]->name().c_str();
  info.description = lanes.descriptions[lane].c_str();
  info.cpus = cpus.data();
  info.cpu_count = cpus.size();
  info.is_gpu = lanes.lanes[lane]->kind() == LaneKind::kGpu;
  info.is_coherent = lanes.lanes[lane]->coherent();
  return info;
}

}  // namespace plait::c_api

using namespace plait;
using namespace plait::c_api;

plait_status plait_lanes_open(const plait_lanes_options* options, plait_lanes** lanes) {
  return Guarded([&]() -> Status {
    if (lanes == nullptr) return NullArgument("lanes");
    PLAIT_ASSIGN_OR_RETURN(const plait_lanes_options given, ReadOptions<plait_lanes_options>(options, PLAIT_LANES_OPTIONS_INIT, "plait_lanes_options"));
    PLAIT_ASSIGN_OR_RETURN(const LaneOptions opened, ReadLaneOptions(given));
    PLAIT_ASSIGN_OR_RETURN(LaneSet set, OpenLanes(opened));
    auto object = std::make_shared<plait_lanes>();
    object->set = std::make_shared<const LaneSet>(std::move(set));
    object->cache_dir = opened.cache_dir;
    object->strict = opened.strict;
    for (const std::vector<int>& cpus : object->set->cpus) object->cpus.emplace_back(cpus.begin(), cpus.end());
    for (size_t i = 0; i < object->cpus.size(); ++i) object->infos.push_back(DescribeLane(*object->set, i, object->cpus[i]));
    Publish(std::move(object), lanes);
    return Status();
  });
}

plait_status plait_lanes_destroy(plait_lanes* lanes) { return Destroy(lanes, "lanes"); }

plait_status plait_lanes_count(const plait_lanes* lanes, size_t* count) {
  return Guarded([&]() -> Status {
    if (count == nullptr) return NullArgument("count");
    PLAIT_ASSIGN_OR_RETURN(const auto object, Find(lanes, "lanes"));
    *count = object->infos.size();
    return Status();
  });
}

plait_status plait_lanes_get(const plait_lanes* lanes, size_t lane, plait_lane_info* info) {
  return Guarded([&]() -> Status {
    PLAIT_ASSIGN_OR_RETURN(const auto object, Find(lanes, "lanes"));
    if (lane >= object->infos.size()) return NotFound("lane ", lane, ": there are ", object->infos.size());
    return WriteInfo(object->infos[lane], info, "plait_lane_info");
  });
}

plait_status plait_lanes_refused(const plait_lanes* lanes, char** text) {
  return Guarded([&]() -> Status {
    if (text == nullptr) return NullArgument("text");
    PLAIT_ASSIGN_OR_RETURN(const auto object, Find(lanes, "lanes"));
    std::string all;
    for (const std::string& reason : object->set->refused) all += reason + "\n";
    PLAIT_ASSIGN_OR_RETURN(*text, CopyText(all));
    return Status();
  });
}
