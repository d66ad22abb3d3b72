#include "src/schedule/schedule.h"

namespace plait {

Result<Schedule> SingleLaneSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, LaneId lane) {
  if (lane < 0 || static_cast<size_t>(lane) >= lanes.size()) return InvalidArgument("lane ", lane, " of ", lanes.size());
  const PlanningLane& only = lanes[static_cast<size_t>(lane)];
  Schedule schedule;
  schedule.strategy = StrCat("lane:", only.spec.name);
  schedule.lanes.resize(lanes.size());
  for (OpId o = 0; o < graph.op_count(); ++o) {
    const Operator& op = graph.op(o);
    if (IsView(op.kind)) continue;
    const KernelSupport support = only.rules->Supports(graph, o);
    if (!support.supported) {
      return Unsupported("lane '", only.spec.name, "' cannot run operator '", op.name, "' (", Name(op.kind), "): ",
                         support.reason);
    }
    Part part;
    part.op = o;
    part.lane = lane;
    part.region = Region::Whole(graph.output(op).shape);
    part.kernel = support.kernel;
    schedule.lanes[static_cast<size_t>(lane)].push_back(static_cast<int>(schedule.parts.size()));
    schedule.parts.push_back(std::move(part));
  }
  return schedule;
}

}  // namespace plait
