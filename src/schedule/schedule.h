// The physical schedule of a graph: which region of which operator runs on which lane by which kernel, and each lane's order.
// What strategies return and lowering reads. It never changes results.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/interface/backend.h"
#include "backends/interface/steps.h"
#include "predictors/latency.h"

namespace plait {

struct Part {
  OpId op = kNoOp;
  LaneId lane = 0;
  Region region;              // computed
  std::string kernel;         // empty: the lane's own choice for the operator
  double predicted_us = 0;
  double predicted_start_us = 0;
  int strip = -1;             // parts of one strip, all on one lane, read each other's private results (PrivateResults); -1: none
};

struct Schedule {
  std::vector<Part> parts;
  std::vector<std::vector<int>> lanes;  // [lane] -> indices into parts, in order
  double predicted_us = 0;              // makespan
  double lower_bound_us = 0;            // 0: none computed
  std::string strategy;                 // who made it
  bool by_operator = false;             // parts wait for, and are handed, whole operators: all that any lane computes of those they read, not only what they read
};

// What planning knows of a lane.
struct PlanningLane {
  LaneSpec spec;
  const KernelRules* rules = nullptr;  // outlives the planning
  bool coherent = true;
  double host_step_us = 0;             // GPU: cost of a step and of a segment on the host lane's time line
  double host_segment_us = 0;
  double dispatch_us = 0;
};

struct PlanningCosts {
  const LatencySource* latency = nullptr;
  std::vector<std::vector<double>> sync_us;       // [from][to]
  std::vector<std::vector<double>> us_per_byte;   // [from][to]
  std::vector<double> entry_us, exit_us;          // [lane]
};

// The schedule is legal for the graph: every non-view operator's parts tile its output; kernels and cuts as the lanes' rules allow; lane orders do not
// contradict the DAG; parts of non-coherent domains share no cache line. The first violation names rule, operator and lane.
Status CheckSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, const Schedule& schedule);

enum class Effort { kFast, kDefault, kHigh };

struct SearchOptions {
  Effort effort = Effort::kDefault;
  int64_t evaluations = 0;                  // 0: by effort
  uint64_t seed = 1;
  double caution_us = 0;                    // handoffs are searched with so much more, for a plan with fewer; its prediction and bound are without it
  std::function<bool()> stop;               // asked now and then; true ends the search with the best so far
  std::function<void(const std::string& phase, double best_us)> progress;
};

// The search. Never predicted slower than any lane alone that can run the graph, nor than the simple strategies (of which "by-operator" is a search of its own).
Result<Schedule> PlanSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, const SearchOptions& options);

// What the search starts from and is compared with: "fastest" (each operator on its fastest lane), "heft" (Topcuoglu et al. 2002, whole operators), "heft-split" (the
// same with splits), "split" (every operator cut so that its parts end together, whatever its neighbours do). And "by-operator": the search, for schedules that are `by_operator`, which
// shows what waiting by region brings.
std::vector<std::string> SimpleStrategies();
// The schedule of one of them. NotFound names those that there are; Unsupported if no lane can run some operator.
Result<Schedule> SimpleSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, const std::string& strategy);

// Everything on one lane. Unsupported if it cannot run some operator.
Result<Schedule> SingleLaneSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, LaneId lane);

// A random legal schedule (random lanes, axes, cuts, strips and orders), for tests. Deterministic in `seed`.
Result<Schedule> RandomSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, uint64_t seed);

}  // namespace plait
