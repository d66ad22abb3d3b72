// What calibration and tuning share: which cuts are worth measuring, and step times out of a session. Private to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "predictors/soc_profile.h"
#include "src/calibrate/calibrate.h"
#include "src/partition/cuts.h"
#include "src/plan/plan.h"
#include "src/runtime/session.h"

namespace plait {

// The axes along which all lanes that can run the operator can cut it, in the planner's granularity.
std::vector<CutAxis> SharedCuts(const Graph& graph, OpId op, const std::vector<PlanningLane>& lanes);

// About `quarter`/4 of the axis in units that are legal for the first of two parts; nullopt if the axis is too short.
std::optional<int> UnitsOfQuarter(const CutAxis& cut, int quarter);

// One compute step of an inference and what it took.
struct StepTime {
  LaneId lane = 0;
  OpId op = kNoOp;
  CutOf cut;               // FindCut; steps cut along several axes are left out
  bool is_first = false;   // the part begins at the axis' begin (whole ones do)
  double us = 0;
};

// From the end of the lane's step before (that is what a step costs there: start-up included), or from its own start if it waited.
// Steps whose device gave no usable times are left out. `timings` as Session::timings() gives them.
std::vector<StepTime> StepTimesOf(const Graph& graph, const StepProgram& program, const std::vector<std::span<const StepTiming>>& timings);

// Fills all inputs with small numbers, the same in every session.
void FillWithNoise(const Graph& graph, Session* session);

Result<std::unique_ptr<Session>> OpenForMeasuring(const std::shared_ptr<const Graph>& graph, std::shared_ptr<const Plan> plan,
                                                  const LanesToMeasure& lanes, BindOptions bind, bool timings);

// One inference, timed by the caller's clock.
Result<double> TimedRun(Session* session);

inline Status StopIfAsked(const std::function<bool()>& stop) {
  return stop && stop() ? Status(PLAIT_CANCELLED, "measuring was stopped") : Status();
}

}  // namespace plait
