// Which operators of a graph are worth running as strips.
#pragma once

#include "src/schedule/costs.h"

namespace plait {

// Strips that look better than cutting each of their operators by itself, judged along the order of `planning.ops` (which has no strips) with every border
// between operators that are not cut alike at the price of `handoff`. A guess for the search to judge: it takes each operator's parts to be balanced and
// forgets what overlaps. Empty if they do not seem to save the share `least_gain` of the time without strips.
Result<StripList> ProposeStrips(ProblemBuilder* builder, const PlanningProblem& planning, Tick handoff, double least_gain);

}  // namespace plait
