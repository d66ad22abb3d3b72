// What Optimize() leaves of networks as ONNX importers hand them over: NCHW, a Transpose before and after every spatial operator.
#include <gtest/gtest.h>

#include "src/graph/builder.h"
#include "src/graph/operators.h"
#include "src/graph/passes.h"
#include "tests/graph/naive.h"

namespace plait {
namespace {

class OnnxLike {
 public:
  explicit OnnxLike(uint32_t seed = 1) : b("net"), random_(seed) {}

  std::string Name(const char* what) { return std::string(what) + std::to_string(++count_); }
  TensorId Weights(Dims shape, float low = -0.5f, float high = 0.5f) {
    return b.Constant(Name("w"), shape, naive::RandomValues(random_, shape.Count(), low, high));
  }
  TensorId Scalar(float v) { return b.Constant(Name("scalar"), {}, std::vector<float>{v}); }
  TensorId ToNhwc(TensorId x) { return b.Add(Name("to_nhwc"), OpKind::kTranspose, {x}, TransposeAttrs{{0, 2, 3, 1}}); }
  TensorId ToNchw(TensorId x) { return b.Add(Name("to_nchw"), OpKind::kTranspose, {x}, TransposeAttrs{{0, 3, 1, 2}}); }
  TensorId Spatial(OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
    inputs[0] = ToNhwc(inputs[0]);
    return ToNchw(b.Add(Name(plait::Name(kind).data()), kind, std::move(inputs), std::move(attrs)));
  }
  int64_t Channels(TensorId x) { return b.shape(x)[1]; }
  TensorId Conv(TensorId x, int64_t out, int kernel, int stride = 1, int groups = 1) {
    const int pad = kernel / 2;
    return Spatial(OpKind::kConv2D, {x, Weights({out, kernel, kernel, Channels(x) / groups}), Weights({out})},
                   Conv2DAttrs{.stride_h = stride, .stride_w = stride, .groups = groups, .pad = {pad, pad, pad, pad}});
  }
  TensorId Depthwise(TensorId x, int kernel, int stride = 1) {
    const int pad = kernel / 2;
    return Spatial(OpKind::kDepthwiseConv2D, {x, Weights({kernel, kernel, Channels(x)})},
                   Conv2DAttrs{.stride_h = stride, .stride_w = stride, .pad = {pad, pad, pad, pad}});
  }
  TensorId BatchNorm(TensorId x) {
    const int64_t c = Channels(x);
    return Spatial(OpKind::kBatchNorm, {x, Weights({c}, 0.5f, 1.5f), Weights({c}), Weights({c}), Weights({c}, 0.5f, 1.5f)}, NormAttrs{});
  }
  TensorId Unary(TensorId x, UnaryKind kind, Clamp clamp = {}) { return b.Add(Name("unary"), OpKind::kUnary, {x}, UnaryAttrs{kind, clamp}); }
  TensorId Relu(TensorId x) { return Unary(x, UnaryKind::kClamp, kRelu); }
  TensorId Binary(BinaryKind kind, TensorId x, TensorId y) { return b.Add(Name("binary"), OpKind::kBinary, {x, y}, BinaryAttrs{kind}); }
  TensorId Add(TensorId x, TensorId y) { return Binary(BinaryKind::kAdd, x, y); }
  TensorId Mul(TensorId x, TensorId y) { return Binary(BinaryKind::kMul, x, y); }
  TensorId MaxPool(TensorId x) {
    return Spatial(OpKind::kMaxPool2D, {x}, Pool2DAttrs{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad = {1, 1, 1, 1}});
  }
  TensorId GlobalPool(TensorId x) { return b.Add(Name("mean"), OpKind::kReduceMean, {x}, ReduceAttrs{{2, 3}, true}); }
  TensorId Reshape(TensorId x, Dims shape) { return b.Add(Name("reshape"), OpKind::kReshape, {x}, ReshapeAttrs{shape}); }
  TensorId Transpose(TensorId x, std::vector<int32_t> perm) { return b.Add(Name("transpose"), OpKind::kTranspose, {x}, TransposeAttrs{perm}); }
  TensorId Flatten(TensorId x) { return Reshape(x, {b.shape(x)[0], b.shape(x).Count() / b.shape(x)[0]}); }
  TensorId Concat(std::vector<TensorId> parts, int axis = 1) { return b.Add(Name("concat"), OpKind::kConcat, std::move(parts), ConcatAttrs{axis}); }
  TensorId FullyConnected(TensorId x, int64_t out) {
    return b.Add(Name("fc"), OpKind::kFullyConnected, {x, Weights({out, b.shape(x).back()}), Weights({out})}, FullyConnectedAttrs{});
  }
  TensorId MatMul(TensorId x, TensorId y) { return b.Add(Name("matmul"), OpKind::kMatMul, {x, y}, MatMulAttrs{}); }
  // As torch.onnx writes it before opset 17.
  TensorId LayerNorm(TensorId x) {
    const int last = b.shape(x).rank() - 1;
    const auto mean = [&](TensorId t) { return b.Add(Name("mean"), OpKind::kReduceMean, {t}, ReduceAttrs{{last}, true}); };
    const TensorId d = Binary(BinaryKind::kSub, x, mean(x));
    const TensorId s = Unary(Add(mean(Unary(d, UnaryKind::kSquare)), Scalar(1e-5f)), UnaryKind::kSqrt);
    return Add(Mul(Binary(BinaryKind::kDiv, d, s), Weights({b.shape(x).back()})), Weights({b.shape(x).back()}));
  }
  TensorId Gelu(TensorId x) {
    const TensorId erf = Unary(Binary(BinaryKind::kDiv, x, Scalar(1.41421354f)), UnaryKind::kErf);
    return Mul(Mul(x, Add(erf, Scalar(1))), Scalar(0.5f));
  }

  Graph Build(TensorId output) {
    b.Output(output);
    Result<Graph> graph = b.Build();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return graph.ok() ? *graph : Graph();
  }

  GraphBuilder b;

 private:
  std::mt19937 random_;
  int count_ = 0;
};

int CountOf(const Graph& graph, OpKind kind) {
  return static_cast<int>(std::count_if(graph.ops.begin(), graph.ops.end(), [&](const Operator& op) { return op.kind == kind; }));
}

std::string Listing(const Graph& graph) {
  std::string out;
  for (const Operator& op : graph.ops) {
    out += op.name + " " + std::string(Name(op.kind)) + " (";
    for (const TensorId t : op.inputs) out += t == kNoTensor ? "-, " : graph.tensor(t).name + " " + ToString(graph.tensor(t).shape) + ", ";
    out += ") -> " + graph.output(op).name + " " + ToString(graph.output(op).shape) + "\n";
  }
  return out;
}

// Optimizes and checks what must hold for every graph: equal results, the same interface, nothing left to do, the same bytes again.
Graph OptimizeChecked(const Graph& graph) {
  const Result<Graph> optimized = Optimize(graph);
  EXPECT_TRUE(optimized.ok()) << optimized.status().message();
  if (!optimized.ok()) return graph;
  const naive::Values inputs = naive::RandomInputs(graph, 7);
  EXPECT_LT(naive::RelativeError(naive::Run(graph, inputs), naive::Run(*optimized, inputs)), 1e-5) << Listing(*optimized);
  EXPECT_EQ(graph.inputs.size(), optimized->inputs.size());
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    EXPECT_EQ(graph.tensor(graph.inputs[i]).name, optimized->tensor(optimized->inputs[i]).name);
    EXPECT_EQ(graph.tensor(graph.inputs[i]).shape, optimized->tensor(optimized->inputs[i]).shape);
  }
  EXPECT_EQ(graph.outputs.size(), optimized->outputs.size());
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    EXPECT_EQ(graph.tensor(graph.outputs[i]).name, optimized->tensor(optimized->outputs[i]).name);
    EXPECT_EQ(graph.tensor(graph.outputs[i]).shape, optimized->tensor(optimized->outputs[i]).shape);
  }
  const Result<Graph> again = Optimize(graph), twice = Optimize(*optimized);
  EXPECT_TRUE(again.ok() && twice.ok());
  EXPECT_EQ(Hash(*optimized), Hash(*again));
  EXPECT_EQ(Hash(*optimized), Hash(*twice)) << Listing(*optimized) << "\n" << Listing(*twice);
  EXPECT_EQ(Listing(*optimized), Listing(*again));
  return *optimized;
}

TEST(Optimize, ResNetBlocksKeepOneTranspose) {
  OnnxLike n;
  TensorId x = n.Relu(n.BatchNorm(n.Conv(n.b.Input("x", {1, 3, 16, 16}), 4, 3, 2)));
  x = n.MaxPool(x);
  TensorId y = n.BatchNorm(n.Conv(n.Relu(n.BatchNorm(n.Conv(x, 4, 3))), 4, 3));
  x = n.Relu(n.Add(y, x));
  y = n.BatchNorm(n.Conv(n.Relu(n.BatchNorm(n.Conv(x, 6, 3, 2))), 6, 3));
  x = n.Relu(n.Add(y, n.BatchNorm(n.Conv(x, 6, 1, 2))));
  const Graph graph = OptimizeChecked(n.Build(n.FullyConnected(n.Flatten(n.GlobalPool(x)), 5)));
  EXPECT_EQ(CountOf(graph, OpKind::kTranspose), 1) << Listing(graph);
  EXPECT_EQ(CountOf(graph, OpKind::kUnary), 0) << Listing(graph);
  EXPECT_EQ(CountOf(graph, OpKind::kBatchNorm) + CountOf(graph, OpKind::kDepthwiseConv2D), 0) << Listing(graph);
  EXPECT_EQ(CountOf(graph, OpKind::kConv2D), 6);
  EXPECT_EQ(CountOf(graph, OpKind::kBinary), 2);
  EXPECT_LE(CountOf(graph, OpKind::kReshape), 1) << Listing(graph);
}

TEST(Optimize, SqueezeExciteAndHardSwish) {
  for (const int64_t batch : {1, 2}) {
    OnnxLike n;
    const auto hard_swish = [&](TensorId x) {  // as exported before opset 14
      return n.Binary(BinaryKind::kDiv, n.Mul(x, n.Unary(n.Add(x, n.Scalar(3)), UnaryKind::kClamp, kRelu6)), n.Scalar(6));
    };
    TensorId x = hard_swish(n.BatchNorm(n.Conv(n.b.Input("x", {batch, 3, 12, 12}), 8, 3, 2)));
    x = n.Relu(n.BatchNorm(n.Depthwise(x, 3)));
    const TensorId squeezed = n.Relu(n.Conv(n.GlobalPool(x), 2, 1));
    const TensorId gate = n.Mul(n.Unary(n.Add(n.Conv(squeezed, 8, 1), n.Scalar(3)), UnaryKind::kClamp, kRelu6), n.Scalar(1.0f / 6));
    x = n.BatchNorm(n.Conv(n.Mul(x, gate), 4, 1));
    x = hard_swish(n.Conv(x, 8, 1));
    const Graph graph = OptimizeChecked(n.Build(n.FullyConnected(n.Flatten(n.GlobalPool(x)), 5)));
    EXPECT_EQ(CountOf(graph, OpKind::kTranspose), 1) << Listing(graph);
    EXPECT_EQ(CountOf(graph, OpKind::kUnary), 3) << Listing(graph);  // two HardSwish and a HardSigmoid
    EXPECT_EQ(CountOf(graph, OpKind::kBinary), 1) << Listing(graph);
    EXPECT_LE(CountOf(graph, OpKind::kReshape), 1) << Listing(graph);
  }
}

TEST(Optimize, DenseBlocksNestTheirConcats) {
  OnnxLike n;
  std::vector<TensorId> features = {n.Relu(n.BatchNorm(n.Conv(n.b.Input("x", {1, 3, 8, 8}), 4, 3)))};
  for (int layer = 0; layer < 4; ++layer) {
    const TensorId all = features.size() == 1 ? features[0] : n.Concat(features);
    const TensorId narrow = n.Relu(n.BatchNorm(n.Conv(n.Relu(n.BatchNorm(all)), 6, 1)));
    features.push_back(n.Conv(narrow, 2, 3));
  }
  const TensorId x = n.Relu(n.BatchNorm(n.Concat(features)));
  const Graph graph = OptimizeChecked(n.Build(n.FullyConnected(n.Flatten(n.GlobalPool(x)), 5)));
  EXPECT_EQ(CountOf(graph, OpKind::kTranspose), 1) << Listing(graph);
  EXPECT_EQ(CountOf(graph, OpKind::kUnary) + CountOf(graph, OpKind::kBinary) + CountOf(graph, OpKind::kBatchNorm), 0) << Listing(graph);
  EXPECT_EQ(CountOf(graph, OpKind::kConcat), 4);
  for (const Operator& op : graph.ops) {
    if (op.kind == OpKind::kConcat) {
      EXPECT_EQ(op.inputs.size(), 2u) << Listing(graph);
    }
  }
}

TEST(Optimize, InceptionBranches) {
  OnnxLike n;
  TensorId x = n.Relu(n.Conv(n.b.Input("x", {1, 3, 9, 9}), 4, 3));
  for (int block = 0; block < 2; ++block) {
    const TensorId pooled = n.Spatial(OpKind::kAveragePool2D, {x}, Pool2DAttrs{.kernel_h = 3, .kernel_w = 3, .pad = {1, 1, 1, 1}});
    x = n.Concat({n.Relu(n.BatchNorm(n.Conv(x, 3, 1))), n.Relu(n.BatchNorm(n.Conv(n.Relu(n.Conv(x, 2, 1)), 3, 5))), n.Relu(n.Conv(pooled, 2, 1))});
  }
  const Graph graph = OptimizeChecked(n.Build(n.FullyConnected(n.Flatten(n.GlobalPool(x)), 5)));
  EXPECT_EQ(CountOf(graph, OpKind::kTranspose), 1) << Listing(graph);
  EXPECT_EQ(CountOf(graph, OpKind::kUnary), 0) << Listing(graph);
}

TEST(Optimize, FlattenOfAnImagePermutesTheWeights) {
  OnnxLike n;
  const TensorId x = n.MaxPool(n.Relu(n.Conv(n.b.Input("x", {2, 3, 8, 8}), 4, 3)));
  const Graph graph = OptimizeChecked(n.Build(n.Relu(n.FullyConnected(n.Flatten(x), 5))));
  EXPECT_EQ(CountOf(graph, OpKind::kTranspose), 1) << Listing(graph);
  EXPECT_EQ(graph.op_count(), 5) << Listing(graph);  // Transpose, Conv2D, MaxPool2D, Reshape, FullyConnected
}

TEST(Optimize, ChannelShuffleKeepsOneTranspose) {
  OnnxLike n;
  TensorId x = n.Conv(n.b.Input("x", {1, 3, 6, 6}), 8, 3);
  x = n.Reshape(n.Transpose(n.Reshape(x, {1, 2, 4, 6, 6}), {0, 2, 1, 3, 4}), {1, 8, 6, 6});
  x = n.Relu(n.Conv(x, 4, 1));
  const Graph graph = OptimizeChecked(n.Build(n.FullyConnected(n.Flatten(n.GlobalPool(x)), 5)));
  EXPECT_EQ(CountOf(graph, OpKind::kTranspose), 2) << Listing(graph);
}

TEST(Optimize, VisionTransformer) {
  OnnxLike n;
  const int64_t dim = 8, heads = 2, head = dim / heads, tokens = 5;
  TensorId x = n.Spatial(OpKind::kConv2D, {n.b.Input("x", {1, 3, 8, 8}), n.Weights({dim, 4, 4, 3}), n.Weights({dim})},
                         Conv2DAttrs{.stride_h = 4, .stride_w = 4});
  x = n.Transpose(n.Reshape(x, {1, dim, tokens - 1}), {0, 2, 1});
  x = n.Add(n.Concat({n.Weights({1, 1, dim}), x}), n.Weights({1, tokens, dim}));
  for (int block = 0; block < 2; ++block) {
    const auto linear = [&](TensorId t, int64_t out) {
      return n.Add(n.Weights({out}), n.MatMul(t, n.Weights({1, n.b.shape(t).back(), out})));
    };
    const TensorId normed = n.LayerNorm(x);
    TensorId qkv = n.Transpose(n.Reshape(linear(normed, 3 * dim), {1, tokens, 3, heads, head}), {2, 0, 3, 1, 4});
    const auto part = [&](int64_t i) {
      const TensorId s = n.b.Add(n.Name("slice"), OpKind::kSlice, {qkv}, SliceAttrs{{i, 0, 0, 0, 0}, {1, 1, heads, tokens, head}});
      return n.Reshape(s, {1, heads, tokens, head});
    };
    const TensorId scores = n.Mul(n.MatMul(part(0), n.Transpose(part(1), {0, 1, 3, 2})), n.Scalar(0.5f));
    const TensorId attention = n.b.Add(n.Name("softmax"), OpKind::kSoftmax, {scores}, SoftmaxAttrs{});
    const TensorId mixed = n.Reshape(n.Transpose(n.MatMul(attention, part(2)), {0, 2, 1, 3}), {1, tokens, dim});
    x = n.Add(x, linear(mixed, dim));
    x = n.Add(x, linear(n.Gelu(linear(n.LayerNorm(x), 2 * dim)), dim));
  }
  const TensorId token = n.Reshape(n.b.Add("token", OpKind::kSlice, {n.LayerNorm(x)}, SliceAttrs{{0, 0, 0}, {1, 1, dim}}), {1, dim});
  const Graph graph = OptimizeChecked(n.Build(n.FullyConnected(token, 5)));
  EXPECT_EQ(CountOf(graph, OpKind::kTranspose), 1 + 2 * 2) << Listing(graph);  // heads apart and together again
  EXPECT_EQ(CountOf(graph, OpKind::kLayerNorm), 5) << Listing(graph);
  EXPECT_EQ(CountOf(graph, OpKind::kUnary), 2) << Listing(graph);
  EXPECT_EQ(CountOf(graph, OpKind::kFullyConnected), 9) << Listing(graph);
  EXPECT_EQ(CountOf(graph, OpKind::kMatMul), 4) << Listing(graph);
}

}  // namespace
}  // namespace plait
