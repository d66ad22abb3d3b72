#include "src/partition/strips.h"

#include <algorithm>

namespace plait {
namespace {

// The region cut along one axis only, at positions that the rule allows.
std::optional<Region> CutAlong(const Dims& shape, const SplitAxis& axis, const CutRule& rule, const Region& needed) {
  Region out = Region::Whole(shape);
  const int64_t extent = shape[axis.axis];
  const int64_t begin = needed.begin[axis.axis], end = begin + needed.size[axis.axis];
  if (begin == 0 && end == extent) return out;
  if (rule.alignment <= 0) return std::nullopt;
  const int64_t low = begin / rule.alignment * rule.alignment;
  const int64_t high = end > extent - rule.alignment ? extent : (end + rule.alignment - 1) / rule.alignment * rule.alignment;
  if (high - low < rule.minimum) return std::nullopt;
  out.begin[axis.axis] = low;
  out.size[axis.axis] = high - low;
  return out;
}

}  // namespace

std::vector<std::vector<OpId>> ReadersOf(const Graph& graph) {
  std::vector<std::vector<OpId>> readers(graph.tensors.size());
  for (OpId o = 0; o < graph.op_count(); ++o) {
    for (TensorId t : graph.op(o).inputs) {
      if (t == kNoTensor) continue;
      std::vector<OpId>& of = readers[static_cast<size_t>(t)];
      if (of.empty() || of.back() != o) of.push_back(o);
    }
  }
  return readers;
}

std::optional<std::vector<StripOperator>> RowStrip(const Graph& graph, const std::vector<OpId>& ops, const std::function<CutRule(OpId, const SplitAxis&)>& rule) {
  std::vector<StripOperator> strip;
  for (OpId op : ops) {
    const std::vector<SplitAxis> axes = SplitAxes(graph, graph.op(op));
    const auto rows = std::find_if(axes.begin(), axes.end(), [](const SplitAxis& axis) { return axis.role == AxisRole::kRows; });
    if (rows == axes.end()) return std::nullopt;
    strip.push_back({op, *rows, rule(op, *rows)});
  }
  return strip;
}

bool CanBeStrip(const Graph& graph, const std::vector<std::vector<OpId>>& readers, const std::vector<OpId>& ops) {
  if (ops.size() < 2) return false;
  for (size_t i = 0; i + 1 < ops.size(); ++i) {
    const TensorId out = graph.op(ops[i]).output;
    const std::vector<OpId>& of = readers[static_cast<size_t>(out)];
    const bool inside = !of.empty() && std::all_of(of.begin(), of.end(), [&](OpId reader) {
      return !IsView(graph.op(reader).kind) && std::find(ops.begin() + static_cast<ptrdiff_t>(i) + 1, ops.end(), reader) != ops.end();
    });
    if (!inside || std::find(graph.outputs.begin(), graph.outputs.end(), out) != graph.outputs.end()) return false;
  }
  return true;
}

std::optional<std::vector<Region>> StripRegions(const Graph& graph, const std::vector<StripOperator>& strip, const Region& last) {
  std::vector<std::optional<Region>> needed(strip.size());
  std::vector<Region> out(strip.size());
  needed.back() = last;
  for (size_t i = strip.size(); i-- > 0;) {
    const Operator& op = graph.op(strip[i].op);
    if (!needed[i] || needed[i]->IsEmpty()) return std::nullopt;
    const std::optional<Region> region = CutAlong(graph.output(op).shape, strip[i].axis, strip[i].rule, *needed[i]);
    if (!region) return std::nullopt;
    out[i] = *region;
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      if (op.inputs[k] == kNoTensor) continue;
      for (size_t j = 0; j < i; ++j) {
        if (graph.op(strip[j].op).output != op.inputs[k]) continue;
        const Region read = InputRegion(graph, op, static_cast<int>(k), *region);
        if (read.IsEmpty()) return std::nullopt;
        needed[j] = needed[j] ? Enclose(*needed[j], read) : read;
      }
    }
  }
  if (!(out.back() == last)) return std::nullopt;
  return out;
}

}  // namespace plait
