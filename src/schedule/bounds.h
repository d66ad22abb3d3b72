// How fast no schedule can be.
#pragma once

#include "src/schedule/problem.h"

namespace plait {

// A makespan that no assignment of the (valid) problem can beat.
//
// Cut operators, comparable with every other one, divide the graph into stages; between two of them the bound is the larger of the longest
// path, every operator split at its best, and the work of what lies between, priced so that no lane is cheap. Access by region lets stages overlap; there
// the whole graph is one stage.
Tick LowerBound(const Problem& problem);

}  // namespace plait
