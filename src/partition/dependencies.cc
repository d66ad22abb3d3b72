#include "src/partition/dependencies.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "src/partition/reshape.h"

namespace plait {
namespace {

constexpr size_t kMaxBoxes = 64;  // of one tensor; beyond it they become the box that holds them all

void AddBox(std::vector<Region>* boxes, const Region& box) {
  for (const Region& known : *boxes) {
    if (Contains(known, box)) return;
  }
  boxes->push_back(box);
  if (boxes->size() <= kMaxBoxes) return;
  Region all = boxes->front();
  for (const Region& b : *boxes) all = Enclose(all, b);
  boxes->assign(1, all);
}

// Calls visit(tensor, region) for what `region` of the view operator's output consists of.
template <typename Visit>
void StepThroughView(const Graph& graph, const Operator& op, const Region& region, const Visit& visit) {
  if (op.kind == OpKind::kConcat) {
    const int axis = op.as<ConcatAttrs>().axis;
    int64_t begin = 0;
    for (TensorId input : op.inputs) {
      const Dims& shape = graph.tensor(input).shape;
      Region slot{region.begin, region.size};
      const int64_t low = std::max(region.begin[axis], begin);
      const int64_t high = std::min(region.begin[axis] + region.size[axis], begin + shape[axis]);
      if (low < high) {
        slot.begin[axis] = low - begin;
        slot.size[axis] = high - low;
        visit(input, slot);
      }
      begin += shape[axis];
    }
  } else if (op.kind == OpKind::kSlice) {
    Region moved = region;
    const Dims& begin = op.as<SliceAttrs>().begin;
    for (int i = 0; i < begin.rank(); ++i) moved.begin[i] += begin[i];
    visit(op.inputs[0], moved);
  } else {
    const TensorId input = op.inputs[0];
    for (const Region& box : ReshapeRegion(graph.output(op).shape, region, graph.tensor(input).shape)) visit(input, box);
  }
}

}  // namespace

std::vector<Source> TraceRegion(const Graph& graph, const std::vector<OpId>& producers, TensorId tensor,
                                const Region& region) {
  if (region.IsEmpty()) return {};
  auto view_of = [&](TensorId t) {
    const OpId op = producers[static_cast<size_t>(t)];
    return op != kNoOp && IsView(graph.op(op).kind) ? op : kNoOp;
  };
  std::vector<Source> sources;
  // Views still to be looked through, the latest in topological order first: what several of them reach is joined before it
  // is looked through itself, which bounds the work in graphs that fork and join.
  std::map<OpId, std::vector<Region>> pending;
  std::map<TensorId, std::vector<Region>> found;
  auto visit = [&](TensorId t, const Region& r) {
    const OpId view = view_of(t);
    AddBox(view == kNoOp ? &found[t] : &pending[view], r);
  };
  if (view_of(tensor) == kNoOp) return {{tensor, region}};
  visit(tensor, region);
  while (!pending.empty()) {
    const auto last = std::prev(pending.end());
    const OpId op = last->first;
    const std::vector<Region> boxes = std::move(last->second);
    pending.erase(last);
    for (const Region& box : boxes) StepThroughView(graph, graph.op(op), box, visit);
  }
  for (auto& [t, boxes] : found) {
    for (const Region& box : boxes) sources.push_back({t, box});
  }
  return sources;
}

std::vector<Source> ReadsOf(const Graph& graph, const std::vector<OpId>& producers, OpId op, const Region& out) {
  std::vector<Source> reads;
  const Operator& reader = graph.op(op);
  for (size_t i = 0; i < reader.inputs.size(); ++i) {
    const TensorId t = reader.inputs[i];
    if (t == kNoTensor || graph.tensor(t).is_constant()) continue;
    for (Source& source : TraceRegion(graph, producers, t, InputRegion(graph, reader, static_cast<int>(i), out))) {
      if (graph.tensor(source.tensor).is_constant()) continue;
      auto known = std::find_if(reads.begin(), reads.end(), [&](const Source& s) { return s.tensor == source.tensor; });
      if (known == reads.end()) {
        reads.push_back(std::move(source));
      } else {
        known->region = Enclose(known->region, source.region);
      }
    }
  }
  return reads;
}

}  // namespace plait
