// Lowering from what a plan file holds: lanes without their kernel rules.
#pragma once

#include <vector>

#include "src/plan/plan.h"

namespace plait {

// As Lower(); every part names its kernel.
Result<Plan> LowerParts(const Graph& graph, const std::vector<LaneSpec>& lanes, const Schedule& schedule);

}  // namespace plait
