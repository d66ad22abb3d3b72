// A program that lacks a step, for tests that expect this to be noticed.
#pragma once

#include <vector>

#include "backends/interface/steps.h"

namespace plait {

// The program without one step; waits that counted it count one less.
inline StepProgram WithoutStep(StepProgram program, LaneId lane, int64_t n) {
  std::vector<Step>& steps = program.steps[static_cast<size_t>(lane)];
  steps.erase(steps.begin() + n);
  for (std::vector<Step>& others : program.steps) {
    for (Step& step : others) {
      for (Wait& wait : step.waits) wait.steps -= wait.lane == lane && wait.steps > n;
      std::erase_if(step.waits, [](const Wait& wait) { return wait.steps == 0; });
    }
  }
  return program;
}

}  // namespace plait
