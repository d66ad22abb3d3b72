#include "src/schedule/search.h"

#include <algorithm>

#include "src/schedule/baselines.h"
#include "src/schedule/net.h"
#include "src/schedule/order_dp.h"
#include "src/schedule/timeline.h"

namespace plait {
namespace {

// Re-solves the orders of the baselines from both ends.
SequencePlan BestAlongOrders(const Net& net, const std::vector<Baseline>& baselines, const SearchOptions& options, int64_t* evaluations) {
  OrderDpOptions dp;
  dp.passes = 4;
  dp.width = options.effort == Effort::kHigh ? 16 : options.effort == Effort::kFast || net.n > 200 ? 4 : 8;
  dp.evaluations = evaluations;
  SequencePlan best;
  for (const Baseline& b : baselines) {
    if (options.stop && best.makespan < kInfinite && options.stop()) break;
    if (b.name != "heft" && b.name != "fastest") continue;
    SequencePlan solved = SolveAlongOrder(net, b.plan, dp);
    if (solved.makespan < best.makespan) best = std::move(solved);
    if (options.progress) options.progress("order of " + b.name, static_cast<double>(best.makespan) / 10.0);
  }
  return best;
}

}  // namespace

Result<Solution> Solve(const Problem& problem, const SearchOptions& options) {
  PLAIT_RETURN_IF_ERROR(ValidateProblem(problem));
  const Net net(problem);
  Solution out;
  if (net.n == 0) {
    out.assignment.order.resize(problem.lanes.size());
    return out;
  }
  const std::vector<Baseline> baselines = Baselines(net);
  for (const Baseline& b : baselines) {
    if (b.plan.makespan < kInfinite) out.baselines.push_back({b.name, b.plan.makespan});
  }
  SequencePlan best = BestAlongOrders(net, baselines, options, &out.evaluations);
  out.strategy = "search";
  for (const Baseline& b : baselines) {
    if (b.plan.makespan <= best.makespan) {
      best = b.plan;
      out.strategy = b.name;
    }
  }
  out.assignment = ToAssignment(net, best);
  PLAIT_ASSIGN_OR_RETURN(const Timeline timeline, Evaluate(problem, out.assignment));
  if (timeline.makespan != best.makespan) return Internal("the search claims ", best.makespan, " ticks for a schedule of ", timeline.makespan);
  return out;
}

}  // namespace plait
