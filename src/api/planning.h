// From a model and lanes to a plan, with what is known kept between runs: the SoC profile and the plans found, in a cache folder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "predictors/soc_profile.h"
#include "src/api/lanes.h"
#include "src/calibrate/calibrate.h"
#include "src/calibrate/tune.h"
#include "src/plan/plan.h"
#include "src/runtime/session.h"

namespace plait {

struct PlannedModel {
  std::shared_ptr<const Graph> graph;   // prepared: what the plan refers to
  std::shared_ptr<const Plan> plan;
  double planning_us = 0;               // the search alone, without calibration
  bool from_cache = false;
  int measured = 0, avoided = 0;        // options measured for this plan; options of the search space that were not
  double best_single_us = 0;            // measured while tuning; 0 if not
  double measured_us = 0;               // of the plan, likewise
  std::vector<TuneRound> rounds;        // of tuning
};

// From graph, lanes and costs to a schedule; PlanSchedule() is one. Costs may know nothing of some operators.
using Strategy = std::function<Result<Schedule>(const Graph&, const std::vector<PlanningLane>&, const PlanningCosts&, const SearchOptions&)>;

struct PlanRequest {
  SearchOptions search;
  BindOptions bind;                     // strict mode and injected latency: part of what is measured and cached
  std::string cache_dir;                // empty: nothing kept
  bool tune = true;                     // run candidates and the best single lane, keep what is measured best
  bool use_cached_plan = true;
  double calibration_seconds_per_lane = 30;
  // what, done share 0..1, seconds left (negative: unknown)
  std::function<void(const std::string&, double, double)> progress;
  std::function<bool()> stop;           // asked now and then; true ends with PLAIT_CANCELLED
  Strategy strategy;                    // instead of the search; its schedule is checked, neither tuned nor cached
  bool measure = true;                  // false: costs are what the kept profile knows
  // Makes the rules that plans must keep from the prepared graph: see LaneSet::rules. `constraints` says in words what they ask, for the cache's key.
  std::function<Result<std::vector<std::shared_ptr<const KernelRules>>>(const Graph& prepared)> rules;
  std::string constraints;
};

// The profile of this machine and these lanes from the cache; an empty one with the lanes' names if there is none or it is foreign.
SocProfile LoadCachedProfile(const LaneSet& lanes, const PlanRequest& request);
Status SaveCachedProfile(const SocProfile& profile, const PlanRequest& request);

// Measures what the kept profile lacks for the graph, and keeps it.
Result<CalibrationReport> CalibrateGraph(const Graph& graph, const LaneSet& lanes, const PlanRequest& request);

Result<PlannedModel> PlanGraph(const Graph& graph, const LaneSet& lanes, const PlanRequest& request);

// A plan from a file, a single lane, or a random one, for the graph prepared for `lanes`.
Result<PlannedModel> LoadPlanFor(const Graph& graph, const LaneSet& lanes, const std::string& path);
Result<PlannedModel> SingleLanePlan(const Graph& graph, const LaneSet& lanes, LaneId lane);
Result<PlannedModel> RandomPlan(const Graph& graph, const LaneSet& lanes, uint64_t seed);

Result<std::unique_ptr<Session>> OpenSession(const PlannedModel& model, const LaneSet& lanes, const SessionOptions& options);

}  // namespace plait
