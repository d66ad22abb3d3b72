#include "src/schedule/tail_bounds.h"

#include <algorithm>

namespace plait {

// Of the operator after a part on lane `e`, some part ends last, on lane `l` with `v` units, say at T. The others have to end by T, too, and start no earlier
// than the handoff from `e` allows: at most so many units fit on them. Then the same holds from that part on.
TailBounds::TailBounds(const Net& net) : net_(net) {
  int size = 0;
  for (const NetMode& m : net.modes) {
    offset_.push_back(size);
    size += net.lanes * Classes(m);
  }
  after_.assign(static_cast<size_t>(size), 0);
  shortest_.resize(static_cast<size_t>(net.n));
  prefix_.assign(static_cast<size_t>(net.n) + 1, 0);
  Tick start[kMaxLanes];
  for (int o = net.n - 1; o >= 0; --o) {
    for (int mode = 0; mode < net.ModeCount(o); ++mode) {
      const NetMode& m = net.Mode(o, mode);
      for (int e = 0; e < net.lanes; ++e) {
        for (int c = 0; c < Classes(m); ++c) {
          Tick& after = after_[static_cast<size_t>(offset_[static_cast<size_t>(&m - net.modes.data())] + e * Classes(m) + c)];
          if (o + 1 == net.n) {
            after = net.exit[static_cast<size_t>(e)];
            continue;
          }
          for (int d = 0; d < net.lanes; ++d) start[d] = d == e ? 0 : net.Handoff(m, Smallest(m, c), e, d);
          after = Least(o + 1, start, true);
        }
      }
    }
  }
  for (int o = 0; o < net.n; ++o) {
    std::fill_n(start, net.lanes, 0);
    shortest_[static_cast<size_t>(o)] = Least(o, start, false);
    Tick step = kInfinite;
    for (int e = 0; e < net.lanes; ++e) {
      for (int d = 0; d < net.lanes; ++d) start[d] = net.sync[static_cast<size_t>(e * net.lanes + d)];
      step = std::min(step, Least(o, start, false));
    }
    prefix_[static_cast<size_t>(o) + 1] = prefix_[static_cast<size_t>(o)] + step;
  }
}

Tick TailBounds::Least(int op, const Tick* start, bool through) const {
  Tick best = kInfinite;
  for (int mode = 0; mode < net_.ModeCount(op); ++mode) {
    const NetMode& m = net_.Mode(op, mode);
    for (int l = 0; l < net_.lanes; ++l) {
      for (int v = m.units; v >= m.min_units; --v) {
        if (net_.Cost(m, l, v) >= kInfinite) continue;
        const Tick last = start[l] + net_.Cost(m, l, v);
        const Tick value = last + (through ? After(op, mode, l, v) : 0);
        if (value >= best) continue;
        int left = m.units - v;
        for (int f = 0; f < net_.lanes && left > 0; ++f) {
          if (f == l) continue;
          int fit = left;
          while (fit > 0 && start[f] + net_.Floor(m, f, fit) > last) --fit;
          left -= fit;
        }
        if (left == 0) best = value;
      }
    }
  }
  return best;
}

}  // namespace plait
