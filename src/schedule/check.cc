#include <algorithm>

#include "src/partition/cuts.h"
#include "src/schedule/cache_lines.h"
#include "src/schedule/part_graph.h"
#include "src/schedule/schedule.h"

namespace plait {
namespace {

// The part's kernel exists on its lane and may be cut like that.
Status CheckKernel(const Graph& graph, const PlanningLane& lane, const Part& part) {
  const Operator& op = graph.op(part.op);
  auto fault = [&](const auto&... what) {
    return InvalidArgument("operator '", op.name, "' on lane '", lane.spec.name, "': ", what...);
  };
  const KernelSupport support = lane.rules->Supports(graph, part.op);
  if (!support.supported) return fault("there is no kernel for it (", support.reason, ")");
  if (!part.kernel.empty() && part.kernel != support.kernel) {
    return fault("kernel '", part.kernel, "' is not '", support.kernel, "', which the lane has");
  }
  const Dims& shape = graph.output(op).shape;
  int cut_axes = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (part.region.size[axis] == shape[axis]) continue;
    if (++cut_axes > 1) return fault("part ", ToString(part.region), " is cut along more than one axis");
    const std::vector<SplitAxis> axes = SplitAxes(graph, op);
    const auto split = std::find_if(axes.begin(), axes.end(), [&](const SplitAxis& s) { return s.axis == axis; });
    if (split == axes.end()) return fault("its output cannot be cut along axis ", axis);
    const CutRule rule = lane.rules->Cut(graph, part.op, *split);
    if (rule.alignment <= 0) return fault("its kernel cannot be cut along axis ", axis);
    const int64_t begin = part.region.begin[axis], size = part.region.size[axis], end = begin + size;
    if (begin % rule.alignment != 0 || (end % rule.alignment != 0 && end != shape[axis])) {
      return fault("part ", begin, ":", end, " along axis ", axis, " is not cut at multiples of ", rule.alignment);
    }
    if (size < rule.minimum) {
      return fault("part ", begin, ":", end, " along axis ", axis, " has fewer than ", rule.minimum, " elements");
    }
  }
  return Status();
}

}  // namespace

Status CheckSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, const Schedule& schedule) {
  PLAIT_RETURN_IF_ERROR(CheckParts(graph, lanes.size(), schedule));
  for (const Part& part : schedule.parts) {
    PLAIT_RETURN_IF_ERROR(CheckKernel(graph, lanes[static_cast<size_t>(part.lane)], part));
  }
  PLAIT_RETURN_IF_ERROR(ExecutionOrder(graph, schedule, ReadsOfParts(graph, schedule)).status());
  PLAIT_ASSIGN_OR_RETURN(CacheLines lines, CacheLines::Create(graph, lanes));
  const PrivateResults results(graph, schedule);
  for (const Part& part : schedule.parts) {
    if (results.Contains(part.op)) continue;
    if (const Part* other = lines.Add(part)) {
      return InvalidArgument("operator '", graph.op(part.op).name, "' on lane '",
                             lanes[static_cast<size_t>(part.lane)].spec.name, "' and operator '",
                             graph.op(other->op).name, "' on lane '", lanes[static_cast<size_t>(other->lane)].spec.name,
                             "' write the same cache line, which these lanes do not see coherently");
    }
  }
  return Status();
}

}  // namespace plait
