// The online half of planning: run what the search bets on, correct the costs by what was measured inside the whole network, search again, and
// keep the plan that was measured best.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/calibrate/calibrate.h"
#include "src/plan/plan.h"

namespace plait {

struct TuneOptions {
  SearchOptions search;
  BindOptions bind;
  int max_rounds = 5;             // searches
  int runs_per_round = 9;         // timed inferences of each contender and round
  int runs_of_guard = 51;         // at most, of the last comparison with the best single lanes
  double max_seconds = 60;        // after which no further round starts
  std::function<bool()> stop;     // asked between inferences; true ends with PLAIT_CANCELLED
  std::function<void(const std::string& what, double done, double seconds_left)> progress;
};

struct TuneRound {
  double predicted_us = 0;        // by the costs of that round
  double measured_us = 0;         // median
  double best_single_us = 0;      // median of the best single lane, interleaved with it
};

struct TuneResult {
  Plan plan;
  double measured_us = 0;         // of the plan, from the last comparison; of the best single lane if that is the plan
  double best_single_us = 0;      // from the last comparison
  std::string best_single;        // lane's name; empty if no lane can run the graph alone
  double planning_us = 0;         // searching alone, the slowest of the rounds
  int measured = 0;               // (operator signature, lane, cut) that were run inside candidates
  int avoided = 0;                // those of the search space that were not
  std::vector<TuneRound> rounds;
};

// The best measured plan. A plan over several lanes replaces the best single lane's only if it is faster in the median of interleaved runs, which go on until
// the 95 % interval of the difference decides or the runs are used up. Nothing else may run on the lanes.
Result<TuneResult> TunePlan(const std::shared_ptr<const Graph>& graph, const LanesToMeasure& lanes, const SocProfile& profile, const TuneOptions& options);

}  // namespace plait
