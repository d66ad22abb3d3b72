// When each step is predicted to run.
#pragma once

#include <vector>

#include "backends/interface/lane.h"
#include "backends/interface/steps.h"
#include "src/base/status.h"

namespace plait {

// [lane][step], nanoseconds from the inference's start: as the search predicted where it gave start times, else as
// early as lane order and waits allow. Bookkeeping steps take no time. Corrupt if a wait is out of range or can never
// hold.
Result<std::vector<std::vector<StepTiming>>> PredictedTimings(const StepProgram& program);

}  // namespace plait
