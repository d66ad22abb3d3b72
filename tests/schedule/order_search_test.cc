#include "src/schedule/order_search.h"

#include <gtest/gtest.h>

#include "src/schedule/baselines.h"
#include "src/schedule/timeline.h"
#include "tests/schedule/random_problem.h"

namespace plait {
namespace {

// The exact evaluator's makespan of a plan; -1 if it is not legal.
Tick Exact(const Net& net, const SequencePlan& plan) {
  const auto timeline = Evaluate(*net.problem, ToAssignment(net, plan));
  EXPECT_TRUE(timeline.ok()) << timeline.status().message();
  return timeline.ok() ? timeline->makespan : -1;
}

// After every step of the search its price is the evaluator's.
void ExpectExact(const Problem& problem, uint64_t seed) {
  const Net net(problem);
  for (const Baseline& baseline : Baselines(net)) {
    if (baseline.plan.makespan >= kInfinite) continue;
    SCOPED_TRACE(baseline.name);
    ASSERT_EQ(Exact(net, baseline.plan), baseline.plan.makespan);
    WithLanes(net.lanes, [&](auto lanes) {
      OrderSearch<lanes()> search(net, baseline.plan, 4);
      Random random(seed);
      search.Passes(2);
      EXPECT_EQ(Exact(net, search.plan()), search.plan().makespan);
      for (bool ahead : {true, false}) {
        search.Sweep(ahead, 6, 3, int64_t{1} << 40, &random);
        EXPECT_EQ(Exact(net, search.plan()), search.plan().makespan);
      }
      return 0;
    });
  }
}

TEST(OrderSearch, ItsPriceIsTheEvaluatorsWhereWholeProducersAreRead) {
  for (uint64_t seed = 1; seed <= 150 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    ExpectExact(RandomProblem(&random, {}), seed);
  }
}

TEST(OrderSearch, ItsPriceIsTheEvaluatorsWhereRegionsAreRead) {
  for (uint64_t seed = 1; seed <= 200 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RandomProblemOptions options;
    options.by_region = true;
    options.most_lanes = 4;
    options.most_ops = 16;
    options.most_units = seed % 4 == 0 ? 16 : 6;
    const Problem problem = RandomProblem(&random, options);
    ASSERT_TRUE(ValidateProblem(problem).ok()) << ValidateProblem(problem).message();
    ExpectExact(problem, seed);
  }
}

}  // namespace
}  // namespace plait
