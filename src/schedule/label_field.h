// Labels of both sides over a stretch of a sequence of operators.
//
// A forward label is one way to run what lies before a boundary, a backward label one way to run what follows (order_state.h). Joined, they give the
// exact makespan; with one operator between them, the best split of that operator follows directly. The labels at the two ends of the stretch are given.
#pragma once

#include <algorithm>
#include <vector>

#include "src/schedule/net.h"
#include "src/schedule/order_state.h"
#include "src/schedule/split.h"

namespace plait {

template <int kD>
class LabelField {
 public:
  static constexpr int kWidth = kD > 0 ? kD : kMaxLanes;
  // So many tensors that are alive cost as much as one more split: budgets mean about the same time on all graphs.
  static constexpr int kTensorsPerEvaluation = 16;

  struct Label {
    int parent = 0;              // in the neighbouring boundary's labels
    int origin = 0;              // the label at the end of the stretch that it comes from
    uint8_t mode = 0;
    uint8_t units[kWidth] = {};  // of the operator between here and the parent
  };
  struct Candidate {
    Tick value = 0;  // makespan together with the label `with` of the other side
    int from = 0, with = 0;
    uint32_t set = 0;  // lanes with units
    uint8_t mode = 0;
    uint8_t units[kWidth] = {};
  };

  // Keeps up to `width` labels a boundary. `places` as for OrderLayout.
  LabelField(const Net& net, const std::vector<int>& places, int width) : net_(net), width_(width), state_(net, places) {}

  int lanes() const { return kD > 0 ? kD : net_.lanes; }
  int size() const { return state_.layout().size(); }
  const OrderState<kD>& state() const { return state_; }
  OrderLayout& layout() { return state_.layout(); }
  int64_t evaluations() const { return evaluations_; }
  void Spend(int64_t evaluations) { evaluations_ += evaluations; }

  // The boundary that an operator at p leads to, and where it comes from.
  static int To(int p, bool ahead) { return ahead ? p + 1 : p; }
  static int From(int p, bool ahead) { return ahead ? p : p + 1; }
  int End(bool forward) const { return forward ? 0 : size(); }

  const Label& At(bool forward, int boundary, int index) const { return Boundary(forward, boundary).labels[static_cast<size_t>(index)]; }
  int Count(bool forward, int boundary) const { return static_cast<int>(Boundary(forward, boundary).labels.size()); }
  const Tick* Row(bool forward, int boundary, int index) const {
    const Labels& l = Boundary(forward, boundary);
    return &l.rows[static_cast<size_t>(index) * l.row_size];
  }

  // A new stretch, without labels.
  void Reset(int begin, const std::vector<int>& ops) {
    layout().Reset(begin, ops);
    if (forward_.size() < ops.size() + 1) {
      forward_.resize(ops.size() + 1);
      backward_.resize(ops.size() + 1);
    }
    Clear(true, 0);
    Clear(false, size());
    across_.clear();
  }
  // One more label at an end of the stretch; its row, to be filled in.
  Tick* AddEnd(bool forward) {
    Label label;
    label.origin = Count(forward, End(forward));
    return Add(forward, End(forward), label);
  }
  // [forward origin * backward ends + backward origin]: the longest paths past the stretch; nothing if there are none.
  void SetAcross(std::vector<Tick>* across) {
    across_.swap(*across);
    const int before = Count(true, 0), after = Count(false, size());
    FindNoLonger(before, after, after, 1, &no_longer_[1]);
    FindNoLonger(after, before, 1, after, &no_longer_[0]);
  }

  void Clear(bool forward, int boundary) {
    Labels& l = Boundary(forward, boundary);
    l.labels.clear();
    l.row_size = state_.RowSize(forward, boundary);
    if (l.rows.size() < l.row_size * static_cast<size_t>(width_)) l.rows.resize(l.row_size * static_cast<size_t>(width_));
  }

  // Makes a label of a way across the operator at p.
  void Push(int p, bool ahead, const Candidate& c) {
    Label label;
    label.parent = c.from;
    label.origin = At(ahead, From(p, ahead), c.from).origin;
    label.mode = c.mode;
    std::copy_n(c.units, lanes(), label.units);
    Tick* row = Add(ahead, To(p, ahead), label);
    const Tick* from = Row(ahead, From(p, ahead), c.from);
    if (ahead) {
      state_.StepForward(p, c.mode, c.units, from, row);
    } else {
      state_.StepBackward(p, c.mode, c.units, from, row);
    }
  }

  // Labels of the plan's own choices for the positions [i, j): all labels of the boundary where they begin are carried on.
  void Seed(const SequencePlan& plan, int i, int j, bool ahead) {
    for (int k = 0; k < j - i; ++k) {
      const int p = ahead ? i + k : j - 1 - k;
      const size_t v = static_cast<size_t>(state_.Op(p));
      Candidate c;
      c.mode = plan.mode[v];
      std::copy_n(plan.units.begin() + static_cast<std::ptrdiff_t>(v * static_cast<size_t>(lanes())), lanes(), c.units);
      Clear(ahead, To(p, ahead));
      const int count = Count(ahead, From(p, ahead));
      for (c.from = 0; c.from < count; ++c.from) Push(p, ahead, c);
    }
  }

  // Leads the labels of one side across the operator at p, guided by those of the other side; the best way. `every`: also sets of lanes that are not
  // the best are tried.
  const Candidate& Lead(int p, bool ahead, bool every) {
    Extend(p, ahead, every);
    Select(p, ahead);
    return best_;
  }

  // The choices between the label and its end of the stretch become the plan's; the end's label.
  int Take(bool forward, int boundary, int index, SequencePlan* plan) const {
    const int end = End(forward);
    while (boundary != end) {
      const Label& label = At(forward, boundary, index);
      const int p = forward ? boundary - 1 : boundary;
      const size_t v = static_cast<size_t>(state_.Op(p));
      plan->mode[v] = label.mode;
      std::copy_n(label.units, lanes(), plan->units.begin() + static_cast<std::ptrdiff_t>(v * static_cast<size_t>(lanes())));
      index = label.parent;
      boundary += forward ? -1 : 1;
    }
    return index;
  }

 private:
  struct Labels {
    std::vector<Label> labels;
    std::vector<Tick> rows;
    size_t row_size = 0;
  };

  Labels& Boundary(bool forward, int p) { return forward ? forward_[static_cast<size_t>(p)] : backward_[static_cast<size_t>(p)]; }
  const Labels& Boundary(bool forward, int p) const { return forward ? forward_[static_cast<size_t>(p)] : backward_[static_cast<size_t>(p)]; }

  Tick* Add(bool forward, int boundary, const Label& label) {
    Labels& l = Boundary(forward, boundary);
    l.labels.push_back(label);
    if (l.rows.size() < l.row_size * l.labels.size()) l.rows.resize(l.row_size * l.labels.size());
    return l.rows.data() + (l.labels.size() - 1) * l.row_size;
  }

  Tick Across(int before, int after) const { return across_.empty() ? 0 : across_[static_cast<size_t>(before * Count(false, size()) + after)]; }

  // Among the labels at one end: [a * ends + b] whether nothing that goes past the stretch from a is longer than from b.
  void FindNoLonger(int ends, int others, int step, int other_step, std::vector<char>* out) const {
    out->assign(static_cast<size_t>(ends * ends), 1);
    for (int a = 0; a < ends && !across_.empty(); ++a) {
      for (int b = 0; b < ends; ++b) {
        for (int o = 0; o < others; ++o) {
          if (across_[static_cast<size_t>(a * step + o * other_step)] > across_[static_cast<size_t>(b * step + o * other_step)]) (*out)[static_cast<size_t>(a * ends + b)] = 0;
        }
      }
    }
  }

  // What follows the operator at p, for every backward label after it and every mode; and when parts can start, for every forward label before it.
  void Prepare(int p) {
    const int v = state_.Op(p), D = lanes(), modes = net_.ModeCount(v), before = Count(true, p), after = Count(false, p + 1);
    paths_.clear();
    for (int b = 0; b < after; ++b) {
      const Surroundings<kWidth> s = state_.After(p, Row(false, p + 1, b));
      for (int mode = 0; mode < modes; ++mode) paths_.emplace_back(net_, net_.Mode(v, mode), s, D);
    }
    starts_.resize(static_cast<size_t>(before * D));
    for (int f = 0; f < before; ++f) {
      const Tick* row = Row(true, p, f);
      Tick* start = &starts_[static_cast<size_t>(f * D)];
      state_.ReadyWhole(p, row, start);
      for (int d = 0; d < D; ++d) start[d] = std::max(start[d], row[d]);
    }
  }

  // All ways to lead the labels of one side across the operator at p, priced together with the labels of the other side.
  void Extend(int p, bool ahead, bool every) {
    const int v = state_.Op(p), D = lanes(), modes = net_.ModeCount(v);
    candidates_.clear();
    Prepare(p);
    const int own_count = Count(ahead, From(p, ahead));
    others_ = Count(!ahead, To(p, ahead));
    const uint32_t all = (1u << D) - 1;
    evaluations_ += own_count * others_ * static_cast<int64_t>(state_.layout().Tensors(p + 1)) / kTensorsPerEvaluation;
    for (int own = 0; own < own_count; ++own) {
      for (int other = 0; other < others_; ++other) {
        const int f = ahead ? own : other, b = ahead ? other : own;
        const Tick* before = Row(true, p, f);
        const Tick* after = Row(false, p + 1, b);
        Candidate c;
        c.from = own;
        c.with = other;
        c.value = std::max(state_.Around(state_.layout().At(p), before, after), Across(At(true, p, f).origin, At(false, p + 1, b).origin));
        // Other sets of lanes than the best, once for each label that is extended; the other side's labels take turns.
        const bool sets = every && own % others_ == other;
        for (int mode = 0; mode < modes; ++mode) {
          c.mode = static_cast<uint8_t>(mode);
          const NetMode& m = net_.Mode(v, mode);
          Paths<kWidth>& paths = paths_[static_cast<size_t>(b * modes + mode)];
          paths.StartAt(&starts_[static_cast<size_t>(f * D)], D);
          const uint32_t best = Consider(p, c, m, paths, all, before, after);
          for (uint32_t mask = 1; sets && mask < all; ++mask) {
            if ((mask & best) == best || (m.units == 1 && (mask & (mask - 1)) != 0)) continue;
            Consider(p, c, m, paths, mask, before, after);
          }
        }
      }
    }
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
    Clear(ahead, To(p, ahead));
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
    while (Count(ahead, To(p, ahead)) < width_) {
      int next = -1;
      for (int k = 0; k < static_cast<int>(candidates_.size()); ++k) {
        if (Kth(k).from >= 0 && (next < 0 || Kth(k).value < Kth(next).value)) next = k;
      }
      if (next < 0) break;
      Keep(p, ahead, next);
    }
  }

  const Candidate& Kth(int k) const { return candidates_[static_cast<size_t>(k)]; }

  // Makes the candidate a label unless there is no room or it is dominated; it is not looked at again.
  void Keep(int p, bool ahead, int k) {
    Candidate& c = candidates_[static_cast<size_t>(k)];
    if (c.from < 0 || Count(ahead, To(p, ahead)) >= width_) return;
    Push(p, ahead, c);
    if (Dominated(ahead, To(p, ahead))) Boundary(ahead, To(p, ahead)).labels.pop_back();
    c.from = -1;
  }

  // Whether an earlier label is nowhere worse than the last one.
  bool Dominated(bool forward, int boundary) const {
    const int last = Count(forward, boundary) - 1, ends = Count(forward, End(forward));
    const Label& label = At(forward, boundary, last);
    for (int i = 0; i < last; ++i) {
      if (!across_.empty() && no_longer_[forward][static_cast<size_t>(At(forward, boundary, i).origin * ends + label.origin)] == 0) continue;
      if (state_.Dominates(forward, boundary, Row(forward, boundary, i), Row(forward, boundary, last))) return true;
    }
    return false;
  }

  const Net& net_;
  int width_;
  OrderState<kD> state_;
  std::vector<Labels> forward_, backward_;
  std::vector<Tick> across_;          // paths past the stretch
  std::vector<char> no_longer_[2];    // of the backward, the forward labels at the ends
  std::vector<Paths<kWidth>> paths_;  // [backward label * modes + mode]
  std::vector<Tick> starts_;          // [forward label * lanes + lane]
  std::vector<Candidate> candidates_;
  Candidate best_;             // of the last Select; it is label 0
  int others_ = 0;
  uint8_t warm_[kWidth] = {};  // the last split over all lanes: neighbouring labels split alike
  int64_t evaluations_ = 0;
  std::vector<int> by_other_, by_set_;
};

}  // namespace plait
