#include "src/plan/predicted.h"

#include <algorithm>
#include <cmath>

#include "src/plan/clocks.h"

namespace plait {

Result<std::vector<std::vector<StepTiming>>> PredictedTimings(const StepProgram& program) {
  PLAIT_ASSIGN_OR_RETURN(const Clocks clocks, Clocks::Of(program));
  std::vector<std::vector<StepTiming>> timings;
  for (const std::vector<Step>& steps : program.steps) timings.emplace_back(steps.size());
  auto at = [&](LaneId lane, int64_t step) -> StepTiming& {
    return timings[static_cast<size_t>(lane)][static_cast<size_t>(step)];
  };
  for (const auto& [lane, n] : clocks.order()) {
    const Step& step = program.steps[static_cast<size_t>(lane)][static_cast<size_t>(n)];
    int64_t start_ns = std::llround(step.predicted_start_us * 1e3);
    if (n > 0) start_ns = std::max(start_ns, at(lane, n - 1).end_ns);
    for (const Wait& wait : step.waits) start_ns = std::max(start_ns, at(wait.lane, wait.steps - 1).end_ns);
    at(lane, n) = {start_ns, start_ns + std::llround(step.predicted_us * 1e3)};
  }
  return timings;
}

}  // namespace plait
