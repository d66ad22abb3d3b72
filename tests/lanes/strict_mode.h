// What strict mode sees by itself: a plan that lacks one Acquire or one Publish runs (no verifier looks at it here) and gives wrong outputs.
// PLAIT_RANDOM_PLANS sets the number of plans a network: one for every 40; without it one is tried. A program that includes this says of which networks:
// INSTANTIATE_TEST_SUITE_P(..., StrictMode, ..., NetworkName).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "src/api/lanes.h"
#include "src/api/planning.h"
#include "src/platform/affinity.h"
#include "src/zoo/zoo.h"
#include "tests/lanes/devices.h"
#include "tests/plan/without_step.h"

namespace plait {

inline constexpr double kTolerance = 1e-4;  // of the largest magnitude
inline constexpr double kCaughtShare = 0.95;
inline constexpr int kPlansPerStrictPlan = 40;

inline int PlansPerNetwork() {
  const char* plans = std::getenv("PLAIT_RANDOM_PLANS");
  return plans == nullptr ? 1 : std::max(1, std::atoi(plans) / kPlansPerStrictPlan);
}

inline Result<LaneSet> OpenStrictLanes() {
  const std::vector<int> cores = ThreadAffinity();
  LaneOptions options;
  options.clusters = {{cores.front()}};
  options.opencl_cpus = {cores.back()};
  options.strict = true;
  return OpenLanes(options);
}

using Outputs = std::vector<std::vector<float>>;

// Of one inference in a session of its own: what an earlier one left on the device must not stand in for what is missing.
inline Result<Outputs> FirstInference(const PlannedModel& model, const LaneSet& lanes) {
  SessionOptions options;
  options.bind.strict = true;
  options.timeout_us = 60e6;
  PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, OpenSession(model, lanes, options));
  std::mt19937 random(13);
  for (size_t i = 0; i < model.graph->inputs.size(); ++i) {
    const std::span<std::byte> memory = session->input(static_cast<int>(i));
    for (size_t at = 0; at < memory.size(); at += sizeof(float)) {
      const float value = static_cast<float>(random()) * 0x1p-31f - 1.0f;
      std::memcpy(memory.data() + at, &value, sizeof(value));
    }
  }
  PLAIT_RETURN_IF_ERROR(session->Run());
  Outputs outputs;
  for (size_t i = 0; i < model.graph->outputs.size(); ++i) {
    const std::span<const std::byte> memory = session->output(static_cast<int>(i));
    std::vector<float>& output = outputs.emplace_back(memory.size() / sizeof(float));
    std::memcpy(output.data(), memory.data(), memory.size());
  }
  return outputs;
}

// The largest difference, relative to the largest magnitude expected; infinite where there is a NaN.
inline double Error(const Outputs& expected, const Outputs& found) {
  double largest = 0, difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    for (size_t j = 0; j < expected[i].size(); ++j) {
      if (std::isnan(found[i][j])) return std::numeric_limits<double>::infinity();
      largest = std::max(largest, std::abs(double{expected[i][j]}));
      difference = std::max(difference, std::abs(double{found[i][j]} - expected[i][j]));
    }
  }
  return difference / largest;
}

// `good` without the n-th step of a lane. The waits of an Acquire move on, so that the Acquire itself is what is missing.
inline std::shared_ptr<const Plan> PlanWithout(const Plan& good, LaneId lane, int64_t n) {
  auto bad = std::make_shared<Plan>(good);
  bad->program = WithoutStep(good.program, lane, n);
  const std::vector<Step>& before = good.program.steps[static_cast<size_t>(lane)];
  std::vector<Step>& after = bad->program.steps[static_cast<size_t>(lane)];
  if (before[static_cast<size_t>(n)].kind == StepKind::kAcquire) {
    std::vector<Wait>& waits = after[static_cast<size_t>(n)].waits;
    for (const Wait& wait : before[static_cast<size_t>(n)].waits) waits.push_back(wait);
  }
  return bad;
}

struct Tally {
  int tried = 0, caught = 0;
};

inline void DeleteEach(const PlannedModel& good, const LaneSet& lanes, Tally* acquires, Tally* publishes) {
  const Result<Outputs> expected = FirstInference(good, lanes);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  const StepProgram& program = good.plan->program;
  for (size_t lane = 0; lane < program.steps.size(); ++lane) {
    for (size_t n = 0; n < program.steps[lane].size(); ++n) {
      const StepKind kind = program.steps[lane][n].kind;
      if (kind != StepKind::kAcquire && kind != StepKind::kPublish) continue;
      SCOPED_TRACE(testing::Message() << program.lanes[lane].name << " without step " << n << " (" << Name(kind) << ")");
      PlannedModel bad = good;
      bad.plan = PlanWithout(*good.plan, static_cast<LaneId>(lane), static_cast<int64_t>(n));
      ASSERT_EQ(VerifyProgram(*bad.graph, bad.plan->program).code(), PLAIT_CORRUPT);
      const Result<Outputs> found = FirstInference(bad, lanes);
      ASSERT_TRUE(found.ok()) << found.status().message();
      Tally* tally = kind == StepKind::kAcquire ? acquires : publishes;
      ++tally->tried;
      tally->caught += Error(*expected, *found) > kTolerance;
    }
  }
}

class StrictMode : public testing::TestWithParam<const char*> {};

TEST_P(StrictMode, CatchesDeletedHandoffsByWrongOutputs) {
  const Result<LaneSet> lanes = OpenStrictLanes();
  if (!lanes.ok() && !HasOpenClDevice()) GTEST_SKIP() << lanes.status().message();
  ASSERT_TRUE(lanes.ok()) << lanes.status().message();
  const Result<Graph> graph = BuildZooModel(GetParam());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  Tally acquires, publishes;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(PlansPerNetwork()); ++seed) {
    SCOPED_TRACE(testing::Message() << "random plan " << seed);
    const Result<PlannedModel> planned = RandomPlan(*graph, *lanes, seed);
    ASSERT_TRUE(planned.ok()) << planned.status().message();
    DeleteEach(*planned, *lanes, &acquires, &publishes);
    if (HasFatalFailure()) return;
  }
  std::printf("%s: wrong outputs for %d of %d deleted Acquires, %d of %d deleted Publishes\n", GetParam(), acquires.caught, acquires.tried,
              publishes.caught, publishes.tried);
  EXPECT_GT(acquires.tried, 0);
  EXPECT_GT(publishes.tried, 0);
  EXPECT_GE(acquires.caught, kCaughtShare * acquires.tried);
  EXPECT_GE(publishes.caught, kCaughtShare * publishes.tried);
}

inline std::string NetworkName(const testing::TestParamInfo<const char*>& network) { return network.param; }

}  // namespace plait
