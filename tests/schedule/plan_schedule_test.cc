#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/graph/passes.h"
#include "src/partition/storage.h"
#include "src/schedule/schedule.h"
#include "src/zoo/zoo.h"

namespace plait {
namespace {

// Kernels for everything; channels in tiles of `tile`.
class TileRules final : public KernelRules {
 public:
  explicit TileRules(int64_t tile) : tile_(tile) {}
  std::string_view name() const override { return "tiles"; }
  KernelSupport Supports(const Graph&, OpId) const override { return {true, "tiles.any", ""}; }
  CutRule Cut(const Graph&, OpId, SplitAxis axis) const override {
    if (axis.role == AxisRole::kColumns) return {0, 1};
    return axis.role == AxisRole::kChannels ? CutRule{tile_, tile_} : CutRule{1, 1};
  }
  bool Strided(const Graph&, OpId, int) const override { return true; }

 private:
  int64_t tile_;
};

// A roofline: multiply-accumulates and bytes a microsecond, and a fixed cost a step.
class Roofline final : public LatencySource {
 public:
  Latency PartLatency(const Graph& graph, OpId op, const std::string& lane, const Region& region) const override {
    const Work work = WorkOf(graph, graph.op(op), region);
    const bool gpu = lane == "gpu0";
    Latency out;
    out.us = static_cast<double>(work.macs) / (gpu ? 25e3 : 30e3) + static_cast<double>(work.input_bytes + work.weight_bytes + work.output_bytes) / 1e4 + (gpu ? 5.0 : 0.5);
    out.known = true;
    return out;
  }
};

class PlanZoo : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto built = BuildZooModel(GetParam());
    ASSERT_TRUE(built.ok()) << built.status().message();
    auto optimized = Optimize(*built);
    ASSERT_TRUE(optimized.ok()) << optimized.status().message();
    auto placed = PlaceCopies(*optimized, [](const Graph&, OpId, int) { return true; });
    ASSERT_TRUE(placed.ok()) << placed.status().message();
    graph_ = std::move(placed).value();
    lanes_.resize(2);
    lanes_[0].spec = {"cpu0", LaneKind::kCpu, kHostDomain, -1};
    lanes_[1].spec = {"gpu0", LaneKind::kGpu, 1, 0};
    for (PlanningLane& lane : lanes_) lane.rules = &rules_;
    costs_.latency = &source_;
    SetHandoff(25);
  }
  void SetHandoff(double us) {
    costs_.sync_us = {{0, us}, {us, 0}};
    costs_.us_per_byte = {{0, 0}, {0, 0}};
    costs_.entry_us = costs_.exit_us = {0, us};
  }
  // The time of everything on one lane.
  double Alone(size_t lane) const {
    double sum = costs_.entry_us[lane] + costs_.exit_us[lane];
    for (OpId o = 0; o < graph_.op_count(); ++o) {
      if (IsView(graph_.op(o).kind)) continue;
      sum += source_.PartLatency(graph_, o, lanes_[lane].spec.name, Region::Whole(graph_.output(graph_.op(o)).shape)).us;
    }
    return sum;
  }

  TileRules rules_{16};
  Roofline source_;
  Graph graph_;
  std::vector<PlanningLane> lanes_;
  PlanningCosts costs_;
};

TEST_P(PlanZoo, IsLegalAndBeatsBothLanes) {
  auto schedule = PlanSchedule(graph_, lanes_, costs_, {});
  ASSERT_TRUE(schedule.ok()) << schedule.status().message();
  const Status legal = CheckSchedule(graph_, lanes_, *schedule);
  EXPECT_TRUE(legal.ok()) << legal.message();
  EXPECT_LT(schedule->predicted_us, 0.8 * std::min(Alone(0), Alone(1)));
}

TEST_P(PlanZoo, LeavesNonCoherentLanesTheirCacheLines) {
  lanes_[1].coherent = false;
  auto schedule = PlanSchedule(graph_, lanes_, costs_, {});
  ASSERT_TRUE(schedule.ok()) << schedule.status().message();
  const Status legal = CheckSchedule(graph_, lanes_, *schedule);
  EXPECT_TRUE(legal.ok()) << legal.message();
}

TEST_P(PlanZoo, HandoffsThatCostTooMuchLeaveOneLane) {
  SetHandoff(1e7);
  auto schedule = PlanSchedule(graph_, lanes_, costs_, {});
  ASSERT_TRUE(schedule.ok()) << schedule.status().message();
  EXPECT_LE(schedule->predicted_us, Alone(0) * 1.001 + 100);
  EXPECT_TRUE(schedule->lanes[1].empty());
}

TEST_P(PlanZoo, CautionIsInTheSearchAndNotInWhatIsPredicted) {
  SearchOptions options;
  options.caution_us = 100;
  auto cautious = PlanSchedule(graph_, lanes_, costs_, options);
  costs_.sync_us = {{0, 125}, {125, 0}};
  auto dear = PlanSchedule(graph_, lanes_, costs_, {});
  ASSERT_TRUE(cautious.ok() && dear.ok());
  EXPECT_EQ(cautious->lanes, dear->lanes);
  EXPECT_LT(cautious->predicted_us, dear->predicted_us);
  EXPECT_LE(cautious->lower_bound_us, cautious->predicted_us);
}

TEST_P(PlanZoo, SameInputSameSchedule) {
  auto a = PlanSchedule(graph_, lanes_, costs_, {});
  auto b = PlanSchedule(graph_, lanes_, costs_, {});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->lanes, b->lanes);
  ASSERT_EQ(a->parts.size(), b->parts.size());
  for (size_t i = 0; i < a->parts.size(); ++i) EXPECT_TRUE(a->parts[i].region == b->parts[i].region);
}

TEST_P(PlanZoo, SimpleStrategiesAreLegalAndNoFaster) {
  auto schedule = PlanSchedule(graph_, lanes_, costs_, {});
  ASSERT_TRUE(schedule.ok()) << schedule.status().message();
  for (const std::string& strategy : SimpleStrategies()) {
    SCOPED_TRACE(strategy);
    auto simple = SimpleSchedule(graph_, lanes_, costs_, strategy);
    ASSERT_TRUE(simple.ok()) << simple.status().message();
    EXPECT_EQ(simple->strategy, strategy);
    EXPECT_EQ(simple->by_operator, strategy == "by-operator");
    const Status legal = CheckSchedule(graph_, lanes_, *simple);
    EXPECT_TRUE(legal.ok()) << legal.message();
    // "by-operator" is a search, too, over fewer schedules: it may be the luckier one by a little.
    EXPECT_GE(simple->predicted_us * (simple->by_operator ? 1.005 : 1.0), schedule->predicted_us);
  }
  const auto unknown = SimpleSchedule(graph_, lanes_, costs_, "greedy");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), PLAIT_NOT_FOUND);
  EXPECT_NE(unknown.status().message().find("heft-split"), std::string::npos) << unknown.status().message();
}

TEST_P(PlanZoo, PlansWithDearHandoffsAreLegalWithStripsToo) {
  for (double us : {100.0, 300.0, 600.0}) {
    SCOPED_TRACE(us);
    SetHandoff(us);
    auto schedule = PlanSchedule(graph_, lanes_, costs_, {});
    ASSERT_TRUE(schedule.ok()) << schedule.status().message();
    const Status legal = CheckSchedule(graph_, lanes_, *schedule);
    EXPECT_TRUE(legal.ok()) << legal.message();
    EXPECT_LE(schedule->predicted_us, std::min(Alone(0), Alone(1)) * 1.0001);
    EXPECT_LE(schedule->lower_bound_us, schedule->predicted_us);
    const bool has_strips = std::any_of(schedule->parts.begin(), schedule->parts.end(), [](const Part& part) { return part.strip >= 0; });
    if (std::string(GetParam()) == "mobilenet_v2" && us == 300) {
      EXPECT_TRUE(has_strips) << "its many depthwise operators hand a halo over each";
    }
    for (const Part& part : schedule->parts) EXPECT_GE(part.predicted_us, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, PlanZoo, ::testing::Values("squeezenet1_1", "mobilenet_v2", "inception_v3"));

TEST(PlanSchedule, NamesAnOperatorWithoutALane) {
  class NoLatency final : public LatencySource {
   public:
    Latency PartLatency(const Graph&, OpId, const std::string&, const Region&) const override { return {}; }
  };
  auto graph = BuildZooModel("squeezenet1_1");
  ASSERT_TRUE(graph.ok());
  auto placed = PlaceCopies(*graph, [](const Graph&, OpId, int) { return true; });
  ASSERT_TRUE(placed.ok());
  TileRules rules(16);
  NoLatency source;
  std::vector<PlanningLane> lanes(1);
  lanes[0].spec.name = "cpu0";
  lanes[0].rules = &rules;
  PlanningCosts costs;
  costs.latency = &source;
  costs.sync_us = costs.us_per_byte = {{0}};
  costs.entry_us = costs.exit_us = {0};
  auto schedule = PlanSchedule(*placed, lanes, costs, {});
  ASSERT_FALSE(schedule.ok());
  EXPECT_EQ(schedule.status().code(), PLAIT_UNSUPPORTED);
  EXPECT_NE(schedule.status().message().find("operator '"), std::string::npos);
}

}  // namespace
}  // namespace plait
