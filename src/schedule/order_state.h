// What a label of the order search knows of a prefix or a suffix of the sequence, as one row of ticks.
//
// Forward row: when each lane is free, then a slot for every tensor that is still wanted: when all of it can be read on each lane and,
// where some consumer reads by region, the ends and units of its parts and its mode.
// Backward row: the path that follows on each lane, then for every wanted tensor the longest path from a consumer on each lane that reads all
// of it, then for every edge that is read by region the consumer's paths, units and mode.
#pragma once

#include <algorithm>
#include <vector>

#include "src/schedule/net.h"
#include "src/schedule/split.h"

namespace plait {

// Which tensors and edges are wanted where; rows reuse the slots of those that are not wanted any more.
struct OrderSlots {
  int tensors = 0, edges = 0;                    // slots
  std::vector<int> of_op;                        // [op]; -1: nobody reads it
  std::vector<int> of_edge;                      // [edge]; -1: read whole
  std::vector<std::vector<int>> wanted;          // [position 0..n]: operators placed before and read from there on
  std::vector<std::vector<int>> wanted_edges;    // [position 0..n]: edges by region with the producer before
  std::vector<std::vector<int>> dying;           // [position]: operators read there for the last time

  OrderSlots(const Net& net, const std::vector<int>& sequence);
};

template <int kD>
class OrderState {
 public:
  static constexpr int kWidth = kD > 0 ? kD : kMaxLanes;

  OrderState(const Net& net, const std::vector<int>& sequence)
      : net_(net), sequence_(sequence), slots_(net, sequence), by_region_(slots_.edges > 0) {
    const int D = lanes();
    tensor_stride_ = by_region_ ? 3 * D + 1 : D;
    edge_begin_ = D + slots_.tensors * D;
    forward_row_ = static_cast<size_t>(D + slots_.tensors * tensor_stride_);
    backward_row_ = static_cast<size_t>(edge_begin_ + slots_.edges * (2 * D + 1));
  }

  int lanes() const { return kD > 0 ? kD : net_.lanes; }
  size_t forward_row() const { return forward_row_; }
  size_t backward_row() const { return backward_row_; }
  int Op(int position) const { return sequence_[static_cast<size_t>(position)]; }
  bool ByRegion(int v) const { return net_.by_region[static_cast<size_t>(v)] != 0; }
  const OrderSlots& slots() const { return slots_; }

  // When everything that `v` may read can be read on each lane: exact where it reads whole tensors, late otherwise.
  void ReadyWhole(int v, const Tick* before, Tick* ready) const {
    const int first = net_.in_begin[static_cast<size_t>(v)], last = net_.in_begin[static_cast<size_t>(v) + 1];
    if (first == last) {
      std::copy_n(net_.entry.begin(), lanes(), ready);
      return;
    }
    std::fill_n(ready, lanes(), 0);
    for (int e = first; e < last; ++e) {
      const Tick* release = before + Tensor(net_.in_op[static_cast<size_t>(e)]);
      for (int d = 0; d < lanes(); ++d) ready[d] = std::max(ready[d], release[d]);
    }
  }

  // The same for parts of `units` of `mode`, by region; exact.
  void Ready(int v, int mode, const uint8_t* units, const Tick* before, Tick* ready) const {
    ReadyWhole(v, before, ready);
    if (!ByRegion(v)) return;
    const int first = net_.in_begin[static_cast<size_t>(v)], last = net_.in_begin[static_cast<size_t>(v) + 1];
    if (first == last) return;
    std::fill_n(ready, lanes(), 0);
    for (int e = first; e < last; ++e) {
      const int p = net_.in_op[static_cast<size_t>(e)];
      const Tick* slot = before + Tensor(p);
      const Access* access = slots_.of_edge[static_cast<size_t>(e)] < 0 ? nullptr : AccessOf(e, mode, p, ProducerMode(slot));
      if (access == nullptr) {
        for (int d = 0; d < lanes(); ++d) ready[d] = std::max(ready[d], slot[d]);
      } else {
        ReadByRegion(p, slot, *access, units, ready);
      }
    }
  }

  // What follows `v`: exact where its consumers read all of it, long otherwise.
  Surroundings<kWidth> After(int v, const Tick* after) const {
    Surroundings<kWidth> s;
    const int own = slots_.of_op[static_cast<size_t>(v)];
    s.sink = own < 0;
    for (int d = 0; d < lanes(); ++d) {
      s.after[d] = after[d];
      s.demand[d] = own < 0 ? 0 : after[lanes() + own * lanes() + d];
    }
    if (by_region_) {
      for (int k = net_.out_begin[static_cast<size_t>(v)]; k < net_.out_begin[static_cast<size_t>(v) + 1]; ++k) {
        const int edge = slots_.of_edge[static_cast<size_t>(net_.out_edge[static_cast<size_t>(k)])];
        if (edge < 0) continue;
        for (int d = 0; d < lanes(); ++d) s.demand[d] = std::max(s.demand[d], after[Edge(edge) + d]);
      }
    }
    return s;
  }

  // The paths that follow the parts of `units` of `mode`, lanes' next parts included; exact.
  void Tails(int v, int mode, const uint8_t* units, const Tick* after, Tick* tail) const {
    const int D = lanes();
    const int own = slots_.of_op[static_cast<size_t>(v)];
    const NetMode& m = net_.Mode(v, mode);
    Tick demand[kWidth];
    for (int d = 0; d < D; ++d) {
      tail[d] = std::max(after[d], own < 0 ? net_.exit[static_cast<size_t>(d)] : 0);
      demand[d] = own < 0 ? 0 : after[D + own * D + d];
    }
    if (ByRegion(v)) {
      for (int k = net_.out_begin[static_cast<size_t>(v)]; k < net_.out_begin[static_cast<size_t>(v) + 1]; ++k) {
        const int e = net_.out_edge[static_cast<size_t>(k)];
        if (slots_.of_edge[static_cast<size_t>(e)] < 0) continue;
        const Tick* slot = after + Edge(slots_.of_edge[static_cast<size_t>(e)]);
        const Access* access = AccessOf(e, static_cast<int>(slot[2 * D]), v, mode);
        if (access == nullptr) {
          for (int f = 0; f < D; ++f) demand[f] = std::max(demand[f], slot[f]);
        } else {
          TailByRegion(m, slot, *access, units, tail);
        }
      }
    }
    for (int d = 0; d < D; ++d) {
      if (units[d] == 0) continue;
      tail[d] = std::max(tail[d], demand[d]);
      for (int f = 0; f < D; ++f) {
        if (f != d && demand[f] > 0) tail[d] = std::max(tail[d], demand[f] + net_.Handoff(m, units[d], d, f));
      }
    }
  }

  // The longest path through `v` between the two rows; exact.
  Tick Through(int v, int mode, const uint8_t* units, const Tick* before, const Tick* after) const {
    const NetMode& m = net_.Mode(v, mode);
    Tick ready[kWidth], tail[kWidth], most = 0;
    Ready(v, mode, units, before, ready);
    Tails(v, mode, units, after, tail);
    for (int d = 0; d < lanes(); ++d) {
      if (units[d] > 0) most = std::max(most, std::max(ready[d], before[d]) + net_.Cost(m, d, units[d]) + tail[d]);
    }
    return most;
  }

  // The longest path that joins the rows before and after the operator at `position` without touching it.
  Tick Around(int position, const uint8_t* units, const Tick* before, const Tick* after) const {
    const int D = lanes(), v = Op(position);
    Tick most = 0;
    for (int d = 0; d < D; ++d) {
      if (units[d] == 0 && after[d] > 0) most = std::max(most, before[d] + after[d]);
    }
    for (int x : slots_.wanted[static_cast<size_t>(position) + 1]) {
      if (x == v) continue;
      const Tick* release = before + Tensor(x);
      const Tick* demand = after + D + slots_.of_op[static_cast<size_t>(x)] * D;
      for (int d = 0; d < D; ++d) {
        if (demand[d] > 0) most = std::max(most, release[d] + demand[d]);
      }
    }
    for (int e : slots_.wanted_edges[static_cast<size_t>(position) + 1]) {
      if (net_.in_op[static_cast<size_t>(e)] != v) most = std::max(most, AcrossEdge(e, before, after));
    }
    return most;
  }

  // Rows before and after an operator; `row` is changed in place.
  void StepForward(int position, int mode, const uint8_t* units, Tick* row) const {
    const int D = lanes(), v = Op(position), own = slots_.of_op[static_cast<size_t>(v)];
    const NetMode& m = net_.Mode(v, mode);
    Tick release[kWidth] = {}, ready[kWidth], end[kWidth] = {};
    Ready(v, mode, units, row, ready);
    for (int e = 0; e < D; ++e) {
      if (units[e] == 0) continue;
      row[e] = end[e] = std::max(row[e], ready[e]) + net_.Cost(m, e, units[e]);
      for (int d = 0; d < D; ++d) release[d] = std::max(release[d], d == e ? end[e] : end[e] + net_.Handoff(m, units[e], e, d));
    }
    for (int x : slots_.dying[static_cast<size_t>(position)]) std::fill_n(row + Tensor(x), tensor_stride_, 0);
    if (own < 0) return;
    Tick* slot = row + Tensor(v);
    std::copy_n(release, D, slot);
    if (!by_region_) return;
    std::copy_n(end, D, slot + D);
    for (int d = 0; d < D; ++d) slot[2 * D + d] = units[d];
    slot[3 * D] = mode;
  }

  void StepBackward(int position, int mode, const uint8_t* units, Tick* row) const {
    const int D = lanes(), v = Op(position), own = slots_.of_op[static_cast<size_t>(v)];
    const NetMode& m = net_.Mode(v, mode);
    Tick span[kWidth] = {}, tail[kWidth];
    Tails(v, mode, units, row, tail);
    for (int d = 0; d < D; ++d) {
      if (units[d] > 0) row[d] = span[d] = tail[d] + net_.Cost(m, d, units[d]);
    }
    if (own >= 0) std::fill_n(row + D + own * D, D, 0);
    for (int k = by_region_ ? net_.out_begin[static_cast<size_t>(v)] : 0; by_region_ && k < net_.out_begin[static_cast<size_t>(v) + 1]; ++k) {
      const int edge = slots_.of_edge[static_cast<size_t>(net_.out_edge[static_cast<size_t>(k)])];
      if (edge >= 0) std::fill_n(row + Edge(edge), 2 * D + 1, 0);
    }
    for (int e = net_.in_begin[static_cast<size_t>(v)]; e < net_.in_begin[static_cast<size_t>(v) + 1]; ++e) {
      const int edge = slots_.of_edge[static_cast<size_t>(e)];
      if (edge < 0) {
        Tick* demand = row + D + slots_.of_op[static_cast<size_t>(net_.in_op[static_cast<size_t>(e)])] * D;
        for (int d = 0; d < D; ++d) demand[d] = std::max(demand[d], span[d]);
        continue;
      }
      Tick* slot = row + Edge(edge);
      for (int d = 0; d < D; ++d) {
        slot[d] = span[d];
        slot[D + d] = units[d];
      }
      slot[2 * D] = mode;
    }
  }

  // Whether forward (backward) row `a` is nowhere later (longer) than `b`, cut alike where that matters.
  bool Dominates(bool forward, const Tick* a, const Tick* b) const {
    const size_t row = forward ? forward_row_ : backward_row_;
    if (!by_region_) {
      size_t k = 0;
      while (k < row && a[k] <= b[k]) ++k;
      return k == row;
    }
    const int D = lanes();
    for (int d = 0; d < D; ++d) {
      if (a[d] > b[d]) return false;
    }
    if (forward) {
      for (int slot = 0; slot < slots_.tensors; ++slot) {
        const Tick* x = a + D + slot * tensor_stride_;
        const Tick* y = b + D + slot * tensor_stride_;
        for (int k = 0; k < 2 * D; ++k) {
          if (x[k] > y[k]) return false;
        }
        if (!std::equal(x + 2 * D, x + tensor_stride_, y + 2 * D)) return false;
      }
      return true;
    }
    for (int k = D; k < edge_begin_; ++k) {
      if (a[k] > b[k]) return false;
    }
    for (int edge = 0; edge < slots_.edges; ++edge) {
      const Tick* x = a + Edge(edge);
      const Tick* y = b + Edge(edge);
      for (int k = 0; k < D; ++k) {
        if (x[k] > y[k]) return false;
      }
      if (!std::equal(x + D, x + 2 * D + 1, y + D)) return false;
    }
    return true;
  }

  // Calls visit(units, total) with the cuts of neighbours of `v` that are read or written by region: [lane] units of `total`.
  template <typename Visit>
  void NeighbourCuts(int v, const Tick* before, const Tick* after, Visit visit) const {
    const int D = lanes();
    for (int e = net_.in_begin[static_cast<size_t>(v)]; e < net_.in_begin[static_cast<size_t>(v) + 1]; ++e) {
      if (slots_.of_edge[static_cast<size_t>(e)] < 0) continue;
      const int p = net_.in_op[static_cast<size_t>(e)];
      const Tick* slot = before + Tensor(p);
      visit(slot + 2 * D, net_.Mode(p, ProducerMode(slot)).units);
    }
    for (int k = net_.out_begin[static_cast<size_t>(v)]; k < net_.out_begin[static_cast<size_t>(v) + 1]; ++k) {
      const int e = net_.out_edge[static_cast<size_t>(k)];
      if (slots_.of_edge[static_cast<size_t>(e)] < 0) continue;
      const Tick* slot = after + Edge(slots_.of_edge[static_cast<size_t>(e)]);
      visit(slot + D, net_.Mode(net_.out_op[static_cast<size_t>(k)], static_cast<int>(slot[2 * D])).units);
    }
  }

 private:
  int Tensor(int op) const { return lanes() + slots_.of_op[static_cast<size_t>(op)] * tensor_stride_; }
  int Edge(int slot) const { return edge_begin_ + slot * (2 * lanes() + 1); }
  int ProducerMode(const Tick* slot) const { return static_cast<int>(slot[3 * lanes()]); }

  const Access* AccessOf(int edge, int mode, int producer, int producer_mode) const {
    const int index = net_.edge_access[static_cast<size_t>(net_.in_access[static_cast<size_t>(edge)] + mode * net_.ModeCount(producer) + producer_mode)];
    return index < 0 ? nullptr : &net_.problem->accesses[static_cast<size_t>(index)];
  }

  // Raises ready[d] to when the part of `units` on d can read what it reads of producer `p`.
  void ReadByRegion(int p, const Tick* slot, const Access& access, const uint8_t* units, Tick* ready) const {
    const int D = lanes();
    const NetMode& m = net_.Mode(p, ProducerMode(slot));
    int at = 0;
    for (int d = 0; d < D; ++d) {
      if (units[d] == 0) continue;
      const int first = access.first[static_cast<size_t>(at)], last = access.last[static_cast<size_t>(at + units[d] - 1)];
      at += units[d];
      int begin = 0;
      for (int e = 0; e < D; ++e) {
        const int made = static_cast<int>(slot[2 * D + e]);
        const int overlap = std::min(last, begin + made) - std::max(first, begin);
        begin += made;
        if (overlap > 0) ready[d] = std::max(ready[d], slot[D + e] + (e == d ? 0 : net_.Handoff(m, overlap, e, d)));
      }
    }
  }

  // Raises tail[d] to the path that follows the part of `units` on d through the consumer in `slot`.
  void TailByRegion(const NetMode& m, const Tick* slot, const Access& access, const uint8_t* units, Tick* tail) const {
    const int D = lanes();
    int at = 0;
    for (int f = 0; f < D; ++f) {
      const int read = static_cast<int>(slot[D + f]);
      if (read == 0) continue;
      const int first = access.first[static_cast<size_t>(at)], last = access.last[static_cast<size_t>(at + read - 1)];
      at += read;
      int begin = 0;
      for (int d = 0; d < D; ++d) {
        const int overlap = std::min(last, begin + units[d]) - std::max(first, begin);
        begin += units[d];
        if (overlap > 0) tail[d] = std::max(tail[d], slot[f] + (d == f ? 0 : net_.Handoff(m, overlap, d, f)));
      }
    }
  }

  Tick AcrossEdge(int e, const Tick* before, const Tick* after) const {
    const int D = lanes(), p = net_.in_op[static_cast<size_t>(e)];
    const Tick* made = before + Tensor(p);
    const Tick* read = after + Edge(slots_.of_edge[static_cast<size_t>(e)]);
    const Access* access = AccessOf(e, static_cast<int>(read[2 * D]), p, ProducerMode(made));
    Tick ready[kWidth] = {};
    if (access == nullptr) {
      std::copy_n(made, D, ready);
    } else {
      uint8_t units[kWidth] = {};
      for (int d = 0; d < D; ++d) units[d] = static_cast<uint8_t>(read[D + d]);
      ReadByRegion(p, made, *access, units, ready);
    }
    Tick most = 0;
    for (int d = 0; d < D; ++d) {
      if (read[d] > 0) most = std::max(most, ready[d] + read[d]);
    }
    return most;
  }

  const Net& net_;
  const std::vector<int>& sequence_;
  OrderSlots slots_;
  bool by_region_;
  int tensor_stride_ = 0, edge_begin_ = 0;
  size_t forward_row_ = 0, backward_row_ = 0;
};

}  // namespace plait
