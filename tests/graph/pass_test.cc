// Each pass alone, and all of them on random graphs.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "src/graph/builder.h"
#include "src/graph/operators.h"
#include "src/graph/passes.h"
#include "tests/graph/naive.h"

namespace plait {
namespace {

class Net {
 public:
  TensorId Weights(Dims shape, float low = 0.25f, float high = 1.0f) {
    return b.Constant(StrCat("w", ++count_), shape, naive::RandomValues(random_, shape.Count(), low, high));
  }
  TensorId Scalar(float v) { return b.Constant(StrCat("s", ++count_), {1}, std::vector<float>{v}); }
  TensorId Op(OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
    return b.Add(StrCat("op", ++count_), kind, std::move(inputs), std::move(attrs));
  }
  TensorId Unary(TensorId x, UnaryKind kind, Clamp clamp = {}) { return Op(OpKind::kUnary, {x}, UnaryAttrs{kind, clamp}); }
  TensorId Binary(BinaryKind kind, TensorId x, TensorId y) { return Op(OpKind::kBinary, {x, y}, BinaryAttrs{kind}); }
  TensorId Conv(TensorId x, int64_t out, Conv2DAttrs attrs = {}) {
    return Op(OpKind::kConv2D, {x, Weights({out, 3, 3, b.shape(x)[3] / attrs.groups}, -1, 1)}, attrs);
  }
  Graph Build(std::vector<TensorId> outputs) {
    for (const TensorId t : outputs) b.Output(t);
    Result<Graph> graph = b.Build();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return graph.ok() ? *graph : Graph();
  }
  GraphBuilder b{"net"};

 private:
  std::mt19937 random_{3};
  int count_ = 0;
};

using Pass = bool (*)(Graph*);

// Runs the pass, checks that results stay and that it then finds nothing more; returns the kinds of operators left, in order.
std::vector<OpKind> KindsAfter(Pass pass, Graph graph, Graph* result = nullptr, double tolerance = 1e-5) {
  const naive::Values inputs = naive::RandomInputs(graph, 11);
  const naive::Values expected = naive::Run(graph, inputs);
  const uint64_t before = Hash(graph);
  const bool changed = pass(&graph);
  EXPECT_EQ(changed, Hash(graph) != before);
  const Status status = Validate(graph);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_LT(naive::RelativeError(expected, naive::Run(graph, inputs)), tolerance);
  EXPECT_FALSE(pass(&graph)) << "a second run must find nothing to do";
  std::vector<OpKind> kinds;
  for (const Operator& op : graph.ops) kinds.push_back(op.kind);
  if (result != nullptr) *result = graph;
  return kinds;
}

using Kinds = std::vector<OpKind>;

TEST(FoldConstants, EvaluatesEveryKindThatItClaims) {
  Net n;
  const TensorId w = n.Weights({2, 3, 4}), v = n.Weights({3, 1});
  const std::vector<TensorId> values = {
      n.Binary(BinaryKind::kDiv, w, v), n.Binary(BinaryKind::kSub, v, w), n.Binary(BinaryKind::kMax, w, v), n.Binary(BinaryKind::kMin, w, v),
      n.Op(OpKind::kTranspose, {w}, TransposeAttrs{{2, 0, 1}}), n.Op(OpKind::kSlice, {w}, SliceAttrs{{0, 1, 2}, {2, 2, 1}}),
      n.Op(OpKind::kPad, {w}, PadAttrs{{0, 1, 0}, {1, 0, 2}, 0.5f}), n.Op(OpKind::kConcat, {w, w}, ConcatAttrs{1}),
      n.Op(OpKind::kReshape, {w}, ReshapeAttrs{{4, 6}}), n.Op(OpKind::kReduceMean, {w}, ReduceAttrs{{0, 2}, false}),
      n.Op(OpKind::kMatMul, {w, n.Op(OpKind::kTranspose, {w}, TransposeAttrs{{0, 2, 1}})}, MatMulAttrs{}),
      n.Op(OpKind::kMatMul, {w, w}, MatMulAttrs{true})};
  // Each value meets an input, so that the graph's outputs are computed.
  std::vector<TensorId> outputs;
  for (TensorId value : values) {
    for (int k = 0; k <= static_cast<int>(UnaryKind::kLog); ++k) {
      if (value != values[0] && k > 0) break;
      const TensorId folded = n.Unary(value, static_cast<UnaryKind>(k));
      outputs.push_back(n.Binary(BinaryKind::kAdd, folded, n.b.Input(StrCat("x", outputs.size()), n.b.shape(folded))));
    }
  }
  const size_t count = outputs.size();
  EXPECT_EQ(KindsAfter(FoldConstants, n.Build(outputs)), Kinds(count, OpKind::kBinary));
}

TEST(FoldConstants, KeepsOutputsComputedAndResultsSmall) {
  Net n;
  const TensorId w = n.Weights({1, 4});
  const TensorId huge = n.Op(OpKind::kPad, {w}, PadAttrs{{1 << 20, 0}, {0, 60}, 0});
  Graph graph = n.Build({n.Unary(w, UnaryKind::kExp), n.Op(OpKind::kReduceMean, {huge}, ReduceAttrs{{0, 1}, true})});
  EXPECT_FALSE(FoldConstants(&graph));
  EXPECT_EQ(graph.op_count(), 3);
}

TEST(FoldBatchNorm, IntoEveryOperatorWithWeights) {
  Net n;
  const auto norm = [&](TensorId x) {
    const int64_t c = n.b.shape(x).back();
    return n.Op(OpKind::kBatchNorm, {x, n.Weights({c}), n.Weights({c}), n.Weights({c}), n.Weights({c})}, NormAttrs{1e-3f});
  };
  TensorId x = norm(n.Conv(n.b.Input("x", {1, 6, 6, 4}), 6, {.groups = 2}));
  x = norm(n.Op(OpKind::kDepthwiseConv2D, {x, n.Weights({2, 2, 6}), n.Weights({6})}, Conv2DAttrs{}));
  x = norm(n.Op(OpKind::kFullyConnected, {x, n.Weights({5, 6}), kNoTensor}, FullyConnectedAttrs{}));
  EXPECT_EQ(KindsAfter(FoldBatchNorm, n.Build({x})), (Kinds{OpKind::kConv2D, OpKind::kDepthwiseConv2D, OpKind::kFullyConnected}));
}

TEST(FoldBatchNorm, WithoutWeightsBefore) {
  for (const Dims& shape : {Dims{1, 3, 3, 4}, Dims{2, 4}}) {
    Net n;
    const TensorId x = n.b.Input("x", shape);
    const Graph graph = n.Build({n.Op(OpKind::kBatchNorm, {x, n.Weights({4}), n.Weights({4}), n.Weights({4}), n.Weights({4})}, NormAttrs{})});
    EXPECT_EQ(KindsAfter(FoldBatchNorm, graph),
              shape.rank() == 4 ? Kinds{OpKind::kDepthwiseConv2D} : (Kinds{OpKind::kBinary, OpKind::kBinary}));
  }
}

TEST(FoldBatchNorm, WithComputedScale) {
  Net n;
  const TensorId x = n.b.Input("x", {2, 4}), gamma = n.b.Input("gamma", {4});
  Graph graph;
  KindsAfter(FoldBatchNorm, n.Build({n.Op(OpKind::kBatchNorm, {x, gamma, n.Weights({4}), n.Weights({4}), n.Weights({4})}, NormAttrs{})}), &graph);
  for (const Operator& op : graph.ops) EXPECT_NE(op.kind, OpKind::kBatchNorm);
}

TEST(FoldBatchNorm, LeavesAConvolutionWithTwoReadersAlone) {
  Net n;
  const TensorId conv = n.Conv(n.b.Input("x", {1, 6, 6, 4}), 4);
  const TensorId bn = n.Op(OpKind::kBatchNorm, {conv, n.Weights({4}), n.Weights({4}), n.Weights({4}), n.Weights({4})}, NormAttrs{});
  EXPECT_EQ(KindsAfter(FoldBatchNorm, n.Build({n.Binary(BinaryKind::kAdd, bn, conv)})),
            (Kinds{OpKind::kConv2D, OpKind::kDepthwiseConv2D, OpKind::kBinary}));
}

TEST(FoldBatchNorm, ScaleAndShiftByConstants) {
  Net n;
  TensorId x = n.Conv(n.b.Input("x", {1, 6, 6, 4}), 4);
  x = n.Binary(BinaryKind::kDiv, n.Binary(BinaryKind::kMul, n.Weights({1, 1, 1, 4}), x), n.Scalar(3));
  EXPECT_EQ(KindsAfter(FoldBatchNorm, n.Build({x})), Kinds{OpKind::kConv2D});
}

TEST(FoldBatchNorm, ThroughAConcatOfChannels) {
  Net n;
  const TensorId x = n.b.Input("x", {1, 6, 6, 4});
  const TensorId joined = n.Op(OpKind::kConcat, {n.Conv(x, 3), n.Conv(x, 5)}, ConcatAttrs{3});
  const TensorId bn = n.Op(OpKind::kBatchNorm, {joined, n.Weights({8}), n.Weights({8}), n.Weights({8}), n.Weights({8})}, NormAttrs{});
  EXPECT_EQ(KindsAfter(FoldBatchNorm, n.Build({bn})), (Kinds{OpKind::kConv2D, OpKind::kConv2D, OpKind::kConcat}));
}

enum class Factor { kBeforeProduct, kBehindProduct };

// Scores of two heads over five tokens; `part` of the joined projection is what the product reads on its left.
Graph Scores(int64_t part, bool read_twice, BinaryKind kind, Factor factor) {
  Net n;
  const TensorId x = n.b.Input("x", {1, 5, 8});
  TensorId qkv = n.Op(OpKind::kFullyConnected, {x, n.Weights({24, 8}, -1, 1), n.Weights({24})}, FullyConnectedAttrs{});
  qkv = n.Op(OpKind::kTranspose, {n.Op(OpKind::kReshape, {qkv}, ReshapeAttrs{{1, 5, 3, 2, 4}})}, TransposeAttrs{{2, 0, 3, 1, 4}});
  const auto head = [&](int64_t i) {
    return n.Op(OpKind::kReshape, {n.Op(OpKind::kSlice, {qkv}, SliceAttrs{{i, 0, 0, 0, 0}, {1, 1, 2, 5, 4}})}, ReshapeAttrs{{1, 2, 5, 4}});
  };
  const auto by = [&](TensorId tensor) { return n.Binary(kind, tensor, n.Scalar(0.35f)); };
  TensorId queries = head(part);
  if (factor == Factor::kBeforeProduct) queries = by(queries);
  const TensorId scores = n.Op(OpKind::kMatMul, {queries, head(1)}, MatMulAttrs{true});
  std::vector<TensorId> outputs = {factor == Factor::kBehindProduct ? by(scores) : scores};
  if (read_twice) outputs.push_back(n.Unary(head(part), UnaryKind::kTanh));
  return n.Build(outputs);
}

TEST(FoldScales, IntoTheChannelsThatOnlyTheProductReads) {
  for (const Factor factor : {Factor::kBeforeProduct, Factor::kBehindProduct}) {
    for (const BinaryKind kind : {BinaryKind::kMul, BinaryKind::kDiv}) {
      const Kinds left = KindsAfter(FoldScales, Scores(0, false, kind, factor));
      EXPECT_EQ(left.back(), OpKind::kMatMul);
      EXPECT_EQ(std::count(left.begin(), left.end(), OpKind::kBinary), 0);
    }
  }
}

TEST(FoldScales, LeavesChannelsThatOthersReadAlone) {
  for (const Factor factor : {Factor::kBeforeProduct, Factor::kBehindProduct}) {
    Graph twice = Scores(0, true, BinaryKind::kMul, factor), both_sides = Scores(1, false, BinaryKind::kMul, factor);
    Graph sum = Scores(0, false, BinaryKind::kAdd, factor);
    EXPECT_FALSE(FoldScales(&twice));
    EXPECT_FALSE(FoldScales(&both_sides));
    EXPECT_FALSE(FoldScales(&sum));
  }
}

TEST(FuseBias, AddAndSubtract) {
  Net n;
  TensorId x = n.Conv(n.b.Input("x", {1, 6, 6, 4}), 4);
  x = n.Binary(BinaryKind::kSub, n.Binary(BinaryKind::kAdd, n.Weights({4}), x), n.Weights({1, 1, 4}));
  EXPECT_EQ(KindsAfter(FuseBias, n.Build({x})), Kinds{OpKind::kConv2D});
}

TEST(FuseBias, LeavesSpatialConstantsAndClampsAlone) {
  Net n;
  const TensorId conv = n.Conv(n.b.Input("x", {1, 6, 6, 4}), 4, {.clamp = kRelu});
  const TensorId other = n.Conv(n.b.Input("y", {1, 6, 6, 4}), 4);
  Graph graph = n.Build({n.Binary(BinaryKind::kAdd, conv, n.Weights({4})), n.Binary(BinaryKind::kAdd, other, n.Weights({4, 1}))});
  EXPECT_FALSE(FuseBias(&graph));
}

TEST(FuseClamps, IntoEveryProducerAndChained) {
  Net n;
  const auto clamp = [&](TensorId x, float low, float high) { return n.Unary(x, UnaryKind::kClamp, {low, high}); };
  TensorId x = clamp(clamp(n.Conv(n.b.Input("x", {1, 8, 8, 4}), 4), 0, 3), -1, 2.5f);
  x = clamp(n.Op(OpKind::kMaxPool2D, {x}, Pool2DAttrs{.kernel_h = 2, .kernel_w = 2}), 0.25f, 2);
  x = clamp(n.Op(OpKind::kReshape, {n.Binary(BinaryKind::kAdd, x, x)}, ReshapeAttrs{{1, 100}}), 0.5f, 3);
  x = clamp(n.Op(OpKind::kFullyConnected, {x, n.Weights({4, 100}, -1, 1)}, FullyConnectedAttrs{}), 1, 0.5f + 1);
  EXPECT_EQ(KindsAfter(FuseClamps, n.Build({x})),
            (Kinds{OpKind::kConv2D, OpKind::kMaxPool2D, OpKind::kBinary, OpKind::kReshape, OpKind::kFullyConnected}));
}

TEST(FuseClamps, ThroughConcat) {
  Net n;
  const TensorId x = n.b.Input("x", {1, 6, 6, 4});
  const TensorId joined = n.Op(OpKind::kConcat, {n.Conv(x, 3), n.Conv(x, 5)}, ConcatAttrs{3});
  EXPECT_EQ(KindsAfter(FuseClamps, n.Build({n.Unary(joined, UnaryKind::kClamp, kRelu)})),
            (Kinds{OpKind::kConv2D, OpKind::kConv2D, OpKind::kConcat}));
}

TEST(FuseClamps, LeavesSharedAndOutputTensorsAlone) {
  Net n;
  const TensorId shared = n.Conv(n.b.Input("x", {1, 6, 6, 4}), 4), output = n.Conv(n.b.Input("y", {1, 6, 6, 4}), 4);
  const TensorId relu = n.Unary(shared, UnaryKind::kClamp, kRelu);
  Graph graph = n.Build({n.Binary(BinaryKind::kSub, relu, shared), output, n.Unary(output, UnaryKind::kClamp, kRelu)});
  EXPECT_FALSE(FuseClamps(&graph));
}

TEST(FusePadding, IntoConvolutionsAndPools) {
  const PadAttrs zero{{0, 1, 0, 0}, {0, 1, 1, 0}, 0};
  const PadAttrs lowest{{0, 1, 0, 0}, {0, 1, 1, 0}, -INFINITY};
  const Pool2DAttrs pool{.kernel_h = 2, .kernel_w = 2};
  Net n;
  const TensorId x = n.b.Input("x", {1, 6, 6, 4});
  const TensorId padded = n.Op(OpKind::kPad, {x}, zero);
  EXPECT_EQ(KindsAfter(FusePadding, n.Build({n.Conv(padded, 2, {.pad = {1, 1, 1, 1}}), n.Op(OpKind::kAveragePool2D, {padded}, pool),
                                             n.Op(OpKind::kMaxPool2D, {n.Op(OpKind::kPad, {x}, lowest)}, pool)})),
            (Kinds{OpKind::kConv2D, OpKind::kAveragePool2D, OpKind::kMaxPool2D}));
}

TEST(FusePadding, LeavesWhatWouldChangeResults) {
  Net n;
  const TensorId x = n.b.Input("x", {1, 6, 6, 4});
  const TensorId zero = n.Op(OpKind::kPad, {x}, PadAttrs{{0, 1, 1, 0}, {0, 1, 1, 0}, 0});
  const TensorId one = n.Op(OpKind::kPad, {x}, PadAttrs{{0, 1, 1, 0}, {0, 1, 1, 0}, 1});
  const TensorId channels = n.Op(OpKind::kPad, {x}, PadAttrs{{0, 0, 0, 1}, {0, 0, 0, 0}, 0});
  const Pool2DAttrs padded{.kernel_h = 2, .kernel_w = 2, .pad = {1, 1, 0, 0}};
  Graph graph = n.Build({n.Op(OpKind::kMaxPool2D, {zero}, padded), n.Op(OpKind::kAveragePool2D, {zero}, padded), n.Conv(one, 2), n.Conv(channels, 2)});
  EXPECT_FALSE(FusePadding(&graph));
}

TEST(RecognizeGelu, InItsUsualOrders) {
  for (int order = 0; order < 5; ++order) {
    SCOPED_TRACE(order);
    Net n;
    const TensorId x = n.b.Input("x", {2, 8});
    const TensorId inner = order % 2 == 0 ? n.Binary(BinaryKind::kDiv, x, n.Scalar(1.4142135f)) : n.Binary(BinaryKind::kMul, n.Scalar(0.70710677f), x);
    const TensorId sum = n.Binary(BinaryKind::kAdd, n.Unary(inner, UnaryKind::kErf), n.Scalar(1));
    const auto mul = [&](TensorId a, TensorId b) { return n.Binary(BinaryKind::kMul, a, b); };
    TensorId out = kNoTensor;
    switch (order) {
      case 0: out = mul(mul(x, sum), n.Scalar(0.5f)); break;
      case 1: out = mul(n.Scalar(0.5f), mul(sum, x)); break;
      case 2: out = mul(mul(x, n.Scalar(0.5f)), sum); break;
      case 3: out = mul(x, mul(sum, n.Scalar(0.5f))); break;
      default: out = n.Binary(BinaryKind::kDiv, mul(x, sum), n.Scalar(2)); break;
    }
    Graph graph;
    EXPECT_EQ(KindsAfter(RecognizeGelu, n.Build({out}), &graph), Kinds{OpKind::kUnary});
    EXPECT_EQ(graph.op(0).as<UnaryAttrs>().kind, UnaryKind::kGelu);
  }
}

TEST(RecognizeGelu, LeavesOtherFactorsAlone) {
  for (const float factor : {0.25f, 0.51f, 1.0f}) {
    Net n;
    const TensorId x = n.b.Input("x", {2, 8});
    const TensorId erf = n.Unary(n.Binary(BinaryKind::kDiv, x, n.Scalar(1.4142135f)), UnaryKind::kErf);
    Graph graph = n.Build({n.Binary(BinaryKind::kMul, n.Binary(BinaryKind::kMul, x, n.Binary(BinaryKind::kAdd, erf, n.Scalar(1))), n.Scalar(factor))});
    EXPECT_FALSE(RecognizeGelu(&graph));
  }
}

TEST(RecognizeLayerNorm, AsExportersWriteIt) {
  for (int form = 0; form < 4; ++form) {
    SCOPED_TRACE(form);
    Net n;
    const TensorId x = n.b.Input("x", {2, 3, 8});
    const auto mean = [&](TensorId t) { return n.Op(OpKind::kReduceMean, {t}, ReduceAttrs{{2}, true}); };
    const TensorId d = n.Binary(BinaryKind::kSub, x, mean(x));
    const TensorId square = form % 2 == 0 ? n.Unary(d, UnaryKind::kSquare) : n.Binary(BinaryKind::kMul, d, d);
    const TensorId deviation = n.Unary(n.Binary(BinaryKind::kAdd, mean(square), n.Scalar(1e-3f)), UnaryKind::kSqrt);
    TensorId out = form < 2 ? n.Binary(BinaryKind::kDiv, d, deviation) : n.Binary(BinaryKind::kMul, n.Unary(deviation, UnaryKind::kReciprocal), d);
    if (form != 3) out = n.Binary(BinaryKind::kAdd, n.Binary(BinaryKind::kMul, out, n.Weights({8})), n.Weights({1, 8}));
    EXPECT_EQ(KindsAfter(RecognizeLayerNorm, n.Build({out})), Kinds{OpKind::kLayerNorm});
  }
}

TEST(RecognizeLayerNorm, LeavesOtherStatisticsAlone) {
  Net n;
  const TensorId x = n.b.Input("x", {2, 3, 8}), y = n.b.Input("y", {2, 3, 8});
  const auto mean = [&](TensorId t, int axis) { return n.Op(OpKind::kReduceMean, {t}, ReduceAttrs{{axis}, true}); };
  const auto norm = [&](TensorId a, TensorId b, int axis) {
    const TensorId d = n.Binary(BinaryKind::kSub, a, mean(a, axis)), e = n.Binary(BinaryKind::kSub, b, mean(b, axis));
    return n.Binary(BinaryKind::kDiv, d, n.Unary(n.Binary(BinaryKind::kAdd, mean(n.Unary(e, UnaryKind::kSquare), axis), n.Scalar(1e-3f)), UnaryKind::kSqrt));
  };
  Graph graph = n.Build({norm(x, y, 2), norm(x, x, 1)});
  EXPECT_FALSE(RecognizeLayerNorm(&graph));
}

TEST(RecognizeActivations, SiluHardSigmoidAndHardSwish) {
  const auto kind_of = [](const std::function<TensorId(Net&, TensorId)>& make) {
    Net n;
    const TensorId x = n.b.Input("x", {4, 64});
    // Wide enough that both bends of the hard functions are met.
    const TensorId wide = n.Op(OpKind::kTranspose, {x}, TransposeAttrs{{1, 0}});
    Graph graph;
    const Kinds kinds = KindsAfter(RecognizeActivations, n.Build({make(n, wide)}), &graph);
    EXPECT_EQ(kinds, (Kinds{OpKind::kTranspose, OpKind::kUnary}));
    return kinds.size() == 2 && kinds[1] == OpKind::kUnary ? graph.op(1).as<UnaryAttrs>().kind : UnaryKind::kCopy;
  };
  const auto mul = [](Net& n, TensorId a, TensorId b) { return n.Binary(BinaryKind::kMul, a, b); };
  const auto shifted = [](Net& n, TensorId x) { return n.Unary(n.Binary(BinaryKind::kAdd, x, n.Scalar(3)), UnaryKind::kClamp, kRelu6); };
  EXPECT_EQ(kind_of([&](Net& n, TensorId x) { return mul(n, n.Unary(x, UnaryKind::kSigmoid), x); }), UnaryKind::kSilu);
  EXPECT_EQ(kind_of([&](Net& n, TensorId x) { return mul(n, x, n.Unary(x, UnaryKind::kHardSigmoid)); }), UnaryKind::kHardSwish);
  EXPECT_EQ(kind_of([&](Net& n, TensorId x) { return n.Binary(BinaryKind::kDiv, shifted(n, x), n.Scalar(6)); }), UnaryKind::kHardSigmoid);
  EXPECT_EQ(kind_of([&](Net& n, TensorId x) {
              const TensorId line = n.Binary(BinaryKind::kAdd, mul(n, x, n.Scalar(1.0f / 6)), n.Scalar(0.5f));
              return n.Unary(line, UnaryKind::kClamp, {0, 1});
            }),
            UnaryKind::kHardSigmoid);
  EXPECT_EQ(kind_of([&](Net& n, TensorId x) { return mul(n, x, n.Binary(BinaryKind::kDiv, shifted(n, x), n.Scalar(6))); }), UnaryKind::kHardSwish);
  EXPECT_EQ(kind_of([&](Net& n, TensorId x) { return n.Binary(BinaryKind::kDiv, mul(n, x, shifted(n, x)), n.Scalar(6)); }), UnaryKind::kHardSwish);
  EXPECT_EQ(kind_of([&](Net& n, TensorId x) { return mul(n, mul(n, shifted(n, x), x), n.Scalar(1.0f / 6)); }), UnaryKind::kHardSwish);
}

TEST(SimplifyViews, ChainsAndIdentities) {
  Net n;
  TensorId x = n.b.Input("x", {2, 3, 4});
  x = n.Op(OpKind::kReshape, {n.Op(OpKind::kReshape, {x}, ReshapeAttrs{{6, 4}})}, ReshapeAttrs{{2, 3, 4}});
  x = n.Op(OpKind::kSlice, {n.Op(OpKind::kSlice, {x}, SliceAttrs{{0, 1, 0}, {2, 2, 4}})}, SliceAttrs{{0, 1, 1}, {2, 1, 2}});
  x = n.Op(OpKind::kTranspose, {n.Unary(x, UnaryKind::kCopy)}, TransposeAttrs{{1, 0, 2}});  // [2,1,2] to [1,2,2]
  x = n.Op(OpKind::kConcat, {n.Op(OpKind::kPad, {x}, PadAttrs{{0, 0, 0}, {0, 0, 0}, 0})}, ConcatAttrs{0});
  EXPECT_EQ(KindsAfter(SimplifyViews, n.Build({n.Unary(x, UnaryKind::kExp)})), (Kinds{OpKind::kSlice, OpKind::kReshape, OpKind::kUnary}));
}

TEST(SimplifyViews, SliceOfConcatReadsTheOperand) {
  Net n;
  const TensorId a = n.Unary(n.b.Input("a", {1, 4, 3}), UnaryKind::kExp), b = n.Unary(n.b.Input("b", {1, 4, 5}), UnaryKind::kExp);
  const TensorId joined = n.Op(OpKind::kConcat, {a, b}, ConcatAttrs{2});
  const auto slice = [&](int64_t begin, int64_t size) {
    return n.Unary(n.Op(OpKind::kSlice, {joined}, SliceAttrs{{0, 0, begin}, {1, 4, size}}), UnaryKind::kSqrt);
  };
  EXPECT_EQ(KindsAfter(SimplifyViews, n.Build({slice(0, 3), slice(3, 5), slice(4, 2)})),
            (Kinds{OpKind::kUnary, OpKind::kUnary, OpKind::kUnary, OpKind::kUnary, OpKind::kSlice, OpKind::kUnary}));
}

TEST(SimplifyViews, OutputsThatAreInputsStayCopies) {
  Net n;
  const TensorId x = n.b.Input("x", {2, 3});
  const TensorId same = n.Op(OpKind::kReshape, {x}, ReshapeAttrs{{2, 3}});
  Graph graph;
  EXPECT_EQ(KindsAfter(SimplifyViews, n.Build({same, n.Unary(same, UnaryKind::kCopy)}), &graph), (Kinds{OpKind::kUnary, OpKind::kUnary}));
}

TEST(SimplifyViews, MatMulOfConstantAndEqualOperators) {
  Net n;
  const TensorId x = n.b.Input("x", {1, 3, 4});
  const TensorId y = n.Op(OpKind::kMatMul, {n.Unary(x, UnaryKind::kExp), n.Weights({1, 4, 5})}, MatMulAttrs{});
  const TensorId z = n.Op(OpKind::kMatMul, {n.Unary(x, UnaryKind::kExp), n.Weights({1, 6, 4})}, MatMulAttrs{true});
  EXPECT_EQ(KindsAfter(SimplifyViews, n.Build({y, z})), (Kinds{OpKind::kUnary, OpKind::kFullyConnected, OpKind::kFullyConnected}));
}

TEST(RemoveDeadCode, KeepsTheInterface) {
  Net n;
  const TensorId x = n.b.Input("x", {2, 3});
  n.b.Input("unread", {7});
  n.Weights({3});
  n.Binary(BinaryKind::kAdd, n.Unary(x, UnaryKind::kExp), n.Weights({3}));
  Graph graph;
  EXPECT_EQ(KindsAfter(RemoveDeadCode, n.Build({n.Unary(x, UnaryKind::kTanh)}), &graph), Kinds{OpKind::kUnary});
  EXPECT_EQ(graph.inputs.size(), 2u);
  EXPECT_EQ(graph.tensor_count(), 3);
}

// Graphs of operators that the layout, view and fusion rules look at, wired at random, with Transposes strewn in.
Graph RandomGraph(uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  Net n;
  std::vector<TensorId> pool = {n.b.Input("x", {1, 4, 4, 4}), n.b.Input("y", {2, 3, 4, 2})};
  for (int i = 0; i < 24; ++i) {
    const TensorId x = pool[pick(pool.size())];
    const Dims shape = n.b.shape(x);
    const int rank = shape.rank();
    TensorId out = kNoTensor;
    switch (pick(14)) {
      case 0:
      case 1:
      case 2: {
        TransposeAttrs attrs;
        for (int d = 0; d < rank; ++d) attrs.perm.push_back(d);
        std::shuffle(attrs.perm.begin(), attrs.perm.end(), random);
        if (rank == 4 && pick(2) == 0) attrs.perm = pick(2) == 0 ? std::vector<int32_t>{0, 2, 3, 1} : std::vector<int32_t>{0, 3, 1, 2};
        out = n.Op(OpKind::kTranspose, {x}, attrs);
        break;
      }
      case 3: out = n.Unary(x, UnaryKind::kClamp, {-0.5f, 1}); break;
      case 4: out = n.Binary(BinaryKind::kMul, x, n.Weights({shape.back()})); break;
      case 5: {
        std::vector<TensorId> same;
        for (const TensorId t : pool) {
          if (n.b.shape(t) == shape) same.push_back(t);
        }
        out = n.Binary(BinaryKind::kAdd, x, same[pick(same.size())]);
        break;
      }
      case 6: {
        const int axis = static_cast<int>(pick(static_cast<size_t>(rank)));
        if (shape[axis] < 12) out = n.Op(OpKind::kConcat, {x, x, n.Unary(x, UnaryKind::kTanh)}, ConcatAttrs{axis});
        break;
      }
      case 7: {
        SliceAttrs attrs{Dims::Filled(rank, 0), shape};
        const int axis = static_cast<int>(pick(static_cast<size_t>(rank)));
        attrs.size[axis] = (shape[axis] + 1) / 2;
        attrs.begin[axis] = shape[axis] - attrs.size[axis];
        out = n.Op(OpKind::kSlice, {x}, attrs);
        break;
      }
      case 8: {
        PadAttrs attrs{Dims::Filled(rank, 0), Dims::Filled(rank, 0)};
        attrs.before[static_cast<int>(pick(static_cast<size_t>(rank)))] = 1;
        out = n.Op(OpKind::kPad, {x}, attrs);
        break;
      }
      case 9: out = n.Op(OpKind::kReduceMean, {x}, ReduceAttrs{{static_cast<int32_t>(pick(static_cast<size_t>(rank)))}, rank < 3 || pick(2) == 0}); break;
      case 10: {
        Dims to;
        if (rank >= 3 && pick(2) == 0) {  // merge two axes
          const int at = static_cast<int>(pick(static_cast<size_t>(rank - 1)));
          for (int d = 0; d < rank; ++d) {
            if (d == at + 1) {
              to[at] *= shape[d];
            } else {
              to.push_back(shape[d]);
            }
          }
        } else {  // split an even axis, or add one of size 1
          for (int d = 0; d < rank; ++d) {
            if (to.rank() == d && rank < 5 && shape[d] % 2 == 0) {
              to.push_back(2);
              to.push_back(shape[d] / 2);
            } else {
              to.push_back(shape[d]);
            }
          }
          if (to.rank() == rank && rank < 5) to.push_back(1);
        }
        out = n.Op(OpKind::kReshape, {x}, ReshapeAttrs{to});
        break;
      }
      case 11: out = n.Op(OpKind::kFullyConnected, {x, n.Weights({4, shape.back()}, -1, 1), n.Weights({4})}, FullyConnectedAttrs{}); break;
      case 12: out = n.Op(OpKind::kSoftmax, {x}, SoftmaxAttrs{}); break;
      default:
        if (rank == 4) {
          Conv2DAttrs attrs{.pad = {1, 1, 1, 1}};
          out = n.Conv(x, 4, attrs);
        }
        break;
    }
    if (out != kNoTensor && n.b.shape(out).Count() <= 512) pool.push_back(out);
  }
  std::vector<TensorId> outputs;
  for (size_t t = pool.size() - 1; t >= 2 && outputs.size() < 3; t -= 1 + pick(3)) {
    outputs.push_back(pool[t]);
    if (t < 4) break;
  }
  if (outputs.empty()) outputs.push_back(n.Unary(pool[0], UnaryKind::kTanh));
  return n.Build(outputs);
}

TEST(Passes, KeepTheResultsOfRandomGraphs) {
  constexpr Pass kAll[] = {FoldConstants, FoldBatchNorm, FoldScales, FuseClamps, FusePadding, FuseBias, RecognizeGelu, RecognizeLayerNorm, RecognizeActivations,
                           CancelTransposes, SimplifyViews, RemoveDeadCode};
  int removed = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    const Graph graph = RandomGraph(seed);
    const naive::Values inputs = naive::RandomInputs(graph, seed);
    const naive::Values expected = naive::Run(graph, inputs);
    const Result<Graph> optimized = Optimize(graph);
    ASSERT_TRUE(optimized.ok()) << optimized.status().message();
    EXPECT_LT(naive::RelativeError(expected, naive::Run(*optimized, inputs)), 1e-4);
    removed += graph.op_count() - optimized->op_count();
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      EXPECT_EQ(graph.tensor(graph.outputs[i]).name, optimized->tensor(optimized->outputs[i]).name);
      EXPECT_EQ(graph.tensor(graph.outputs[i]).shape, optimized->tensor(optimized->outputs[i]).shape);
    }
    Graph stepwise = graph;
    for (const Pass pass : kAll) {
      pass(&stepwise);
      const Status status = Validate(stepwise);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    EXPECT_LT(naive::RelativeError(expected, naive::Run(stepwise, inputs)), 1e-4);
  }
  EXPECT_GT(removed, 400) << "the graphs gave the passes little to do";
}

double SecondsToOptimize(const Graph& graph, Graph* optimized) {
  const auto begin = std::chrono::steady_clock::now();
  Result<Graph> result = Optimize(graph);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(result.ok()) << result.status().message();
  if (result.ok()) *optimized = *result;
  return seconds.count();
}

// 2 s on a quiet core of 2020; the bound tells linear from quadratic on a busy one.
constexpr double kMostSeconds = 20;

TEST(Optimize, FiftyThousandOperatorsOfANetwork) {
  Net n;
  TensorId x = n.b.Input("x", {1, 2, 2, 2});
  const auto nchw = [&](TensorId t) { return n.Op(OpKind::kTranspose, {t}, TransposeAttrs{{0, 3, 1, 2}}); };
  const auto nhwc = [&](TensorId t) { return n.Op(OpKind::kTranspose, {t}, TransposeAttrs{{0, 2, 3, 1}}); };
  const auto conv = [&](TensorId t) {
    return nchw(n.Op(OpKind::kConv2D, {nhwc(t), n.Weights({2, 1, 1, 2}, -1, 1)}, Conv2DAttrs{}));
  };
  int blocks = 0;
  for (; n.b.graph().op_count() < 50000; ++blocks) {
    const TensorId y = conv(n.Unary(conv(x), UnaryKind::kClamp, kRelu));
    x = n.Unary(n.Binary(BinaryKind::kAdd, y, x), UnaryKind::kClamp, kRelu);
  }
  Graph optimized;
  EXPECT_LT(SecondsToOptimize(n.Build({x}), &optimized), kMostSeconds);
  EXPECT_EQ(optimized.op_count(), 3 * blocks + 2);  // two convolutions and a sum a block, a Transpose at either end
}

TEST(Optimize, FiftyThousandOperatorsMadeToBeSlow) {
  Net n;
  TensorId x = n.b.Input("x", {1, 2, 2, 2});
  std::vector<TensorId> tail = {x};
  for (int i = 0; n.b.graph().op_count() < 50000; ++i) {
    x = n.Op(OpKind::kTranspose, {x}, TransposeAttrs{{0, 3, 1, 2}});
    x = n.Unary(x, i % 3 == 0 ? UnaryKind::kTanh : UnaryKind::kSigmoid);
    if (i % 4 == 0) x = n.Binary(BinaryKind::kAdd, x, tail[tail.size() / 2]);
    tail.push_back(x);
  }
  Graph optimized;
  EXPECT_LT(SecondsToOptimize(n.Build({x}), &optimized), kMostSeconds);
  EXPECT_LT(optimized.op_count(), 50000);
}

}  // namespace
}  // namespace plait
