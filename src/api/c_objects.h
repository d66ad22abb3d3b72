// What the handles of the C API stand for.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/api/c_support.h"
#include "src/api/lanes.h"
#include "src/api/planning.h"
#include "src/graph/graph.h"

struct plait_lanes {
  std::shared_ptr<const plait::LaneSet> set;
  std::string cache_dir;
  bool strict = false;
  std::vector<plait_lane_info> infos;            // borrow from `set` and `cpus`
  std::vector<std::vector<int32_t>> cpus;
};

struct plait_model {
  std::shared_ptr<const plait::Graph> graph;     // as loaded, not prepared
  mutable std::once_flag hash_once;              // hashing reads all weights: only if somebody asks
  mutable uint64_t hash = 0;
};

struct plait_plan {
  plait::PlannedModel planned;
  std::shared_ptr<const plait::Graph> graph;     // as loaded
  std::shared_ptr<const plait::LaneSet> lanes;
  bool strict = false;
};

namespace plait::c_api {

template <>
inline constexpr size_t kFirstSize<plait_lanes_options> = offsetof(plait_lanes_options, opencl_context);

template <>
struct HandleOf<plait_lanes> {
  static constexpr HandleKind kKind = HandleKind::kLanes;
  static constexpr const char* kName = "plait_lanes";
};
template <>
struct HandleOf<plait_model> {
  static constexpr HandleKind kKind = HandleKind::kModel;
  static constexpr const char* kName = "a plait_model";
};
template <>
struct HandleOf<plait_plan> {
  static constexpr HandleKind kKind = HandleKind::kPlan;
  static constexpr const char* kName = "a plait_plan";
};
template <>
struct HandleOf<plait_session> {
  static constexpr HandleKind kKind = HandleKind::kSession;
  static constexpr const char* kName = "a plait_session";
};

// `description` of one of the lanes, borrowed from `lanes`.
plait_lane_info DescribeLane(const LaneSet& lanes, size_t lane, const std::vector<int32_t>& cpus);

// The number of the tensor of that name among a graph's inputs or outputs. NotFound names those there are; `what`: "input",
// "output".
Result<size_t> FindTensor(const Graph& graph, const std::vector<TensorId>& ids, const char* name, const char* what);

// What annotations ask, as rules for planning: see PlanRequest::rules. NotFound: a pattern that fits no operator of the prepared
// graph, a lane that is not there.
Result<std::vector<std::shared_ptr<const KernelRules>>> AnnotatedRules(const Graph& prepared, const LaneSet& lanes, const plait_annotation* annotations, size_t count);
// The same annotations in words, one text for one meaning.
std::string DescribeAnnotations(const plait_annotation* annotations, size_t count);

// The application's callback as a strategy. `lanes` outlives it.
Strategy CallbackStrategy(const LaneSet& lanes, const char* name, plait_strategy_callback callback, void* user);

}  // namespace plait::c_api
