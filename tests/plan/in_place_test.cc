// Kernels that write over what they read for the last time.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "src/graph/builder.h"
#include "tests/plan/test_lanes.h"

namespace plait {
namespace {

const Dims kShape{1, 16, 16, 32};

Graph Placed(Result<Graph> graph) {
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return Place(*graph).value();
}
TensorId Gelu(GraphBuilder* b, const std::string& name, TensorId x) {
  UnaryAttrs attrs;
  attrs.kind = UnaryKind::kGelu;
  return b->Add(name, OpKind::kUnary, {x}, attrs);
}

// Every operator in two parts along `axis` at position `at[op]`, on two lanes.
Schedule Cut(const Graph& graph, int axis, const std::vector<int64_t>& at) {
  Schedule schedule;
  schedule.lanes.resize(2);
  for (OpId o = 0; o < graph.op_count(); ++o) {
    for (int lane = 0; lane < 2; ++lane) {
      Part part;
      part.op = o;
      part.lane = lane;
      part.region = Region::Whole(graph.output(graph.op(o)).shape);
      part.region.begin[axis] = lane == 0 ? 0 : at[static_cast<size_t>(o)];
      part.region.size[axis] = lane == 0 ? at[static_cast<size_t>(o)] : part.region.size[axis] - at[static_cast<size_t>(o)];
      schedule.lanes[static_cast<size_t>(lane)].push_back(static_cast<int>(schedule.parts.size()));
      schedule.parts.push_back(part);
    }
  }
  return schedule;
}

// Where each operator's output lies.
std::map<std::string, int64_t> Offsets(const Graph& graph, const StepProgram& program) {
  std::map<std::string, int64_t> offsets;
  for (const Operator& op : graph.ops) {
    for (const BufferSpec& buffer : program.buffers) {
      if (buffer.tensor == op.output) offsets[op.name] = buffer.offset;
    }
  }
  return offsets;
}

class InPlace : public testing::Test {
 protected:
  // a, b, c, d: one after the other; with `late`, d reads a as well.
  void Build(bool late) {
    GraphBuilder b("chain");
    TensorId a = Gelu(&b, "a", b.Input("x", kShape));
    TensorId c = b.Add("c", OpKind::kSoftmax, {Gelu(&b, "b", a)}, SoftmaxAttrs{});
    TensorId d = late ? b.Add("d", OpKind::kBinary, {c, a}, BinaryAttrs{}) : Gelu(&b, "d", c);
    b.Output(Gelu(&b, "e", d));
    graph_ = Placed(b.Build());
  }
  std::map<std::string, int64_t> Lowered(const Schedule& schedule, LaneSet set = LaneSet::kTwoCpus) {
    Result<Plan> plan = Lower(graph_, Lanes(set), schedule);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    if (!plan.ok()) return {};
    program_ = plan->program;
    return Offsets(graph_, program_);
  }
  Graph graph_;
  StepProgram program_;
};

TEST_F(InPlace, AChainTakesOneBuffer) {
  Build(false);
  auto at = Lowered(SingleLaneSchedule(graph_, Lanes(LaneSet::kTwoCpus), 0).value());
  EXPECT_EQ(at["a"], at["b"]);
  EXPECT_EQ(at["a"], at["c"]);
  EXPECT_EQ(at["a"], at["d"]);
  EXPECT_NE(at["d"], at["e"]) << "an output is the caller's";
}

TEST_F(InPlace, WhatIsReadLaterStays) {
  Build(true);
  auto at = Lowered(SingleLaneSchedule(graph_, Lanes(LaneSet::kTwoCpus), 0).value());
  EXPECT_NE(at["a"], at["b"]);
  EXPECT_EQ(at["b"], at["c"]);
  EXPECT_TRUE(at["d"] == at["c"] || at["d"] == at["a"]);
  // Forced together, the verifier sees it.
  StepProgram bad = program_;
  for (BufferSpec& buffer : bad.buffers) {
    if (buffer.tensor == graph_.ops[1].output) buffer.offset = at["a"];
  }
  EXPECT_EQ(VerifyProgram(graph_, bad).code(), PLAIT_CORRUPT);
}

TEST_F(InPlace, PartsCutAlikeDoTooOnLanesOfTheirOwn) {
  Build(false);
  for (LaneSet set : {LaneSet::kTwoCpus, LaneSet::kCpuGpu}) {
    auto at = Lowered(Cut(graph_, 1, {8, 8, 8, 8, 8}), set);
    EXPECT_EQ(at["a"], at["b"]);
    EXPECT_EQ(at["a"], at["c"]);
    EXPECT_EQ(at["a"], at["d"]);
  }
}

TEST_F(InPlace, HoweverTheyAreCut) {
  Build(false);
  // Each element has one reader, which writes over it; who has written it is waited for.
  auto at = Lowered(Cut(graph_, 1, {8, 4, 12, 8, 8}));
  EXPECT_EQ(at["a"], at["b"]);
  EXPECT_EQ(at["a"], at["c"]);
  EXPECT_EQ(at["a"], at["d"]);
  // Without a wait the reader may come too late.
  for (size_t lane = 0; lane < 2; ++lane) {
    for (size_t n = 0; n < program_.steps[lane].size(); ++n) {
      if (program_.steps[lane][n].waits.empty()) continue;
      StepProgram bad = program_;
      bad.steps[lane][n].waits.clear();
      EXPECT_EQ(VerifyProgram(graph_, bad).code(), PLAIT_CORRUPT);
    }
  }
}

TEST_F(InPlace, IsForKernelsThatMay) {
  GraphBuilder b("conv");
  const TensorId w = b.Constant("w", {32, 1, 1, 32}, std::vector<float>(32 * 32, 1.0f));
  TensorId t = Gelu(&b, "a", b.Input("x", kShape));
  t = b.Add("c", OpKind::kConv2D, {t, w, kNoTensor}, Conv2DAttrs{});
  b.Output(Gelu(&b, "e", t));
  graph_ = Placed(b.Build());
  auto at = Lowered(SingleLaneSchedule(graph_, Lanes(LaneSet::kTwoCpus), 0).value());
  EXPECT_NE(at["a"], at["c"]);
}

}  // namespace
}  // namespace plait
