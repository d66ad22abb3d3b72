#include "src/plan/plan.h"

namespace plait {

ProgramStats StatsOf(const StepProgram& program) {
  ProgramStats stats;
  for (size_t lane = 0; lane < program.steps.size(); ++lane) {
    stats.steps_per_lane.push_back(static_cast<int>(program.steps[lane].size()));
    for (const Step& step : program.steps[lane]) {
      stats.compute_steps += step.kind == StepKind::kCompute;
      stats.acquires += step.kind == StepKind::kAcquire;
      stats.publishes += step.kind == StepKind::kPublish;
      stats.segments += step.kind == StepKind::kSubmit;
      stats.waits += static_cast<int>(step.waits.size());
      for (const Wait& wait : step.waits) stats.handoffs += wait.lane != static_cast<LaneId>(lane);
    }
  }
  return stats;
}

}  // namespace plait
