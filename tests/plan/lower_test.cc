#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "src/graph/builder.h"
#include "src/graph/passes.h"
#include "src/zoo/zoo.h"
#include "tests/partition/random_graph.h"
#include "tests/plan/test_lanes.h"

namespace plait {
namespace {

TensorId Conv(GraphBuilder* b, const std::string& name, TensorId x, int64_t channels, int64_t kernel = 1) {
  const Dims shape{channels, kernel, kernel, b->shape(x).back()};
  const TensorId w = b->Constant(name + "_w", shape, std::vector<float>(static_cast<size_t>(shape.Count()), 1.0f));
  Conv2DAttrs attrs;
  const int32_t pad = static_cast<int32_t>(kernel / 2);
  attrs.pad = {pad, pad, pad, pad};
  return b->Add(name, OpKind::kConv2D, {x, w, kNoTensor}, attrs);
}

Graph Placed(Result<Graph> graph, const KernelRules& rules = SharedRules()) {
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  Result<Graph> placed = Place(*graph, rules);
  EXPECT_TRUE(placed.ok()) << placed.status().message();
  return std::move(placed).value();
}

// Every operator cut in two along `axis` at `share` of its extent, the first part on lane 0, the second on lane 1.
Schedule CutAlike(const Graph& graph, int axis, double share) {
  Schedule schedule;
  schedule.lanes.resize(2);
  for (OpId o = 0; o < graph.op_count(); ++o) {
    if (IsView(graph.op(o).kind)) continue;
    const Dims& shape = graph.output(graph.op(o)).shape;
    const int64_t at = static_cast<int64_t>(static_cast<double>(shape[axis]) * share);
    for (int lane = 0; lane < 2; ++lane) {
      Part part;
      part.op = o;
      part.lane = lane;
      part.region = Region::Whole(shape);
      part.region.begin[axis] = lane == 0 ? 0 : at;
      part.region.size[axis] = lane == 0 ? at : shape[axis] - at;
      schedule.lanes[static_cast<size_t>(lane)].push_back(static_cast<int>(schedule.parts.size()));
      schedule.parts.push_back(part);
    }
  }
  return schedule;
}

Plan Lowered(const Graph& graph, const std::vector<PlanningLane>& lanes, const Schedule& schedule) {
  Result<Plan> plan = Lower(graph, lanes, schedule);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? std::move(plan).value() : Plan();
}

Graph Chain(int length, int64_t kernel) {
  GraphBuilder b("chain");
  TensorId t = b.Input("x", {1, 16, 16, 32});
  for (int i = 0; i < length; ++i) t = Conv(&b, StrCat("c", i), t, 32, kernel);
  b.Output(t);
  return Placed(b.Build());
}

TEST(Lower, AChainCutAlikeHandsNothingOver) {
  const Graph graph = Chain(10, 1);
  const ProgramStats cpus = StatsOf(Lowered(graph, Lanes(LaneSet::kTwoCpus), CutAlike(graph, 1, 0.5)).program);
  EXPECT_EQ(cpus.compute_steps, 20);
  EXPECT_EQ(cpus.waits, 0);
  EXPECT_EQ(cpus.handoffs, 0);
  // On a GPU: one segment, the input acquired once, the output published once.
  const ProgramStats gpu = StatsOf(Lowered(graph, Lanes(LaneSet::kCpuGpu), CutAlike(graph, 1, 0.5)).program);
  EXPECT_EQ(gpu.waits, 0);
  EXPECT_EQ(gpu.segments, 1);
  EXPECT_EQ(gpu.acquires, 1);
  EXPECT_EQ(gpu.publishes, 1);
}

TEST(Lower, ByOperatorEveryPartWaitsForAllPartsOfWhatItReads) {
  const Graph graph = Chain(10, 1);
  Schedule schedule = CutAlike(graph, 1, 0.5);
  schedule.by_operator = true;
  const Plan cpus = Lowered(graph, Lanes(LaneSet::kTwoCpus), schedule);
  EXPECT_EQ(StatsOf(cpus.program).waits, 18);  // nine borders, both ways
  const Plan gpu = Lowered(graph, Lanes(LaneSet::kCpuGpu), schedule);
  EXPECT_EQ(StatsOf(gpu.program).segments, 10);
  EXPECT_EQ(StatsOf(gpu.program).acquires, 10);
  EXPECT_EQ(StatsOf(gpu.program).publishes, 10);
}

TEST(Lower, HalosAreHandedOverAlone) {
  const Graph graph = Chain(4, 3);
  const Plan plan = Lowered(graph, Lanes(LaneSet::kCpuGpu), CutAlike(graph, 1, 0.5));
  const ProgramStats stats = StatsOf(plan.program);
  EXPECT_EQ(stats.waits, 6);  // three borders between operators, both ways
  EXPECT_EQ(stats.segments, 4);
  for (const Step& step : plan.program.steps[1]) {
    const bool is_inner = step.kind == StepKind::kPublish && step.reads[0].tensor != graph.outputs[0];
    if (is_inner) {
      EXPECT_EQ(ToString(step.reads[0].region), "[0:1, 8:9, 0:16, 0:32]");
    }
    if (step.kind == StepKind::kAcquire && step.reads[0].tensor != graph.inputs[0]) {
      EXPECT_EQ(ToString(step.reads[0].region), "[0:1, 7:8, 0:16, 0:32]");
    }
  }
}

TEST(Lower, CutsThatDoNotLineUpWait) {
  const Graph graph = Chain(3, 1);
  const Plan plan = Lowered(graph, Lanes(LaneSet::kTwoCpus), CutAlike(graph, 3, 0.5));
  EXPECT_EQ(StatsOf(plan.program).waits, 4) << "channels: every part reads all of its producer";
}

TEST(Lower, WaitsThatOthersImplyAreLeftOut) {
  // cpu0 computes a and b; cpu1 reads b, then both: one wait is enough.
  GraphBuilder b("implied");
  const TensorId x = b.Input("x", {1, 4, 4, 16});
  const TensorId a = Conv(&b, "a", x, 16), c = Conv(&b, "b", x, 16);
  const TensorId d = Conv(&b, "d", c, 16);
  b.Output(b.Add("sum", OpKind::kBinary, {a, d}, BinaryAttrs{}));
  const Graph graph = Placed(b.Build());
  Schedule schedule;
  schedule.lanes.resize(2);
  for (OpId o = 0; o < 4; ++o) {
    Part part;
    part.op = o;
    part.lane = o < 2 ? 0 : 1;
    part.region = Region::Whole(graph.output(graph.op(o)).shape);
    schedule.lanes[static_cast<size_t>(part.lane)].push_back(o);
    schedule.parts.push_back(part);
  }
  EXPECT_EQ(StatsOf(Lowered(graph, Lanes(LaneSet::kTwoCpus), schedule).program).waits, 1);
}

TEST(Lower, PartsAndConcatsLieInPlace) {
  GraphBuilder b("in_place");
  const TensorId x = b.Input("x", {1, 8, 8, 16});
  const TensorId c0 = Conv(&b, "c0", x, 16), c1 = Conv(&b, "c1", x, 32);
  const TensorId cat = b.Add("cat", OpKind::kConcat, {c0, c1}, ConcatAttrs{3});
  const TensorId half = b.Add("half", OpKind::kSlice, {cat}, SliceAttrs{{0, 0, 0, 16}, {1, 8, 8, 32}});
  b.Output(Conv(&b, "y", half, 16));
  const Graph graph = Placed(b.Build());
  const Plan plan = Lowered(graph, Lanes(LaneSet::kTwoCpus), CutAlike(graph, 1, 0.5));
  const BufferId buffer = plan.program.steps[0][0].write.buffer;
  for (int lane = 0; lane < 2; ++lane) {
    const std::vector<Step>& steps = plan.program.steps[static_cast<size_t>(lane)];
    const int64_t row = 48 * 8 * 4, rows = lane * 4 * row;  // bytes of the joined tensor
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_EQ(steps[0].write.offset, rows);
    EXPECT_EQ(steps[1].write.offset, rows + 16 * 4);
    EXPECT_EQ(steps[2].reads[0].offset, rows + 16 * 4);
    for (const View& view : {steps[0].write, steps[1].write, steps[2].reads[0]}) {
      EXPECT_EQ(view.buffer, buffer);
      EXPECT_EQ(view.strides[2], 48);
      EXPECT_FALSE(view.IsDense());
    }
  }
}

TEST(Lower, ConcatsOfRealNetworksCopyNothing) {
  TestRules rules;  // as XNNPACK: no strides in these
  for (const OpKind kind : {OpKind::kBinary, OpKind::kMatMul, OpKind::kReduceMean, OpKind::kTranspose, OpKind::kPad}) {
    rules.MakeDense(kind);
  }
  for (const char* name : {"squeezenet1_1", "inception_v3", "densenet121"}) {
    SCOPED_TRACE(name);
    Result<Graph> graph = BuildZooModel(name);
    ASSERT_TRUE(graph.ok());
    const Graph placed = Placed(Optimize(*graph), rules);
    const auto is_copy = [](const Operator& op) {
      return op.kind == OpKind::kUnary && op.as<UnaryAttrs>().kind == UnaryKind::kCopy;
    };
    EXPECT_EQ(std::count_if(placed.ops.begin(), placed.ops.end(), is_copy), 0);
    EXPECT_GT(std::count_if(placed.ops.begin(), placed.ops.end(),
                            [](const Operator& op) { return op.kind == OpKind::kConcat; }), 3);
  }
}

TEST(Lower, APartOfPaddingAloneReadsNothing) {
  GraphBuilder b("padding");
  const TensorId x = b.Input("x", {1, 4, 4, 16});
  b.Output(b.Add("pad", OpKind::kPad, {x}, PadAttrs{{0, 4, 0, 0}, {0, 0, 0, 0}, 1.0f}));
  const Graph graph = Placed(b.Build());
  const Plan plan = Lowered(graph, Lanes(LaneSet::kCpuGpu), CutAlike(graph, 1, 0.5));
  EXPECT_TRUE(plan.program.steps[0][0].reads[0].region.IsEmpty());
}

TEST(Lower, NamesWhatIsWrongWithASchedule) {
  const Graph graph = Chain(3, 1);
  const std::vector<PlanningLane> lanes = Lanes(LaneSet::kTwoCpus);
  const Schedule good = CutAlike(graph, 1, 0.5);
  auto expect = [&](const Schedule& bad, const std::string& why) {
    const Status status = Lower(graph, lanes, bad).status();
    EXPECT_EQ(status.code(), PLAIT_INVALID_ARGUMENT);
    EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
    EXPECT_FALSE(CheckSchedule(graph, lanes, bad).ok());
  };
  Schedule bad = good;
  bad.lanes.pop_back();
  expect(bad, "orders for 1 lanes");
  bad = good;
  bad.parts[2].region.size[1] -= 1;
  expect(bad, "operator 'c1' do not tile");
  bad = good;
  std::swap(bad.lanes[0][0], bad.lanes[0][1]);
  expect(bad, "contradicts the graph");
  bad = good;
  bad.lanes[0].pop_back();
  expect(bad, "missing in the order");
  bad = good;
  bad.parts[0].op = 77;
  expect(bad, "operator 77");
}

TEST(CheckSchedule, HoldsPartsToTheRulesOfTheirLanes) {
  const Graph graph = Chain(1, 1);
  auto check = [&](const std::vector<PlanningLane>& lanes, int axis, double share) {
    return CheckSchedule(graph, lanes, CutAlike(graph, axis, share)).message();
  };
  EXPECT_EQ(check(Lanes(LaneSet::kTwoCpus), 3, 0.5), "");
  EXPECT_NE(check(Lanes(LaneSet::kTwoCpus), 3, 0.25).find("multiples of 16"), std::string::npos);
  EXPECT_NE(check(Lanes(LaneSet::kTwoCpus), 2, 0.5).find("cannot be cut along axis 2"), std::string::npos);
  TestRules banned;
  banned.Ban(OpKind::kConv2D);
  EXPECT_NE(check(Lanes(LaneSet::kTwoCpus, true, banned), 3, 0.5).find("banned in this test"), std::string::npos);
}

TEST(CheckSchedule, KeepsLanesWithoutCoherenceOffSharedLines) {
  GraphBuilder b("lines");
  b.Output(Conv(&b, "c", b.Input("x", {1, 4, 3, 24}), 24));  // rows of 288 bytes: no multiple of 64
  const Graph graph = Placed(b.Build());
  EXPECT_TRUE(CheckSchedule(graph, Lanes(LaneSet::kCpuGpu, true), CutAlike(graph, 1, 0.5)).ok());
  EXPECT_TRUE(CheckSchedule(graph, Lanes(LaneSet::kCpuGpu, false), CutAlike(graph, 1, 0.5)).ok());  // at 576
  const Status status = CheckSchedule(graph, Lanes(LaneSet::kCpuGpu, false), CutAlike(graph, 1, 0.25));
  EXPECT_NE(status.message().find("cache line"), std::string::npos) << status.message();
}

TEST(RandomSchedule, IsLegalVariedAndRepeatable) {
  std::set<size_t> part_counts;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    // Channels that are no multiple of a line, so that operands of one Concat may share lines.
    const Graph graph = Placed(MakeRandomGraph(seed, {.ops = 20, .channel_multiple = 8}));
    const TestRules rules(8);
    for (LaneSet set : kAllLaneSets) {
      const std::vector<PlanningLane> lanes = Lanes(set, false, rules);
      const Result<Schedule> schedule = RandomSchedule(graph, lanes, seed);
      ASSERT_TRUE(schedule.ok()) << schedule.status().message();
      const Status legal = CheckSchedule(graph, lanes, *schedule);
      ASSERT_TRUE(legal.ok()) << legal.message();
      part_counts.insert(schedule->parts.size());
      const Result<Schedule> again = RandomSchedule(graph, lanes, seed);
      ASSERT_EQ(again->lanes, schedule->lanes);
    }
  }
  EXPECT_GT(part_counts.size(), 10u);
}

TEST(SingleLaneSchedule, NamesWhatTheLaneCannotRun) {
  const Graph graph = Chain(3, 1);
  TestRules banned;
  banned.Ban(OpKind::kConv2D);
  const std::vector<PlanningLane> lanes{CpuLane("cpu0"), CpuLane("cpu1", banned)};
  const Result<Schedule> schedule = SingleLaneSchedule(graph, lanes, 0);
  ASSERT_TRUE(schedule.ok());
  EXPECT_TRUE(CheckSchedule(graph, lanes, *schedule).ok());
  EXPECT_EQ(Lowered(graph, lanes, *schedule).program.steps[0].size(), 3u);
  const Status status = SingleLaneSchedule(graph, lanes, 1).status();
  EXPECT_EQ(status.code(), PLAIT_UNSUPPORTED);
  EXPECT_NE(status.message().find("'c0'"), std::string::npos) << status.message();
}

TEST(PlanMemory, ReusesWhatIsNoLongerRead) {
  const Graph graph = Chain(50, 1);
  const std::vector<PlanningLane> lanes = Lanes(LaneSet::kTwoCpus);
  const Plan plan = Lowered(graph, lanes, SingleLaneSchedule(graph, lanes, 0).value());
  const int64_t one = 16 * 16 * 32 * 4;
  EXPECT_LE(plan.program.arena_bytes, 4 * (one + 64)) << "input, output and two that take turns";
}

}  // namespace
}  // namespace plait
