// From a graph and what its kernels cost to the search's Problem, and back from an Assignment to parts.
//
// How a GPU lane's host is charged: submitting and polling happen on the host lane between its own steps. The search prices them as a delay of the GPU
// lane instead (PlanningLane::host_step_us on every step, host_segment_us on every handoff to and from it), which is what a plan whose host lane is busy
// sees of them.
#pragma once

#include <optional>
#include <vector>

#include "src/partition/cuts.h"
#include "src/schedule/problem.h"
#include "src/schedule/schedule.h"

namespace plait {

struct PlanningProblem {
  Problem problem;                                          // one operator for every operator of the graph that is no view
  std::vector<OpId> ops;                                    // [problem operator] -> graph operator
  std::vector<std::vector<std::optional<CutAxis>>> cuts;    // [problem operator][mode]; nullopt: whole
};

// Modes are the whole operator and every axis along which all lanes that can run it can cut it, in at most `max_units` units. Where lanes
// are not coherent, only cuts whose parts share no cache line are left. Unsupported names an operator that no lane can run or has a known cost for.
Result<PlanningProblem> BuildPlanningProblem(const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, int max_units = 16);

// The parts of an assignment with their predicted times.
Result<Schedule> ScheduleOf(const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningProblem& planning, const Assignment& assignment);

}  // namespace plait
