#include <gtest/gtest.h>

#include "src/calibrate/corrected_latency.h"
#include "src/calibrate/handoff_gaps.h"
#include "src/calibrate/measuring.h"
#include "src/calibrate/statistics.h"
#include "src/graph/builder.h"

namespace plait {
namespace {

TEST(Statistics, QuantilesAndIntervals) {
  EXPECT_EQ(MedianOf({}), 0);
  EXPECT_EQ(MedianOf({3}), 3);
  EXPECT_EQ(MedianOf({4, 1, 2}), 2);
  EXPECT_EQ(MedianOf({1, 2, 3, 4}), 2.5);
  EXPECT_EQ(SpreadOf({1, 2, 3, 4, 5}), 1.0 / 3);
  std::vector<double> samples;
  for (int i = 0; i < 101; ++i) samples.push_back(i);
  const MedianBounds bounds = MedianInterval(samples);
  EXPECT_LT(bounds.low, 50);
  EXPECT_GT(bounds.low, 35);
  EXPECT_GT(bounds.high, 50);
  EXPECT_LT(bounds.high, 65);
  EXPECT_EQ(MedianInterval({1, 2, 3}).high, 3) << "few samples say little";
}

Graph TwoConvs() {
  GraphBuilder b("g");
  const TensorId x = b.Input("x", {1, 8, 8, 16});
  const TensorId w = b.Constant("w", {64, 1, 1, 16}, std::vector<float>(64 * 16, 0.5f));
  const TensorId conv = b.Add("conv", OpKind::kConv2D, {x, w, kNoTensor}, Conv2DAttrs{});
  b.Output(b.Add("relu", OpKind::kUnary, {conv}, UnaryAttrs{UnaryKind::kTanh, {}}));
  return std::move(b.Build()).value();
}

// 100 us an operator, in proportion for cuts.
class Proportional final : public LatencySource {
 public:
  Latency PartLatency(const Graph& graph, OpId op, const std::string& lane, const Region& region) const override {
    if (lane == "unknown") return {};
    const double whole = static_cast<double>(graph.output(graph.op(op)).shape.Count());
    return {100.0 * static_cast<double>(region.Count()) / whole, 0.1, true};
  }
};

double Us(const LatencySource& source, const Graph& graph, OpId op, int axis, int64_t extent) {
  Region region = Region::Whole(graph.output(graph.op(op)).shape);
  if (axis >= 0) region.size[axis] = extent;
  return source.PartLatency(graph, op, "cpu0", region).us;
}

TEST(CorrectedLatency, MeasuredPartsTeachTheirNeighbours) {
  const Graph graph = TwoConvs();
  const Proportional base;
  CorrectedLatency corrected(base, graph);
  EXPECT_EQ(Us(corrected, graph, 0, 3, 32), 50) << "nothing learned";
  corrected.Learn(0, "cpu0", {3, 32}, 75);
  corrected.Learn(0, "cpu0", {1, 4}, 60);
  corrected.Settle();
  EXPECT_EQ(Us(corrected, graph, 0, 3, 32), 75) << "measured";
  EXPECT_EQ(Us(corrected, graph, 0, 1, 4), 60) << "measured";
  EXPECT_DOUBLE_EQ(Us(corrected, graph, 0, 3, 16), 25 * 1.5) << "the same axis: by its ratio";
  EXPECT_DOUBLE_EQ(Us(corrected, graph, 0, 1, 2), 25 * 1.2);
  EXPECT_DOUBLE_EQ(Us(corrected, graph, 0, -1, 0), 100 * 1.35) << "never run in a plan: by the lane's median";
  EXPECT_DOUBLE_EQ(Us(corrected, graph, 1, 3, 32), 50 * 1.35);
  EXPECT_FALSE(corrected.PartLatency(graph, 0, "unknown", Region::Whole({1, 8, 8, 64})).known);
  EXPECT_EQ(corrected.measured(), 2u);
  // An outlier is bounded.
  corrected.Learn(0, "cpu0", {3, 48}, 1e9);
  EXPECT_DOUBLE_EQ(Us(corrected, graph, 0, 3, 48), 75 * 4);
}

// Lane 0 and lane 1 hand over once each way.
StepProgram PingPong(LaneKind second) {
  StepProgram program;
  program.lanes = {{"cpu0", LaneKind::kCpu, 0, -1}, {"other", second, second == LaneKind::kGpu ? 1 : 0, -1}};
  program.steps.resize(2);
  const auto add = [&](size_t lane, StepKind kind, std::vector<Wait> waits) {
    Step step;
    step.kind = kind;
    step.op = kind == StepKind::kCompute ? static_cast<OpId>(0) : kNoOp;
    step.region = Region::Whole({1, 8, 8, 64});
    step.waits = std::move(waits);
    program.steps[lane].push_back(step);
  };
  add(0, StepKind::kCompute, {});
  if (second == LaneKind::kGpu) add(1, StepKind::kAcquire, {{0, 1}});
  add(1, StepKind::kCompute, second == LaneKind::kGpu ? std::vector<Wait>{} : std::vector<Wait>{{0, 1}});
  if (second == LaneKind::kGpu) add(1, StepKind::kPublish, {});
  add(0, StepKind::kCompute, {{1, static_cast<int64_t>(program.steps[1].size())}});
  return program;
}

TEST(HandoffGaps, AreFromTheStepWaitedForToTheOneThatWaited) {
  for (LaneKind kind : {LaneKind::kCpu, LaneKind::kGpu}) {
    const StepProgram program = PingPong(kind);
    HandoffGaps gaps(2);
    const std::vector<StepTiming> host = {{1'000, 11'000}, {50'000, 60'000}};
    const std::vector<StepTiming> other = kind == LaneKind::kGpu ? std::vector<StepTiming>{{}, {16'000, 30'000}, {}} : std::vector<StepTiming>{{16'000, 30'000}};
    for (int i = 0; i < 10; ++i) gaps.Add(program, {host, other});
    PlanningCosts costs;
    costs.sync_us = {{0, 1}, {1, 0}};
    std::vector<PlanningLane> lanes(2);
    lanes[1].host_segment_us = 2;
    gaps.Correct(lanes, &costs);
    EXPECT_DOUBLE_EQ(costs.sync_us[0][1], 5 - 2);
    EXPECT_DOUBLE_EQ(costs.sync_us[1][0], 20) << "only a handoff to a GPU lane opens a segment";
  }
}

TEST(HandoffGaps, LanesThatDidNotWaitSayNothing) {
  const StepProgram program = PingPong(LaneKind::kCpu);
  HandoffGaps gaps(2);
  // The second lane was still busy with something else when the first one finished; the last step has no time.
  StepProgram busy = program;
  busy.steps[1].insert(busy.steps[1].begin(), busy.steps[0][0]);
  busy.steps[0][1].waits = {{1, 2}};
  const std::vector<StepTiming> host = {{1'000, 11'000}, {}};
  const std::vector<StepTiming> other = {{1'000, 20'000}, {20'500, 30'000}};
  for (int i = 0; i < 10; ++i) gaps.Add(busy, {host, other});
  PlanningCosts costs;
  costs.sync_us = {{0, 1}, {1, 0}};
  gaps.Correct(std::vector<PlanningLane>(2), &costs);
  EXPECT_EQ(costs.sync_us[0][1], 1);
  EXPECT_EQ(costs.sync_us[1][0], 1);
}

TEST(StepTimes, AreFromTheStepBeforeUnlessTheLaneWaited) {
  const Graph graph = TwoConvs();
  StepProgram program = PingPong(LaneKind::kCpu);
  program.steps[0].insert(program.steps[0].begin() + 1, program.steps[0][0]);  // a second step without a wait
  program.steps[0][1].region.size[3] = 32;
  program.steps[0][1].region.begin[3] = 32;
  const std::vector<StepTiming> host = {{1'000, 11'000}, {12'000, 20'000}, {50'000, 60'000}};
  const std::vector<StepTiming> other = {{15'000, 30'000}};
  const std::vector<StepTime> times = StepTimesOf(graph, program, {host, other});
  ASSERT_EQ(times.size(), 4u);
  EXPECT_EQ(times[0].us, 10);
  EXPECT_EQ(times[1].us, 9) << "dispatch belongs to the step";
  EXPECT_EQ(times[1].cut.axis, 3);
  EXPECT_EQ(times[1].cut.extent, 32);
  EXPECT_FALSE(times[1].is_first);
  EXPECT_EQ(times[2].us, 10) << "waiting does not";
  EXPECT_EQ(times[3].us, 15);
  // Devices without usable clocks give nothing, and what follows starts by its own clock.
  const std::vector<StepTiming> odd = {{1'000, 11'000}, {30'000, 20'000}, {50'000, 60'000}};
  EXPECT_EQ(StepTimesOf(graph, program, {odd, {}}).size(), 2u);
  EXPECT_TRUE(StepTimesOf(graph, program, {}).empty());
}

TEST(Cuts, QuartersAreLegal) {
  const auto units = [](int count, int least, int quarter) {
    return UnitsOfQuarter(CutAxis{3, AxisRole::kChannels, count * 8, 8, count, least}, quarter);
  };
  EXPECT_EQ(units(16, 1, 1), 4);
  EXPECT_EQ(units(16, 1, 2), 8);
  EXPECT_EQ(units(16, 1, 3), 12);
  EXPECT_EQ(units(2, 1, 1), 1);
  EXPECT_EQ(units(2, 1, 3), 1);
  EXPECT_EQ(units(8, 3, 1), 3);
  EXPECT_EQ(units(3, 2, 2), std::nullopt);
}

}  // namespace
}  // namespace plait
