#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

#include "src/graph/builder.h"
#include "src/zoo/zoo.h"
#include "tests/partition/random_graph.h"
#include "tests/plan/test_lanes.h"
#include "tests/plan/without_step.h"

namespace plait {
namespace {

Plan RandomPlan(const Graph& graph, const std::vector<PlanningLane>& lanes, uint64_t seed) {
  Result<Schedule> schedule = RandomSchedule(graph, lanes, seed);
  EXPECT_TRUE(schedule.ok()) << schedule.status().message();
  if (!schedule.ok()) return {};
  const Status legal = CheckSchedule(graph, lanes, *schedule);
  EXPECT_TRUE(legal.ok()) << legal.message();
  Result<Plan> plan = Lower(graph, lanes, *schedule);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? std::move(plan).value() : Plan();
}

Graph Placed(const Graph& graph) {
  Result<Graph> placed = Place(graph);
  EXPECT_TRUE(placed.ok()) << placed.status().message();
  return std::move(placed).value();
}

Graph Zoo(const char* name) {
  Result<Graph> graph = BuildZooModel(name);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return Placed(*graph);
}

// Deletes every wait, every Acquire and every Publish, one at a time, and expects each deletion to be refused.
struct Deletions {
  int tried = 0, accepted = 0;
};
Deletions DeleteEach(const Graph& graph, const StepProgram& good) {
  Deletions out;
  auto expect_refused = [&](const StepProgram& bad, const std::string& what) {
    ++out.tried;
    const Status status = VerifyProgram(graph, bad);
    if (status.code() == PLAIT_CORRUPT) return;
    ++out.accepted;
    ADD_FAILURE() << what << " was accepted: " << status.message();
  };
  for (size_t lane = 0; lane < good.steps.size(); ++lane) {
    for (size_t n = 0; n < good.steps[lane].size(); ++n) {
      const Step& step = good.steps[lane][n];
      for (size_t w = 0; w < step.waits.size(); ++w) {
        StepProgram bad = good;
        std::vector<Wait>& waits = bad.steps[lane][n].waits;
        waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(w));
        expect_refused(bad, StrCat("lane ", lane, " step ", n, " without wait ", w));
      }
      if (step.kind == StepKind::kAcquire || step.kind == StepKind::kPublish) {
        StepProgram bad = WithoutStep(good, static_cast<LaneId>(lane), static_cast<int64_t>(n));
        if (step.kind == StepKind::kAcquire) {
          // Its waits move on, so that the Acquire itself is what is missing.
          Step& next = bad.steps[lane][n];
          next.waits = step.waits;
        }
        expect_refused(bad, StrCat("lane ", lane, " without step ", n, " (", Name(step.kind), ")"));
      }
      for (size_t v = 0; step.kind != StepKind::kCompute && step.reads.size() > 1 && v < step.reads.size(); ++v) {
        StepProgram bad = good;
        std::vector<View>& reads = bad.steps[lane][n].reads;
        reads.erase(reads.begin() + static_cast<std::ptrdiff_t>(v));
        expect_refused(bad, StrCat("lane ", lane, " step ", n, " without view ", v));
      }
    }
  }
  return out;
}

TEST(Verify, AcceptsRandomPlansAndRefusesEveryDeletion) {
  int tried = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = Placed(MakeRandomGraph(seed, {.ops = 5 + static_cast<int>(seed % 20), .channel_multiple = 16,
                                                      .view_percent = 35}));
    for (LaneSet set : kAllLaneSets) {
      SCOPED_TRACE(testing::Message() << "lanes " << static_cast<int>(set));
      const Plan plan = RandomPlan(graph, Lanes(set, seed % 2 == 0), seed);
      tried += DeleteEach(graph, plan.program).tried;
    }
  }
  EXPECT_GT(tried, 2000);
}

TEST(Verify, RefusesEveryDeletionFromPlansOfRealNetworks) {
  for (const char* name : {"squeezenet1_1", "mobilenet_v2"}) {
    const Graph graph = Zoo(name);
    for (LaneSet set : {LaneSet::kTwoCpus, LaneSet::kTwoCpusGpu}) {
      SCOPED_TRACE(testing::Message() << name << " lanes " << static_cast<int>(set));
      EXPECT_GT(DeleteEach(graph, RandomPlan(graph, Lanes(set), 5).program).tried, 20);
    }
  }
}

TEST(Verify, AcceptsRandomPlansOfTheZoo) {
  for (const ZooEntry& entry : ZooEntries()) {
    if (entry.name == "vit_b_16") continue;  // as vit_ti_16, with many more weights
    SCOPED_TRACE(entry.name);
    const Graph graph = Zoo(std::string(entry.name).c_str());
    for (LaneSet set : kAllLaneSets) {
      for (const bool coherent : {true, false}) RandomPlan(graph, Lanes(set, coherent), 11);
    }
  }
}

class Mutations : public testing::Test {
 protected:
  void SetUp() override {
    graph_ = Placed(MakeRandomGraph(3, {.ops = 25, .channel_multiple = 16, .view_percent = 30}));
    program_ = RandomPlan(graph_, Lanes(LaneSet::kTwoCpusGpu), 3).program;
  }
  void ExpectRefused(const std::function<void(StepProgram*)>& change, const char* what) {
    StepProgram bad = program_;
    change(&bad);
    const Status status = VerifyProgram(graph_, bad);
    EXPECT_EQ(status.code(), PLAIT_CORRUPT) << what << ": " << status.message();
  }
  Graph graph_;
  StepProgram program_;
};

TEST_F(Mutations, OfWhatThePartsSayAreRefused) {
  for (size_t lane = 0; lane < program_.steps.size(); ++lane) {
    for (size_t n = 0; n < program_.steps[lane].size(); ++n) {
      const StepKind kind = program_.steps[lane][n].kind;
      SCOPED_TRACE(testing::Message() << "lane " << lane << " step " << n << " " << Name(kind));
      auto step = [&](StepProgram* p) -> Step& { return p->steps[lane][n]; };
      ExpectRefused([&](StepProgram* p) { *p = WithoutStep(*p, static_cast<LaneId>(lane), static_cast<int64_t>(n)); },
                    "dropped");
      ExpectRefused([&](StepProgram* p) { step(p).kind = StepKind::kGang; }, "gang");
      ExpectRefused([&](StepProgram* p) { step(p).kind = static_cast<StepKind>(200); }, "unknown kind");
      ExpectRefused([&](StepProgram* p) { step(p).waits.push_back({7, 1}); }, "wait for no lane");
      ExpectRefused([&](StepProgram* p) { step(p).waits.push_back({-1, 1}); }, "wait for no lane");
      ExpectRefused([&](StepProgram* p) { step(p).waits.push_back({static_cast<LaneId>(lane), 1}); }, "wait for itself");
      ExpectRefused([&](StepProgram* p) { step(p).waits.push_back({static_cast<LaneId>(lane == 0), 100000}); },
                    "wait beyond the list");
      ExpectRefused([&](StepProgram* p) { step(p).waits.push_back({static_cast<LaneId>(lane == 0), 0}); },
                    "wait for step 0");
      if (kind != StepKind::kCompute) continue;
      ExpectRefused(
          [&](StepProgram* p) {
            std::vector<Step>& steps = p->steps[lane];
            steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(n), step(p));
          },
          "twice");
      for (const OpId op : {-1, graph_.op_count(), (step(&program_).op + 1) % graph_.op_count()}) {
        ExpectRefused([&](StepProgram* p) { step(p).op = op; }, "other operator");
      }
      ExpectRefused([&](StepProgram* p) { step(p).write.offset += 4; }, "shifted");
      ExpectRefused([&](StepProgram* p) { step(p).write.offset = -4; }, "before the buffer");
      ExpectRefused([&](StepProgram* p) { step(p).write.buffer = 100000; }, "no buffer");
      ExpectRefused([&](StepProgram* p) { step(p).write.buffer = kConstantBuffer; }, "writes a constant");
      ExpectRefused([&](StepProgram* p) { step(p).write.strides[0] += 1; }, "strides");
      ExpectRefused([&](StepProgram* p) { step(p).write.dtype = DType::kI8; }, "dtype");
      ExpectRefused([&](StepProgram* p) { step(p).reads.pop_back(); }, "a read too few");
      ExpectRefused([&](StepProgram* p) { step(p).reads.push_back(step(p).write); }, "a read too many");
      for (int axis = 0; axis < step(&program_).region.size.rank(); ++axis) {
        ExpectRefused([&](StepProgram* p) { step(p).region.begin[axis] += 1; }, "shifted region");
        ExpectRefused([&](StepProgram* p) { step(p).region.size[axis] += 1; }, "larger region");
        ExpectRefused([&](StepProgram* p) { step(p).region.size[axis] = step(p).write.region.size[axis] = std::numeric_limits<int64_t>::max(); }, "huge");
        ExpectRefused([&](StepProgram* p) { step(p).reads[0].region.begin[axis % step(p).reads[0].region.begin.rank()] -= 1; }, "other read");
      }
    }
  }
}

TEST_F(Mutations, OfBuffersAreRefused) {
  for (size_t b = 0; b < program_.buffers.size(); ++b) {
    SCOPED_TRACE(b);
    ExpectRefused([&](StepProgram* p) { p->buffers[b].offset += 4; }, "unaligned");
    ExpectRefused([&](StepProgram* p) { p->buffers[b].offset = -64; }, "negative");
    ExpectRefused([&](StepProgram* p) { p->buffers[b].offset = std::numeric_limits<int64_t>::max() / 64 * 64; }, "beyond");
    ExpectRefused([&](StepProgram* p) { p->buffers[b].bytes -= 4; }, "small");
    ExpectRefused([&](StepProgram* p) { p->buffers[b].bytes = std::numeric_limits<int64_t>::max(); }, "huge");
    ExpectRefused([&](StepProgram* p) { p->buffers[b].tensor = -1; }, "no tensor");
    ExpectRefused([&](StepProgram* p) { p->buffers[b].tensor = graph_.tensor_count(); }, "no tensor");
    ExpectRefused([&](StepProgram* p) { p->buffers.push_back(p->buffers[b]); }, "twice");
    ExpectRefused(
        [&](StepProgram* p) {
          BufferRole& role = p->buffers[b].role;
          role = role == BufferRole::kOutput ? BufferRole::kInput : BufferRole::kOutput;
        },
        "role");
  }
  ExpectRefused([&](StepProgram* p) { p->arena_bytes -= 64; }, "small arena");
  ExpectRefused([&](StepProgram* p) { p->arena_bytes = -1; }, "negative arena");
  ExpectRefused([&](StepProgram* p) { p->buffers.clear(); }, "no buffers");
}

TEST_F(Mutations, OfLanesAreRefused) {
  ExpectRefused([](StepProgram* p) { p->lanes.clear(); }, "no lanes");
  ExpectRefused([](StepProgram* p) { p->steps.pop_back(); }, "a list too few");
  ExpectRefused([](StepProgram* p) { p->lanes[2].kind = LaneKind::kCpu; }, "GPU steps on a CPU lane");
  ExpectRefused([](StepProgram* p) { p->lanes[2].domain = kHostDomain; }, "GPU in the host's domain");
  ExpectRefused([](StepProgram* p) { p->lanes[0].domain = 1; }, "CPU in the GPU's domain");
  ExpectRefused([](StepProgram* p) { p->lanes[2].host = 9; }, "no such host");
  ExpectRefused([](StepProgram* p) { p->lanes[2].host = 2; }, "its own host");
  ExpectRefused([](StepProgram* p) { std::swap(p->steps[0], p->steps[2]); }, "lists swapped");
}

// Two buffers whose lives overlap must not overlap in memory; two that do not may.
TEST(Verify, ProvesReuseOfMemory) {
  int moved = 0, refused = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = Placed(MakeRandomGraph(seed, {.ops = 15, .channel_multiple = 16, .view_percent = 20}));
    const StepProgram good = RandomPlan(graph, Lanes(LaneSet::kTwoCpusGpu), seed).program;
    for (size_t a = 0; a < good.buffers.size(); ++a) {
      for (size_t b = 0; b < good.buffers.size(); ++b) {
        if (a == b) continue;
        StepProgram bad = good;
        bad.arena_bytes *= 2;
        bad.buffers[a].offset = bad.buffers[b].offset;
        ++moved;
        refused += !VerifyProgram(graph, bad).ok();
      }
    }
  }
  EXPECT_GT(refused, moved / 3);
  EXPECT_LT(refused, moved);
}

// Whatever a program says, the verifier answers; sanitizers watch that it touches nothing it must not.
TEST(Verify, SurvivesRandomEdits) {
  std::mt19937_64 random(17);
  const Graph graph = Placed(MakeRandomGraph(8, {.ops = 20, .channel_multiple = 16}));
  const StepProgram good = RandomPlan(graph, Lanes(LaneSet::kTwoCpusGpu), 8).program;
  const int64_t values[] = {-1, 0, 1, 7, 64, 1 << 20, std::numeric_limits<int64_t>::max(),
                            std::numeric_limits<int64_t>::min()};
  auto any = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 3000; ++round) {
    StepProgram p = good;
    for (int edits = 0; edits < 3; ++edits) {
      std::vector<Step>& steps = p.steps[any(p.steps.size())];
      if (steps.empty()) continue;
      Step& step = steps[any(steps.size())];
      const int64_t value = values[any(std::size(values))];
      View& view = step.reads.empty() || random() % 2 == 0 ? step.write : step.reads[any(step.reads.size())];
      switch (random() % 9) {
        case 0: step.kind = static_cast<StepKind>(random() % 7); break;
        case 1: step.op = static_cast<OpId>(value); break;
        case 2: view.tensor = static_cast<TensorId>(value); break;
        case 3: view.buffer = static_cast<BufferId>(value); break;
        case 4: view.offset = value; break;
        case 5: if (view.region.begin.rank() > 0) view.region.begin[0] = value; break;
        case 6: if (view.region.size.rank() > 0) view.region.size[0] = value; break;
        case 7: step.waits.push_back({static_cast<LaneId>(value), value}); break;
        default: view.region = Region(); break;
      }
    }
    (void)VerifyProgram(graph, p);
  }
}

TEST(Verify, NamesADeadlock) {
  GraphBuilder b("two");
  const TensorId x = b.Input("x", {1, 4, 4, 16});
  b.Output(b.Add("first", OpKind::kUnary, {x}, UnaryAttrs{UnaryKind::kTanh, {}}));
  b.Output(b.Add("second", OpKind::kUnary, {x}, UnaryAttrs{UnaryKind::kTanh, {}}));
  const Graph graph = Placed(b.Build().value());
  const std::vector<PlanningLane> lanes = Lanes(LaneSet::kTwoCpus);
  Schedule schedule;
  for (int i = 0; i < 2; ++i) {
    Part part;
    part.op = part.lane = i;
    part.region = Region::Whole({1, 4, 4, 16});
    schedule.parts.push_back(part);
    schedule.lanes.push_back({i});
  }
  Result<Plan> plan = Lower(graph, lanes, schedule);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  plan->program.steps[0][0].waits.push_back({1, 1});
  EXPECT_TRUE(VerifyProgram(graph, plan->program).ok()) << "a wait too many is no fault";
  plan->program.steps[1][0].waits.push_back({0, 1});
  const Status status = VerifyProgram(graph, plan->program);
  EXPECT_EQ(status.code(), PLAIT_CORRUPT);
  EXPECT_NE(status.message().find("waits for ever"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace plait
