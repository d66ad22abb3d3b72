// The optimum of problems whose operators have only one topological order: exact label dynamic programming.
//
// Before an operator of such a chain, all that matters of a way to run the operators before is when the inputs of each later operator that are already
// made can be read on each lane: the lanes themselves are free by then, since every operator waits for all parts of the one before. Such labels are led
// from operator to operator through all splits; one that is nowhere sooner than another is dropped, and so is one that cannot end before the best known
// schedule: for every part there is a lower bound on what follows it, handoffs included.
#pragma once

#include <cstdint>

#include "src/schedule/net.h"

namespace plait {

// Every operator reads the one before it, and all of it.
bool HasUniqueOrder(const Net& net);

struct ChainSolution {
  bool optimal = false;      // `plan` is one; else the limits were reached
  SequencePlan plan;         // the incumbent if nothing better was found
  int64_t evaluations = 0;   // splits looked at
};

// `net` has a unique order. Stops after `most_evaluations` splits.
ChainSolution SolveChain(const Net& net, const SequencePlan& incumbent, int64_t most_evaluations);

}  // namespace plait
