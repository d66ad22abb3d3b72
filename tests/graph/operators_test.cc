#include "src/graph/operators.h"

#include <gtest/gtest.h>

#include "src/graph/builder.h"
#include "tests/graph/naive.h"
#include "tests/graph/random_operator.h"

namespace plait {
namespace {

TEST(Declarations, EveryKindHasItsOwn) {
  for (int k = 0; k < kOpKindCount; ++k) {
    const auto kind = static_cast<OpKind>(k);
    const OperatorDecl& decl = Declaration(kind);
    EXPECT_EQ(decl.kind, kind);
    EXPECT_EQ(decl.name, Name(kind));
    EXPECT_LE(decl.min_inputs, decl.max_inputs);
    EXPECT_NE(decl.infer_shape, nullptr);
    EXPECT_NE(decl.input_region, nullptr);
    EXPECT_NE(decl.split_axes, nullptr);
    EXPECT_NE(decl.work, nullptr);
  }
}

// The box of all elements of each input that the definition of the operator reads for `out`.
std::vector<Region> BoxesRead(const Graph& graph, const Operator& op, const Region& out) {
  std::vector<Region> boxes(op.inputs.size());
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (op.inputs[i] == kNoTensor) continue;
    const int rank = graph.input(op, static_cast<int>(i)).shape.rank();
    boxes[i] = {Dims::Filled(rank, 0), Dims::Filled(rank, 0)};
  }
  const naive::Reader reader = [&](int i, const Dims& index) {
    Region& box = boxes[static_cast<size_t>(i)];
    const Region element{index, Dims::Filled(index.rank(), 1)};
    box = Enclose(box, element);
    return 1.0;
  };
  naive::ForEachIndex(out, [&](const Dims& o) { naive::Element(graph, op, o, reader); });
  return boxes;
}

// Kinds whose regions are claimed to be the very box that is read. Windows with gaps between their elements, and Reshapes that mix axes, may claim more.
bool ClaimsExactly(const Operator& op) {
  if (op.kind == OpKind::kReshape) return false;
  if (const auto* conv = std::get_if<Conv2DAttrs>(&op.attrs)) return conv->dilation_h == 1 && conv->dilation_w == 1 && conv->pad == Padding{};
  if (const auto* pool = std::get_if<Pool2DAttrs>(&op.attrs)) return pool->pad == Padding{};
  return true;
}

class RegionProperty : public testing::TestWithParam<int> {};

TEST_P(RegionProperty, WhatIsReadLiesInTheClaimedRegions) {
  const auto kind = static_cast<OpKind>(GetParam());
  int made = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    naive::RandomOperator random(seed * 64 + static_cast<uint32_t>(kind));
    const Result<Graph> graph = random.Make(kind);
    if (!graph.ok()) {
      EXPECT_EQ(graph.status().code(), PLAIT_INVALID_ARGUMENT);
      continue;
    }
    ++made;
    const Operator& op = graph->op(0);
    for (int n = 0; n < 4; ++n) {
      const Region out = n == 0 ? Region::Whole(graph->output(op).shape) : random.RegionOf(graph->output(op).shape);
      const std::vector<Region> read = BoxesRead(*graph, op, out);
      for (int i = 0; i < static_cast<int>(op.inputs.size()); ++i) {
        if (op.inputs[static_cast<size_t>(i)] == kNoTensor) continue;
        const Region claimed = InputRegion(*graph, op, i, out);
        const Region& box = read[static_cast<size_t>(i)];
        EXPECT_TRUE(Contains(Region::Whole(graph->input(op, i).shape), claimed)) << ToString(claimed);
        EXPECT_TRUE(Contains(claimed, box)) << "input " << i << " out " << ToString(out) << " claimed " << ToString(claimed) << " read " << ToString(box);
        if (ClaimsExactly(op)) {
          EXPECT_EQ(claimed.Count(), box.Count()) << "input " << i << " out " << ToString(out) << " claimed " << ToString(claimed);
        }
      }
    }
  }
  EXPECT_GE(made, 80) << "too few of the random operators were valid";
}

TEST_P(RegionProperty, AnEmptyRegionReadsNoActivations) {
  const auto kind = static_cast<OpKind>(GetParam());
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    naive::RandomOperator random(seed * 64 + static_cast<uint32_t>(kind));
    const Result<Graph> graph = random.Make(kind);
    // A scalar has no empty region.
    if (!graph.ok() || graph->output(graph->op(0)).shape.rank() == 0 || graph->input(graph->op(0), 0).shape.rank() == 0) continue;
    Region none = Region::Whole(graph->output(graph->op(0)).shape);
    none.size = Dims::Filled(none.size.rank(), 0);
    EXPECT_TRUE(InputRegion(*graph, graph->op(0), 0, none).IsEmpty());
  }
}

TEST_P(RegionProperty, SplitAxesAreLongerThanOneAndDistinct) {
  const auto kind = static_cast<OpKind>(GetParam());
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    naive::RandomOperator random(seed * 64 + static_cast<uint32_t>(kind));
    const Result<Graph> graph = random.Make(kind);
    if (!graph.ok()) continue;
    const Operator& op = graph->op(0);
    const Dims& shape = graph->output(op).shape;
    int previous = -1;
    for (const SplitAxis& split : SplitAxes(*graph, op)) {
      EXPECT_GT(split.axis, previous);
      previous = split.axis;
      ASSERT_LT(split.axis, shape.rank());
      EXPECT_GT(shape[split.axis], 1);
      EXPECT_EQ(split.role == AxisRole::kChannels, split.axis == shape.rank() - 1);
    }
    EXPECT_EQ(IsView(kind) && previous >= 0, false);
  }
}

TEST_P(RegionProperty, WorkOfHalvesAddsUp) {
  const auto kind = static_cast<OpKind>(GetParam());
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    naive::RandomOperator random(seed * 64 + static_cast<uint32_t>(kind));
    const Result<Graph> graph = random.Make(kind);
    if (!graph.ok()) continue;
    const Operator& op = graph->op(0);
    const Region whole = Region::Whole(graph->output(op).shape);
    const Work all = WorkOf(*graph, op);
    for (const SplitAxis& split : SplitAxes(*graph, op)) {
      Region first = whole, second = whole;
      first.size[split.axis] = whole.size[split.axis] / 2;
      second.begin[split.axis] = first.size[split.axis];
      second.size[split.axis] -= first.size[split.axis];
      const Work a = WorkOf(*graph, op, first), b = WorkOf(*graph, op, second);
      EXPECT_EQ(a.macs + b.macs, all.macs);
      EXPECT_EQ(a.output_bytes + b.output_bytes, all.output_bytes);
      EXPECT_LE(a.input_bytes, all.input_bytes);
      EXPECT_LE(a.weight_bytes, all.weight_bytes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllKinds, RegionProperty, testing::Range(0, kOpKindCount),
                         [](const auto& param) { return std::string(Name(static_cast<OpKind>(param.param))); });

Graph OneOperator(OpKind kind, const std::vector<Dims>& activations, const std::vector<Dims>& constants, OpAttrs attrs) {
  GraphBuilder b("g");
  std::vector<TensorId> inputs;
  for (const Dims& shape : activations) inputs.push_back(b.Input(StrCat("x", inputs.size()), shape));
  for (const Dims& shape : constants) {
    inputs.push_back(b.Constant(StrCat("w", inputs.size()), shape, std::vector<float>(static_cast<size_t>(shape.Count()))));
  }
  b.Output(b.Add("op", kind, inputs, std::move(attrs)));
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *graph : Graph();
}

TEST(Regions, ConvolutionHalo) {
  const Graph g = OneOperator(OpKind::kConv2D, {{1, 10, 12, 4}}, {{8, 3, 3, 4}}, Conv2DAttrs{.stride_h = 2, .stride_w = 2, .pad = {1, 1, 1, 1}});
  const Operator& op = g.op(0);
  EXPECT_EQ(g.output(op).shape, (Dims{1, 5, 6, 8}));
  EXPECT_EQ(InputRegion(g, op, 0, {{0, 1, 0, 0}, {1, 2, 6, 8}}), (Region{{0, 1, 0, 0}, {1, 5, 12, 4}}));
  EXPECT_EQ(InputRegion(g, op, 0, {{0, 0, 0, 2}, {1, 1, 1, 3}}), (Region{{0, 0, 0, 0}, {1, 2, 2, 4}}));
  EXPECT_EQ(InputRegion(g, op, 1, {{0, 0, 0, 2}, {1, 1, 1, 3}}), (Region{{2, 0, 0, 0}, {3, 3, 3, 4}}));
  EXPECT_EQ(WorkOf(g, op).macs, 5 * 6 * 8 * 9 * 4);
}

TEST(Regions, GroupedConvolutionReadsItsGroups) {
  const Graph g = OneOperator(OpKind::kConv2D, {{1, 4, 4, 6}}, {{9, 1, 1, 2}}, Conv2DAttrs{.groups = 3});
  EXPECT_EQ(InputRegion(g, g.op(0), 0, {{0, 0, 0, 3}, {1, 4, 4, 3}}), (Region{{0, 0, 0, 2}, {1, 4, 4, 2}}));
  EXPECT_EQ(InputRegion(g, g.op(0), 0, {{0, 0, 0, 2}, {1, 4, 4, 2}}), (Region{{0, 0, 0, 0}, {1, 4, 4, 4}}));
}

TEST(Regions, ReshapeKeepsBoxesThatStayBoxes) {
  const Graph split = OneOperator(OpKind::kReshape, {{1, 5, 12}}, {}, ReshapeAttrs{{1, 5, 3, 4}});  // channels into heads
  EXPECT_EQ(InputRegion(split, split.op(0), 0, {{0, 1, 1, 0}, {1, 2, 1, 4}}), (Region{{0, 1, 4}, {1, 2, 4}}));
  const Graph merge = OneOperator(OpKind::kReshape, {{1, 4, 6, 8}}, {}, ReshapeAttrs{{1, 24, 8}});  // an image into tokens
  EXPECT_EQ(InputRegion(merge, merge.op(0), 0, {{0, 6, 2}, {1, 12, 3}}), (Region{{0, 1, 0, 2}, {1, 2, 6, 3}}));
  EXPECT_EQ(InputRegion(merge, merge.op(0), 0, {{0, 7, 0}, {1, 2, 8}}), (Region{{0, 1, 1, 0}, {1, 1, 2, 8}}));
  const Graph drop = OneOperator(OpKind::kReshape, {{2, 1, 1, 8}}, {}, ReshapeAttrs{{2, 8}});
  EXPECT_EQ(InputRegion(drop, drop.op(0), 0, {{1, 3}, {1, 2}}), (Region{{1, 0, 0, 3}, {1, 1, 1, 2}}));
}

TEST(Regions, ConcatOperandOutsideIsEmpty) {
  const Graph g = OneOperator(OpKind::kConcat, {{1, 2, 3}, {1, 2, 5}}, {}, ConcatAttrs{2});
  EXPECT_TRUE(InputRegion(g, g.op(0), 0, {{0, 0, 3}, {1, 2, 5}}).IsEmpty());
  EXPECT_EQ(InputRegion(g, g.op(0), 1, {{0, 0, 2}, {1, 2, 3}}), (Region{{0, 0, 0}, {1, 2, 2}}));
}

std::vector<std::pair<int, AxisRole>> Axes(const Graph& graph) {
  std::vector<std::pair<int, AxisRole>> out;
  for (const SplitAxis& s : SplitAxes(graph, graph.op(0))) out.emplace_back(s.axis, s.role);
  return out;
}

TEST(SplitAxes, ByKind) {
  using Expected = std::vector<std::pair<int, AxisRole>>;
  constexpr auto kBatch = AxisRole::kBatch, kRows = AxisRole::kRows, kColumns = AxisRole::kColumns, kChannels = AxisRole::kChannels;
  EXPECT_EQ(Axes(OneOperator(OpKind::kConv2D, {{2, 4, 4, 3}}, {{8, 1, 1, 3}}, Conv2DAttrs{})), (Expected{{0, kBatch}, {1, kRows}, {3, kChannels}}));
  EXPECT_EQ(Axes(OneOperator(OpKind::kMaxPool2D, {{1, 4, 4, 3}}, {}, Pool2DAttrs{})), (Expected{{1, kRows}, {3, kChannels}}));
  EXPECT_EQ(Axes(OneOperator(OpKind::kFullyConnected, {{1, 7, 5, 3}}, {{8, 3}}, FullyConnectedAttrs{})), (Expected{{1, kRows}, {3, kChannels}}));
  EXPECT_EQ(Axes(OneOperator(OpKind::kFullyConnected, {{1, 3}}, {{8, 3}}, FullyConnectedAttrs{})), (Expected{{1, kChannels}}));
  EXPECT_EQ(Axes(OneOperator(OpKind::kMatMul, {{1, 3, 5, 4}, {1, 3, 4, 6}}, {}, MatMulAttrs{})), (Expected{{1, kBatch}, {2, kRows}, {3, kChannels}}));
  EXPECT_EQ(Axes(OneOperator(OpKind::kUnary, {{1, 7, 5, 3}}, {}, UnaryAttrs{})), (Expected{{1, kRows}, {2, kColumns}, {3, kChannels}}));
  EXPECT_EQ(Axes(OneOperator(OpKind::kSoftmax, {{1, 3, 5, 5}}, {}, SoftmaxAttrs{})), (Expected{{1, kRows}, {2, kColumns}}));
  EXPECT_EQ(Axes(OneOperator(OpKind::kReduceMean, {{1, 4, 4, 6}}, {}, ReduceAttrs{{1, 2}, true})), (Expected{{3, kChannels}}));
  EXPECT_EQ(Axes(OneOperator(OpKind::kConcat, {{1, 4}, {1, 4}}, {}, ConcatAttrs{1})), (Expected{}));
}

TEST(Work, CountsConstantsApart) {
  const Graph g = OneOperator(OpKind::kFullyConnected, {{5, 16}}, {{8, 16}, {8}}, FullyConnectedAttrs{});
  const Work work = WorkOf(g, g.op(0));
  EXPECT_EQ(work.macs, 5 * 16 * 8);
  EXPECT_EQ(work.input_bytes, 5 * 16 * 4);
  EXPECT_EQ(work.weight_bytes, (8 * 16 + 8) * 4);
  EXPECT_EQ(work.output_bytes, 5 * 8 * 4);
  EXPECT_EQ(TotalMacs(g), 5 * 16 * 8);
}

TEST(ParameterCount, LeavesStatisticsAndScalarsOut) {
  GraphBuilder b("g");
  const auto c = [&](const char* name, Dims shape) { return b.Constant(name, shape, std::vector<float>(static_cast<size_t>(shape.Count()))); };
  TensorId x = b.Input("x", {1, 4, 4, 3});
  x = b.Add("conv", OpKind::kConv2D, {x, c("w", {8, 1, 1, 3}), c("bias", {8})}, Conv2DAttrs{});
  x = b.Add("bn", OpKind::kBatchNorm, {x, c("gamma", {8}), c("beta", {8}), c("mean", {8}), c("variance", {8})}, NormAttrs{});
  x = b.Add("scale", OpKind::kBinary, {x, c("scalar", {1})}, BinaryAttrs{BinaryKind::kMul});
  b.Output(b.Add("position", OpKind::kBinary, {x, c("embedding", {4, 4, 8})}, BinaryAttrs{}));
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(ParameterCount(*graph), 24 + 8 + 8 + 8 + 128);
}

}  // namespace
}  // namespace plait
