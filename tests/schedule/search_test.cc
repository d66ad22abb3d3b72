#include "src/schedule/search.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/schedule/bounds.h"
#include "src/schedule/timeline.h"
#include "tests/schedule/random_problem.h"

namespace plait {
namespace {

TEST(Timeline, AgreesWithTheDefinitionOnRandomAssignments) {
  int deadlocks = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RandomProblemOptions options;
    options.by_region = seed % 4 < 2;
    const Problem p = RandomProblem(&random, options);
    const Assignment a = RandomAssignment(p, &random, seed % 2 == 0);
    const Tick expected = SlowMakespan(p, a);
    const auto timeline = Evaluate(p, a);
    ASSERT_EQ(timeline.ok(), expected >= 0) << timeline.status().message();
    deadlocks += expected < 0;
    if (expected >= 0) {
      ASSERT_EQ(timeline->makespan, expected);
    }
  }
  EXPECT_GT(deadlocks, 20);
}

TEST(Solve, HoldsItsPromisesOnRandomProblems) {
  for (uint64_t seed = 1; seed <= 1200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RandomProblemOptions shape;
    shape.by_region = seed % 3 == 0;
    const Problem p = RandomProblem(&random, shape);
    SearchOptions options;
    options.evaluations = 1500;
    options.seed = seed;
    const auto solution = Solve(p, options);
    ASSERT_TRUE(solution.ok()) << solution.status().message();
    ASSERT_EQ(SlowMakespan(p, solution->assignment), solution->assignment.makespan);
    for (const auto& baseline : solution->baselines) EXPECT_LE(solution->assignment.makespan, baseline.makespan) << baseline.name;
    const Tick bound = LowerBound(p);
    EXPECT_LE(bound, solution->assignment.makespan);
    const Tick known = LowerBound(p, solution->assignment.makespan);
    EXPECT_LE(known, solution->assignment.makespan);
    EXPECT_GT(known, 0);
  }
}

TEST(Solve, HighEffortIsOptimalOnSmallProblems) {
  int cases = 0, optimal = 0;
  for (uint64_t seed = 1; seed <= 260; ++seed) {
    Random random(seed * 7919);
    RandomProblemOptions small;
    small.most_lanes = seed % 3 == 0 ? 3 : 2;
    small.most_ops = seed % 3 == 0 ? 4 : 5;
    small.most_units = seed % 3 == 0 ? 2 : 3;
    const Problem p = RandomProblem(&random, small);
    SearchOptions options;
    options.effort = Effort::kHigh;
    options.evaluations = 100000;
    const auto solution = Solve(p, options);
    ASSERT_TRUE(solution.ok()) << solution.status().message();
    const Tick optimum = BruteForce(p).Run(solution->assignment.makespan);
    ++cases;
    optimal += solution->assignment.makespan <= optimum;
    if (solution->assignment.makespan > optimum) std::printf("seed %llu: %lld, optimum %lld\n", static_cast<unsigned long long>(seed), static_cast<long long>(solution->assignment.makespan), static_cast<long long>(optimum));
    EXPECT_LE(LowerBound(p), optimum) << seed;
    EXPECT_LE(LowerBound(p, solution->assignment.makespan), optimum) << seed;
  }
  EXPECT_GE(cases, 200);
  EXPECT_GE(optimal, cases * 0.995);
}

TEST(Solve, IsDeterministic) {
  Random random(5);
  const Problem p = RandomProblem(&random, {4, 40, 8});
  SearchOptions options;
  options.evaluations = 20000;
  const auto a = Solve(p, options), b = Solve(p, options);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->assignment.order, b->assignment.order);
  EXPECT_EQ(a->evaluations, b->evaluations);
}

TEST(Solve, StopsWhenAsked) {
  Random random(9);
  const Problem p = RandomProblem(&random, {4, 40, 8});
  SearchOptions options;
  options.evaluations = int64_t{1} << 60;
  int asked = 0;
  options.stop = [&] { return ++asked > 3; };
  const auto solution = Solve(p, options);
  ASSERT_TRUE(solution.ok());
  EXPECT_GT(asked, 3);
}

Problem Chain(int n, int lanes) {
  Problem p;
  p.name = "chain";
  for (int d = 0; d < lanes; ++d) {
    p.lanes.push_back({"lane" + std::to_string(d), false});
    p.entry.push_back(0);
    p.exit.push_back(0);
    p.sync.push_back(std::vector<Tick>(static_cast<size_t>(lanes), 50));
    p.sync.back()[static_cast<size_t>(d)] = 0;
    p.ps_per_byte.push_back(std::vector<int64_t>(static_cast<size_t>(lanes), 0));
  }
  p.ops.resize(static_cast<size_t>(n));
  for (int o = 0; o < n; ++o) {
    ProblemOp& op = p.ops[static_cast<size_t>(o)];
    op.modes.emplace_back();
    for (int d = 0; d < lanes; ++d) op.modes[0].cost.push_back(10 + (o + d) % 3);
    if (o > 0) op.inputs.push_back({o - 1, {}});
  }
  return p;
}

TEST(Solve, AMillionOperatorsInAChainDoNotOverflowTheStack) {
  const auto solution = Solve(Chain(1000000, 2), {});
  ASSERT_TRUE(solution.ok()) << solution.status().message();
  EXPECT_LE(solution->assignment.makespan, 11 * 1000000 + 10);
}

TEST(Solve, TenThousandOperatorsAreSearched) {
  Random random(3);
  Problem p = Chain(10000, 3);
  for (size_t o = 20; o < p.ops.size(); ++o) p.ops[o].inputs = {{static_cast<int>(o) - 1 - static_cast<int>(random.Below(16)), {}}};
  const auto solution = Solve(p, {});
  ASSERT_TRUE(solution.ok()) << solution.status().message();
  EXPECT_GT(solution->evaluations, 10000);
  for (const auto& baseline : solution->baselines) EXPECT_LE(solution->assignment.makespan, baseline.makespan) << baseline.name;
}

TEST(Solve, RefusesProblemsThatAreNotValid) {
  Problem p = Chain(3, 2);
  p.ops[1].inputs[0].producer = 2;
  EXPECT_FALSE(Solve(p, {}).ok());
  p = Chain(3, 2);
  p.ops[1].modes[0].cost.assign(2, kForbidden);
  EXPECT_FALSE(Solve(p, {}).ok());
  p = Chain(3, 2);
  p.lanes.resize(1);
  EXPECT_FALSE(Solve(p, {}).ok());
}

TEST(Solve, AnEmptyProblemHasAnEmptySolution) {
  Problem p = Chain(1, 2);
  p.ops.clear();
  const auto solution = Solve(p, {});
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(solution->assignment.makespan, 0);
}

}  // namespace
}  // namespace plait
