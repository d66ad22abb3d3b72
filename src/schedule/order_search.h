// Splits and orders from both ends.
//
// A forward label is one way to run a prefix of a sequence of operators, a backward label one way to run a suffix (order_state.h). Joined, they
// give the exact makespan; with one operator between them, the best split of that operator follows directly. A pass keeps for every
// boundary the labels that are best with some label of the other side; passes go to and fro, each guided by the labels of the one before.
//
// Orders change in windows: the labels at both ends of a stretch of positions stay as they are, so a new order of the stretch is re-split
// and priced for the whole schedule at the cost of the stretch.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "src/schedule/engine.h"
#include "src/schedule/order_state.h"
#include "src/schedule/random.h"
#include "src/schedule/split.h"

namespace plait {

template <int kD>
class OrderSearch {
 public:
  static constexpr int kWidth = kD > 0 ? kD : kMaxLanes;
  // So many tensors that are alive cost as much as one more split: budgets mean about the same time on all graphs.
  static constexpr int kTensorsPerEvaluation = 16;

  // Starts from `plan`, whose makespan is right. Keeps up to `width` labels a boundary.
  OrderSearch(const Net& net, SequencePlan plan, int width)
      : net_(net),
        plan_(std::move(plan)),
        width_(width),
        state_(net, plan_.sequence),
        forward_(static_cast<size_t>(net.n) + 1),
        backward_(static_cast<size_t>(net.n) + 1) {
    forward_[0].labels.assign(1, Label());
    forward_[0].rows.assign(state_.RowSize(true, 0), 0);
    backward_[static_cast<size_t>(net.n)].labels.assign(1, Label());
    backward_[static_cast<size_t>(net.n)].rows.assign(state_.RowSize(false, net.n), 0);
    for (bool ahead : {true, false}) Seed(0, net.n, ahead);
  }

  const SequencePlan& plan() const { return plan_; }
  int64_t evaluations() const { return evaluations_; }

  // Passes over the whole sequence, until two in a row bring nothing.
  void Passes(int count) {
    for (int pass = 0; pass < count; ++pass) {
      const Tick before = plan_.makespan;
      Pass(pass % 2 == 0);
      if (pass > 0 && plan_.makespan == before) break;
    }
  }

  void Pass(bool ahead) {
    for (int k = 0; k < net_.n; ++k) {
      const int p = ahead ? k : net_.n - 1 - k;
      Extend(p, ahead, true);
      Select(p, ahead);
    }
    Adopt(ahead, ahead ? net_.n : 0, 0, 0, best_.value);
  }

  // One sweep over all windows of `length`, `tries` new orders each; ahead: front to back (the forward labels of the whole
  // sequence are renewed), else back to front. Ends early once `limit` evaluations are spent; then no other sweep may follow.
  void Sweep(bool ahead, int length, int tries, int64_t limit, Random* random) {
    const int n = net_.n, step = std::max(1, length / 2);
    if (ahead) {
      for (int i = 0; i < n && evaluations_ < limit; i += step) {
        const int j = std::min(n, i + length);
        for (int t = 0; t < tries; ++t) TryOrder(i, j, ahead, random);
        Seed(i, j, false);
        for (int p = i; p < std::min(n, i + step); ++p) Renew(p, true);
      }
    } else {
      for (int j = n; j > 0 && evaluations_ < limit; j -= step) {
        const int i = std::max(0, j - length);
        for (int t = 0; t < tries; ++t) TryOrder(i, j, ahead, random);
        Seed(i, j, true);
        for (int p = j - 1; p >= std::max(0, j - step); --p) Renew(p, false);
      }
    }
  }

 private:
  struct Label {
    int parent = 0;              // in the neighbouring boundary's labels
    uint8_t mode = 0;
    uint8_t units[kWidth] = {};  // of the operator between here and the parent
  };
  struct Labels {
    std::vector<Label> labels;
    std::vector<Tick> rows;
  };
  struct Candidate {
    Tick value = 0;  // makespan together with the label `with` of the other side
    int from = 0, with = 0;
    uint32_t set = 0;  // lanes with units
    uint8_t mode = 0;
    uint8_t units[kWidth] = {};
  };

  int lanes() const { return kD > 0 ? kD : net_.lanes; }
  Labels& Boundary(bool forward, int p) { return forward ? forward_[static_cast<size_t>(p)] : backward_[static_cast<size_t>(p)]; }
  const Labels& Boundary(bool forward, int p) const { return forward ? forward_[static_cast<size_t>(p)] : backward_[static_cast<size_t>(p)]; }
  // The boundary that an operator at p leads to, and where it comes from.
  static int To(int p, bool ahead) { return ahead ? p + 1 : p; }
  static int From(int p, bool ahead) { return ahead ? p : p + 1; }
  const Tick* Row(bool forward, int boundary, int index) const {
    return &Boundary(forward, boundary).rows[static_cast<size_t>(index) * state_.RowSize(forward, boundary)];
  }

  // Labels of the plan's own choices for the positions [i, j): all labels of the boundary where they begin are carried on.
  void Seed(int i, int j, bool ahead) {
    for (int k = 0; k < j - i; ++k) {
      const int p = ahead ? i + k : j - 1 - k;
      const size_t v = static_cast<size_t>(state_.Op(p));
      Candidate c;
      c.mode = plan_.mode[v];
      std::copy_n(plan_.units.begin() + static_cast<std::ptrdiff_t>(v * static_cast<size_t>(lanes())), lanes(), c.units);
      Clear(p, ahead);
      const int count = static_cast<int>(Boundary(ahead, From(p, ahead)).labels.size());
      for (c.from = 0; c.from < count; ++c.from) Push(p, ahead, c);
    }
  }

  void Clear(int p, bool ahead) {
    Labels& to = Boundary(ahead, To(p, ahead));
    to.labels.clear();
    to.rows.clear();
  }

  void Push(int p, bool ahead, const Candidate& c) {
    Labels& to = Boundary(ahead, To(p, ahead));
    Label label;
    label.parent = c.from;
    label.mode = c.mode;
    std::copy_n(c.units, lanes(), label.units);
    to.labels.push_back(label);
    const size_t size = state_.RowSize(ahead, To(p, ahead));
    to.rows.resize(to.labels.size() * size);
    Tick* row = &to.rows[(to.labels.size() - 1) * size];
    const Tick* from = Row(ahead, From(p, ahead), c.from);
    if (ahead) {
      state_.StepForward(p, c.mode, c.units, from, row);
    } else {
      state_.StepBackward(p, c.mode, c.units, from, row);
    }
  }

  // All ways to lead the labels of one side across the operator at p, priced together with the labels of the other side.
  // `every`: also sets of lanes that are not the best.
  void Extend(int p, bool ahead, bool every) {
    const int v = state_.Op(p), D = lanes();
    candidates_.clear();
    const int own_count = static_cast<int>(Boundary(ahead, From(p, ahead)).labels.size());
    const int others = static_cast<int>(Boundary(!ahead, To(p, ahead)).labels.size());
    const uint32_t all = (1u << D) - 1;
    for (int own = 0; own < own_count; ++own) {
      for (int other = 0; other < others; ++other) {
        const Tick* before = Row(true, p, ahead ? own : other);
        const Tick* after = Row(false, p + 1, ahead ? other : own);
        Surroundings<kWidth> s = state_.After(p, after);
        Tick ready[kWidth];
        state_.ReadyWhole(p, before, ready);
        for (int d = 0; d < D; ++d) s.start[d] = std::max(ready[d], before[d]);
        Candidate c;
        c.from = own;
        c.with = other;
        c.value = state_.Around(p, before, after);
        evaluations_ += static_cast<int64_t>(state_.layout().Tensors(p + 1)) / kTensorsPerEvaluation;
        // Other sets of lanes than the best, once for each label that is extended; the other side's labels take turns.
        const bool sets = every && own % others == other;
        for (int mode = 0; mode < net_.ModeCount(v); ++mode) {
          c.mode = static_cast<uint8_t>(mode);
          const NetMode& m = net_.Mode(v, mode);
          const Paths<kWidth> paths(net_, m, s, D);
          const uint32_t best = Consider(p, c, m, paths, all, before, after);
          for (uint32_t mask = 1; sets && mask < all; ++mask) {
            if ((mask & best) == best || (m.units == 1 && (mask & (mask - 1)) != 0)) continue;
            Consider(p, c, m, paths, mask, before, after);
          }
        }
      }
    }
    others_ = others;
  }

  // Adds the best split over the lanes in `mask` to a candidate that knows the longest path around the operator; returns the lanes it uses.
  uint32_t Consider(int p, Candidate c, const NetMode& m, const Paths<kWidth>& paths, uint32_t mask, const Tick* before, const Tick* after) {
    const int D = lanes();
    const bool all = mask == (1u << D) - 1;
    ++evaluations_;
    Split<kWidth> split;
    if (all) std::copy_n(warm_, D, split.units);
    Splitter<kWidth>(m, paths, D, mask).Run(&split);
    if (split.value >= kInfinite) return mask;
    if (all) std::copy_n(split.units, D, warm_);
    if (state_.ByRegion(state_.Op(p))) {
      split.value = state_.Through(p, c.mode, split.units, before, after);
      if (all && m.units > 1) Align(p, c.mode, m, before, after, &split);
    }
    std::copy_n(split.units, D, c.units);
    c.value = std::max(split.value, c.value);
    c.set = 0;
    for (int d = 0; d < D; ++d) {
      if (split.units[d] > 0) {
        c.set |= 1u << d;
      } else {
        // Also where nothing follows on the lane: by region, its last part may be one that nobody reads.
        c.value = std::max(c.value, before[d] + after[d]);
      }
    }
    candidates_.push_back(c);
    return c.set;
  }

  // Cuts where the neighbours that are read by region are cut, and some units beside.
  void Align(int p, int mode, const NetMode& m, const Tick* before, const Tick* after, Split<kWidth>* best) {
    const int D = lanes();
    const auto consider = [&](const uint8_t* units) {
      for (int d = 0; d < D; ++d) {
        if (units[d] > 0 && (units[d] < m.min_units || net_.Cost(m, d, units[d]) >= kInfinite)) return;
      }
      ++evaluations_;
      const Tick value = state_.Through(p, mode, units, before, after);
      if (value >= best->value) return;
      best->value = value;
      std::copy_n(units, D, best->units);
    };
    state_.NeighbourCuts(p, before, after, [&](const Tick* cut, int total) {
      uint8_t units[kMaxLanes] = {};
      int sum = 0, reached = 0;
      for (int d = 0; d < D; ++d) {
        sum += static_cast<int>(cut[d]);
        const int boundary = (2 * sum * m.units + total) / (2 * total);
        units[d] = static_cast<uint8_t>(boundary - reached);
        reached = boundary;
      }
      consider(units);
    });
    // Unit by unit from there, in the direction that helps.
    for (bool better = true; better;) {
      const Split<kWidth> start = *best;
      for (int a = 0; a < D; ++a) {
        for (int b = 0; b < D; ++b) {
          if (a == b || start.units[a] == 0) continue;
          uint8_t units[kMaxLanes] = {};
          std::copy_n(start.units, D, units);
          const int step = start.units[b] == 0 || start.units[a] == m.min_units ? m.min_units : 1;
          if (units[a] < step) continue;
          units[a] = static_cast<uint8_t>(units[a] - step);
          units[b] = static_cast<uint8_t>(units[b] + step);
          consider(units);
        }
      }
      better = best->value < start.value;
    }
  }

  // Keeps the best label of all, then the best for every label of the other side, then the best for every set of lanes, then the best.
  void Select(int p, bool ahead) {
    Clear(p, ahead);
    best_ = Candidate();
    best_.value = kInfinite;
    by_other_.assign(static_cast<size_t>(others_), -1);
    by_set_.clear();
    int best = -1;
    for (int k = 0; k < static_cast<int>(candidates_.size()); ++k) {
      const Candidate& c = Kth(k);
      if (best < 0 || c.value < Kth(best).value) best = k;
      int& other = by_other_[static_cast<size_t>(c.with)];
      if (other < 0 || c.value < Kth(other).value) other = k;
      const auto same = std::find_if(by_set_.begin(), by_set_.end(), [&](int s) { return Kth(s).set == c.set && Kth(s).mode == c.mode; });
      if (same == by_set_.end()) {
        by_set_.push_back(k);
      } else if (c.value < Kth(*same).value) {
        *same = k;
      }
    }
    if (best < 0) return;
    best_ = Kth(best);
    Keep(p, ahead, best);
    const auto sooner = [&](int a, int b) { return Kth(a).value != Kth(b).value ? Kth(a).value < Kth(b).value : a < b; };
    std::sort(by_other_.begin(), by_other_.end(), [&](int a, int b) { return b < 0 ? a >= 0 : a >= 0 && sooner(a, b); });
    for (int k : by_other_) {
      if (k >= 0) Keep(p, ahead, k);
    }
    std::sort(by_set_.begin(), by_set_.end(), sooner);
    for (int k : by_set_) Keep(p, ahead, k);
    while (Count(p, ahead) < width_) {
      int next = -1;
      for (int k = 0; k < static_cast<int>(candidates_.size()); ++k) {
        if (Kth(k).from >= 0 && (next < 0 || Kth(k).value < Kth(next).value)) next = k;
      }
      if (next < 0) break;
      Keep(p, ahead, next);
    }
  }

  const Candidate& Kth(int k) const { return candidates_[static_cast<size_t>(k)]; }
  int Count(int p, bool ahead) const { return static_cast<int>(Boundary(ahead, To(p, ahead)).labels.size()); }

  // Makes the candidate a label unless there is no room or it is dominated; it is not looked at again.
  void Keep(int p, bool ahead, int k) {
    Candidate& c = candidates_[static_cast<size_t>(k)];
    if (c.from < 0 || Count(p, ahead) >= width_) return;
    Push(p, ahead, c);
    if (Dominated(To(p, ahead), ahead)) Pop(To(p, ahead), ahead);
    c.from = -1;
  }

  void Pop(int boundary, bool forward) {
    Labels& l = Boundary(forward, boundary);
    l.labels.pop_back();
    l.rows.resize(l.labels.size() * state_.RowSize(forward, boundary));
  }

  // Whether an earlier label is nowhere worse than the last one.
  bool Dominated(int boundary, bool forward) const {
    const int last = static_cast<int>(Boundary(forward, boundary).labels.size()) - 1;
    for (int i = 0; i < last; ++i) {
      if (state_.Dominates(forward, boundary, Row(forward, boundary, i), Row(forward, boundary, last))) return true;
    }
    return false;
  }

  // Extends over one position again, guided by the other side, and takes what is better.
  void Renew(int p, bool ahead) {
    Extend(p, ahead, true);
    Select(p, ahead);
    Adopt(ahead, To(p, ahead), 0, best_.with, best_.value);
  }

  // The label `own` of one side at `boundary`, joined with `other` of the other side, becomes the plan if that is better.
  void Adopt(bool ahead, int boundary, int own, int other, Tick value) {
    if (value >= plan_.makespan) return;
    Take(ahead, boundary, own);
    Take(!ahead, boundary, other);
    plan_.makespan = value;
  }

  // The choices of the prefix (suffix) that a label stands for.
  void Take(bool forward, int boundary, int index) {
    while (boundary != (forward ? 0 : net_.n)) {
      const Label& label = Boundary(forward, boundary).labels[static_cast<size_t>(index)];
      const int p = forward ? boundary - 1 : boundary;
      const size_t v = static_cast<size_t>(state_.Op(p));
      plan_.mode[v] = label.mode;
      std::copy_n(label.units, lanes(), plan_.units.begin() + static_cast<std::ptrdiff_t>(v * static_cast<size_t>(lanes())));
      index = label.parent;
      boundary += forward ? -1 : 1;
    }
  }

  // A random new order of the window [i, j), re-split; taken if the schedule gets no slower.
  void TryOrder(int i, int j, bool ahead, Random* random) {
    old_order_.assign(plan_.sequence.begin() + i, plan_.sequence.begin() + j);
    if (!Propose(i, j, random)) return;
    evaluations_ += (j - i) * static_cast<int64_t>(1 + state_.layout().Tensors(j) / kTensorsPerEvaluation);
    state_.layout().SetOrder(i, new_order_);
    Seed(i, j, !ahead);
    for (int k = 0; k < j - i; ++k) {
      const int p = ahead ? i + k : j - 1 - k;
      Extend(p, ahead, false);
      Select(p, ahead);
    }
    if (best_.value > plan_.makespan) {
      state_.layout().SetOrder(i, old_order_);
      return;
    }
    std::copy(new_order_.begin(), new_order_.end(), plan_.sequence.begin() + i);
    const int end = ahead ? j : i;
    Take(ahead, end, 0);
    Take(!ahead, end, best_.with);
    plan_.makespan = best_.value;
  }

  // Moves one operator of the window past operators that it does not depend on.
  bool Propose(int i, int j, Random* random) {
    new_order_ = old_order_;
    const int count = j - i;
    for (int attempt = 0; attempt < 4; ++attempt) {
      const int at = static_cast<int>(random->Below(static_cast<uint32_t>(count)));
      const int v = new_order_[static_cast<size_t>(at)];
      int lo = 0, hi = count - 1;
      for (int e = net_.in_begin[static_cast<size_t>(v)]; e < net_.in_begin[static_cast<size_t>(v) + 1]; ++e) {
        lo = std::max(lo, state_.layout().Place(net_.in_op[static_cast<size_t>(e)]) - i + 1);
      }
      for (int k = net_.out_begin[static_cast<size_t>(v)]; k < net_.out_begin[static_cast<size_t>(v) + 1]; ++k) {
        hi = std::min(hi, state_.layout().Place(net_.out_op[static_cast<size_t>(k)]) - i - 1);
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

  const Net& net_;
  SequencePlan plan_;
  int width_;
  OrderState<kD> state_;
  std::vector<Labels> forward_, backward_;
  std::vector<Candidate> candidates_;
  Candidate best_;             // of the last Select; it is label 0
  int others_ = 0;
  uint8_t warm_[kWidth] = {};  // the last split over all lanes: neighbouring labels split alike
  int64_t evaluations_ = 0;
  std::vector<int> by_other_, by_set_;
  std::vector<int> old_order_, new_order_;
};

}  // namespace plait
