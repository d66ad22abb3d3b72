#include "src/schedule/bounds.h"
#include "src/schedule/costs.h"
#include "src/schedule/schedule.h"
#include "src/schedule/search.h"

namespace plait {

Result<Schedule> PlanSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, const SearchOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(const PlanningProblem planning, BuildPlanningProblem(graph, lanes, costs));
  PLAIT_ASSIGN_OR_RETURN(const Solution solution, Solve(planning.problem, options));
  PLAIT_ASSIGN_OR_RETURN(Schedule schedule, ScheduleOf(graph, lanes, planning, solution.assignment));
  schedule.lower_bound_us = static_cast<double>(solution.optimal ? solution.assignment.makespan : LowerBound(planning.problem, solution.assignment.makespan)) / 10.0;
  schedule.strategy = solution.strategy;
  return schedule;
}

}  // namespace plait
