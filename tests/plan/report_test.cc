#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "src/graph/builder.h"
#include "src/plan/explain.h"
#include "src/plan/predicted.h"
#include "src/plan/trace.h"
#include "tests/partition/random_graph.h"
#include "tests/plan/test_lanes.h"

namespace plait {
namespace {

// first (10 us) on cpu0; second, cut in rows: 20 us on cpu0, 50 us on the GPU; third (5 us) on cpu0.
class Report : public testing::Test {
 protected:
  void SetUp() override {
    GraphBuilder b("small \"net\"");
    const Dims shape{1, 8, 8, 16};
    TensorId t = b.Input("x", shape);
    for (const char* name : {"first", "second", "third"}) {
      t = b.Add(name, OpKind::kUnary, {t}, UnaryAttrs{UnaryKind::kTanh, {}});
    }
    b.Output(t);
    Result<Graph> graph = Place(b.Build().value());
    ASSERT_TRUE(graph.ok());
    graph_ = std::move(graph).value();
    Schedule schedule;
    schedule.lanes.resize(2);
    auto add = [&](OpId op, LaneId lane, int64_t begin, int64_t rows, double us) {
      Part part;
      part.op = op;
      part.lane = lane;
      part.region = Region::Whole(shape);
      part.region.begin[1] = begin;
      part.region.size[1] = rows;
      part.predicted_us = us;
      schedule.lanes[static_cast<size_t>(lane)].push_back(static_cast<int>(schedule.parts.size()));
      schedule.parts.push_back(part);
    };
    add(0, 0, 0, 8, 10);
    add(1, 0, 0, 4, 20);
    add(1, 1, 4, 4, 50);
    add(2, 0, 0, 8, 5);
    schedule.lower_bound_us = 50;
    schedule.strategy = "test";
    Result<Plan> plan = Lower(graph_, Lanes(LaneSet::kCpuGpu), schedule);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    plan_ = std::move(plan).value();
  }
  Graph graph_;
  Plan plan_;
};

TEST_F(Report, PredictedTimesFollowOrderAndWaits) {
  const auto timings = PredictedTimings(plan_.program);
  ASSERT_TRUE(timings.ok());
  EXPECT_EQ((*timings)[0][1].end_ns, 30000);
  EXPECT_EQ((*timings)[1].back().end_ns, 60000);
  EXPECT_EQ((*timings)[0][2].start_ns, 60000);
  EXPECT_EQ((*timings)[0][2].end_ns, 65000);
}

TEST_F(Report, ExplanationTellsPathUtilisationAndHandoffs) {
  const std::string text = ExplainPlan(graph_, plan_);
  for (const char* expected : {"predicted latency 65.0 us, lower bound 50.0 us, gap 30.0 %", "4 parts of 3 operators",
                               "cpu0: 3 parts, busy 35.0 us (53.8 %)",
                               "gpu0: 1 parts, busy 50.0 us (76.9 %)", "critical path, 3 parts", "rows 4:8 of 8",
                               "cpu0 idles 30.0 us before third for gpu0's second", "lane gpu0", "acquire", "2048 bytes in 1 view"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  }
}

TEST_F(Report, TraceHasRowsSlicesAndArrows) {
  const auto timings = PredictedTimings(plan_.program);
  ASSERT_TRUE(timings.ok());
  const std::vector<std::span<const StepTiming>> spans((*timings).begin(), (*timings).end());
  const nlohmann::json trace = nlohmann::json::parse(TraceJson(graph_, plan_.program, spans));
  std::map<std::string, int> phases;
  std::map<int64_t, std::vector<nlohmann::json>> arrows;
  for (const auto& event : trace.at("traceEvents")) {
    ++phases[event.at("ph").get<std::string>()];
    if (event.contains("id")) arrows[event.at("id").get<int64_t>()].push_back(event);
  }
  EXPECT_EQ(phases["X"], 4) << "bookkeeping steps took no time";
  EXPECT_EQ(phases["M"], 5);
  ASSERT_EQ(arrows.size(), 2u);
  for (const auto& [id, ends] : arrows) {
    ASSERT_EQ(ends.size(), 2u);
    EXPECT_NE(ends[0].at("tid"), ends[1].at("tid"));
    EXPECT_LE(ends[0].at("ts").get<double>(), ends[1].at("ts").get<double>());
  }
  // Without timings there are rows alone.
  EXPECT_EQ(nlohmann::json::parse(TraceJson(graph_, plan_.program, {})).at("traceEvents").size(), 5u);
}

TEST(RandomReports, NeverFail) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Graph graph = Place(MakeRandomGraph(seed, {.channel_multiple = 16})).value();
    const std::vector<PlanningLane> lanes = Lanes(kAllLaneSets[seed % 4]);
    const Plan plan = Lower(graph, lanes, RandomSchedule(graph, lanes, seed).value()).value();
    EXPECT_NE(ExplainPlan(graph, plan).find("critical path"), std::string::npos);
    const auto timings = PredictedTimings(plan.program).value();
    const std::vector<std::span<const StepTiming>> spans(timings.begin(), timings.end());
    EXPECT_TRUE(nlohmann::json::accept(TraceJson(graph, plan.program, spans)));
  }
}

}  // namespace
}  // namespace plait
