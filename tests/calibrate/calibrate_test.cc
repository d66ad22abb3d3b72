#include "src/calibrate/calibrate.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backends/reference/reference.h"
#include "src/calibrate/measuring.h"
#include "src/calibrate/tune.h"
#include "src/graph/builder.h"
#include "src/platform/affinity.h"
#include "src/runtime/session.h"

namespace plait {
namespace {

// A few convolutions with a branch; enough work that its operators differ.
std::shared_ptr<const Graph> MakeNetwork() {
  GraphBuilder b("small");
  TensorId x = b.Input("x", {1, 16, 16, 16});
  const auto conv = [&](const std::string& name, TensorId in, int64_t from, int64_t to) {
    std::vector<float> weights(static_cast<size_t>(from * to));
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7) / 7.0f - 0.4f;
    return b.Add(name, OpKind::kConv2D, {in, b.Constant(name + ".w", {to, 1, 1, from}, weights), kNoTensor}, Conv2DAttrs{});
  };
  const TensorId a = conv("a", x, 16, 32);
  const TensorId c = conv("c", a, 32, 32);
  const TensorId d = conv("d", a, 32, 32);  // the same as c
  b.Output(b.Add("sum", OpKind::kBinary, {c, d}, BinaryAttrs{}));
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return std::make_shared<Graph>(std::move(graph).value());
}

// Two CPU lanes of the reference backend; on the last core both, or on a core each where there are two.
LanesToMeasure MakeLanes(bool share_a_core) {
  const std::vector<int> cores = ThreadAffinity();
  LanesToMeasure lanes;
  for (int l = 0; l < 2; ++l) {
    CpuLaneConfig config;
    config.name = "cpu" + std::to_string(l);
    config.cpus = {share_a_core || l == 1 ? cores.back() : cores.front()};
    config.backends = {CreateReferenceBackend()};
    lanes.lanes.push_back(std::move(CreateCpuLane(config)).value());
    PlanningLane planning;
    planning.spec.name = config.name;
    planning.rules = &lanes.lanes.back()->rules();
    lanes.planning.push_back(planning);
  }
  return lanes;
}

CalibrationOptions Short() {
  CalibrationOptions options;
  options.min_rounds = options.max_rounds = 2;
  return options;
}

TEST(CalibrateModel, MeasuresEveryOperatorOnEveryLaneOnce) {
  const auto graph = MakeNetwork();
  const LanesToMeasure lanes = MakeLanes(false);
  SocProfile profile = EmptyProfile(lanes, "here", "0.1.0");
  CalibrationOptions options = Short();
  double last_done = 0;
  int calls = 0;
  options.progress = [&](const std::string& what, double done, double seconds_left) {
    EXPECT_FALSE(what.empty());
    EXPECT_GE(done, 0);
    EXPECT_LE(done, 1);
    EXPECT_GE(seconds_left, 0);
    last_done = done;
    ++calls;
  };
  const Result<CalibrationReport> report = CalibrateModel(graph, lanes, options, &profile);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(report->measured, 0);
  EXPECT_EQ(report->known, 0);
  EXPECT_EQ(report->rounds, 2);
  EXPECT_GT(calls, 0);
  EXPECT_GT(last_done, 0.5);
  const MeasuredLatency latency(profile, *graph);
  for (const LaneProfile& lane : profile.lanes) {
    EXPECT_EQ(lane.measurements.size(), 3u) << "c and d are one";
    for (OpId op = 0; op < graph->op_count(); ++op) {
      const Dims& shape = graph->output(graph->op(op)).shape;
      const Latency whole = latency.PartLatency(*graph, op, lane.name, Region::Whole(shape));
      ASSERT_TRUE(whole.known) << graph->op(op).name;
      EXPECT_GT(whole.us, 0);
      // Three cuts of each axis that can be cut.
      const auto& rows = lane.measurements.at(OpSignature(*graph, graph->op(op)));
      const size_t axes = SharedCuts(*graph, op, lanes.planning).size();
      EXPECT_EQ(rows.size(), 1 + 3 * axes) << graph->op(op).name;
      for (const Measurement& m : rows) {
        EXPECT_GE(m.repeats, 2);
        EXPECT_GT(m.us, 0);
      }
    }
  }
  // What is known is not measured again.
  const Result<CalibrationReport> again = CalibrateModel(graph, lanes, options, &profile);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->measured, 0);
  EXPECT_EQ(again->known, report->measured);
  EXPECT_EQ(again->rounds, 0);
}

TEST(CalibrateModel, WithoutTimeThereAreStillWholeOperators) {
  const auto graph = MakeNetwork();
  const LanesToMeasure lanes = MakeLanes(false);
  SocProfile profile = EmptyProfile(lanes, "here", "0.1.0");
  CalibrationOptions options = Short();
  options.seconds_per_lane = 0;
  ASSERT_TRUE(CalibrateModel(graph, lanes, options, &profile).ok());
  for (const LaneProfile& lane : profile.lanes) {
    ASSERT_EQ(lane.measurements.size(), 3u);
    for (const auto& [signature, rows] : lane.measurements) EXPECT_EQ(rows.size(), 1u);
  }
}

TEST(CalibrateModel, StopsWhenAsked) {
  const auto graph = MakeNetwork();
  const LanesToMeasure lanes = MakeLanes(false);
  SocProfile profile = EmptyProfile(lanes, "here", "0.1.0");
  CalibrationOptions options = Short();
  int asked = 0;
  options.stop = [&] { return ++asked > 2; };
  EXPECT_EQ(CalibrateModel(graph, lanes, options, &profile).status().code(), PLAIT_CANCELLED);
  EXPECT_FALSE(profile.lanes[0].measurements.empty()) << "what was finished is kept";
  EXPECT_EQ(CalibrateHandoffs(lanes, options, &profile).code(), PLAIT_CANCELLED);
}

TEST(CalibrateModel, RefusesAForeignProfile) {
  const auto graph = MakeNetwork();
  const LanesToMeasure lanes = MakeLanes(false);
  SocProfile profile = EmptyProfile(lanes, "here", "0.1.0");
  profile.lanes[1].name = "gpu0";
  EXPECT_EQ(CalibrateModel(graph, lanes, Short(), &profile).status().code(), PLAIT_INVALID_ARGUMENT);
  profile.lanes.pop_back();
  EXPECT_EQ(CalibrateModel(graph, lanes, Short(), &profile).status().code(), PLAIT_INVALID_ARGUMENT);
  EXPECT_EQ(CalibrateHandoffs(lanes, Short(), &profile).code(), PLAIT_INVALID_ARGUMENT);
}

TEST(CalibrateHandoffs, FillsTheProfile) {
  const LanesToMeasure lanes = MakeLanes(false);
  SocProfile profile = EmptyProfile(lanes, "here", "0.1.0");
  EXPECT_FALSE(HasHandoffs(profile));
  const Status status = CalibrateHandoffs(lanes, {}, &profile);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(HasHandoffs(profile));
  EXPECT_GT(profile.lanes[0].dispatch_us, 0);
  EXPECT_EQ(profile.handoffs[0][0].sync_us, 0);
  EXPECT_GE(profile.handoffs[0][1].sync_us, 0);
  EXPECT_EQ(profile.handoffs[0][1].us_per_byte, 0) << "CPU lanes share their memory";
}

TEST(Costs, GpuLanesTakeAndGiveTheCallersDataByHandoffs) {
  SocProfile profile;
  profile.lanes.resize(2);
  profile.lanes[0].name = "cpu0";
  profile.lanes[1].name = "gpu0";
  profile.lanes[1].kind = LaneKind::kGpu;
  profile.lanes[1].host_step_us = 1;
  profile.lanes[1].host_segment_us = 2;
  profile.handoffs = {{{}, {30, 0.5}}, {{20, 0.25}, {}}};
  const PlanningCosts costs = CostsFrom(profile, nullptr);
  EXPECT_EQ(costs.sync_us[0][1], 30);
  EXPECT_EQ(costs.us_per_byte[1][0], 0.25);
  EXPECT_EQ(costs.entry_us, (std::vector<double>{0, 30}));
  EXPECT_EQ(costs.exit_us, (std::vector<double>{0, 20}));
  std::vector<PlanningLane> lanes(2);
  lanes[0].spec.name = "gpu0";
  lanes[1].spec.name = "unknown";
  ApplyProfile(profile, &lanes);
  EXPECT_EQ(lanes[0].host_segment_us, 2);
  EXPECT_EQ(lanes[1].host_segment_us, 0);
}

std::vector<std::byte> OutputOf(const std::shared_ptr<const Graph>& graph, const Plan& plan, const LanesToMeasure& lanes) {
  Result<std::unique_ptr<Session>> session = OpenForMeasuring(graph, std::make_shared<Plan>(plan), lanes, {}, false);
  EXPECT_TRUE(session.ok()) << session.status().message();
  EXPECT_TRUE((*session)->Run().ok());
  const std::span<const std::byte> bytes = (*session)->output(0);
  return {bytes.begin(), bytes.end()};
}

TEST(TunePlan, GivesAPlanWithTheSameResults) {
  const auto graph = MakeNetwork();
  const LanesToMeasure lanes = MakeLanes(false);
  SocProfile profile = EmptyProfile(lanes, "here", "0.1.0");
  ASSERT_TRUE(CalibrateModel(graph, lanes, Short(), &profile).ok());
  TuneOptions options;
  options.max_rounds = 2;
  options.runs_per_round = 3;
  const Result<TuneResult> result = TunePlan(graph, lanes, profile, options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_GT(result->measured_us, 0);
  EXPECT_GT(result->best_single_us, 0);
  EXPECT_TRUE(result->best_single == "cpu0" || result->best_single == "cpu1");
  EXPECT_GE(result->avoided, 0);
  EXPECT_EQ(result->plan.soc, "here");
  const Plan alone = *Lower(*graph, lanes.planning, *SingleLaneSchedule(*graph, lanes.planning, 0));
  EXPECT_EQ(OutputOf(graph, result->plan, lanes), OutputOf(graph, alone, lanes)) << "one kernel, cut as its rules allow: bit for bit";
}

TEST(TunePlan, KeepsTheSingleLaneWhereTwoLanesCannotBeFaster) {
  // Both lanes have one core. Measured alone each promises half of the work in half of the time.
  const auto graph = MakeNetwork();
  const LanesToMeasure lanes = MakeLanes(true);
  SocProfile profile = EmptyProfile(lanes, "here", "0.1.0");
  ASSERT_TRUE(CalibrateModel(graph, lanes, Short(), &profile).ok());
  TuneOptions options;
  options.runs_per_round = 3;
  options.max_rounds = 2;
  const Result<TuneResult> result = TunePlan(graph, lanes, profile, options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->rounds.empty()) << "a plan over both lanes was tried";
  EXPECT_EQ(result->plan.schedule.strategy, "lane:" + result->best_single);
}

TEST(TunePlan, StopsWhenAsked) {
  const auto graph = MakeNetwork();
  const LanesToMeasure lanes = MakeLanes(false);
  SocProfile profile = EmptyProfile(lanes, "here", "0.1.0");
  ASSERT_TRUE(CalibrateModel(graph, lanes, Short(), &profile).ok());
  TuneOptions options;
  options.stop = [] { return true; };
  EXPECT_EQ(TunePlan(graph, lanes, profile, options).status().code(), PLAIT_CANCELLED);
}

}  // namespace
}  // namespace plait
