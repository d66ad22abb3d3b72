#include <algorithm>
#include <optional>

#include "predictors/soc_profile.h"

namespace plait {
namespace {

// One standard deviation of log(us), as found where whole operators are scaled by work or cuts are interpolated.
constexpr double kScaledError = 0.25;
constexpr double kInterpolatedError = 0.08;
// For a normal distribution half the interquartile range is 0.67 standard deviations.
constexpr double kSigmaPerSpread = 1.48;

struct Point {
  int64_t extent;
  double us;
};

double Proportion(const Work& part, const Work& whole) {
  if (whole.macs > 0) return static_cast<double>(part.macs) / static_cast<double>(whole.macs);
  const double bytes = static_cast<double>(whole.input_bytes + whole.weight_bytes + whole.output_bytes);
  if (bytes <= 0) return 1.0;
  return static_cast<double>(part.input_bytes + part.weight_bytes + part.output_bytes) / bytes;
}

// Linear between neighbours; the line through the two smallest points below them, never under proportion nor above the smallest point.
double Interpolate(const std::vector<Point>& points, int64_t extent) {
  size_t upper = 0;
  while (upper + 1 < points.size() && points[upper].extent < extent) ++upper;
  const size_t lower = upper == 0 ? 0 : upper - 1;
  const Point& a = points[lower];
  const Point& b = points[upper == 0 && points.size() > 1 ? 1 : upper];
  const double slope = b.extent == a.extent ? 0.0 : (b.us - a.us) / static_cast<double>(b.extent - a.extent);
  const double line = a.us + slope * static_cast<double>(extent - a.extent);
  if (extent >= points.front().extent) return line;
  const double proportional = points.front().us * static_cast<double>(extent) / static_cast<double>(points.front().extent);
  return std::clamp(line, proportional, std::max(proportional, points.front().us));
}

}  // namespace

const LaneProfile* SocProfile::Find(const std::string& lane) const {
  const auto found = std::find_if(lanes.begin(), lanes.end(), [&](const LaneProfile& l) { return l.name == lane; });
  return found == lanes.end() ? nullptr : &*found;
}

std::optional<CutOf> FindCut(const Graph& graph, const Operator& op, const Region& region) {
  const Dims& shape = graph.output(op).shape;
  CutOf cut;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (region.size[axis] == shape[axis]) continue;
    if (cut.axis >= 0) return std::nullopt;
    cut = {axis, region.size[axis]};
  }
  return cut;
}

MeasuredLatency::MeasuredLatency(const SocProfile& profile, const Graph& graph) : profile_(profile) {
  index_.reserve(graph.ops.size() * profile.lanes.size());
  for (OpId op = 0; op < graph.op_count(); ++op) {
    const std::string signature = OpSignature(graph, graph.op(op));
    for (const LaneProfile& lane : profile.lanes) {
      const auto found = lane.measurements.find(signature);
      index_.push_back(found == lane.measurements.end() ? nullptr : &found->second);
    }
  }
  indexed_ = &graph;
}

const std::vector<Measurement>* MeasuredLatency::Find(const Graph& graph, OpId op, size_t lane) const {
  if (&graph == indexed_) return index_[static_cast<size_t>(op) * profile_.lanes.size() + lane];
  const auto& measurements = profile_.lanes[lane].measurements;
  const auto found = measurements.find(OpSignature(graph, graph.op(op)));
  return found == measurements.end() ? nullptr : &found->second;
}

Latency MeasuredLatency::PartLatency(const Graph& graph, OpId op, const std::string& lane, const Region& region) const {
  const LaneProfile* profile = profile_.Find(lane);
  if (profile == nullptr) return {};
  const std::vector<Measurement>* measured = Find(graph, op, static_cast<size_t>(profile - profile_.lanes.data()));
  if (measured == nullptr || measured->empty()) return {};
  const Operator& o = graph.op(op);
  const std::optional<CutOf> cut = FindCut(graph, o, region);

  const Measurement* whole = nullptr;
  const Measurement* exact = nullptr;
  std::vector<Point> points;
  for (const Measurement& m : *measured) {
    if (m.axis < 0) whole = &m;
    if (!cut || m.axis != cut->axis) continue;
    if (m.axis < 0 || m.extent == cut->extent) exact = &m;
    if (m.axis >= 0) points.push_back({m.extent, m.us});
  }
  const double factor = profile->network_factor;
  if (exact != nullptr) return {exact->us * factor, exact->spread * kSigmaPerSpread, true};
  if (!points.empty()) {
    if (whole != nullptr) points.push_back({graph.output(o).shape[cut->axis], whole->us});
    std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.extent < b.extent; });
    return {Interpolate(points, cut->extent) * factor, kInterpolatedError, true};
  }
  if (whole == nullptr) return {};
  return {whole->us * Proportion(WorkOf(graph, o, region), WorkOf(graph, o)) * factor, kScaledError, true};
}

}  // namespace plait
