#include "src/schedule/chain.h"

#include <algorithm>
#include <vector>

#include "src/schedule/split.h"
#include "src/schedule/tail_bounds.h"

namespace plait {
namespace {

constexpr int kMaxSetLanes = 6;      // balanced splits are tried on all sets of so many lanes
constexpr size_t kMaxLabels = 4000;  // at one operator; more would take longer than searching

class Chain {
 public:
  Chain(const Net& net, const SequencePlan& incumbent, int64_t most_evaluations)
      : net_(net), most_(most_evaluations), best_(incumbent.makespan), tails_(net), steps_(static_cast<size_t>(net.n) + 1), wants_(static_cast<size_t>(net.n)) {
    std::fill_n(soonest_[lanes()], kMaxLanes, kInfinite);
    for (int d = lanes() - 1; d >= 0; --d) {
      for (int f = 0; f < lanes(); ++f) soonest_[d][f] = std::min(soonest_[d + 1][f], net.sync[static_cast<size_t>(d * lanes() + f)]);
    }
    for (int o = 0; o < net.n; ++o) {
      // Consumers behind the next operator: those of `o` and those of earlier operators.
      std::vector<int>& wants = wants_[static_cast<size_t>(o)];
      if (o > 0) wants = wants_[static_cast<size_t>(o) - 1];
      for (int k = net.out_begin[static_cast<size_t>(o)]; k < net.out_begin[static_cast<size_t>(o) + 1]; ++k) wants.push_back(net.out_op[static_cast<size_t>(k)]);
      std::sort(wants.begin(), wants.end());
      wants.erase(std::unique(wants.begin(), wants.end()), wants.end());
      wants.erase(wants.begin(), std::find_if(wants.begin(), wants.end(), [&](int c) { return c > o; }));
    }
  }

  ChainSolution Run(const SequencePlan& incumbent) {
    ChainSolution out;
    out.plan = incumbent;
    Step& first = steps_[0];
    first.labels.resize(1);
    first.rows.assign(net_.entry.begin(), net_.entry.end());
    for (int o = 0; o < net_.n; ++o) {
      if (!Lead(o)) {
        out.evaluations = evaluations_;
        return out;
      }
    }
    out.evaluations = evaluations_;
    out.optimal = true;
    if (steps_[static_cast<size_t>(net_.n)].labels.empty()) return out;
    int index = 0;
    for (int o = net_.n - 1; o >= 0; --o) {
      const Label& label = steps_[static_cast<size_t>(o) + 1].labels[static_cast<size_t>(index)];
      out.plan.sequence[static_cast<size_t>(o)] = o;
      out.plan.mode[static_cast<size_t>(o)] = label.mode;
      std::copy_n(label.units, lanes(), out.plan.units.begin() + o * lanes());
      index = label.parent;
    }
    out.plan.makespan = best_;
    return out;
  }

 private:
  struct Label {
    int parent = 0;
    uint8_t mode = 0;
    uint8_t units[kMaxLanes] = {};
  };
  struct Step {
    std::vector<Label> labels;
    std::vector<Tick> rows;  // per label: for the next operator, then for each other one in wants_: when what is made can be read on each lane
  };

  int lanes() const { return net_.lanes; }
  size_t RowSize(int o) const { return o + 1 == net_.n ? 1 : wants_[static_cast<size_t>(o)].size() * static_cast<size_t>(lanes()); }

  // All labels after operator `o` that no other makes needless; false: too many.
  bool Lead(int o) {
    o_ = o;
    const Step& from = steps_[static_cast<size_t>(o)];
    const size_t size = o == 0 ? static_cast<size_t>(lanes()) : RowSize(o - 1);
    Wire();
    for (size_t i = 0; i < from.labels.size(); ++i) {
      before_ = &from.rows[i * size];
      candidate_.parent = static_cast<int>(i);
      for (int mode = 0; mode < net_.ModeCount(o); ++mode) {
        mode_ = &net_.Mode(o, mode);
        candidate_.mode = static_cast<uint8_t>(mode);
        Prepare(mode);
        ProposeBalanced();
        Tick release[kMaxLanes] = {};
        Enumerate(0, mode_->units, release);
        if (evaluations_ > most_ || steps_[static_cast<size_t>(o) + 1].labels.size() > kMaxLabels) return false;
      }
    }
    return true;
  }

  // Where each block of the rows after the operator comes from.
  void Wire() {
    inherited_.clear();
    reads_.clear();
    behind_.clear();
    if (o_ + 1 == net_.n) return;
    for (int consumer : wants_[static_cast<size_t>(o_)]) {
      int from = -1;
      if (o_ > 0) {
        const std::vector<int>& before = wants_[static_cast<size_t>(o_) - 1];
        const auto it = std::lower_bound(before.begin(), before.end(), consumer);
        if (it != before.end() && *it == consumer) from = static_cast<int>(it - before.begin()) * lanes();
      }
      inherited_.push_back(from);
      behind_.push_back(tails_.Between(o_ + 1, consumer));
      const auto inputs = net_.in_op.begin();
      reads_.push_back(std::find(inputs + net_.in_begin[static_cast<size_t>(consumer)], inputs + net_.in_begin[static_cast<size_t>(consumer) + 1], o_) !=
                       inputs + net_.in_begin[static_cast<size_t>(consumer) + 1]);
    }
    row_.resize(RowSize(o_));
  }

  // When each part would end, if that is soon enough; else kInfinite.
  void Prepare(int mode) {
    for (int d = 0; d < lanes(); ++d) {
      for (int u = 1; u <= mode_->units; ++u) {
        Tick& end = end_[d][u];
        end = kInfinite;
        if (u < mode_->min_units || net_.Cost(*mode_, d, u) >= kInfinite) continue;
        const Tick t = before_[d] + net_.Cost(*mode_, d, u);
        if (t + tails_.After(o_, mode, d, u) < best_) end = t;
      }
    }
    std::fill_n(rest_[lanes()], mode_->units + 1, kInfinite);
    rest_[lanes()][0] = 0;
    for (int d = lanes() - 1; d >= 0; --d) {
      for (int left = 0; left <= mode_->units; ++left) {
        Tick& least = rest_[d][left] = rest_[d + 1][left];
        for (int u = 1; u <= left; ++u) least = std::min(least, std::max(end_[d][u], rest_[d + 1][left - u]));
      }
    }
  }

  // Splits whose parts end together, on every set of lanes: with these among the labels most others are seen to be needless early.
  void ProposeBalanced() {
    Surroundings<kMaxLanes> alone = {};
    Paths<kMaxLanes> paths(net_, *mode_, alone, lanes());
    paths.StartAt(before_, lanes());
    const uint32_t sets = 1u << std::min(lanes(), kMaxSetLanes);
    for (uint32_t set = 1; set < sets; ++set) {
      if (mode_->units == 1 && (set & (set - 1)) != 0) continue;
      Split<kMaxLanes> split;
      Splitter<kMaxLanes>(*mode_, paths, lanes(), set).Run(&split);
      if (split.value >= kInfinite) continue;
      Tick release[kMaxLanes] = {};
      bool soon = true;
      for (int d = 0; d < lanes(); ++d) soon = soon && (split.units[d] == 0 || AddPart(d, split.units[d], release));
      if (!soon) continue;
      std::copy_n(split.units, lanes(), candidate_.units);
      ++evaluations_;
      Propose(release);
    }
  }

  // Adds the part of `u` units on `d` to when everything can be read on each lane; false: it ends too late.
  bool AddPart(int d, int u, Tick* release) const {
    const Tick end = end_[d][u];
    if (end >= kInfinite) return false;
    if (o_ + 1 == net_.n) {
      release[0] = std::max(release[0], end + net_.exit[static_cast<size_t>(d)]);
      return true;
    }
    for (int f = 0; f < lanes(); ++f) release[f] = std::max(release[f], f == d ? end : end + net_.Handoff(*mode_, u, d, f));
    return true;
  }

  // All splits of `left` units over the lanes from `d` on. `release`: when the parts on the lanes before can be read on each lane.
  void Enumerate(int d, int left, const Tick* release) {
    const bool last = d + 1 == lanes();
    for (int u = last ? left : 0; u <= left && evaluations_ <= most_; ++u) {
      Tick now[kMaxLanes];
      std::copy_n(release, lanes(), now);
      if (u > 0 && !AddPart(d, u, now)) continue;
      candidate_.units[d] = static_cast<uint8_t>(u);
      ++evaluations_;
      if (u == left) {
        std::fill_n(candidate_.units + d + 1, lanes() - d - 1, uint8_t{0});
        Propose(now);
        continue;
      }
      const Tick rest = rest_[d + 1][left - u];
      if (rest >= kInfinite) continue;
      Tick least[kMaxLanes];  // with what is left added at its best
      for (int f = 0; f < lanes(); ++f) least[f] = std::max(now[f], rest + (f <= d ? soonest_[d + 1][f] : 0));
      if (o_ + 1 == net_.n || !Needless(least)) Enumerate(d + 1, left - u, now);
    }
  }

  // Fills row_; whether some label is nowhere later than it, and so than whatever adds parts to it.
  bool Needless(const Tick* release) {
    const int D = lanes();
    const Tick* old = inherited_[0] < 0 ? nullptr : before_ + inherited_[0];
    Tick first = kInfinite;
    for (int d = 0; d < D; ++d) {
      row_[static_cast<size_t>(d)] = old == nullptr ? release[d] : std::max(old[d], release[d]);
      first = std::min(first, row_[static_cast<size_t>(d)]);
    }
    for (size_t k = 1; k < reads_.size(); ++k) {
      // Inputs that are there before the chain can have come to their consumer do not matter.
      const Tick least = first + behind_[k];
      old = inherited_[k] < 0 ? nullptr : before_ + inherited_[k];
      Tick* row = &row_[k * static_cast<size_t>(D)];
      for (int d = 0; d < D; ++d) row[d] = std::max({least, old == nullptr ? 0 : old[d], reads_[k] ? release[d] : 0});
    }
    return Dominated();
  }

  bool Dominated() {
    const Step& to = steps_[static_cast<size_t>(o_) + 1];
    if (recent_ >= to.labels.size()) recent_ = 0;
    if (!to.labels.empty() && NoLater(&to.rows[recent_ * row_.size()], row_.data())) return true;
    for (size_t k = 0; k < to.labels.size(); ++k) {
      if (!NoLater(&to.rows[k * row_.size()], row_.data())) continue;
      recent_ = k;
      return true;
    }
    return false;
  }
  bool NoLater(const Tick* a, const Tick* b) const {
    for (size_t i = 0; i < row_.size(); ++i) {
      if (a[i] > b[i]) return false;
    }
    return true;
  }

  void Propose(const Tick* release) {
    Step& to = steps_[static_cast<size_t>(o_) + 1];
    if (o_ + 1 == net_.n) {
      if (release[0] >= best_) return;
      best_ = release[0];
      to.labels.assign(1, candidate_);
      return;
    }
    if (Needless(release)) return;
    const size_t size = row_.size();
    for (size_t k = 0; k < to.labels.size();) {
      if (!NoLater(row_.data(), &to.rows[k * size])) {
        ++k;
        continue;
      }
      to.labels[k] = to.labels.back();
      std::copy_n(to.rows.end() - static_cast<std::ptrdiff_t>(size), size, to.rows.begin() + static_cast<std::ptrdiff_t>(k * size));
      to.labels.pop_back();
      to.rows.resize(to.labels.size() * size);
    }
    to.labels.push_back(candidate_);
    to.rows.insert(to.rows.end(), row_.begin(), row_.end());
  }

  const Net& net_;
  int64_t most_, evaluations_ = 0;
  Tick best_;
  TailBounds tails_;
  std::vector<Step> steps_;
  std::vector<std::vector<int>> wants_;  // [operator]: later operators that read it or an earlier one, in order
  int o_ = 0;
  const NetMode* mode_ = nullptr;
  const Tick* before_ = nullptr;
  Tick end_[kMaxLanes][kMaxUnits + 1];
  Tick rest_[kMaxLanes + 1][kMaxUnits + 1];  // [lane][units]: the soonest that so many units can end on the lanes from there on
  Tick soonest_[kMaxLanes + 1][kMaxLanes];   // [lane][to]: the least handoff latency from the lanes from there on
  Label candidate_;
  std::vector<int> inherited_;  // [block of a row after the operator]: where it stands in the row before; -1: nowhere
  std::vector<char> reads_;     // [block]: whether that consumer reads the operator
  std::vector<Tick> behind_;    // [block]: from the next operator's start to the end of the one before that consumer, at least
  std::vector<Tick> row_;
  size_t recent_ = 0;           // the label that was good enough last time
};

}  // namespace

bool HasUniqueOrder(const Net& net) {
  for (int o = 0; o < net.n; ++o) {
    if (net.by_region[static_cast<size_t>(o)] != 0) return false;
    const int first = net.in_begin[static_cast<size_t>(o)], last = net.in_begin[static_cast<size_t>(o) + 1];
    if (o > 0 && std::find(net.in_op.begin() + first, net.in_op.begin() + last, o - 1) == net.in_op.begin() + last) return false;
  }
  return true;
}

ChainSolution SolveChain(const Net& net, const SequencePlan& incumbent, int64_t most_evaluations) {
  return Chain(net, incumbent, most_evaluations).Run(incumbent);
}

}  // namespace plait
