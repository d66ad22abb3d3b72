#include "src/calibrate/corrected_latency.h"

#include <algorithm>
#include <cstdlib>

#include "src/calibrate/statistics.h"

namespace plait {
namespace {

// One sample may be the fault of whatever else the machine did; a correction by more than this is no property of the part.
constexpr double kMinRatio = 0.25, kMaxRatio = 4.0;

}  // namespace

void CorrectedLatency::Learn(OpId op, const std::string& lane, const CutOf& cut, double us) {
  const Operator& o = graph_.op(op);
  Region region = Region::Whole(graph_.output(o).shape);
  if (cut.axis >= 0) region.size[cut.axis] = cut.extent;
  const Latency base = base_.PartLatency(graph_, op, lane, region);
  const double ratio = base.known && base.us > 0 ? std::clamp(us / base.us, kMinRatio, kMaxRatio) : 1.0;
  observed_[{lane, OpSignature(graph_, o), cut.axis, cut.extent}] = {base.known && base.us > 0 ? base.us * ratio : us, ratio};
}

void CorrectedLatency::Settle() {
  std::map<std::string, std::vector<double>> ratios;
  for (const auto& [key, observed] : observed_) ratios[std::get<0>(key)].push_back(observed.ratio);
  for (const auto& [lane, all] : ratios) lane_ratio_[lane] = MedianOf(all);
}

Latency CorrectedLatency::PartLatency(const Graph& graph, OpId op, const std::string& lane, const Region& region) const {
  Latency latency = base_.PartLatency(graph, op, lane, region);
  const Operator& o = graph.op(op);
  const std::optional<CutOf> cut = FindCut(graph, o, region);
  if (!cut) return latency;
  const std::string signature = OpSignature(graph, o);
  // All observations of the axis stand together in the map.
  const auto begin = observed_.lower_bound({lane, signature, cut->axis, 0});
  const Observed* nearest = nullptr;
  int64_t distance = 0;
  for (auto at = begin; at != observed_.end(); ++at) {
    const auto& [key_lane, key_signature, axis, extent] = at->first;
    if (key_lane != lane || key_signature != signature || axis != cut->axis) break;
    if (nearest == nullptr || std::abs(extent - cut->extent) < distance) {
      nearest = &at->second;
      distance = std::abs(extent - cut->extent);
    }
  }
  if (nearest != nullptr && distance == 0) return {nearest->us, 0.02, true};
  if (!latency.known) return latency;
  const auto lane_ratio = lane_ratio_.find(lane);
  latency.us *= nearest != nullptr ? nearest->ratio : lane_ratio != lane_ratio_.end() ? lane_ratio->second : 1.0;
  return latency;
}

}  // namespace plait
