// What a label of the order search knows of a prefix or a suffix of the sequence, as one row of ticks.
//
// Boundary p lies before position p. Forward row: when each lane is free, when the results made before are out, then for every tensor made before and read from there on: when all of it can be
// read on each lane and, if anything is read by region, the ends and units of its parts and its mode. Backward row: the path that follows on
// each lane, the longest path from an operator without inputs, then for every such tensor the longest path from a consumer on each lane that reads all of it, then for every edge that is
// read by region the consumer's paths, units and mode.
#pragma once

#include <algorithm>
#include <vector>

#include "src/schedule/net.h"
#include "src/schedule/split.h"

namespace plait {

// One position of the sequence: its operator, and what later positions still want after it.
struct OrderPosition {
  int op = 0;
  std::vector<int> tensors;      // operators placed up to here and read later, in the order of the rows after this position
  std::vector<int> source;       // where each stands in the rows before this position; -1: made here
  int own = -1;                  // where the operator's own tensor stands in `tensors`; -1: nobody reads it
  std::vector<int> inputs;       // for each input: where it stands in the rows before
  std::vector<int> edges;        // edges read by region, with the producer up to here and the consumer later
  std::vector<int> edge_source;  // as source
  std::vector<int> in_edges;     // for each input: its edge in the rows before; -1: read whole
  std::vector<int> out_edges;    // for each consumer: its edge in the rows after; -1: reads whole
};

// A stretch of a sequence of operators. Its rows hold what somebody in it makes or reads: of the tensors that were made before it, those that are
// read inside; of its own, also those that are read behind it. Rows at its ends keep their layout when it is reordered.
class OrderLayout {
 public:
  // `places`: [op] position in the whole sequence; the caller keeps them right, and alive.
  OrderLayout(const Net& net, const std::vector<int>& places) : net_(net), places_(places) {}

  // The stretch is `ops`, from `begin` of the sequence on.
  void Reset(int begin, const std::vector<int>& ops);

  int begin() const { return begin_; }
  int size() const { return size_; }
  const OrderPosition& At(int position) const { return positions_[static_cast<size_t>(position)]; }
  int Place(int op) const { return places_[static_cast<size_t>(op)] - begin_; }
  const std::vector<int>& TensorsAt(int boundary) const { return boundary == 0 ? entering_.tensors : At(boundary - 1).tensors; }
  const std::vector<int>& EdgesAt(int boundary) const { return boundary == 0 ? entering_.edges : At(boundary - 1).edges; }
  size_t Tensors(int boundary) const { return TensorsAt(boundary).size(); }
  size_t Edges(int boundary) const { return EdgesAt(boundary).size(); }

  // Positions i, i + 1, ... have `ops`, what stood there in another order; places are as the new order has them.
  void SetOrder(int i, const std::vector<int>& ops);

 private:
  void Build(int p);
  void Arrange(const std::vector<int>& tensors, const std::vector<int>& edges, OrderPosition* at) const;

  const Net& net_;
  const std::vector<int>& places_;
  int begin_ = 0, size_ = 0;
  OrderPosition entering_;  // tensors and edges only
  std::vector<OrderPosition> positions_;
};

template <int kD>
class OrderState {
 public:
  static constexpr int kWidth = kD > 0 ? kD : kMaxLanes;

  OrderState(const Net& net, const std::vector<int>& places) : net_(net), layout_(net, places), stride_(net.any_region ? 3 * lanes() + 1 : lanes()) {}

  int lanes() const { return kD > 0 ? kD : net_.lanes; }
  int Op(int position) const { return layout_.At(position).op; }
  bool ByRegion(int v) const { return net_.by_region[static_cast<size_t>(v)] != 0; }
  OrderLayout& layout() { return layout_; }
  const OrderLayout& layout() const { return layout_; }
  size_t RowSize(bool forward, int boundary) const {
    const size_t D = static_cast<size_t>(lanes()), tensors = layout_.Tensors(boundary);
    return forward ? D + 1 + tensors * static_cast<size_t>(stride_) : D + 1 + tensors * D + layout_.Edges(boundary) * (2 * D + 1);
  }

  // When everything that the operator may read can be read on each lane: exact where it reads whole tensors, late otherwise.
  void ReadyWhole(int position, const Tick* before, Tick* ready) const {
    const OrderPosition& at = layout_.At(position);
    if (at.inputs.empty()) {
      std::copy_n(net_.entry.begin(), lanes(), ready);
      return;
    }
    std::fill_n(ready, lanes(), 0);
    for (int input : at.inputs) {
      const Tick* release = before + Made(input);
      for (int d = 0; d < lanes(); ++d) ready[d] = std::max(ready[d], release[d]);
    }
  }

  // The same for parts of `units` of `mode`, by region; exact.
  void Ready(int position, int mode, const uint8_t* units, const Tick* before, Tick* ready) const {
    const OrderPosition& at = layout_.At(position);
    if (!ByRegion(at.op) || at.inputs.empty()) return ReadyWhole(position, before, ready);
    std::fill_n(ready, lanes(), 0);
    const int first = net_.in_begin[static_cast<size_t>(at.op)];
    for (size_t i = 0; i < at.inputs.size(); ++i) {
      const int edge = first + static_cast<int>(i), p = net_.in_op[static_cast<size_t>(edge)];
      const Tick* made = before + Made(at.inputs[i]);
      const Access* access = at.in_edges[i] < 0 ? nullptr : AccessOf(edge, mode, p, MadeMode(made));
      if (access != nullptr) {
        ReadByRegion(p, made, *access, units, ready);
        continue;
      }
      for (int d = 0; d < lanes(); ++d) ready[d] = std::max(ready[d], made[d]);
    }
  }

  // What follows the operator: exact where its consumers read all of it, long otherwise.
  Surroundings<kWidth> After(int position, const Tick* after) const {
    const OrderPosition& at = layout_.At(position);
    Surroundings<kWidth> s;
    s.sink = at.own < 0;
    for (int d = 0; d < lanes(); ++d) {
      s.after[d] = after[d];
      s.demand[d] = at.own < 0 ? 0 : after[Wanted(at.own) + d];
    }
    for (int edge : at.out_edges) {
      if (edge < 0) continue;
      const Tick* read = after + Read(at.tensors.size(), edge);
      for (int d = 0; d < lanes(); ++d) s.demand[d] = std::max(s.demand[d], read[d]);
    }
    return s;
  }

  // The paths that follow the parts of `units` of `mode`, lanes' next parts included; exact.
  void Tails(int position, int mode, const uint8_t* units, const Tick* after, Tick* tail) const {
    const OrderPosition& at = layout_.At(position);
    const int D = lanes(), v = at.op;
    const NetMode& m = net_.Mode(v, mode);
    Tick demand[kWidth];
    for (int d = 0; d < D; ++d) {
      tail[d] = std::max(after[d], at.own < 0 ? net_.exit[static_cast<size_t>(d)] : 0);
      demand[d] = at.own < 0 ? 0 : after[Wanted(at.own) + d];
    }
    const int first = net_.out_begin[static_cast<size_t>(v)];
    for (size_t k = 0; k < at.out_edges.size(); ++k) {
      if (at.out_edges[k] < 0) continue;
      const Tick* read = after + Read(at.tensors.size(), at.out_edges[k]);
      const Access* access = AccessOf(net_.out_edge[static_cast<size_t>(first) + k], static_cast<int>(read[2 * D]), v, mode);
      if (access != nullptr) {
        TailByRegion(m, read, *access, units, tail);
        continue;
      }
      for (int f = 0; f < D; ++f) demand[f] = std::max(demand[f], read[f]);
    }
    for (int d = 0; d < D; ++d) {
      if (units[d] == 0) continue;
      tail[d] = std::max(tail[d], demand[d]);
      for (int f = 0; f < D; ++f) {
        if (f != d && demand[f] > 0) tail[d] = std::max(tail[d], demand[f] + net_.Handoff(m, units[d], d, f));
      }
    }
  }

  // The longest path through the operator between the two rows; exact.
  Tick Through(int position, int mode, const uint8_t* units, const Tick* before, const Tick* after) const {
    const NetMode& m = net_.Mode(Op(position), mode);
    Tick ready[kWidth], tail[kWidth], most = 0;
    Ready(position, mode, units, before, ready);
    Tails(position, mode, units, after, tail);
    for (int d = 0; d < lanes(); ++d) {
      if (units[d] > 0) most = std::max(most, std::max(ready[d], before[d]) + net_.Cost(m, d, units[d]) + tail[d]);
    }
    return most;
  }

  // The longest path that joins rows before and after what lies between without touching it, lanes aside. `at`: the tensors and edges of the row after,
  // and their places in the row before.
  Tick Around(const OrderPosition& at, const Tick* before, const Tick* after) const {
    const int D = lanes();
    Tick most = std::max(before[D], after[D]);
    for (size_t k = 0; k < at.tensors.size(); ++k) {
      if (at.source[k] < 0) continue;
      const Tick* release = before + Made(at.source[k]);
      const Tick* demand = after + Wanted(static_cast<int>(k));
      for (int d = 0; d < D; ++d) {
        if (demand[d] > 0) most = std::max(most, release[d] + demand[d]);
      }
    }
    for (size_t k = 0; k < at.edges.size(); ++k) {
      if (at.edge_source[k] >= 0) most = std::max(most, AcrossEdge(at, static_cast<int>(k), before, after));
    }
    return most;
  }

  // The row on the other side of the operator.
  void StepForward(int position, int mode, const uint8_t* units, const Tick* before, Tick* after) const {
    const OrderPosition& at = layout_.At(position);
    const int D = lanes();
    const NetMode& m = net_.Mode(at.op, mode);
    for (size_t k = 0; k < at.tensors.size(); ++k) {
      if (at.source[k] >= 0) std::copy_n(before + Made(at.source[k]), stride_, after + Made(static_cast<int>(k)));
    }
    Tick release[kWidth] = {}, ready[kWidth], end[kWidth] = {};
    Ready(position, mode, units, before, ready);
    after[D] = before[D];
    for (int e = 0; e < D; ++e) {
      after[e] = before[e];
      if (units[e] == 0) continue;
      after[e] = end[e] = std::max(before[e], ready[e]) + net_.Cost(m, e, units[e]);
      if (at.own < 0) after[D] = std::max(after[D], end[e] + net_.exit[static_cast<size_t>(e)]);
      for (int d = 0; d < D; ++d) release[d] = std::max(release[d], d == e ? end[e] : end[e] + net_.Handoff(m, units[e], e, d));
    }
    if (at.own < 0) return;
    Tick* made = after + Made(at.own);
    std::copy_n(release, D, made);
    if (!net_.any_region) return;
    std::copy_n(end, D, made + D);
    for (int d = 0; d < D; ++d) made[2 * D + d] = units[d];
    made[3 * D] = mode;
  }

  void StepBackward(int position, int mode, const uint8_t* units, const Tick* after, Tick* before) const {
    const OrderPosition& at = layout_.At(position);
    const int D = lanes();
    const NetMode& m = net_.Mode(at.op, mode);
    Tick span[kWidth] = {}, tail[kWidth];
    Tails(position, mode, units, after, tail);
    std::fill_n(before, RowSize(false, position), 0);
    before[D] = after[D];
    for (int d = 0; d < D; ++d) {
      before[d] = after[d];
      if (units[d] == 0) continue;
      before[d] = span[d] = tail[d] + net_.Cost(m, d, units[d]);
      if (at.inputs.empty()) before[D] = std::max(before[D], net_.entry[static_cast<size_t>(d)] + span[d]);
    }
    for (size_t k = 0; k < at.tensors.size(); ++k) {
      if (at.source[k] >= 0) std::copy_n(after + Wanted(static_cast<int>(k)), D, before + Wanted(at.source[k]));
    }
    for (size_t k = 0; k < at.edges.size(); ++k) {
      if (at.edge_source[k] >= 0) std::copy_n(after + Read(at.tensors.size(), static_cast<int>(k)), 2 * D + 1, before + Read(layout_.Tensors(position), at.edge_source[k]));
    }
    for (size_t i = 0; i < at.inputs.size(); ++i) {
      if (at.in_edges[i] < 0) {
        Tick* demand = before + Wanted(at.inputs[i]);
        for (int d = 0; d < D; ++d) demand[d] = std::max(demand[d], span[d]);
        continue;
      }
      Tick* read = before + Read(layout_.Tensors(position), at.in_edges[i]);
      for (int d = 0; d < D; ++d) {
        read[d] = span[d];
        read[D + d] = units[d];
      }
      read[2 * D] = mode;
    }
  }

  // The part of a forward row of the whole that a stretch has: `slots`: [op] where a tensor stands in the whole row.
  void PickForward(const Tick* whole, const std::vector<int>& slots, const std::vector<int>& tensors, Tick* row) const {
    std::copy_n(whole, lanes() + 1, row);
    for (size_t k = 0; k < tensors.size(); ++k) {
      std::copy_n(whole + Made(slots[static_cast<size_t>(tensors[k])]), stride_, row + Made(static_cast<int>(k)));
    }
  }
  // The same of a backward row, which holds what `at` lists.
  void PickBackward(const Tick* whole, const OrderPosition& at, const std::vector<int>& slots, const std::vector<int>& tensors, const std::vector<int>& edges,
                    Tick* row) const {
    const int D = lanes();
    std::copy_n(whole, D + 1, row);
    for (size_t k = 0; k < tensors.size(); ++k) std::copy_n(whole + Wanted(slots[static_cast<size_t>(tensors[k])]), D, row + Wanted(static_cast<int>(k)));
    for (size_t k = 0; k < edges.size(); ++k) {
      const auto index = std::find(at.edges.begin(), at.edges.end(), edges[k]) - at.edges.begin();
      std::copy_n(whole + Read(at.tensors.size(), static_cast<int>(index)), 2 * D + 1, row + Read(tensors.size(), static_cast<int>(k)));
    }
  }

  // Whether forward (backward) row `a` is nowhere later (longer) than `b`, cut alike where that matters.
  bool Dominates(bool forward, int boundary, const Tick* a, const Tick* b) const {
    const int D = lanes(), size = static_cast<int>(RowSize(forward, boundary));
    const auto no_later = [&](int from, int to) {
      for (int k = from; k < to; ++k) {
        if (a[k] > b[k]) return false;
      }
      return true;
    };
    if (!net_.any_region) return no_later(0, size);
    if (forward) {
      for (int at = Made(0); at < size; at += stride_) {
        if (!no_later(at, at + 2 * D) || !std::equal(a + at + 2 * D, a + at + stride_, b + at + 2 * D)) return false;
      }
      return no_later(0, D + 1);
    }
    const int edges = Read(layout_.Tensors(boundary), 0);
    for (int at = edges; at < size; at += 2 * D + 1) {
      if (!no_later(at, at + D) || !std::equal(a + at + D, a + at + 2 * D + 1, b + at + D)) return false;
    }
    return no_later(0, edges);
  }

  // Calls visit(units, total) with the cuts of neighbours that are read or written by region: [lane] units of `total`.
  template <typename Visit>
  void NeighbourCuts(int position, const Tick* before, const Tick* after, Visit visit) const {
    const OrderPosition& at = layout_.At(position);
    const int D = lanes(), first_in = net_.in_begin[static_cast<size_t>(at.op)], first_out = net_.out_begin[static_cast<size_t>(at.op)];
    for (size_t i = 0; i < at.inputs.size(); ++i) {
      if (at.in_edges[i] < 0) continue;
      const Tick* made = before + Made(at.inputs[i]);
      visit(made + 2 * D, net_.Mode(net_.in_op[static_cast<size_t>(first_in) + i], MadeMode(made)).units);
    }
    for (size_t k = 0; k < at.out_edges.size(); ++k) {
      if (at.out_edges[k] < 0) continue;
      const Tick* read = after + Read(at.tensors.size(), at.out_edges[k]);
      visit(read + D, net_.Mode(net_.out_op[static_cast<size_t>(first_out) + k], static_cast<int>(read[2 * D])).units);
    }
  }

 private:
  int Made(int index) const { return lanes() + 1 + index * stride_; }
  int Wanted(int index) const { return lanes() + 1 + index * lanes(); }
  int Read(size_t tensors, int index) const { return lanes() + 1 + static_cast<int>(tensors) * lanes() + index * (2 * lanes() + 1); }
  int MadeMode(const Tick* made) const { return static_cast<int>(made[3 * lanes()]); }

  const Access* AccessOf(int edge, int mode, int producer, int producer_mode) const {
    const int index = net_.edge_access[static_cast<size_t>(net_.in_access[static_cast<size_t>(edge)] + mode * net_.ModeCount(producer) + producer_mode)];
    return index < 0 ? nullptr : &net_.problem->accesses[static_cast<size_t>(index)];
  }

  // Raises ready[d] to when the part of `units` on d can read what it reads of producer `p`.
  void ReadByRegion(int p, const Tick* made, const Access& access, const uint8_t* units, Tick* ready) const {
    const int D = lanes();
    const NetMode& m = net_.Mode(p, MadeMode(made));
    int at = 0;
    for (int d = 0; d < D; ++d) {
      if (units[d] == 0) continue;
      const int first = access.first[static_cast<size_t>(at)], last = access.last[static_cast<size_t>(at + units[d] - 1)];
      at += units[d];
      int begin = 0;
      for (int e = 0; e < D; ++e) {
        const int count = static_cast<int>(made[2 * D + e]);
        const int overlap = std::min(last, begin + count) - std::max(first, begin);
        begin += count;
        if (overlap > 0) ready[d] = std::max(ready[d], made[D + e] + (e == d ? 0 : net_.Handoff(m, overlap, e, d)));
      }
    }
  }

  // Raises tail[d] to the path that follows the part of `units` on d through the consumer `read`.
  void TailByRegion(const NetMode& m, const Tick* read, const Access& access, const uint8_t* units, Tick* tail) const {
    const int D = lanes();
    int at = 0;
    for (int f = 0; f < D; ++f) {
      const int count = static_cast<int>(read[D + f]);
      if (count == 0) continue;
      const int first = access.first[static_cast<size_t>(at)], last = access.last[static_cast<size_t>(at + count - 1)];
      at += count;
      int begin = 0;
      for (int d = 0; d < D; ++d) {
        const int overlap = std::min(last, begin + units[d]) - std::max(first, begin);
        begin += units[d];
        if (overlap > 0) tail[d] = std::max(tail[d], read[f] + (d == f ? 0 : net_.Handoff(m, overlap, d, f)));
      }
    }
  }

  // The longest path along the index-th edge after `position`, whose producer stands before it.
  Tick AcrossEdge(const OrderPosition& at, int index, const Tick* before, const Tick* after) const {
    const int D = lanes(), e = at.edges[static_cast<size_t>(index)], p = net_.in_op[static_cast<size_t>(e)];
    const auto tensor = std::find(at.tensors.begin(), at.tensors.end(), p) - at.tensors.begin();
    const Tick* made = before + Made(at.source[static_cast<size_t>(tensor)]);
    const Tick* read = after + Read(at.tensors.size(), index);
    const Access* access = AccessOf(e, static_cast<int>(read[2 * D]), p, MadeMode(made));
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
  OrderLayout layout_;
  int stride_;
};

}  // namespace plait
