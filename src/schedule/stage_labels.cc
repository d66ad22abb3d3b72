#include "src/schedule/stage_labels.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace plait {
namespace {

constexpr size_t kMostLabels = 64;
constexpr int64_t kMostSplits = 20000;  // an operator with more is treated as a stage

// Rows of which none is nowhere sooner than another; more than kMostLabels are rounded down until they coincide.
class Front {
 public:
  explicit Front(int lanes) : lanes_(static_cast<size_t>(lanes)) {}
  size_t size() const { return rows_.size() / lanes_; }
  const Tick* Row(size_t k) const { return &rows_[k * lanes_]; }

  bool Covers(const Tick* row) const {
    for (size_t at = 0; at < rows_.size(); at += lanes_) {
      if (NoLater(&rows_[at], row)) return true;
    }
    return false;
  }

  void Add(const Tick* row) {
    Tick rounded[kMaxLanes];
    for (size_t d = 0; d < lanes_; ++d) rounded[d] = row[d] / grid_ * grid_;
    if (Covers(rounded)) return;
    Insert(rounded);
    while (size() > kMostLabels) {
      grid_ *= 2;
      std::vector<Tick> rows;
      rows.swap(rows_);
      for (Tick& t : rows) t = t / grid_ * grid_;
      for (size_t at = 0; at < rows.size(); at += lanes_) {
        if (!Covers(&rows[at])) Insert(&rows[at]);
      }
    }
  }

 private:
  bool NoLater(const Tick* a, const Tick* b) const {
    for (size_t d = 0; d < lanes_; ++d) {
      if (a[d] > b[d]) return false;
    }
    return true;
  }
  void Insert(const Tick* row) {
    for (size_t at = 0; at < rows_.size();) {
      if (!NoLater(row, &rows_[at])) {
        at += lanes_;
        continue;
      }
      std::copy(rows_.end() - static_cast<std::ptrdiff_t>(lanes_), rows_.end(), rows_.begin() + static_cast<std::ptrdiff_t>(at));
      rows_.resize(rows_.size() - lanes_);
    }
    rows_.insert(rows_.end(), row, row + lanes_);
  }

  size_t lanes_;
  Tick grid_ = 1;
  std::vector<Tick> rows_;
};

class StageLabels {
 public:
  StageLabels(const Net& net, const std::vector<int>& cuts, const std::vector<Stage>& stages, const LeastTimes& times, Tick known)
      : net_(net), cuts_(cuts), stages_(stages), times_(times), known_(known), distance_(net.sync), rest_(cuts.size() + 1) {
    const int D = net.lanes;
    for (int via = 0; via < D; ++via) {
      for (int e = 0; e < D; ++e) {
        for (int d = 0; d < D; ++d) Distance(e, d) = std::min(Distance(e, d), Distance(e, via) + Distance(via, d));
      }
    }
    const Tick least_exit = *std::min_element(net.exit.begin(), net.exit.end());
    rest_[cuts.size()] = stages.back().least + least_exit;
    for (size_t k = cuts.size(); k-- > 0;) rest_[k] = stages[k].least + times.after_input[static_cast<size_t>(cuts[k])] + rest_[k + 1];
  }

  Tick Run() {
    Front front(net_.lanes);
    front.Add(net_.entry.data());
    for (size_t k = 0; k < cuts_.size(); ++k) {
      if (stages_[k].begin < stages_[k].end) front = ThroughStage(k, front);
      front = ThroughCut(k, front);
      if (front.size() == 0) return known_;
    }
    return std::min(known_, ToEnd(front));
  }

 private:
  Tick& Distance(int from, int to) { return distance_[static_cast<size_t>(from * net_.lanes + to)]; }
  Tick Distance(int from, int to) const { return distance_[static_cast<size_t>(from * net_.lanes + to)]; }

  // When operators that read the cut before the stage can start, and when any operator of the stage can: what is small may come sooner by way of another lane.
  // Before the first cut operators may start anywhere as soon as one lane has the model's input.
  void Starts(const Stage& stage, const Tick* label, Tick* direct, Tick* any) const {
    const int D = net_.lanes;
    std::copy_n(label, D, direct);
    if (stage.begin == 0) std::fill_n(direct, D, *std::min_element(net_.entry.begin(), net_.entry.end()));
    std::copy_n(direct, D, any);
    for (int d = 0; d < D; ++d) {
      for (int g = 0; g < D; ++g) any[d] = std::min(any[d], direct[g] + Distance(g, d));
    }
  }

  // The least T for which the lanes' time from start[d] to T - wait[d] is worth the work.
  Tick WorkBound(const PricedWork& work, const Tick* start, const Tick* wait) const {
    const int D = net_.lanes;
    std::pair<Tick, double> open[kMaxLanes];
    for (int d = 0; d < D; ++d) open[d] = {start[d] + wait[d], work.price[static_cast<size_t>(d)]};
    std::sort(open, open + D);
    double price = 0, sum = static_cast<double>(work.work);
    for (int k = 0; k < D; ++k) {
      price += open[k].second;
      sum += open[k].second * static_cast<double>(open[k].first);
      if (price <= 0) continue;
      const double end = sum / price;
      // Rounded down by more than the error of the sums.
      if (k + 1 == D || end <= static_cast<double>(open[k + 1].first)) return static_cast<Tick>(std::floor(end * (1 - 1e-12)));
    }
    return 0;
  }
  Tick WorkBound(const Stage& stage, const Tick* start, const Tick* wait) const {
    Tick most = 0;
    for (const PricedWork& work : stage.work) most = std::max(most, WorkBound(work, start, wait));
    return most;
  }

  // The longest path through the stage if its first operators can start at `start`.
  Tick PathBound(const Stage& stage, const std::vector<Tick>& behind, const Tick* start) const {
    Tick most = 0;
    for (int o = stage.begin; o < stage.end; ++o) {
      bool first = true;
      for (int e = net_.in_begin[static_cast<size_t>(o)]; e < net_.in_begin[static_cast<size_t>(o) + 1]; ++e) first &= net_.in_op[static_cast<size_t>(e)] < stage.begin;
      if (first) most = std::max(most, Soonest(o, start) + behind[static_cast<size_t>(o - stage.begin)]);
    }
    return most;
  }

  // The soonest end of an operator whose parts can start at `start`.
  Tick Soonest(int o, const Tick* start) const {
    Tick best = kInfinite;
    for (int mode = 0; mode < net_.ModeCount(o); ++mode) {
      const NetMode& m = net_.Mode(o, mode);
      std::vector<Tick> ends;
      for (int d = 0; d < net_.lanes; ++d) {
        for (int u = 1; u <= m.units; ++u) ends.push_back(start[d] + net_.Floor(m, d, u));
      }
      std::nth_element(ends.begin(), ends.begin() + (m.units - 1), ends.end());
      best = std::min(best, ends[static_cast<size_t>(m.units - 1)]);
    }
    return best;
  }

  // Behind each operator of a stage the longest path to the stage's end.
  std::vector<Tick> Behind(const Stage& stage) const {
    std::vector<Tick> behind(static_cast<size_t>(stage.end - stage.begin), 0);
    for (int o = stage.end - 1; o >= stage.begin; --o) {
      for (int k = net_.out_begin[static_cast<size_t>(o)]; k < net_.out_begin[static_cast<size_t>(o) + 1]; ++k) {
        const int c = net_.out_op[static_cast<size_t>(k)];
        if (c >= stage.end) continue;
        Tick& mine = behind[static_cast<size_t>(o - stage.begin)];
        mine = std::max(mine, behind[static_cast<size_t>(c - stage.begin)] + times_.after_input[static_cast<size_t>(c)]);
      }
    }
    return behind;
  }

  // The last part of the stage, on lane e, is of an input of the cut. What any lane f makes last reaches lane d by some way.
  Front ThroughStage(size_t k, const Front& from) const {
    const Stage& stage = stages_[k];
    const std::vector<Tick> behind = Behind(stage);
    const int D = net_.lanes, cut = cuts_[k];
    std::vector<Tick> hand(static_cast<size_t>(D * D), kInfinite);
    for (int i = net_.in_begin[static_cast<size_t>(cut)]; i < net_.in_begin[static_cast<size_t>(cut) + 1]; ++i) {
      const int p = net_.in_op[static_cast<size_t>(i)];
      if (p < stage.begin) continue;
      for (int mode = 0; mode < net_.ModeCount(p); ++mode) {
        const NetMode& m = net_.Mode(p, mode);
        for (int e = 0; e < D; ++e) {
          for (int d = 0; d < D; ++d) {
            Tick& h = hand[static_cast<size_t>(e * D + d)];
            h = std::min(h, e == d ? 0 : net_.Handoff(m, m.min_units, e, d));
          }
        }
      }
    }
    const Tick none[kMaxLanes] = {};
    Front to(D);
    for (size_t i = 0; i < from.size(); ++i) {
      Tick direct[kMaxLanes], start[kMaxLanes], reads[kMaxLanes], wait[kMaxLanes];
      Starts(stage, from.Row(i), direct, start);
      const Tick end = std::max(PathBound(stage, behind, direct), WorkBound(stage, start, none));
      for (int d = 0; d < D; ++d) {
        for (int f = 0; f < D; ++f) wait[f] = Distance(f, d);
        reads[d] = WorkBound(stage, start, wait);
      }
      for (int e = 0; e < D; ++e) {
        Tick row[kMaxLanes];
        for (int d = 0; d < D; ++d) row[d] = std::max(reads[d], end + hand[static_cast<size_t>(e * D + d)]);
        to.Add(row);
      }
    }
    return to;
  }

  // Behind the last operator of all, rows hold when the host has everything.
  Front ThroughCut(size_t k, const Front& from) {
    Front to(net_.lanes);
    const int cut = cuts_[k];
    final_ = cut + 1 == net_.n;
    for (size_t i = 0; i < from.size(); ++i) {
      for (int mode = 0; mode < net_.ModeCount(cut); ++mode) {
        mode_ = &net_.Mode(cut, mode);
        Prepare(from.Row(i), rest_[k + 1]);
        if (Splits(*mode_) > kMostSplits) {
          AddEnds(&to);
          continue;
        }
        const Tick release[kMaxLanes] = {};
        AddSplits(0, mode_->units, release, &to);
      }
    }
    return to;
  }

  int64_t Splits(const NetMode& m) const {
    int64_t count = 1;
    for (int d = 1; d < net_.lanes && count <= kMostSplits; ++d) count = count * (m.units + d) / d;
    return count;
  }

  void Prepare(const Tick* start, Tick rest) {
    const int D = net_.lanes, U = mode_->units;
    std::fill_n(soonest_[D], U + 1, kInfinite);
    soonest_[D][0] = 0;
    for (int d = D - 1; d >= 0; --d) {
      for (int u = 1; u <= U; ++u) {
        const Tick cost = net_.Cost(*mode_, d, u);
        end_[d][u] = u < mode_->min_units || cost >= kInfinite || start[d] + cost + rest >= known_ ? kInfinite : start[d] + cost;
      }
      for (int left = 0; left <= U; ++left) {
        Tick& least = soonest_[d][left] = soonest_[d + 1][left];
        for (int u = 1; u <= left; ++u) least = std::min(least, std::max(end_[d][u], soonest_[d + 1][left - u]));
      }
    }
  }

  void AddSplits(int d, int left, const Tick* release, Front* to) const {
    const int D = net_.lanes;
    for (int u = d + 1 == D ? left : 0; u <= left; ++u) {
      if (u > 0 && end_[d][u] >= kInfinite) continue;
      if (soonest_[d + 1][left - u] >= kInfinite) continue;
      Tick now[kMaxLanes], least[kMaxLanes];
      for (int f = 0; f < D; ++f) {
        now[f] = u == 0 ? release[f] : std::max(release[f], end_[d][u] + Hand(u, d, f));
        least[f] = std::max(now[f], soonest_[d + 1][left - u]);
      }
      if (u == left) {
        to->Add(now);
      } else if (!to->Covers(least)) {
        AddSplits(d + 1, left - u, now, to);
      }
    }
  }

  // Where there are too many splits: only which lane ends last is told apart.
  void AddEnds(Front* to) const {
    const Tick end = soonest_[0][mode_->units];
    if (end >= kInfinite) return;
    for (int e = 0; e < net_.lanes; ++e) {
      Tick row[kMaxLanes];
      for (int d = 0; d < net_.lanes; ++d) row[d] = end + Hand(mode_->min_units, e, d);
      to->Add(row);
    }
  }

  // From the end of a part to when its units can be read on another lane; behind the last operator, by the host.
  Tick Hand(int u, int from, int to) const {
    if (final_) return net_.exit[static_cast<size_t>(from)];
    return from == to ? 0 : net_.Handoff(*mode_, u, from, to);
  }

  // From the last cut on. What a lane makes last is read on the host, perhaps by way of another lane.
  Tick ToEnd(const Front& front) const {
    const Stage& stage = stages_.back();
    const int D = net_.lanes;
    Tick best = kInfinite;
    const Tick least_exit = *std::min_element(net_.exit.begin(), net_.exit.end());
    if (stage.begin == stage.end) {
      for (size_t i = 0; i < front.size(); ++i) best = std::min(best, front.Row(i)[0]);
      return best;
    }
    const std::vector<Tick> behind = Behind(stage);
    Tick wait[kMaxLanes];
    for (int d = 0; d < D; ++d) {
      wait[d] = kInfinite;
      for (int g = 0; g < D; ++g) wait[d] = std::min(wait[d], Distance(d, g) + net_.exit[static_cast<size_t>(g)]);
    }
    for (size_t i = 0; i < front.size(); ++i) {
      Tick direct[kMaxLanes], start[kMaxLanes];
      Starts(stage, front.Row(i), direct, start);
      best = std::min(best, std::max(PathBound(stage, behind, direct) + least_exit, WorkBound(stage, start, wait)));
    }
    return best;
  }

  const Net& net_;
  const std::vector<int>& cuts_;
  const std::vector<Stage>& stages_;
  const LeastTimes& times_;
  Tick known_;
  std::vector<Tick> distance_;  // [from * lanes + to]: the shortest way of handoffs
  std::vector<Tick> rest_;      // [cut] behind the end of the cut before, at least
  // The cut that labels are led through.
  const NetMode* mode_ = nullptr;
  bool final_ = false;
  Tick end_[kMaxLanes][kMaxUnits + 1];          // of a part, if that may be soon enough
  Tick soonest_[kMaxLanes + 1][kMaxUnits + 1];  // [lane][units]: the soonest end of so many units on the lanes from there on
};

}  // namespace

Tick StageLabelBound(const Net& net, const std::vector<int>& cuts, const std::vector<Stage>& stages, const LeastTimes& times, Tick known) {
  return StageLabels(net, cuts, stages, times, known).Run();
}

}  // namespace plait
