// When every part of an assignment runs: the exact evaluator, in integer ticks.
//
// A part starts when the part before it on its lane has ended and every part of its producers that it reads has ended and, from
// another lane, has been handed over. Handoffs are delays: they occupy no lane.
#pragma once

#include <vector>

#include "src/base/status.h"
#include "src/schedule/problem.h"

namespace plait {

struct Timeline {
  Tick makespan = 0;
  std::vector<Tick> start, end;  // [op * lanes + lane]; -1 where the operator has no part
};

// The earliest timeline of `assignment`. InvalidArgument names the first violation: wrong sums or lengths, a lane that cannot run its part, an
// operator missing from or twice in an order, orders that contradict the graph.
Result<Timeline> Evaluate(const Problem& problem, const Assignment& assignment);

// The same schedule under shared memory bandwidth (Problem::slow): a running part's speed is
// 1 / (1 + sum over busy lanes of slow * memory_bound * memory_bound). Microseconds, floating-point; for comparison of schedules only.
struct ContendedTimeline {
  double makespan_us = 0;
  std::vector<double> start_us, end_us;  // as Timeline
};
Result<ContendedTimeline> EvaluateContended(const Problem& problem, const Assignment& assignment);

// Ticks between the end of a part of `op` in `mode` on lane `from` and the time at which `units` of it can be read on lane `to`.
Tick HandoffTicks(const Problem& problem, int op, int mode, int units, int from, int to);

}  // namespace plait
