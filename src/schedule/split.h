// The best split of one operator when everything before and after it is fixed.
#pragma once

#include <algorithm>

#include "src/schedule/net.h"

namespace plait {

// What surrounds an operator: when its parts can start, and what follows them.
template <int kWidth>
struct Surroundings {
  Tick start[kWidth];    // earliest start on each lane
  Tick after[kWidth];    // path that follows on the same lane
  Tick demand[kWidth];   // longest path from the start of a consumer on the lane; 0: none there
  bool sink = false;     // no consumer at all: the lane's exit follows
};

template <int kWidth>
struct Split {
  uint8_t units[kWidth] = {};
  Tick value = kInfinite;  // longest path through the operator
};

// The longest path through a part on `lane` whose handoffs are those of `u` units and whose latency is `cost`.
template <int kWidth>
inline Tick PathOfCost(const Net& net, const NetMode& m, const Surroundings<kWidth>& s, int lanes, int lane, int u, Tick cost) {
  if (cost >= kInfinite) return kInfinite;
  Tick tail = s.sink ? net.exit[static_cast<size_t>(lane)] : s.demand[lane];
  for (int f = 0; f < lanes; ++f) {
    if (f != lane && s.demand[f] > 0) tail = std::max(tail, s.demand[f] + net.Handoff(m, u, lane, f));
  }
  return s.start[lane] + cost + std::max(tail, s.after[lane]);
}
template <int kWidth>
inline Tick PathOfPart(const Net& net, const NetMode& m, const Surroundings<kWidth>& s, int lanes, int lane, int u) {
  return PathOfCost(net, m, s, lanes, lane, u, net.Cost(m, lane, u));
}

// Finds splits whose longest path is the shortest. Units move from the lane whose path is the longest to the one that takes another with the
// shortest, until that does not help: optimal where latencies grow with the units. Dips behind humps are seen through the least latency of
// at least so many units (Net::floors) and repaired afterwards.
template <int kWidth>
class Splitter {
 public:
  Splitter(const Net& net, const NetMode& m, const Surroundings<kWidth>& s, int lanes, uint32_t mask) : net_(net), m_(m), s_(s), lanes_(lanes), mask_(mask) {}

  // `out->units` on entry: where to start from if they sum to the mode's units and use lanes of the mask only, else ignored.
  void Run(Split<kWidth>* out) {
    out->value = kInfinite;
    if (!Start(out->units)) return;
    for (int d = 0; d < lanes_; ++d) {
      here_[d] = out->units[d] == 0 ? 0 : Look(d, out->units[d]);
      more_[d] = Allowed(d) && out->units[d] < m_.units ? Look(d, Next(out->units[d])) : kInfinite;
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
      Set(out->units, from, left);
      Set(out->units, to, out->units[to] + step);
    }
    out->value = Value(out->units);
    Repair(out);
  }

  Tick Value(const uint8_t* units) const {
    Tick most = 0;
    for (int d = 0; d < lanes_; ++d) {
      if (units[d] == 0) continue;
      if (units[d] < m_.min_units) return kInfinite;
      most = std::max(most, PathOfPart(net_, m_, s_, lanes_, d, units[d]));
    }
    return most;
  }

 private:
  bool Allowed(int d) const { return (mask_ >> d & 1) != 0 && net_.Cost(m_, d, m_.units) < kInfinite; }
  int Next(int u) const { return u == 0 ? m_.min_units : u + 1; }
  Tick Look(int d, int u) const { return PathOfCost(net_, m_, s_, lanes_, d, u, net_.Floor(m_, d, u)); }

  void Set(uint8_t* units, int d, int u) {
    units[d] = static_cast<uint8_t>(u);
    here_[d] = u == 0 ? 0 : Look(d, u);
    more_[d] = Allowed(d) && u < m_.units ? Look(d, Next(u)) : kInfinite;
  }

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
      const Tick path = Look(d, m_.units);
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
      if (u == 0 || net_.Floor(m_, d, u) == net_.Cost(m_, d, u)) continue;
      int target = u;
      while (net_.Cost(m_, d, target) != net_.Floor(m_, d, u)) ++target;
      uint8_t trial[kWidth];
      std::copy_n(out->units, lanes_, trial);
      trial[d] = static_cast<uint8_t>(target);
      for (int excess = target - u; excess > 0; --excess) {
        int from = -1;
        Tick longest = -1;
        for (int e = 0; e < lanes_; ++e) {
          if (e == d || trial[e] == 0) continue;
          const Tick path = PathOfPart(net_, m_, s_, lanes_, e, trial[e]);
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

  const Net& net_;
  const NetMode& m_;
  const Surroundings<kWidth>& s_;
  int lanes_;
  uint32_t mask_;
  Tick here_[kWidth], more_[kWidth];
};

}  // namespace plait
