#include <algorithm>
#include <cmath>

#include "src/schedule/bounds.h"
#include "src/schedule/costs.h"
#include "src/schedule/schedule.h"
#include "src/schedule/search.h"

namespace plait {
namespace {

Problem WithDearerHandoffs(Problem problem, double us) {
  const Tick more = std::llround(std::min(us * 10, static_cast<double>(kMaxTick)));
  for (size_t from = 0; from < problem.sync.size(); ++from) {
    for (size_t to = 0; to < problem.sync[from].size(); ++to) {
      if (from != to) problem.sync[from][to] = std::min(problem.sync[from][to] + more, kMaxTick);
    }
  }
  return problem;
}

}  // namespace

Result<Schedule> PlanSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, const SearchOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(const PlanningProblem planning, BuildPlanningProblem(graph, lanes, costs));
  PLAIT_ASSIGN_OR_RETURN(const Solution solution, Solve(options.caution_us > 0 ? WithDearerHandoffs(planning.problem, options.caution_us) : planning.problem, options));
  PLAIT_ASSIGN_OR_RETURN(Schedule schedule, ScheduleOf(graph, lanes, planning, solution.assignment));
  // The solution is proven for the problem that was searched.
  const bool is_optimal = solution.optimal && options.caution_us <= 0;
  schedule.lower_bound_us = is_optimal ? schedule.predicted_us : static_cast<double>(LowerBound(planning.problem, std::llround(schedule.predicted_us * 10))) / 10.0;
  schedule.strategy = solution.strategy;
  return schedule;
}

}  // namespace plait
