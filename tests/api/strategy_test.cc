// Strategies of the application, annotations, and schedules that must be refused.
#include "plait/strategy.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "tests/api/sample.h"

namespace plait::testing {
namespace {

using Strategy = std::function<int32_t(const plait_problem*, plait_schedule*)>;

int32_t CallStrategy(void* user, const plait_problem* problem, plait_schedule* schedule) { return (*static_cast<Strategy*>(user))(problem, schedule); }

class CStrategy : public Sample {
 protected:
  plait_status Plan(Strategy strategy, std::vector<plait_annotation> annotations = {}) {
    plait_plan_options options = PLAIT_PLAN_OPTIONS_INIT;
    options.strategy = CallStrategy;
    options.strategy_user = &strategy;
    options.strategy_name = "test";
    options.calibration_seconds_per_lane = 0;
    return Make(options, annotations);
  }
  plait_status Named(const char* name, std::vector<plait_annotation> annotations) {
    plait_plan_options options = PLAIT_PLAN_OPTIONS_INIT;
    options.strategy_name = name;
    options.tune = 0;
    return Make(options, annotations);
  }
  // In place of the plan made before.
  plait_status Make(plait_plan_options options, const std::vector<plait_annotation>& annotations) {
    options.annotations = annotations.data();
    options.annotation_count = annotations.size();
    EXPECT_PLAIT_OK(plait_plan_destroy(plan));
    plan = nullptr;
    return plait_plan_make(model, lanes, &options, &plan);
  }
  bool RunsOn(const std::string& lane, const std::string& op) {
    char* json = nullptr;
    EXPECT_PLAIT_OK(plait_plan_explain_json(plan, &json));
    const nlohmann::json plan_json = nlohmann::json::parse(json, nullptr, false);
    plait_string_free(json);
    for (const auto& row : plan_json["lanes"]) {
      for (const auto& step : row["steps"]) {
        if (row["name"] == lane && step.value("operator", "") == op) return true;
      }
    }
    return false;
  }
  std::vector<float> Output() {
    EXPECT_PLAIT_OK(plait_session_destroy(session));
    session = nullptr;
    EXPECT_PLAIT_OK(plait_session_create(plan, nullptr, &session));
    return RunOn(session, Wave(kInputs, 0.1f));
  }
};

size_t Operators(const plait_problem* problem) {
  size_t count = 0;
  EXPECT_PLAIT_OK(plait_problem_operator_count(problem, &count));
  return count;
}

size_t Lanes(const plait_problem* problem) {
  size_t count = 0;
  EXPECT_PLAIT_OK(plait_problem_lane_count(problem, &count));
  return count;
}

// Every operator whole, lanes in turn.
int32_t InTurns(const plait_problem* problem, plait_schedule* schedule) {
  for (size_t op = 0; op < Operators(problem); ++op) {
    if (plait_schedule_add(schedule, op, op % Lanes(problem), -1, 0, 0) != PLAIT_OK) return 1;
  }
  return 0;
}

// Every operator cut in two where both lanes can, along the first axis that allows it.
int32_t InHalves(const plait_problem* problem, plait_schedule* schedule) {
  for (size_t op = 0; op < Operators(problem); ++op) {
    plait_operator_info info = PLAIT_OPERATOR_INFO_INIT;
    EXPECT_PLAIT_OK(plait_problem_operator(problem, op, &info));
    bool is_cut = false;
    for (int32_t axis = 0; axis < info.rank && !is_cut; ++axis) {
      plait_cut cut = PLAIT_CUT_INIT;
      EXPECT_PLAIT_OK(plait_problem_cut(problem, op, 0, axis, &cut));
      if (cut.alignment == 0) continue;
      const int64_t half = cut.extent / 2 / cut.alignment * cut.alignment;
      if (half < cut.minimum || cut.extent - half < cut.minimum) continue;
      EXPECT_PLAIT_OK(plait_schedule_add(schedule, op, 0, axis, 0, half));
      EXPECT_PLAIT_OK(plait_schedule_add(schedule, op, Lanes(problem) - 1, axis, half, cut.extent - half));
      is_cut = true;
    }
    if (!is_cut) {
      EXPECT_PLAIT_OK(plait_schedule_add(schedule, op, 0, -1, 0, 0));
    }
  }
  return 0;
}

TEST_F(CStrategy, TwoStrategiesGiveTheSameResults) {
  MakePlan("lane:cpu0");
  const std::vector<float> expected = Output();
  ASSERT_PLAIT_OK(Plan(InTurns));
  EXPECT_EQ(Output(), expected);
  plait_plan_info info = PLAIT_PLAN_INFO_INIT;
  ASSERT_PLAIT_OK(plait_plan_get_info(plan, &info));
  EXPECT_STREQ(info.strategy, "test");
  EXPECT_EQ(info.part_count, 3u);
  ASSERT_PLAIT_OK(Plan(InHalves));
  ASSERT_PLAIT_OK(plait_plan_get_info(plan, &info));
  EXPECT_GT(info.part_count, 3u);
  EXPECT_EQ(Output(), expected);
}

TEST_F(CStrategy, SeesTheProblem) {
  ASSERT_PLAIT_OK(Plan([](const plait_problem* problem, plait_schedule* schedule) {
    EXPECT_EQ(Operators(problem), 3u);
    plait_operator_info info = PLAIT_OPERATOR_INFO_INIT;
    EXPECT_PLAIT_OK(plait_problem_operator(problem, 2, &info));
    EXPECT_STREQ(info.name, "sum");
    EXPECT_STREQ(info.kind, "Binary");
    EXPECT_EQ(info.rank, 4);
    EXPECT_EQ(info.output_bytes, kOutputs * sizeof(float));
    EXPECT_EQ(std::vector<uint32_t>(info.producers, info.producers + info.producer_count), (std::vector<uint32_t>{0, 1}));
    EXPECT_EQ(plait_problem_operator(problem, 3, &info), PLAIT_NOT_FOUND);
    plait_lane_info lane = PLAIT_LANE_INFO_INIT;
    EXPECT_PLAIT_OK(plait_problem_lane(problem, 0, &lane));
    EXPECT_STREQ(lane.name, "cpu0");
    int32_t can = 0;
    EXPECT_PLAIT_OK(plait_problem_can_run(problem, 0, 0, &can));
    EXPECT_EQ(can, 1);
    plait_cut cut = PLAIT_CUT_INIT;
    EXPECT_EQ(plait_problem_cut(problem, 0, 0, 4, &cut), PLAIT_NOT_FOUND);
    EXPECT_PLAIT_OK(plait_problem_cut(problem, 0, 0, 1, &cut));
    EXPECT_EQ(cut.extent, 8);
    double us = -1;
    EXPECT_REFUSED(plait_problem_cost(problem, 0, 0, -1, 0, 0, &us), PLAIT_NOT_FOUND, "nothing is known");
    EXPECT_PLAIT_OK(plait_problem_handoff(problem, 0, 0, 100, &us));
    EXPECT_EQ(us, 0);
    return InTurns(problem, schedule);
  }));
  plait_plan_info info = PLAIT_PLAN_INFO_INIT;
  ASSERT_PLAIT_OK(plait_plan_get_info(plan, &info));
  EXPECT_EQ(info.predicted_us, 0);
}

TEST_F(CStrategy, CostsAreThereOnceMeasured) {
  double total_us = 0, first_us = 0;
  Strategy strategy = [&](const plait_problem* problem, plait_schedule* schedule) {
    for (size_t op = 0; op < Operators(problem); ++op) {
      double us = 0;
      EXPECT_PLAIT_OK(plait_problem_cost(problem, op, 0, -1, 0, 0, &us));
      EXPECT_GT(us, 0);
      total_us += us;
      if (op == 0) first_us = us;
      EXPECT_PLAIT_OK(plait_schedule_add(schedule, op, 0, -1, 0, 0));
    }
    return 0;
  };
  plait_plan_options options = PLAIT_PLAN_OPTIONS_INIT;
  options.strategy = CallStrategy;
  options.strategy_user = &strategy;
  ASSERT_PLAIT_OK(plait_plan_make(model, lanes, &options, &plan));
  plait_plan_info info = PLAIT_PLAN_INFO_INIT;
  ASSERT_PLAIT_OK(plait_plan_get_info(plan, &info));
  EXPECT_STREQ(info.strategy, "custom");
  EXPECT_GT(first_us, 0);
  EXPECT_NEAR(info.predicted_us, total_us, 0.01 * total_us + 0.1);
}

TEST_F(CStrategy, WhatGoesWrongInsideIsReportedAndNothingEscapes) {
  EXPECT_REFUSED(Plan([](const plait_problem*, plait_schedule*) { return 42; }), PLAIT_CANCELLED, "returned 42");
  EXPECT_REFUSED(Plan([](const plait_problem*, plait_schedule*) -> int32_t { throw std::runtime_error("boom"); }), PLAIT_INTERNAL, "boom");
  EXPECT_REFUSED(Plan([](const plait_problem*, plait_schedule*) -> int32_t { throw 7; }), PLAIT_INTERNAL, "exception");
  EXPECT_REFUSED(Plan([](const plait_problem*, plait_schedule*) { return 0; }), PLAIT_INVALID_ARGUMENT, "first");
  // A mistake that the strategy ignores spoils the schedule all the same.
  EXPECT_REFUSED(Plan([](const plait_problem* p, plait_schedule* s) {
                   EXPECT_EQ(plait_schedule_add(s, 0, 99, -1, 0, 0), PLAIT_NOT_FOUND);
                   return InTurns(p, s);
                 }),
                 PLAIT_NOT_FOUND, "lane 99");
  EXPECT_REFUSED(Plan([](const plait_problem* p, plait_schedule* s) {
                   for (plait_status status = PLAIT_OK; status == PLAIT_OK;) status = plait_schedule_add(s, 0, 0, -1, 0, 0);
                   return InTurns(p, s);
                 }),
                 PLAIT_INVALID_ARGUMENT, "parts an operator");
  EXPECT_EQ(plan, nullptr);
}

TEST_F(CStrategy, ProblemsAndSchedulesAreOfNoUseElsewhere) {
  const plait_problem* kept_problem = nullptr;
  plait_schedule* kept_schedule = nullptr;
  ASSERT_PLAIT_OK(Plan([&](const plait_problem* p, plait_schedule* s) {
    kept_problem = p;
    kept_schedule = s;
    return InTurns(p, s);
  }));
  size_t count = 0;
  double us = 0;
  int32_t can = 0;
  plait_cut cut = PLAIT_CUT_INIT;
  plait_lane_info lane = PLAIT_LANE_INFO_INIT;
  plait_operator_info info = PLAIT_OPERATOR_INFO_INIT;
  for (const plait_problem* problem : {kept_problem, static_cast<const plait_problem*>(nullptr)}) {
    EXPECT_EQ(plait_problem_operator_count(problem, &count), PLAIT_INVALID_ARGUMENT);
    EXPECT_EQ(plait_problem_lane_count(problem, &count), PLAIT_INVALID_ARGUMENT);
    EXPECT_EQ(plait_problem_lane(problem, 0, &lane), PLAIT_INVALID_ARGUMENT);
    EXPECT_EQ(plait_problem_operator(problem, 0, &info), PLAIT_INVALID_ARGUMENT);
    EXPECT_EQ(plait_problem_can_run(problem, 0, 0, &can), PLAIT_INVALID_ARGUMENT);
    EXPECT_EQ(plait_problem_cut(problem, 0, 0, 0, &cut), PLAIT_INVALID_ARGUMENT);
    EXPECT_EQ(plait_problem_cost(problem, 0, 0, -1, 0, 0, &us), PLAIT_INVALID_ARGUMENT);
    EXPECT_EQ(plait_problem_handoff(problem, 0, 0, 0, &us), PLAIT_INVALID_ARGUMENT);
  }
  EXPECT_EQ(plait_schedule_add(kept_schedule, 0, 0, -1, 0, 0), PLAIT_INVALID_ARGUMENT);
  EXPECT_EQ(plait_schedule_add(nullptr, 0, 0, -1, 0, 0), PLAIT_INVALID_ARGUMENT);
}

TEST_F(CStrategy, AnnotationsKeepWhole) {
  ASSERT_PLAIT_OK(Named("random:1", {{"*", nullptr, nullptr, 1, 0}}));
  plait_plan_info info = PLAIT_PLAN_INFO_INIT;
  ASSERT_PLAIT_OK(plait_plan_get_info(plan, &info));
  EXPECT_EQ(info.part_count, 3u);
}

TEST_F(CStrategy, AnnotationsPinAndForbid) {
  for (const char* strategy : {"random:1", "random:2", "random:3", "search"}) {
    SCOPED_TRACE(strategy);
    ASSERT_PLAIT_OK(Named(strategy, {{"first", "cpu1", nullptr, 1, 0}, {"se*d", nullptr, "cpu1", 0, 0}}));
    EXPECT_FALSE(RunsOn("cpu0", "first"));
    EXPECT_TRUE(RunsOn("cpu1", "first"));
    EXPECT_TRUE(RunsOn("cpu0", "second"));
    EXPECT_FALSE(RunsOn("cpu1", "second"));
    Output();
  }
  EXPECT_REFUSED(Named("lane:cpu0", {{"second", "cpu1", nullptr, 0, 0}}), PLAIT_UNSUPPORTED, "annotations keep it off this lane");
  EXPECT_REFUSED(Named("search", {{"second", "cpu1", "cpu1", 0, 0}}), PLAIT_UNSUPPORTED, "'second'");
  EXPECT_REFUSED(Named("search", {{"third", "cpu1", nullptr, 0, 0}}), PLAIT_NOT_FOUND, "'third'");
  EXPECT_REFUSED(Named("search", {{"second", "cpu1,tpu", nullptr, 0, 0}}), PLAIT_NOT_FOUND, "'tpu'");
  EXPECT_REFUSED(Named("search", {{nullptr, "cpu1", nullptr, 0, 0}}), PLAIT_INVALID_ARGUMENT, "operators is NULL");
  EXPECT_REFUSED(Plan(InTurns, {{"*", "cpu0", nullptr, 0, 0}}), PLAIT_INVALID_ARGUMENT, "'second' on lane 'cpu1'");
}

// A legal schedule of parts as a strategy would add them, then broken in one way.
struct Added {
  size_t op, lane;
  int32_t axis;
  int64_t begin, count;
};

TEST_F(CStrategy, IllegalSchedulesAreRefusedEachWithItsReason) {
  constexpr uint64_t kSeed = 20261201;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    const int fault = static_cast<int>(pick(5));
    std::string expected, also;
    const plait_status status = Plan([&](const plait_problem* problem, plait_schedule* schedule) {
      std::vector<Added> parts;
      for (size_t op = 0; op < 3; ++op) {
        const int64_t at = static_cast<int64_t>(1 + pick(7));  // rows
        parts.push_back({op, pick(lane_count), 1, 0, at});
        parts.push_back({op, pick(lane_count), 1, at, 8 - at});
      }
      const char* const names[] = {"first", "second", "sum"};
      const size_t at = pick(parts.size());
      Added& part = parts[at];
      expected = names[part.op];
      if (fault == 0) {  // a hole
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at));
        also = "tile";
      } else if (fault == 1) {  // computed twice
        parts.push_back(part);
        also = "tile";
      } else if (fault == 2) {  // past the end
        part.count += 8;
        also = "has 8";
      } else if (fault == 3) {  // no such operator
        part.op = 3 + pick(1000);
        expected = "operator " + std::to_string(part.op);
        also = "there are 3";
      } else {  // a consumer before its producer on one lane
        for (Added& p : parts) p.lane = 0;
        std::reverse(parts.begin(), parts.end());
        expected = "'";
        also = "wait";
      }
      for (const Added& p : parts) static_cast<void>(plait_schedule_add(schedule, p.op, p.lane, p.axis, p.begin, p.count));
      static_cast<void>(problem);
      return 0;
    });
    EXPECT_NE(status, PLAIT_OK) << "round " << round << ", fault " << fault;
    const std::string message = plait_last_error();
    EXPECT_NE(message.find(expected), std::string::npos) << fault << ": " << message;
    EXPECT_NE(message.find(also), std::string::npos) << fault << ": " << message;
    refused += status != PLAIT_OK;
  }
  EXPECT_EQ(refused, 1000);
}

// Numbers from anywhere: whatever the strategy makes of the answers, the schedule is refused and nothing worse happens.
TEST_F(CStrategy, NonsenseIsRefused) {
  constexpr uint64_t kSeed = 8'200'317;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
  const auto number = [&]() -> int64_t {
    const int64_t odd[] = {kLow, kLow + 1, -1, 0, 1, 7, 8, kHigh / 2, kHigh - 1, kHigh};
    const uint64_t pick = random();
    return pick % 4 == 0 ? static_cast<int64_t>(random()) : odd[pick / 4 % std::size(odd)];
  };
  for (int round = 0; round < 300; ++round) {
    const plait_status status = Plan([&](const plait_problem* problem, plait_schedule* schedule) {
      // An operator is named that does not exist, or computed once more than it should: no such schedule is legal.
      for (int i = 0; i < 5; ++i) {
        const auto op = static_cast<size_t>(number()), lane = static_cast<size_t>(number());
        const auto axis = static_cast<int32_t>(number());
        double us = 0;
        plait_cut cut = PLAIT_CUT_INIT;
        static_cast<void>(plait_problem_cost(problem, op, lane, axis, number(), number(), &us));
        static_cast<void>(plait_problem_cut(problem, op, lane, axis, &cut));
        static_cast<void>(plait_problem_handoff(problem, op, lane, static_cast<uint64_t>(number()), &us));
        static_cast<void>(plait_schedule_add(schedule, op, lane, axis, number(), number()));
      }
      static_cast<void>(plait_schedule_add(schedule, 0, 0, 1, number(), number()));
      static_cast<void>(InTurns(problem, schedule));
      return 0;
    });
    EXPECT_TRUE(status == PLAIT_INVALID_ARGUMENT || status == PLAIT_NOT_FOUND) << "round " << round << ": " << plait_status_name(status);
    EXPECT_STRNE(plait_last_error(), "");
    EXPECT_EQ(plan, nullptr);
  }
}

}  // namespace
}  // namespace plait::testing
