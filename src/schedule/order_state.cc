#include "src/schedule/order_state.h"

namespace plait {
namespace {

int IndexOf(const std::vector<int>& list, int value) { return static_cast<int>(std::find(list.begin(), list.end(), value) - list.begin()); }

}  // namespace

void OrderLayout::Reset(int begin, const std::vector<int>& ops) {
  begin_ = begin;
  size_ = static_cast<int>(ops.size());
  if (positions_.size() < ops.size()) positions_.resize(ops.size());
  entering_.tensors.clear();
  entering_.edges.clear();
  for (int v : ops) {
    for (int e = net_.in_begin[static_cast<size_t>(v)]; e < net_.in_begin[static_cast<size_t>(v) + 1]; ++e) {
      const int x = net_.in_op[static_cast<size_t>(e)];
      if (Place(x) >= 0) continue;
      if (std::find(entering_.tensors.begin(), entering_.tensors.end(), x) == entering_.tensors.end()) entering_.tensors.push_back(x);
      if (net_.in_access[static_cast<size_t>(e)] >= 0) entering_.edges.push_back(e);
    }
  }
  for (int p = 0; p < size_; ++p) {
    positions_[static_cast<size_t>(p)].op = ops[static_cast<size_t>(p)];
    Build(p);
  }
}

void OrderLayout::SetOrder(int i, const std::vector<int>& ops) {
  const int j = i + static_cast<int>(ops.size());
  OrderPosition& last = positions_[static_cast<size_t>(j) - 1];
  const std::vector<int> tensors = last.tensors, edges = last.edges;
  for (int p = i; p < j; ++p) positions_[static_cast<size_t>(p)].op = ops[static_cast<size_t>(p - i)];
  for (int p = i; p < j; ++p) Build(p);
  Arrange(tensors, edges, &last);
}

void OrderLayout::Build(int p) {
  const OrderPosition& before = p == 0 ? entering_ : positions_[static_cast<size_t>(p) - 1];
  OrderPosition& at = positions_[static_cast<size_t>(p)];
  const size_t v = static_cast<size_t>(at.op);
  at.tensors.clear();
  at.source.clear();
  at.inputs.clear();
  at.edges.clear();
  at.edge_source.clear();
  at.in_edges.clear();
  at.out_edges.clear();
  for (size_t k = 0; k < before.tensors.size(); ++k) {
    const size_t x = static_cast<size_t>(before.tensors[k]);
    // Readers behind the stretch do not count for what was made before it.
    const int end = Place(before.tensors[k]) < 0 ? size_ : net_.n;
    bool wanted = false;
    for (int c = net_.out_begin[x]; c < net_.out_begin[x + 1] && !wanted; ++c) {
      const int place = Place(net_.out_op[static_cast<size_t>(c)]);
      wanted = place > p && place < end;
    }
    if (!wanted) continue;
    at.tensors.push_back(before.tensors[k]);
    at.source.push_back(static_cast<int>(k));
  }
  at.own = net_.IsSink(at.op) ? -1 : static_cast<int>(at.tensors.size());
  if (at.own >= 0) {
    at.tensors.push_back(at.op);
    at.source.push_back(-1);
  }
  for (size_t k = 0; k < before.edges.size(); ++k) {
    if (Place(net_.in_to[static_cast<size_t>(before.edges[k])]) <= p) continue;
    at.edges.push_back(before.edges[k]);
    at.edge_source.push_back(static_cast<int>(k));
  }
  for (int e = net_.in_begin[v]; e < net_.in_begin[v + 1]; ++e) {
    at.inputs.push_back(IndexOf(before.tensors, net_.in_op[static_cast<size_t>(e)]));
    at.in_edges.push_back(net_.in_access[static_cast<size_t>(e)] < 0 ? -1 : IndexOf(before.edges, e));
  }
  if (!net_.any_region) return;
  for (int k = net_.out_begin[v]; k < net_.out_begin[v + 1]; ++k) {
    const int e = net_.out_edge[static_cast<size_t>(k)];
    const bool region = net_.in_access[static_cast<size_t>(e)] >= 0;
    at.out_edges.push_back(region ? static_cast<int>(at.edges.size()) : -1);
    if (!region) continue;
    at.edges.push_back(e);
    at.edge_source.push_back(-1);
  }
}

void OrderLayout::Arrange(const std::vector<int>& tensors, const std::vector<int>& edges, OrderPosition* at) const {
  const OrderPosition old = *at;
  for (size_t k = 0; k < tensors.size(); ++k) at->source[k] = old.source[static_cast<size_t>(IndexOf(old.tensors, tensors[k]))];
  for (size_t k = 0; k < edges.size(); ++k) at->edge_source[k] = old.edge_source[static_cast<size_t>(IndexOf(old.edges, edges[k]))];
  at->tensors = tensors;
  at->edges = edges;
  if (old.own >= 0) at->own = IndexOf(tensors, at->op);
  for (int& edge : at->out_edges) {
    if (edge >= 0) edge = IndexOf(edges, old.edges[static_cast<size_t>(edge)]);
  }
}

}  // namespace plait
