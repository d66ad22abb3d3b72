// Splits and orders from both ends.
//
// A pass leads the labels of one side across the whole sequence and keeps for every boundary those that are best with some label of the other side;
// passes go to and fro, each guided by the labels of the one before (label_field.h).
//
// Orders change in windows: the labels at both ends of a stretch of positions stay as they are, so a new order of the stretch is re-split
// and priced for the whole schedule at the cost of the stretch. What only passes by a window is joined once for it.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "src/schedule/engine.h"
#include "src/schedule/label_field.h"
#include "src/schedule/random.h"

namespace plait {

template <int kD>
class OrderSearch {
 public:
  // Starts from `plan`, whose makespan is right. Keeps up to `width` labels a boundary.
  OrderSearch(const Net& net, SequencePlan plan, int width)
      : net_(net), plan_(std::move(plan)), place_(static_cast<size_t>(net.n)), slot_(static_cast<size_t>(net.n)), whole_(net, place_, width), window_(net, place_, width) {
    for (int p = 0; p < net.n; ++p) place_[static_cast<size_t>(plan_.sequence[static_cast<size_t>(p)])] = p;
    whole_.Reset(0, plan_.sequence);
    for (bool ahead : {true, false}) {
      std::fill_n(whole_.AddEnd(ahead), whole_.state().RowSize(ahead, whole_.End(ahead)), 0);
      whole_.Seed(plan_, 0, net.n, ahead);
    }
  }

  const SequencePlan& plan() const { return plan_; }
  int64_t evaluations() const { return whole_.evaluations() + window_.evaluations(); }

  // Passes over the whole sequence, until two in a row bring nothing.
  void Passes(int count) {
    for (int pass = 0; pass < count; ++pass) {
      const Tick before = plan_.makespan;
      Pass(pass % 2 == 0);
      if (pass > 0 && plan_.makespan == before) break;
    }
  }

  void Pass(bool ahead) {
    Tick value = kInfinite;
    for (int k = 0; k < net_.n; ++k) value = whole_.Lead(ahead ? k : net_.n - 1 - k, ahead, true).value;
    if (value >= plan_.makespan) return;
    whole_.Take(ahead, whole_.End(!ahead), 0, &plan_);
    plan_.makespan = value;
  }

  // One sweep over all windows of `length`, `tries` new orders each; ahead: front to back (the forward labels of the whole
  // sequence are renewed), else back to front. Ends early once `limit` evaluations are spent; then no other sweep may follow. A pass may not follow.
  void Sweep(bool ahead, int length, int tries, int64_t limit, Random* random) {
    const int n = net_.n, step = std::max(1, length / 2);
    for (int done = 0; done < n && evaluations() < limit; done += step) {
      const int i = ahead ? done : std::max(0, n - done - length), j = ahead ? std::min(n, done + length) : n - done;
      Enter(i, j);
      for (int t = 0; t < tries; ++t) TryOrder(ahead, random);
      Leave(i, j, ahead, std::min(step, j - i));
    }
  }

 private:
  // The stretch [i, j) of the sequence with the labels at its ends.
  void Enter(int i, int j) {
    order_.assign(plan_.sequence.begin() + i, plan_.sequence.begin() + j);
    window_.Reset(i, order_);
    const OrderLayout& outer = whole_.state().layout();
    const std::vector<int>& tensors = outer.TensorsAt(i);
    for (size_t k = 0; k < tensors.size(); ++k) slot_[static_cast<size_t>(tensors[k])] = static_cast<int>(k);
    past_.tensors = outer.TensorsAt(j);
    past_.edges = outer.EdgesAt(j);
    past_.source.clear();
    past_.edge_source.clear();
    for (int x : past_.tensors) past_.source.push_back(Place(x) < i ? slot_[static_cast<size_t>(x)] : -1);
    for (int e : past_.edges) past_.edge_source.push_back(Place(net_.in_op[static_cast<size_t>(e)]) < i ? 0 : -1);
    const int before = whole_.Count(true, i), after = whole_.Count(false, j);
    const OrderLayout& inner = window_.state().layout();
    for (int f = 0; f < before; ++f) whole_.state().PickForward(whole_.Row(true, i, f), slot_, inner.TensorsAt(0), window_.AddEnd(true));
    for (size_t k = 0; k < past_.tensors.size(); ++k) slot_[static_cast<size_t>(past_.tensors[k])] = static_cast<int>(k);
    for (int b = 0; b < after; ++b) whole_.state().PickBackward(whole_.Row(false, j, b), past_, slot_, inner.TensorsAt(j - i), inner.EdgesAt(j - i), window_.AddEnd(false));
    across_.clear();
    for (int f = 0; f < before; ++f) {
      for (int b = 0; b < after; ++b) across_.push_back(whole_.state().Around(past_, whole_.Row(true, i, f), whole_.Row(false, j, b)));
    }
    window_.SetAcross(&across_);
    window_.Spend(before * after * static_cast<int64_t>(past_.tensors.size()) / LabelField<kD>::kTensorsPerEvaluation);
    improved_ = false;
  }

  // Brings what the window found into the whole, and leads the labels of the side that the sweep comes from across its first `step` operators.
  void Leave(int i, int j, bool ahead, int step) {
    if (!std::equal(order_.begin(), order_.end(), plan_.sequence.begin() + i)) {
      std::copy(order_.begin(), order_.end(), plan_.sequence.begin() + i);
      whole_.layout().SetOrder(i, order_);
    }
    const int size = j - i;
    window_.Seed(plan_, 0, size, !ahead);
    for (int k = 0; k < step; ++k) {
      const int p = ahead ? k : size - 1 - k, to = LabelField<kD>::To(p, ahead);
      const auto& best = window_.Lead(p, ahead, true);
      if (best.value < plan_.makespan) {
        plan_.makespan = best.value;
        Adopt(to, ahead, best.with);
      }
      whole_.Clear(ahead, i + to);
      for (int index = 0; index < window_.Count(ahead, to); ++index) {
        const auto& label = window_.At(ahead, to, index);
        typename LabelField<kD>::Candidate c;
        c.from = label.parent;
        c.mode = label.mode;
        std::copy_n(label.units, window_.lanes(), c.units);
        whole_.Push(i + p, ahead, c);
      }
    }
    if (!improved_) return;
    whole_.Take(true, i, from_, &plan_);
    whole_.Take(false, j, to_, &plan_);
  }

  // The first label of one side at a boundary of the window, joined with `with` of the other side, becomes the plan.
  void Adopt(int boundary, bool ahead, int with) {
    const int own = window_.Take(ahead, boundary, 0, &plan_), other = window_.Take(!ahead, boundary, with, &plan_);
    from_ = ahead ? own : other;
    to_ = ahead ? other : own;
    improved_ = true;
  }

  // A random new order of the window, re-split; taken if the schedule gets no slower.
  void TryOrder(bool ahead, Random* random) {
    if (!Propose(random)) return;
    const int size = window_.size();
    SetOrder(new_order_);
    window_.Spend(size);
    window_.Seed(plan_, 0, size, !ahead);
    Tick value = kInfinite;
    int with = 0;
    for (int k = 0; k < size; ++k) {
      const auto& best = window_.Lead(ahead ? k : size - 1 - k, ahead, false);
      value = best.value;
      with = best.with;
    }
    if (value > plan_.makespan) return SetOrder(order_);
    order_ = new_order_;
    plan_.makespan = value;
    Adopt(window_.End(!ahead), ahead, with);
  }

  void SetOrder(const std::vector<int>& ops) {
    const int begin = Begin();
    for (size_t k = 0; k < ops.size(); ++k) place_[static_cast<size_t>(ops[k])] = begin + static_cast<int>(k);
    window_.layout().SetOrder(0, ops);
  }

  // Moves one operator of the window past operators that it does not depend on.
  bool Propose(Random* random) {
    new_order_ = order_;
    const int count = window_.size();
    const OrderLayout& layout = window_.state().layout();
    for (int attempt = 0; attempt < 4; ++attempt) {
      const int at = static_cast<int>(random->Below(static_cast<uint32_t>(count)));
      const int v = new_order_[static_cast<size_t>(at)];
      int lo = 0, hi = count - 1;
      for (int e = net_.in_begin[static_cast<size_t>(v)]; e < net_.in_begin[static_cast<size_t>(v) + 1]; ++e) {
        lo = std::max(lo, layout.Place(net_.in_op[static_cast<size_t>(e)]) + 1);
      }
      for (int k = net_.out_begin[static_cast<size_t>(v)]; k < net_.out_begin[static_cast<size_t>(v) + 1]; ++k) {
        hi = std::min(hi, layout.Place(net_.out_op[static_cast<size_t>(k)]) - 1);
      }
      if (lo >= hi) continue;
      int to = lo + static_cast<int>(random->Below(static_cast<uint32_t>(hi - lo)));
      if (to >= at) ++to;
      new_order_.erase(new_order_.begin() + at);
      new_order_.insert(new_order_.begin() + to, v);
      return true;
    }
    return false;
  }

  int Place(int op) const { return place_[static_cast<size_t>(op)]; }
  int Begin() const { return window_.state().layout().begin(); }

  const Net& net_;
  SequencePlan plan_;
  std::vector<int> place_, slot_;  // [op] position; place in a row
  LabelField<kD> whole_, window_;
  OrderPosition past_;         // what the whole wants behind the window
  std::vector<Tick> across_;
  std::vector<int> order_, new_order_;  // of the window
  bool improved_ = false;      // in the window; then with the label from_ before it and the label to_ behind it
  int from_ = 0, to_ = 0;
};

}  // namespace plait
