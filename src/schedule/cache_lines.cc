#include "src/schedule/cache_lines.h"

#include <algorithm>
#include <utility>

#include "src/partition/cuts.h"

namespace plait {

Result<CacheLines> CacheLines::Create(const Graph& graph, const std::vector<PlanningLane>& lanes) {
  CacheLines lines(graph, lanes);
  PLAIT_ASSIGN_OR_RETURN(lines.storage_, AssignStorage(graph));
  lines.matter_ = std::any_of(lanes.begin(), lanes.end(), [](const PlanningLane& lane) { return !lane.coherent; });
  return lines;
}

bool CacheLines::Clash(const Part& a, const Part& b) const {
  const PlanningLane& lane_a = (*lanes_)[static_cast<size_t>(a.lane)];
  const PlanningLane& lane_b = (*lanes_)[static_cast<size_t>(b.lane)];
  if (lane_a.spec.domain == lane_b.spec.domain || (lane_a.coherent && lane_b.coherent)) return false;
  const TensorId tensor_a = graph_->op(a.op).output, tensor_b = graph_->op(b.op).output;
  if (Root(tensor_a) != Root(tensor_b)) return false;
  const int64_t element_bytes = SizeOf(graph_->tensor(tensor_a).dtype);
  auto place = [&](TensorId tensor, const Region& region) {
    const TensorStorage& s = storage_[static_cast<size_t>(tensor)];
    return PlacedRegion{region, s.strides, s.offset * element_bytes};
  };
  return ShareCacheLine(place(tensor_a, a.region), place(tensor_b, b.region), element_bytes);
}

const Part* CacheLines::Conflict(const Part& part) const {
  if (!matter_) return nullptr;
  const auto written = written_.find(Root(graph_->op(part.op).output));
  if (written == written_.end()) return nullptr;
  const auto other = std::find_if(written->second.begin(), written->second.end(),
                                  [&](const Part& p) { return Clash(part, p); });
  return other == written->second.end() ? nullptr : &*other;
}

const Part* CacheLines::Add(const Part& part) {
  const Part* conflict = Conflict(part);
  if (conflict == nullptr && matter_) written_[Root(graph_->op(part.op).output)].push_back(part);
  return conflict;
}

}  // namespace plait
