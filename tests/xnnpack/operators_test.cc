// Every operator kind: whole against the reference, parts against the whole bit for bit, with and without gaps in memory, on one thread and on two.
#include <functional>

#include "tests/xnnpack/harness.h"

namespace plait {
namespace {

// Makes a random operator of one kind, with tensors small enough for the reference.
using MakeGraph = std::function<Graph(Random&)>;

Graph Built(GraphBuilder& b, TensorId output) {
  b.Output(output);
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(*graph) : Graph();
}

TensorId RandomConstant(GraphBuilder& b, Random& random, const std::string& name, const Dims& shape, float low = -1, float high = 1) {
  return b.Constant(name, shape, RandomFloats(random, shape.Count(), low, high));
}

Clamp RandomClamp(Random& random) {
  switch (Pick(random, 0, 3)) {
    case 0: return kRelu;
    case 1: return kRelu6;
    case 2: return Clamp{-0.25f, 0.5f};
    default: return Clamp{};
  }
}

Padding RandomPadding(Random& random, int64_t most) {
  const auto pick = [&] { return static_cast<int32_t>(Pick(random, 0, most)); };
  return {pick(), pick(), pick(), pick()};
}

Graph RandomConv(Random& random, int64_t kernel, int64_t stride, int64_t dilation, int64_t groups, int64_t in_channels, int64_t out_channels,
                 bool padded) {
  GraphBuilder b("conv");
  Conv2DAttrs a;
  a.stride_h = a.stride_w = static_cast<int32_t>(stride);
  a.dilation_h = a.dilation_w = static_cast<int32_t>(dilation);
  a.groups = static_cast<int32_t>(groups);
  if (padded) a.pad = RandomPadding(random, (kernel - 1) * dilation);
  a.clamp = RandomClamp(random);
  const int64_t least = (kernel - 1) * dilation + 1;
  const TensorId x = b.Input("x", {Pick(random, 1, 2), least + Pick(random, 0, 9), least + Pick(random, 0, 9), in_channels * groups});
  const TensorId w = RandomConstant(b, random, "w", {out_channels * groups, kernel, kernel, in_channels});
  const TensorId bias = Pick(random, 0, 1) ? RandomConstant(b, random, "bias", {out_channels * groups}) : kNoTensor;
  return Built(b, b.Add("conv", OpKind::kConv2D, {x, w, bias}, a));
}

Graph RandomDepthwise(Random& random, int64_t kernel, int64_t stride, int64_t dilation, int64_t channels) {
  GraphBuilder b("depthwise");
  Conv2DAttrs a;
  a.stride_h = a.stride_w = static_cast<int32_t>(stride);
  a.dilation_h = a.dilation_w = static_cast<int32_t>(dilation);
  a.pad = RandomPadding(random, (kernel - 1) * dilation);
  a.clamp = RandomClamp(random);
  const int64_t least = (kernel - 1) * dilation + 1;
  const TensorId x = b.Input("x", {Pick(random, 1, 2), least + Pick(random, 0, 9), least + Pick(random, 0, 9), channels});
  const TensorId w = RandomConstant(b, random, "w", {kernel, kernel, channels});
  const TensorId bias = Pick(random, 0, 1) ? RandomConstant(b, random, "bias", {channels}) : kNoTensor;
  return Built(b, b.Add("depthwise", OpKind::kDepthwiseConv2D, {x, w, bias}, a));
}

Graph RandomFullyConnected(Random& random, Dims rows, int64_t in_channels, int64_t out_channels) {
  GraphBuilder b("fc");
  rows.push_back(in_channels);
  const TensorId x = b.Input("x", rows);
  const TensorId w = RandomConstant(b, random, "w", {out_channels, in_channels});
  const TensorId bias = Pick(random, 0, 1) ? RandomConstant(b, random, "bias", {out_channels}) : kNoTensor;
  return Built(b, b.Add("fc", OpKind::kFullyConnected, {x, w, bias}, FullyConnectedAttrs{RandomClamp(random)}));
}

Graph RandomMatMul(Random& random, const Dims& batch, int64_t m, int64_t k, int64_t n, bool transpose_b) {
  GraphBuilder b("matmul");
  Dims left = batch, right = batch;
  left.push_back(m);
  left.push_back(k);
  right.push_back(transpose_b ? n : k);
  right.push_back(transpose_b ? k : n);
  (void)random;
  const TensorId x = b.Input("a", left), y = b.Input("b", right);
  return Built(b, b.Add("matmul", OpKind::kMatMul, {x, y}, MatMulAttrs{transpose_b}));
}

Graph RandomPool(Random& random, OpKind kind, int64_t kernel, int64_t stride, bool count_include_pad) {
  GraphBuilder b("pool");
  Pool2DAttrs a;
  a.kernel_h = a.kernel_w = static_cast<int32_t>(kernel);
  a.stride_h = a.stride_w = static_cast<int32_t>(stride);
  a.pad = RandomPadding(random, kernel - 1);
  a.count_include_pad = count_include_pad;
  a.clamp = RandomClamp(random);
  const TensorId x = b.Input("x", {Pick(random, 1, 2), kernel + Pick(random, 0, 9), kernel + Pick(random, 0, 9), Pick(random, 1, 150)});
  return Built(b, b.Add("pool", kind, {x}, a));
}

Dims RandomShape(Random& random, int rank, int64_t most) {
  Dims shape;
  for (int i = 0; i < rank; ++i) shape.push_back(Pick(random, 1, most));
  return shape;
}

Graph RandomBinary(Random& random, BinaryKind kind) {
  GraphBuilder b("binary");
  const Dims shape = RandomShape(random, static_cast<int>(Pick(random, 1, 4)), 40);
  Dims right;
  for (int i = static_cast<int>(Pick(random, 0, shape.rank())); i < shape.rank(); ++i) right.push_back(Pick(random, 0, 1) ? shape[i] : 1);
  const TensorId x = b.Input("a", shape), y = b.Input("b", right);
  const bool swap = Pick(random, 0, 1) == 1;
  return Built(b, b.Add("binary", OpKind::kBinary, {swap ? y : x, swap ? x : y}, BinaryAttrs{kind, RandomClamp(random)}));
}

Graph RandomUnary(Random& random, UnaryKind kind) {
  GraphBuilder b("unary");
  UnaryAttrs a{kind, Clamp{}};
  if (kind == UnaryKind::kClamp) a.clamp = Clamp{-0.5f, 0.75f};
  const TensorId x = b.Input("x", RandomShape(random, static_cast<int>(Pick(random, 1, 4)), 30));
  return Built(b, b.Add("unary", OpKind::kUnary, {x}, a));
}

Graph RandomMean(Random& random) {
  GraphBuilder b("mean");
  const Dims shape = RandomShape(random, static_cast<int>(Pick(random, 1, 4)), 17);
  ReduceAttrs a;
  a.keep_dims = Pick(random, 0, 1) == 1;
  for (int32_t axis = 0; axis < shape.rank(); ++axis) {
    if (Pick(random, 0, 1)) a.axes.push_back(axis);
  }
  if (a.axes.empty()) a.axes.push_back(static_cast<int32_t>(Pick(random, 0, shape.rank() - 1)));
  return Built(b, b.Add("mean", OpKind::kReduceMean, {b.Input("x", shape)}, a));
}

Graph RandomTranspose(Random& random) {
  GraphBuilder b("transpose");
  const int rank = static_cast<int>(Pick(random, 1, 5));
  TransposeAttrs a;
  for (int32_t axis = 0; axis < rank; ++axis) a.perm.push_back(axis);
  std::shuffle(a.perm.begin(), a.perm.end(), random);
  return Built(b, b.Add("transpose", OpKind::kTranspose, {b.Input("x", RandomShape(random, rank, rank > 3 ? 9 : 70))}, a));
}

Graph RandomPad(Random& random) {
  GraphBuilder b("pad");
  const int rank = static_cast<int>(Pick(random, 1, 4));
  const Dims shape = RandomShape(random, rank, 12);
  return Built(b, b.Add("pad", OpKind::kPad, {b.Input("x", shape)}, PadAttrs{RandomShape(random, rank, 3), RandomShape(random, rank, 3), 0.5f}));
}

Graph RandomNorm(Random& random, OpKind kind) {
  GraphBuilder b("norm");
  const int rank = static_cast<int>(Pick(random, 1, 4));
  const Dims shape = RandomShape(random, rank, 70);
  std::vector<TensorId> inputs{b.Input("x", shape)};
  const int constants = kind == OpKind::kBatchNorm ? 4 : 2;
  for (int i = 0; i < constants; ++i) inputs.push_back(RandomConstant(b, random, StrCat("c", i), {shape.back()}, 0.5f, 2.0f));
  return Built(b, b.Add("norm", kind, inputs, NormAttrs{1e-4f}));
}

Graph RandomSoftmax(Random& random) {
  GraphBuilder b("softmax");
  const Dims shape = RandomShape(random, static_cast<int>(Pick(random, 1, 4)), 50);
  return Built(b, b.Add("softmax", OpKind::kSoftmax, {b.Input("x", shape)}, SoftmaxAttrs{}));
}

struct Kind {
  std::string name;
  MakeGraph make;
  int rounds = 12;
  float low = -1, high = 1;
};

std::vector<Kind> AllKinds() {
  std::vector<Kind> kinds;
  for (const int64_t out : {1, 7, 16, 33, 64, 130}) {
    const std::string n = std::to_string(out);
    kinds.push_back({StrCat("conv1x1_", n), [=](Random& r) { return RandomConv(r, 1, 1, 1, 1, Pick(r, 1, 70), out, false); }});
    kinds.push_back({StrCat("conv3x3_", n), [=](Random& r) { return RandomConv(r, 3, 1, 1, 1, Pick(r, 1, 20), out, true); }});
    kinds.push_back({StrCat("fc_", n), [=](Random& r) { return RandomFullyConnected(r, RandomShape(r, static_cast<int>(Pick(r, 0, 3)), 6), Pick(r, 1, 70), out); }});
  }
  kinds.push_back({"conv1x1_stride", [](Random& r) { return RandomConv(r, 1, 2, 1, 1, 24, 40, false); }});
  kinds.push_back({"conv3x3_stride", [](Random& r) { return RandomConv(r, 3, 2, 1, 1, 24, 40, true); }});
  kinds.push_back({"conv3x3_dilated", [](Random& r) { return RandomConv(r, 3, 1, 2, 1, 8, 40, true); }});
  kinds.push_back({"conv7x7", [](Random& r) { return RandomConv(r, 7, 2, 1, 1, 3, 64, true); }});
  kinds.push_back({"conv_groups_wide", [](Random& r) { return RandomConv(r, 3, 1, 1, 3, 8, 32, true); }});
  kinds.push_back({"conv_groups_narrow", [](Random& r) { return RandomConv(r, 1, 1, 1, 12, 4, 5, false); }});
  kinds.push_back({"conv_groups_single", [](Random& r) { return RandomConv(r, 3, 1, 1, 40, 1, 1, true); }});
  for (const int64_t kernel : {1, 2, 3, 5, 7}) {
    for (const int64_t stride : {1, 2}) {
      kinds.push_back({StrCat("depthwise", kernel, "_s", stride),
                       [=](Random& r) { return RandomDepthwise(r, kernel, stride, 1, Pick(r, 1, 130)); }});
    }
  }
  kinds.push_back({"depthwise3_dilated", [](Random& r) { return RandomDepthwise(r, 3, 1, 2, 50); }});
  kinds.push_back({"depthwise7_dilated", [](Random& r) { return RandomDepthwise(r, 7, 1, 2, 50); }});
  for (const bool t : {false, true}) {
    const std::string n = t ? "_transposed" : "";
    kinds.push_back({StrCat("matmul", n), [=](Random& r) { return RandomMatMul(r, RandomShape(r, static_cast<int>(Pick(r, 0, 2)), 4), Pick(r, 1, 20), Pick(r, 1, 40), Pick(r, 1, 90), t); }, 40});
  }
  for (const int64_t kernel : {1, 2, 3}) {
    const std::string n = std::to_string(kernel);
    kinds.push_back({StrCat("max_pool", n), [=](Random& r) { return RandomPool(r, OpKind::kMaxPool2D, kernel, Pick(r, 1, 2), false); }});
    kinds.push_back({StrCat("average_pool", n), [=](Random& r) { return RandomPool(r, OpKind::kAveragePool2D, kernel, Pick(r, 1, 2), false); }});
    kinds.push_back({StrCat("average_pool_padded", n), [=](Random& r) { return RandomPool(r, OpKind::kAveragePool2D, kernel, Pick(r, 1, 2), true); }});
  }
  for (int k = 0; k <= static_cast<int>(BinaryKind::kMin); ++k) {
    kinds.push_back({StrCat("binary", k), [=](Random& r) { return RandomBinary(r, static_cast<BinaryKind>(k)); }, 20, 0.25f, 2.0f});
  }
  for (int k = 0; k <= static_cast<int>(UnaryKind::kLog); ++k) {
    const auto kind = static_cast<UnaryKind>(k);
    const bool positive = kind == UnaryKind::kSqrt || kind == UnaryKind::kLog || kind == UnaryKind::kReciprocal;
    kinds.push_back({StrCat("unary", k), [=](Random& r) { return RandomUnary(r, kind); }, 12, positive ? 0.25f : -5.0f, 5.0f});
  }
  kinds.push_back({"mean", RandomMean, 60});
  kinds.push_back({"softmax", RandomSoftmax, 20, -4, 4});
  kinds.push_back({"layer_norm", [](Random& r) { return RandomNorm(r, OpKind::kLayerNorm); }, 20});
  kinds.push_back({"batch_norm", [](Random& r) { return RandomNorm(r, OpKind::kBatchNorm); }, 20});
  kinds.push_back({"transpose", RandomTranspose, 60});
  kinds.push_back({"pad", RandomPad, 20});
  return kinds;
}

class Operators : public ::testing::TestWithParam<Kind> {};

TEST_P(Operators, WholeMatchesReferenceAndPartsMatchWhole) {
  const Kind& kind = GetParam();
  const std::shared_ptr<CpuBackend> reference = CreateReferenceBackend();
  const auto backend = CreateXnnpackBackend();
  ASSERT_TRUE(backend.ok()) << backend.status().message();
  const std::unique_ptr<CpuContext> reference_context = std::move(*reference->CreateContext(1));
  const std::unique_ptr<CpuContext> contexts[] = {std::move(*(*backend)->CreateContext(1)), std::move(*(*backend)->CreateContext(2))};
  for (int round = 0; round < kind.rounds; ++round) {
    const uint32_t seed = static_cast<uint32_t>(round) + 1;
    SCOPED_TRACE(StrCat("seed ", seed));
    Random random(seed);
    const auto gaps = static_cast<TensorMemory::Gaps>(round % 3);
    OperatorCase c(kind.make(random), gaps, random, kind.low, kind.high);
    ASSERT_EQ(c.graph().op_count(), 1);
    const std::vector<float> expected = c.RunWhole(*reference, reference_context.get());
    const std::vector<float> whole = c.RunWhole(**backend, contexts[0].get());
    ASSERT_EQ(whole.size(), expected.size());
    EXPECT_LE(RelativeError(whole, expected), 1e-5);
    if (round % 4 == 0) {
      EXPECT_TRUE(SameBits(c.RunWhole(**backend, contexts[1].get()), whole)) << "two threads";
    }
    for (int cut = 0; cut < 3; ++cut) {
      const std::vector<Region> parts = c.RandomParts((*backend)->rules());
      if (parts.empty()) continue;
      std::string text;
      for (const Region& part : parts) text += ToString(part);
      EXPECT_TRUE(SameBits(c.Run(**backend, contexts[(round + cut) % 4 == 0 ? 1 : 0].get(), parts), whole)) << text;
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Operators, ::testing::ValuesIn(AllKinds()), [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace plait
