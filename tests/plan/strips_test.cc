// Strips: operators cut once, alike, each lane computing the halo that it needs by itself.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "src/graph/builder.h"
#include "src/partition/strips.h"
#include "src/schedule/part_graph.h"
#include "src/graph/passes.h"
#include "src/zoo/zoo.h"
#include "tests/partition/random_graph.h"
#include "tests/plan/test_lanes.h"

namespace plait {
namespace {

// A chain of 3x3 convolutions of 16 rows, all of them one strip for each of two lanes, cut at row 8.
class Strips : public testing::Test {
 public:
  void SetUp() override {
    GraphBuilder b("chain");
    TensorId t = b.Input("x", {1, 16, 16, 32});
    for (int i = 0; i < kLength; ++i) {
      const TensorId w = b.Constant(StrCat("w", i), {32, 3, 3, 32}, std::vector<float>(32 * 9 * 32, 1.0f));
      Conv2DAttrs attrs;
      attrs.pad = {1, 1, 1, 1};
      t = b.Add(StrCat("c", i), OpKind::kConv2D, {t, w, kNoTensor}, attrs);
    }
    b.Output(t);
    Result<Graph> graph = b.Build();
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    graph_ = Place(*graph).value();
    std::vector<OpId> ops;
    for (OpId o = 0; o < graph_.op_count(); ++o) ops.push_back(o);
    const auto strip = RowStrip(graph_, ops, [](OpId, const SplitAxis&) { return CutRule{1, 1}; });
    ASSERT_TRUE(strip.has_value());
    schedule_.lanes.resize(2);
    for (int lane = 0; lane < 2; ++lane) {
      Region last = Region::Whole({1, 16, 16, 32});
      last.begin[1] = 8 * lane;
      last.size[1] = 8;
      const std::optional<std::vector<Region>> regions = StripRegions(graph_, *strip, last);
      ASSERT_TRUE(regions.has_value());
      for (OpId o = 0; o < graph_.op_count(); ++o) {
        Part part;
        part.op = o;
        part.lane = lane;
        part.region = (*regions)[static_cast<size_t>(o)];
        part.strip = lane;
        schedule_.lanes[static_cast<size_t>(lane)].push_back(static_cast<int>(schedule_.parts.size()));
        schedule_.parts.push_back(part);
      }
    }
  }
  Part& PartOf(int lane, OpId op) { return schedule_.parts[static_cast<size_t>(lane * kLength + op)]; }
  std::string WhyIllegal(const std::function<void(Strips*)>& change) {
    const Schedule good = schedule_;
    change(this);
    const Status status = CheckSchedule(graph_, Lanes(LaneSet::kCpuGpu), schedule_);
    schedule_ = good;
    EXPECT_EQ(status.code(), PLAIT_INVALID_ARGUMENT) << status.message();
    return status.message();
  }

  static constexpr int kLength = 4;
  Graph graph_;
  Schedule schedule_;
};

TEST_F(Strips, ComputeTheirHaloThemselves) {
  for (OpId o = 0; o < kLength; ++o) {
    const int64_t halo = kLength - 1 - o;
    EXPECT_EQ(PartOf(0, o).region.size[1], 8 + halo);
    EXPECT_EQ(PartOf(1, o).region.begin[1], 8 - halo);
  }
}

TEST_F(Strips, HandNothingOverInside) {
  for (LaneSet set : {LaneSet::kTwoCpus, LaneSet::kCpuGpu}) {
    const Result<Plan> plan = Lower(graph_, Lanes(set), schedule_);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const ProgramStats stats = StatsOf(plan->program);
    EXPECT_EQ(stats.waits, 0);
    EXPECT_EQ(stats.acquires, set == LaneSet::kCpuGpu ? 1 : 0);
    EXPECT_EQ(stats.publishes, set == LaneSet::kCpuGpu ? 1 : 0);
  }
}

TEST_F(Strips, OfOneLaneNeedLessMemory) {
  // Both strips on one lane, one after the other: what they keep to themselves is half of each tensor.
  Schedule whole = SingleLaneSchedule(graph_, Lanes(LaneSet::kTwoCpus), 0).value();
  for (Part& part : schedule_.parts) part.lane = 0;
  for (int p : schedule_.lanes[1]) schedule_.lanes[0].push_back(p);
  schedule_.lanes[1].clear();
  const Result<Plan> strips = Lower(graph_, Lanes(LaneSet::kTwoCpus), schedule_);
  ASSERT_TRUE(strips.ok()) << strips.status().message();
  EXPECT_LT(strips->program.arena_bytes, Lower(graph_, Lanes(LaneSet::kTwoCpus), whole)->program.arena_bytes);
}

TEST_F(Strips, AreRefusedIfTheyLackWhatTheyRead) {
  EXPECT_NE(WhyIllegal([](Strips* s) { --s->PartOf(0, 1).region.size[1]; }).find("strip 0"), std::string::npos);
  EXPECT_NE(WhyIllegal([](Strips* s) { ++s->PartOf(1, 1).region.begin[1], --s->PartOf(1, 1).region.size[1]; }).find("strip 1"), std::string::npos);
  EXPECT_NE(WhyIllegal([](Strips* s) { s->PartOf(1, 1).region.size[1] += 100; }).find("c1"), std::string::npos);
  EXPECT_NE(WhyIllegal([](Strips* s) { s->PartOf(1, 1).strip = 0; }).find("lanes 0 and 1"), std::string::npos);
  // Without strips the parts that overlap are in each other's way, and so are those of the last operator in any case.
  EXPECT_NE(WhyIllegal([](Strips* s) { s->PartOf(0, 2).strip = -1; }).find("overlap"), std::string::npos);
  EXPECT_NE(WhyIllegal([](Strips* s) { ++s->PartOf(0, kLength - 1).region.size[1]; }).find("overlap"), std::string::npos);
  EXPECT_NE(WhyIllegal([](Strips* s) { s->PartOf(0, 2).op = 1; }).find("two parts"), std::string::npos);
}

TEST_F(Strips, AreProvenByTheVerifier) {
  const StepProgram good = Lower(graph_, Lanes(LaneSet::kTwoCpus), schedule_)->program;
  auto refused = [&](const std::function<void(StepProgram*)>& change) {
    StepProgram bad = good;
    change(&bad);
    const Status status = VerifyProgram(graph_, bad);
    EXPECT_EQ(status.code(), PLAIT_CORRUPT) << status.message();
  };
  for (size_t b = 0; b < good.buffers.size(); ++b) {
    SCOPED_TRACE(testing::Message() << "buffer " << b);
    if (!good.buffers[b].is_private()) {
      refused([&](StepProgram* p) { p->buffers[b].strip = 0; });
      continue;
    }
    refused([&](StepProgram* p) { p->buffers[b].strip = -1; });
    refused([&](StepProgram* p) { p->buffers[b].bytes -= 4; });
    refused([&](StepProgram* p) { p->buffers[b].region.size[1] += 1; });
    refused([&](StepProgram* p) { p->buffers[b].region.begin[1] += 1; });
    refused([&](StepProgram* p) { p->buffers[b].region.begin[1] = -1; });
    refused([&](StepProgram* p) { p->buffers[b].region = {}; });
    refused([&](StepProgram* p) { p->buffers[b].role = BufferRole::kOutput; });
  }
  // A lane reads what the other one keeps to itself.
  refused([](StepProgram* p) {
    p->steps[0][1].reads[0] = p->steps[1][1].reads[0];
    p->steps[0][1].reads[0].region = {};
  });
  refused([](StepProgram* p) { p->steps[0][1].reads[0].buffer = p->steps[1][1].reads[0].buffer; });
  refused([](StepProgram* p) { std::swap(p->steps[0][0], p->steps[0][1]); });
  refused([](StepProgram* p) { p->steps[0][1].write.buffer = p->steps[0][0].write.buffer; });
  refused([](StepProgram* p) { p->steps[0].erase(p->steps[0].begin()); });
}

TEST_F(Strips, SurviveAPlanFile) {
  const Plan plan = Lower(graph_, Lanes(LaneSet::kCpuGpu), schedule_).value();
  const std::string path = testing::TempDir() + "plait_strips.plan";
  ASSERT_TRUE(SavePlan(plan, path).ok());
  const Result<Plan> again = LoadPlan(graph_, path);
  std::remove(path.c_str());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->program.arena_bytes, plan.program.arena_bytes);
  EXPECT_EQ(StatsOf(again->program).waits, 0);
}

TEST(RandomStrips, StandInPlansOfTheZoo) {
  for (const char* name : {"mobilenet_v2", "resnet50", "vit_ti_16"}) {
    Result<Graph> model = BuildZooModel(name);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const Graph graph = Place(Optimize(std::move(model).value()).value()).value();
    int strips = 0, overlaps = 0;
    for (uint64_t seed = 0; seed < 5; ++seed) {
      SCOPED_TRACE(testing::Message() << name << " seed " << seed);
      const std::vector<PlanningLane> lanes = Lanes(LaneSet::kTwoCpusGpu);
      const Result<Schedule> schedule = RandomSchedule(graph, lanes, seed);
      ASSERT_TRUE(schedule.ok()) << schedule.status().message();
      ASSERT_TRUE(CheckSchedule(graph, lanes, *schedule).ok());
      const PrivateResults results(graph, *schedule);
      std::vector<int64_t> computed(graph.ops.size(), 0);
      for (const Part& part : schedule->parts) {
        computed[static_cast<size_t>(part.op)] += part.region.Count();
        strips += results.Contains(part.op);
      }
      for (OpId o = 0; o < graph.op_count(); ++o) overlaps += computed[static_cast<size_t>(o)] > graph.output(graph.op(o)).shape.Count();
    }
    EXPECT_GT(strips, 20) << name;
    if (std::string(name) != "vit_ti_16") {
      EXPECT_GT(overlaps, 3) << name;
    }
  }
}

}  // namespace
}  // namespace plait
