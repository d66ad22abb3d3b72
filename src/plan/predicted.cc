#include "src/plan/predicted.h"

#include <algorithm>
#include <cmath>

#include "src/plan/clocks.h"

namespace plait {

Result<std::vector<std::vector<StepTiming>>> PredictedTimings(const StepProgram& program) {
  PLAIT_ASSIGN_OR_RETURN(const Clocks clocks, Clocks::Of(program));
  std::vector<std::vector<StepTiming>> timings;
  for (const std::vector<Step>& steps : program.steps) timings.emplace_back(steps.size());
  auto end_of = [&](LaneId lane, int64_t step) { return timings[static_cast<size_t>(lane)][static_cast<size_t>(step)].end_ns; };
  for (const Clocks::Position& at : clocks.order()) {
    const Step& step = program.steps[static_cast<size_t>(at.lane)][static_cast<size_t>(at.step)];
    int64_t start = std::llround(step.predicted_start_us * 1e3);
    if (at.step > 0) start = std::max(start, end_of(at.lane, at.step - 1));
    for (const Wait& wait : step.waits) start = std::max(start, end_of(wait.lane, wait.steps - 1));
    timings[static_cast<size_t>(at.lane)][static_cast<size_t>(at.step)] = {start, start + std::llround(step.predicted_us * 1e3)};
  }
  return timings;
}

}  // namespace plait
