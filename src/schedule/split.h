// The best split of one operator when everything before and after it is fixed.
#pragma once

#include <algorithm>

#include "src/schedule/net.h"

namespace plait {

// What follows an operator.
template <int kWidth>
struct Surroundings {
  Tick after[kWidth];    // path that follows on the same lane
  Tick demand[kWidth];   // longest path from the start of a consumer on the lane; 0: none there
  bool sink = false;     // no consumer at all: the lane's exit follows
};

template <int kWidth>
struct Split {
  uint8_t units[kWidth] = {};
  Tick value = kInfinite;  // longest path through the operator
};

// The longest path through a part, as a function of its units: what does not change with them is worked out once for all splits of one mode.
template <int kWidth>
class Paths {
 public:
  Paths() = default;
  Paths(const Net& net, const NetMode& m, const Surroundings<kWidth>& s, int lanes) {
    const int row = m.units + 1;
    const Tick* tables = &net.handoffs[static_cast<size_t>(m.handoff)];
    for (int d = 0; d < lanes; ++d) {
      Lane& lane = lanes_[d];
      lane.cost = &net.costs[static_cast<size_t>(m.cost + d * row)];
      lane.floor = &net.floors[static_cast<size_t>(m.cost + d * row)];
      lane.start = 0;
      lane.after = std::max(s.sink ? net.exit[static_cast<size_t>(d)] : s.demand[d], s.after[d]);
      lane.count = 0;
      for (int f = 0; f < lanes; ++f) {
        if (f == d || s.demand[f] == 0) continue;
        const size_t pair = static_cast<size_t>(d * lanes + f);
        const Tick* table = tables + net.byte_class[pair] * row;
        const Tick fixed = s.demand[f] + net.sync[pair];
        if (fixed + table[m.units] <= lane.after) continue;
        int k = 0;
        while (k < lane.count && lane.handoff[k] != table) ++k;
        if (k == lane.count) {
          lane.handoff[lane.count] = table;
          lane.fixed[lane.count++] = fixed;
        } else {
          lane.fixed[k] = std::max(lane.fixed[k], fixed);
        }
      }
    }
  }

  // Parts start at 0 unless told otherwise.
  void StartAt(const Tick* start, int lanes) {
    for (int d = 0; d < lanes; ++d) lanes_[d].start = start[d];
  }
  Tick Cost(int d, int u) const { return lanes_[d].cost[u]; }
  Tick Floor(int d, int u) const { return lanes_[d].floor[u]; }
  // kInfinite or more where the lane cannot.
  Tick Part(int d, int u) const { return lanes_[d].cost[u] + Beside(lanes_[d], u); }
  // The same with the least latency of at least so many units.
  Tick Least(int d, int u) const { return lanes_[d].floor[u] + Beside(lanes_[d], u); }

 private:
  struct Lane {
    const Tick *cost, *floor;
    Tick start, after;
    int count;                                       // handoffs that may be the longest way on
    Tick fixed[kWidth > 1 ? kWidth - 1 : 1];         // consumer's path and latency
    const Tick* handoff[kWidth > 1 ? kWidth - 1 : 1];  // [units]
  };
  static Tick Beside(const Lane& lane, int u) {
    Tick tail = lane.after;
    for (int k = 0; k < lane.count; ++k) tail = std::max(tail, lane.fixed[k] + lane.handoff[k][u]);
    return lane.start + tail;
  }

  Lane lanes_[kWidth];
};

// Finds splits whose longest path is the shortest. Units move from the lane whose path is the longest to the one that takes another with the
// shortest, until that does not help: optimal where latencies grow with the units. Dips behind humps are seen through the least latency of
// at least so many units (Net::floors) and repaired afterwards.
template <int kWidth>
class Splitter {
 public:
  Splitter(const NetMode& m, const Paths<kWidth>& paths, int lanes, uint32_t mask) : m_(m), paths_(paths), lanes_(lanes), mask_(mask) {}

  // `out->units` on entry: where to start from if they sum to the mode's units and use lanes of the mask only, else ignored.
  void Run(Split<kWidth>* out) {
    out->value = kInfinite;
    if (!Start(out->units)) return;
    for (int d = 0; d < lanes_; ++d) {
      here_[d] = out->units[d] == 0 ? 0 : paths_.Least(d, out->units[d]);
      more_[d] = Allowed(d) && out->units[d] < m_.units ? paths_.Least(d, Next(out->units[d])) : kInfinite;
    }
    // Every move lowers the longest path or the number of lanes that have it; the bound guards against tables that make it circle.
    for (int moves = 4 * m_.units; moves > 0; --moves) {
      int from = 0, to = -1;
      for (int d = 1; d < lanes_; ++d) {
        if (here_[d] > here_[from]) from = d;
      }
      for (int d = 0; d < lanes_; ++d) {
        if (d != from && (to < 0 || more_[d] < more_[to])) to = d;
      }
      if (to < 0 || more_[to] >= here_[from]) break;
      const int step = Next(out->units[to]) - out->units[to];
      const int left = out->units[from] - step;
      if (left < 0 || (left > 0 && left < m_.min_units)) break;
      // One unit more or less: what the lane has now is what it had as more, or had before.
      more_[from] = step == 1 && left > 0 ? here_[from] : left == 0 ? paths_.Least(from, m_.min_units) : paths_.Least(from, left + 1);
      here_[from] = left == 0 ? 0 : paths_.Least(from, left);
      here_[to] = more_[to];
      out->units[from] = static_cast<uint8_t>(left);
      out->units[to] = static_cast<uint8_t>(out->units[to] + step);
      more_[to] = out->units[to] < m_.units ? paths_.Least(to, out->units[to] + 1) : kInfinite;
    }
    bool exact = true;
    Tick most = 0;
    for (int d = 0; d < lanes_; ++d) {
      const int u = out->units[d];
      if (u == 0) continue;
      if (u < m_.min_units) return;
      exact &= paths_.Floor(d, u) == paths_.Cost(d, u);
      most = std::max(most, here_[d]);
    }
    out->value = most;
    if (exact) return;
    out->value = Value(out->units);
    Repair(out);
  }

  Tick Value(const uint8_t* units) const {
    Tick most = 0;
    for (int d = 0; d < lanes_; ++d) {
      if (units[d] == 0) continue;
      if (units[d] < m_.min_units) return kInfinite;
      most = std::max(most, paths_.Part(d, units[d]));
    }
    return most;
  }

 private:
  bool Allowed(int d) const { return (mask_ >> d & 1) != 0 && paths_.Cost(d, m_.units) < kInfinite; }
  int Next(int u) const { return u == 0 ? m_.min_units : u + 1; }

  bool Start(uint8_t* units) const {
    int sum = 0;
    bool good = true;
    for (int d = 0; d < lanes_; ++d) {
      sum += units[d];
      good &= units[d] == 0 || (units[d] >= m_.min_units && Allowed(d));
    }
    if (good && sum == m_.units) return true;
    std::fill_n(units, lanes_, uint8_t{0});
    int first = -1;
    Tick best = kInfinite;
    for (int d = 0; d < lanes_; ++d) {
      if (!Allowed(d)) continue;
      const Tick path = paths_.Least(d, m_.units);
      if (path >= best) continue;
      best = path;
      first = d;
    }
    if (first < 0) return false;
    units[first] = static_cast<uint8_t>(m_.units);
    return true;
  }

  // A lane that stands on a hump takes more units from whoever is last, if that helps.
  void Repair(Split<kWidth>* out) const {
    for (int d = 0; d < lanes_; ++d) {
      const int u = out->units[d];
      if (u == 0 || paths_.Floor(d, u) == paths_.Cost(d, u)) continue;
      int target = u;
      while (paths_.Cost(d, target) != paths_.Floor(d, u)) ++target;
      uint8_t trial[kWidth];
      std::copy_n(out->units, lanes_, trial);
      trial[d] = static_cast<uint8_t>(target);
      for (int excess = target - u; excess > 0; --excess) {
        int from = -1;
        Tick longest = -1;
        for (int e = 0; e < lanes_; ++e) {
          if (e == d || trial[e] == 0) continue;
          const Tick path = paths_.Part(e, trial[e]);
          if (path > longest) {
            longest = path;
            from = e;
          }
        }
        --trial[from];
      }
      const Tick v = Value(trial);
      if (v >= out->value) continue;
      std::copy_n(trial, lanes_, out->units);
      out->value = v;
    }
  }

  const NetMode& m_;
  const Paths<kWidth>& paths_;
  int lanes_;
  uint32_t mask_;
  Tick here_[kWidth], more_[kWidth];
};

}  // namespace plait
