#include "src/schedule/chain.h"

#include <gtest/gtest.h>

#include "src/schedule/baselines.h"
#include "src/schedule/search.h"
#include "src/schedule/timeline.h"
#include "tests/schedule/random_problem.h"

namespace plait {
namespace {

// A random problem in which every operator also reads the one before it: residual blocks, dense blocks, plain chains.
Problem RandomChain(Random* random, const RandomProblemOptions& options) {
  Problem p = RandomProblem(random, options);
  for (size_t o = 1; o < p.ops.size(); ++o) {
    auto& inputs = p.ops[o].inputs;
    const int before = static_cast<int>(o) - 1;
    if (std::none_of(inputs.begin(), inputs.end(), [&](const ProblemEdge& e) { return e.producer == before; })) inputs.push_back({before, {}});
  }
  return p;
}

// The slowest of the simple strategies.
SequencePlan Slow(const Net& net) {
  SequencePlan worst;
  worst.makespan = 0;
  for (const Baseline& b : Baselines(net)) {
    if (b.plan.makespan < kInfinite && b.plan.makespan > worst.makespan) worst = b.plan;
  }
  return worst;
}

TEST(Chain, FindsTheOptimumOfSmallChains) {
  int better = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed * 31);
    const bool three = seed % 3 == 0;
    const Problem p = RandomChain(&random, {three ? 3 : 2, three ? 4 : 6, three ? 3 : 4});
    const Net net(p);
    ASSERT_TRUE(HasUniqueOrder(net));
    const SequencePlan start = Slow(net);
    const ChainSolution exact = SolveChain(net, start, int64_t{1} << 40);
    ASSERT_TRUE(exact.optimal);
    const auto timeline = Evaluate(p, ToAssignment(net, exact.plan));
    ASSERT_TRUE(timeline.ok()) << timeline.status().message();
    EXPECT_EQ(timeline->makespan, exact.plan.makespan);
    // Brute force looks for something faster only.
    EXPECT_EQ(BruteForce(p).Run(exact.plan.makespan - 1), exact.plan.makespan);
    better += exact.plan.makespan < start.makespan;
  }
  EXPECT_GT(better, 40);
}

TEST(Chain, TheSearchProvesItsChainsAndIsNeverBetterThanTheirOptimum) {
  int proven = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Problem p = RandomChain(&random, {4, 30, 8});
    const Net net(p);
    const ChainSolution exact = SolveChain(net, Slow(net), int64_t{1} << 24);
    if (!exact.optimal) continue;
    for (Effort effort : {Effort::kFast, Effort::kDefault}) {
      SearchOptions options;
      options.effort = effort;
      options.seed = seed;
      const auto solution = Solve(p, options);
      ASSERT_TRUE(solution.ok());
      EXPECT_GE(solution->assignment.makespan, exact.plan.makespan);
      EXPECT_TRUE(!solution->optimal || solution->assignment.makespan == exact.plan.makespan);
      proven += effort == Effort::kDefault && solution->optimal;
    }
  }
  EXPECT_GT(proven, 50);
}

TEST(Chain, StopsAtItsLimit) {
  Random random(4);
  Problem p;
  while (p.lanes.size() < 3 || p.ops.size() < 15) p = RandomChain(&random, {4, 30, 8});
  const Net net(p);
  const SequencePlan start = Slow(net);
  const ChainSolution stopped = SolveChain(net, start, 1);
  EXPECT_FALSE(stopped.optimal);
  EXPECT_EQ(stopped.plan.makespan, start.makespan);
}

TEST(Chain, GraphsWithMoreThanOneOrderAreNotChains) {
  Random random(2);
  Problem p = RandomChain(&random, {2, 12, 4});
  p.ops.resize(1);
  p.ops.push_back(p.ops[0]);
  EXPECT_FALSE(HasUniqueOrder(Net(p)));
  p.ops[1].inputs = {{0, {}}};
  EXPECT_TRUE(HasUniqueOrder(Net(p)));
}

}  // namespace
}  // namespace plait
