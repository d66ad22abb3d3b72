#include <algorithm>
#include <cmath>

#include "src/schedule/baselines.h"
#include "src/schedule/bounds.h"
#include "src/schedule/costs.h"
#include "src/schedule/schedule.h"
#include "src/schedule/search.h"
#include "src/schedule/strips.h"

namespace plait {
namespace {

// A proposal that promises less does not pay for a second search: the first one overlaps handoffs with work, which the proposal does not see.
constexpr double kWorthASearch = 0.1;
constexpr const char* kByOperator = "by-operator";

Problem WithDearerHandoffs(Problem problem, double us) {
  const Tick more = std::llround(std::min(us * 10, static_cast<double>(kMaxTick)));
  for (size_t from = 0; from < problem.sync.size(); ++from) {
    for (size_t to = 0; to < problem.sync[from].size(); ++to) {
      if (from != to) problem.sync[from][to] = std::min(problem.sync[from][to] + more, kMaxTick);
    }
  }
  return problem;
}

Problem WithoutHandoffs(Problem problem) {
  for (std::vector<Tick>& row : problem.sync) std::fill(row.begin(), row.end(), Tick{0});
  for (std::vector<int64_t>& row : problem.ps_per_byte) std::fill(row.begin(), row.end(), int64_t{0});
  return problem;
}

// The mean price of a handoff, without what its bytes cost.
Tick MeanHandoff(const Problem& problem) {
  Tick sum = 0;
  int64_t pairs = 0;
  for (size_t from = 0; from < problem.sync.size(); ++from) {
    for (size_t to = 0; to < problem.sync[from].size(); ++to) {
      if (from == to) continue;
      sum += problem.sync[from][to];
      ++pairs;
    }
  }
  return pairs == 0 ? 0 : sum / pairs;
}

struct Found {
  PlanningProblem planning;
  Solution solution;
};

// The problem in which consumers read everything.
Problem ByOperator(Problem problem) {
  for (ProblemOp& op : problem.ops) {
    for (ProblemEdge& edge : op.inputs) edge.access.clear();
  }
  problem.accesses.clear();
  return problem;
}

Result<Found> Search(ProblemBuilder* builder, const StripList& strips, const SearchOptions& options) {
  Found found;
  PLAIT_ASSIGN_OR_RETURN(found.planning, builder->Build(strips));
  const Problem& problem = found.planning.problem;
  PLAIT_ASSIGN_OR_RETURN(found.solution, options.caution_us > 0 ? Solve(WithDearerHandoffs(problem, options.caution_us), options) : Solve(problem, options));
  return found;
}

}  // namespace

Result<Schedule> PlanSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, const SearchOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(ProblemBuilder builder, ProblemBuilder::Create(graph, lanes, costs));
  PLAIT_ASSIGN_OR_RETURN(const Found plain, Search(&builder, {}, options));
  const Found* best = &plain;
  const Tick handoff = MeanHandoff(plain.planning.problem) + static_cast<Tick>(options.caution_us * 10);
  PLAIT_ASSIGN_OR_RETURN(const StripList strips, ProposeStrips(&builder, plain.planning, std::min(handoff, kMaxTick), kWorthASearch));
  Found with_strips;
  if (!strips.empty() && !(options.stop && options.stop())) {
    PLAIT_ASSIGN_OR_RETURN(with_strips, Search(&builder, strips, options));
    if (with_strips.solution.assignment.makespan < plain.solution.assignment.makespan) best = &with_strips;
  }
  PLAIT_ASSIGN_OR_RETURN(Schedule schedule, builder.ToSchedule(best->planning, best->solution.assignment));
  schedule.strategy = best->solution.strategy;
  const Tick makespan = std::llround(schedule.predicted_us * 10);
  if (best == &with_strips) {
    // Strips do without some handoffs, so a bound that counts on them is none.
    schedule.lower_bound_us = static_cast<double>(LowerBound(WithoutHandoffs(plain.planning.problem), makespan)) / 10.0;
  } else if (plain.solution.optimal && options.caution_us <= 0) {
    schedule.lower_bound_us = schedule.predicted_us;  // proven for the problem that was searched
  } else {
    schedule.lower_bound_us = static_cast<double>(LowerBound(plain.planning.problem, makespan)) / 10.0;
  }
  return schedule;
}

std::vector<std::string> SimpleStrategies() { return {"fastest", "heft", "heft-split", "split", kByOperator}; }

Result<Schedule> SimpleSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, const std::string& strategy) {
  const std::vector<std::string> known = SimpleStrategies();
  if (std::find(known.begin(), known.end(), strategy) == known.end()) {
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    return NotFound("there is no strategy '", strategy, "'; there are ", names);
  }
  PLAIT_ASSIGN_OR_RETURN(ProblemBuilder builder, ProblemBuilder::Create(graph, lanes, costs));
  PLAIT_ASSIGN_OR_RETURN(PlanningProblem planning, builder.Build({}));
  if (strategy == kByOperator) {
    planning.problem = ByOperator(std::move(planning.problem));
    PLAIT_ASSIGN_OR_RETURN(const Solution solution, Solve(planning.problem, {}));
    PLAIT_ASSIGN_OR_RETURN(Schedule schedule, builder.ToSchedule(planning, solution.assignment));
    schedule.strategy = strategy;
    schedule.by_operator = true;
    return schedule;
  }
  const Net net(planning.problem);
  const std::vector<Baseline> baselines = Baselines(net);
  const auto found = std::find_if(baselines.begin(), baselines.end(), [&](const Baseline& b) { return b.name == strategy; });
  if (found == baselines.end() || found->plan.makespan >= kInfinite) {
    return Unsupported("strategy '", strategy, "' cannot be applied: no lane can run some operator whole");
  }
  PLAIT_ASSIGN_OR_RETURN(Schedule schedule, builder.ToSchedule(planning, ToAssignment(net, found->plan)));
  schedule.strategy = strategy;
  return schedule;
}

}  // namespace plait
