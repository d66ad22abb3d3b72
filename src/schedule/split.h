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

// The longest path through a part of `u` units on `lane`.
template <int kWidth>
inline Tick PathOfPart(const Net& net, const NetMode& m, const Surroundings<kWidth>& s, int lanes, int lane, int u) {
  const Tick cost = net.Cost(m, lane, u);
  if (cost >= kInfinite) return kInfinite;
  Tick tail = s.sink ? net.exit[static_cast<size_t>(lane)] : s.demand[lane];
  for (int f = 0; f < lanes; ++f) {
    if (f != lane && s.demand[f] > 0) tail = std::max(tail, s.demand[f] + net.Handoff(m, u, lane, f));
  }
  return s.start[lane] + cost + std::max(tail, s.after[lane]);
}

// Water-filling: units go one after another to the lane in `mask` whose path is then the shortest. Optimal where latencies grow with the
// units; steps and dips are looked through by `envelope` (Net::floors), and repaired afterwards.
template <int kWidth>
Split<kWidth> BestSplit(const Net& net, const NetMode& m, const Surroundings<kWidth>& s, int lanes, uint32_t mask) {
  const int U = m.units;
  Split<kWidth> out;
  Tick next[kWidth];
  // A path with the least latency of at least u units, so that a dip behind a hump is seen.
  const auto look = [&](int d, int u) {
    const Tick path = PathOfPart(net, m, s, lanes, d, u);
    return path >= kInfinite ? path : path - net.Cost(m, d, u) + net.Floor(m, d, u);
  };
  for (int d = 0; d < lanes; ++d) next[d] = (mask >> d & 1) ? look(d, m.min_units) : kInfinite;
  for (int left = U; left > 0;) {
    int to = 0;
    for (int d = 1; d < lanes; ++d) {
      if (next[d] < next[to]) to = d;
    }
    if (next[to] >= kInfinite) return out;
    const int step = out.units[to] == 0 ? std::min(m.min_units, left) : 1;
    out.units[to] = static_cast<uint8_t>(out.units[to] + step);
    left -= step;
    next[to] = out.units[to] < U ? look(to, out.units[to] + 1) : kInfinite;
  }
  const auto value = [&](const uint8_t* units) {
    Tick most = 0;
    for (int d = 0; d < lanes; ++d) {
      if (units[d] == 0) continue;
      if (units[d] < m.min_units) return kInfinite;
      most = std::max(most, PathOfPart(net, m, s, lanes, d, units[d]));
    }
    return most;
  };
  out.value = value(out.units);
  // A lane that stands on a hump takes more units from whoever is last, if that helps.
  for (int d = 0; d < lanes; ++d) {
    const int u = out.units[d];
    if (u == 0 || net.Floor(m, d, u) == net.Cost(m, d, u)) continue;
    int target = u;
    while (net.Cost(m, d, target) != net.Floor(m, d, u)) ++target;
    uint8_t trial[kWidth];
    std::copy_n(out.units, lanes, trial);
    trial[d] = static_cast<uint8_t>(target);
    for (int excess = target - u; excess > 0; --excess) {
      int from = -1;
      Tick longest = -1;
      for (int e = 0; e < lanes; ++e) {
        if (e == d || trial[e] == 0) continue;
        const Tick path = PathOfPart(net, m, s, lanes, e, trial[e]);
        if (path > longest) {
          longest = path;
          from = e;
        }
      }
      --trial[from];
    }
    const Tick v = value(trial);
    if (v < out.value) {
      std::copy_n(trial, lanes, out.units);
      out.value = v;
    }
  }
  return out;
}

}  // namespace plait
