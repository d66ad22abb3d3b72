#include "src/schedule/order_state.h"

namespace plait {
namespace {

int IndexOf(const std::vector<int>& list, int value) { return static_cast<int>(std::find(list.begin(), list.end(), value) - list.begin()); }

}  // namespace

OrderLayout::OrderLayout(const Net& net, const std::vector<int>& sequence)
    : net_(net), positions_(static_cast<size_t>(net.n)), place_(static_cast<size_t>(net.n), 0), edge_to_(net.in_op.size()) {
  by_region_ = std::any_of(net.in_access.begin(), net.in_access.end(), [](int a) { return a >= 0; });
  for (int o = 0; o < net.n; ++o) {
    for (int e = net.in_begin[static_cast<size_t>(o)]; e < net.in_begin[static_cast<size_t>(o) + 1]; ++e) edge_to_[static_cast<size_t>(e)] = o;
  }
  SetOrder(0, sequence);
}

void OrderLayout::SetOrder(int i, const std::vector<int>& ops) {
  const int j = i + static_cast<int>(ops.size());
  OrderPosition& last = positions_[static_cast<size_t>(j) - 1];
  const std::vector<int> tensors = last.tensors, edges = last.edges;
  for (int p = i; p < j; ++p) {
    positions_[static_cast<size_t>(p)].op = ops[static_cast<size_t>(p - i)];
    place_[static_cast<size_t>(ops[static_cast<size_t>(p - i)])] = p;
  }
  for (int p = i; p < j; ++p) Build(p);
  if (tensors.size() == last.tensors.size() && j < net_.n) Arrange(tensors, edges, &last);
}

void OrderLayout::Build(int p) {
  static const OrderPosition kNothing;
  const OrderPosition& before = p == 0 ? kNothing : positions_[static_cast<size_t>(p) - 1];
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
    bool wanted = false;
    for (int c = net_.out_begin[x]; c < net_.out_begin[x + 1] && !wanted; ++c) wanted = Place(net_.out_op[static_cast<size_t>(c)]) > p;
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
    if (Place(EdgeConsumer(before.edges[k])) <= p) continue;
    at.edges.push_back(before.edges[k]);
    at.edge_source.push_back(static_cast<int>(k));
  }
  for (int e = net_.in_begin[v]; e < net_.in_begin[v + 1]; ++e) {
    at.inputs.push_back(IndexOf(before.tensors, net_.in_op[static_cast<size_t>(e)]));
    at.in_edges.push_back(net_.in_access[static_cast<size_t>(e)] < 0 ? -1 : IndexOf(before.edges, e));
  }
  if (!by_region_) return;
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
