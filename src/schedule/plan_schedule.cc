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
  Problem searched;
  Solution solution;
};

Result<Found> Search(ProblemBuilder* builder, const StripList& strips, const SearchOptions& options) {
  Found found;
  PLAIT_ASSIGN_OR_RETURN(found.planning, builder->Build(strips));
  found.searched = options.caution_us > 0 ? WithDearerHandoffs(found.planning.problem, options.caution_us) : found.planning.problem;
  PLAIT_ASSIGN_OR_RETURN(found.solution, Solve(found.searched, options));
  return found;
}

}  // namespace

Result<Schedule> PlanSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, const SearchOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(ProblemBuilder builder, ProblemBuilder::Create(graph, lanes, costs));
  PLAIT_ASSIGN_OR_RETURN(Found best, Search(&builder, {}, options));
  // What the search has proven is so for the problem that was searched.
  bool is_optimal = best.solution.optimal && options.caution_us <= 0;
  PlanningProblem plain = best.planning;
  PLAIT_ASSIGN_OR_RETURN(const StripProposal proposal, ProposeStrips(&builder, plain, MeanHandoff(best.searched)));
  if (proposal.gain >= kWorthASearch && !(options.stop && options.stop())) {
    PLAIT_ASSIGN_OR_RETURN(Found with_strips, Search(&builder, proposal.strips, options));
    if (with_strips.solution.assignment.makespan < best.solution.assignment.makespan) {
      best = std::move(with_strips);
      is_optimal = false;
      plain.problem = WithoutHandoffs(std::move(plain.problem));  // strips do without some, so a bound that counts on them is none
    }
  }
  PLAIT_ASSIGN_OR_RETURN(Schedule schedule, builder.ToSchedule(best.planning, best.solution.assignment));
  schedule.lower_bound_us = is_optimal ? schedule.predicted_us : static_cast<double>(LowerBound(plain.problem, std::llround(schedule.predicted_us * 10))) / 10.0;
  schedule.strategy = best.solution.strategy;
  return schedule;
}

std::vector<std::string> SimpleStrategies() { return {"fastest", "heft", "heft-split", "split"}; }

Result<Schedule> SimpleSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, const std::string& strategy) {
  const std::vector<std::string> known = SimpleStrategies();
  if (std::find(known.begin(), known.end(), strategy) == known.end()) {
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    return NotFound("there is no strategy '", strategy, "'; there are ", names);
  }
  PLAIT_ASSIGN_OR_RETURN(ProblemBuilder builder, ProblemBuilder::Create(graph, lanes, costs));
  PLAIT_ASSIGN_OR_RETURN(const PlanningProblem planning, builder.Build({}));
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
