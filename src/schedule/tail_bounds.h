// Along a chain of operators of which each waits for all parts of the one before: how soon, at best, everything ends after a part.
#pragma once

#include <vector>

#include "src/schedule/net.h"

namespace plait {

class TailBounds {
 public:
  explicit TailBounds(const Net& net);  // HasUniqueOrder(net)

  // From the end of a part of `units` of `op` in `mode` on `lane` to the end of everything, at least.
  Tick After(int op, int mode, int lane, int units) const {
    const NetMode& m = net_.Mode(op, mode);
    return after_[static_cast<size_t>(offset_[static_cast<size_t>(&m - net_.modes.data())] + lane * Classes(m) + ClassOf(m, units))];
  }
  // From when the first lane can read the inputs of `from` to the end of the operator before `to`, at least.
  Tick Between(int from, int to) const { return from >= to ? 0 : prefix_[static_cast<size_t>(to)] - prefix_[static_cast<size_t>(from) + 1] + shortest_[static_cast<size_t>(from)]; }

 private:
  // Numbers of units are told apart in four classes; each stands for its smallest.
  static int Classes(const NetMode& m) { return m.units < 4 ? m.units : 4; }
  static int ClassOf(const NetMode& m, int units) { return (units - 1) * Classes(m) / m.units; }
  static int Smallest(const NetMode& m, int c) { return (c * m.units + Classes(m) - 1) / Classes(m) + 1; }

  // The least over all splits of `op` whose parts can start at `start` of the time to the end of the operator, or, if `through`, of everything.
  Tick Least(int op, const Tick* start, bool through) const;

  const Net& net_;
  std::vector<int> offset_;     // [mode]
  std::vector<Tick> after_;
  std::vector<Tick> shortest_;  // [op] if all it reads is everywhere
  std::vector<Tick> prefix_;    // [op] sum over the operators before of the time from the last end before them to theirs
};

}  // namespace plait
