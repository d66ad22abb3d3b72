// Measuring a machine: what operators and handoffs take on its lanes, into a SoC profile.
//
// Operators are timed inside runs of their own network, one lane at a time: a lane's program is the whole network, every operator either whole
// or as a sequence of parts, so that weights and activations are as cold or warm as they will be. Lanes and programs take turns round by
// round, and lower quartiles are kept: other work on the machine only ever makes a part slower.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/interface/lane.h"
#include "predictors/soc_profile.h"
#include "src/schedule/schedule.h"

namespace plait {

// Real lanes and what planning knows of them, in one order.
struct LanesToMeasure {
  std::vector<std::shared_ptr<Lane>> lanes;
  std::vector<PlanningLane> planning;
};

struct CalibrationOptions {
  BindOptions bind;                   // strict mode and injected latency are part of what is measured; `timings` is set where needed
  double seconds_per_lane = 30;       // a bound on measuring; less is used where the figures are good enough earlier
  int min_rounds = 5, max_rounds = 15;
  std::function<bool()> stop;         // asked between inferences; true ends with PLAIT_CANCELLED, the profile keeps what was finished
  // What is being measured, the share done (0 to 1), seconds left.
  std::function<void(const std::string& what, double done, double seconds_left)> progress;
};

struct CalibrationReport {
  int measured = 0;   // (operator signature, lane, cut) that were measured now
  int known = 0;      // those that the profile had
  int rounds = 0;
  double seconds = 0;
};

// Adds to `profile` what operators of `graph` take on every lane that can run them: whole, and cut to about 1/4, 1/2 and 3/4 along every axis
// that the lanes share. `graph` is PlaceCopies' result; profile and lanes name the same lanes in one order. Nothing else may run on the lanes.
Result<CalibrationReport> CalibrateModel(const std::shared_ptr<const Graph>& graph, const LanesToMeasure& lanes, const CalibrationOptions& options,
                                         SocProfile* profile);

// Measures handoffs between all pairs of lanes, what a step costs, and what a GPU lane costs its host, with chains of tiny
// operators. A lane that lacks these operators keeps its figures. Takes under a second a pair.
Status CalibrateHandoffs(const LanesToMeasure& lanes, const CalibrationOptions& options, SocProfile* profile);
// Whether CalibrateHandoffs has filled the profile.
bool HasHandoffs(const SocProfile& profile);

// A profile without measurements for these lanes.
SocProfile EmptyProfile(const LanesToMeasure& lanes, const std::string& soc, const std::string& plait_version);

// The profile as planning reads it: handoff matrices, entry and exit, with `latency` for the parts. Lanes in the profile's order.
PlanningCosts CostsFrom(const SocProfile& profile, const LatencySource* latency);
// Fills dispatch and host costs of the lanes from the profile.
void ApplyProfile(const SocProfile& profile, std::vector<PlanningLane>* lanes);

}  // namespace plait
