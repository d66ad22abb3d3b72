// How fast no schedule can be.
#pragma once

#include "src/schedule/problem.h"

namespace plait {

// A makespan that no assignment of the (valid) problem can beat. `known`: the makespan of some assignment, if there is one; the bound is not larger, and sooner
// found.
//
// The largest of: the longest path, every operator split at its best; the work of all operators, priced so that no lane is cheap; and both, stage by stage, with the
// handoffs between stages (stage_labels.h). Where operators read by region stages overlap, and the last is left out.
Tick LowerBound(const Problem& problem, Tick known = kForbidden);

}  // namespace plait
