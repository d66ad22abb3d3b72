// Packed weights, channel blocks, threads, and refusals.
#include <cfenv>

#include "tests/xnnpack/harness.h"

namespace plait {
namespace {

std::shared_ptr<XnnpackBackend> MakeBackend(int64_t l2_bytes = 0) {
  auto backend = CreateXnnpackBackend(XnnpackOptions{l2_bytes});
  EXPECT_TRUE(backend.ok()) << backend.status().message();
  return *backend;
}

Graph OneOperator(GraphBuilder& b, TensorId output) {
  b.Output(output);
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return std::move(*graph);
}

Graph ConvGraph(Random& random, int64_t kernel, int64_t inputs, int64_t outputs, int64_t side) {
  GraphBuilder b("conv");
  const auto pad = static_cast<int32_t>(kernel / 2);
  Conv2DAttrs a;
  a.pad = {pad, pad, pad, pad};
  const TensorId x = b.Input("x", {1, side, side, inputs});
  const TensorId w = b.Constant("w", {outputs, kernel, kernel, inputs}, RandomFloats(random, outputs * kernel * kernel * inputs));
  const TensorId bias = b.Constant("bias", {outputs}, RandomFloats(random, outputs));
  return OneOperator(b, b.Add("conv", OpKind::kConv2D, {x, w, bias}, a));
}

Graph DepthwiseGraph(Random& random, int64_t kernel, int64_t channels) {
  GraphBuilder b("depthwise");
  const TensorId x = b.Input("x", {1, 9, 9, channels});
  const TensorId w = b.Constant("w", {kernel, kernel, channels}, RandomFloats(random, kernel * kernel * channels));
  return OneOperator(b, b.Add("depthwise", OpKind::kDepthwiseConv2D, {x, w, kNoTensor}, Conv2DAttrs{}));
}

Graph FullyConnectedGraph(Random& random, int64_t rows, int64_t inputs, int64_t outputs) {
  GraphBuilder b("fc");
  const TensorId x = b.Input("x", {rows, inputs});
  const TensorId w = b.Constant("w", {outputs, inputs}, RandomFloats(random, outputs * inputs));
  return OneOperator(b, b.Add("fc", OpKind::kFullyConnected, {x, w, kNoTensor}, FullyConnectedAttrs{}));
}

Graph NegateGraph(DType dtype) {
  GraphBuilder b("negate");
  return OneOperator(b, b.Add("negate", OpKind::kUnary, {b.Input("x", {4, 8}, dtype)}, UnaryAttrs{UnaryKind::kNegate, Clamp{}}));
}

// The whole, then cuts at 64, 128 and 192 of 256 channels, then rows: one image, one packing.
TEST(PackedWeights, FurtherCutsPackNothing) {
  Random random(1);
  Graph graphs[] = {ConvGraph(random, 1, 24, 256, 6), ConvGraph(random, 3, 8, 256, 6), DepthwiseGraph(random, 3, 256),
                    DepthwiseGraph(random, 5, 256), DepthwiseGraph(random, 1, 256), FullyConnectedGraph(random, 3, 40, 256)};
  for (Graph& graph : graphs) {
    SCOPED_TRACE(graph.name);
    const auto backend = MakeBackend();
    const auto context = std::move(*backend->CreateContext(1));
    OperatorCase c(std::move(graph), TensorMemory::Gaps::kNone, random);
    const std::vector<float> whole = c.RunWhole(*backend, context.get());
    const XnnpackStats before = backend->stats();
    EXPECT_EQ(before.layers_packed, 1);
    EXPECT_GT(before.packed_bytes, 0);
    for (const int64_t cut : {64, 128, 192}) {
      Region left = Region::Whole(c.output_shape()), right = left;
      const int axis = left.size.rank() - 1;
      left.size[axis] = cut;
      right.begin[axis] = cut;
      right.size[axis] = 256 - cut;
      EXPECT_TRUE(SameBits(c.Run(*backend, context.get(), {left, right}), whole)) << cut;
    }
    const XnnpackStats after = backend->stats();
    EXPECT_EQ(after.layers_packed, 1);
    EXPECT_EQ(after.packed_bytes, before.packed_bytes);
    EXPECT_EQ(after.slices_served, before.slices_served + 6);
  }
}

TEST(PackedWeights, AFreedLayersAddressIsNotMistakenForANewOnes) {
  const auto backend = MakeBackend();
  const auto context = std::move(*backend->CreateContext(1));
  const auto reference = CreateReferenceBackend();
  const auto reference_context = std::move(*reference->CreateContext(1));
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    Random random(seed);  // the same sizes each time: the allocator is likely to hand the same addresses out again
    OperatorCase c(FullyConnectedGraph(random, 2, 64, 64), TensorMemory::Gaps::kNone, random);
    EXPECT_LE(RelativeError(c.RunWhole(*backend, context.get()), c.RunWhole(*reference, reference_context.get())), 1e-5);
  }
  EXPECT_EQ(backend->stats().layers_packed, 20);
}

TEST(PackedWeights, AreFreedWithTheirLayers) {
  const auto backend = MakeBackend();
  const auto context = std::move(*backend->CreateContext(1));
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    OperatorCase c(FullyConnectedGraph(random, 1, 256, 64), TensorMemory::Gaps::kNone, random);
    c.RunWhole(*backend, context.get());
  }
  EXPECT_LE(backend->stats().packed_bytes, 130 * 257 * 64 * 4);
}

TEST(ChannelBlocks, AnyCacheSizeGivesTheSameBits) {
  Random random(3);
  for (const auto& make : {+[](Random& r) { return ConvGraph(r, 3, 20, 200, 12); }, +[](Random& r) { return ConvGraph(r, 1, 64, 131, 12); },
                           +[](Random& r) { return FullyConnectedGraph(r, 150, 100, 333); }}) {
    OperatorCase c(make(random), TensorMemory::Gaps::kChannels, random);
    const auto plain = MakeBackend(int64_t{1} << 40);
    const auto plain_context = std::move(*plain->CreateContext(1));
    const std::vector<float> expected = c.RunWhole(*plain, plain_context.get());
    EXPECT_EQ(plain->stats().operators_made, 1);
    for (const int64_t l2 : {1, 20000, 50000}) {
      const auto backend = MakeBackend(l2);
      for (const int threads : {1, 2}) {
        const auto context = std::move(*backend->CreateContext(threads));
        EXPECT_TRUE(SameBits(c.RunWhole(*backend, context.get()), expected)) << l2;
      }
      EXPECT_GT(backend->stats().operators_made, 2) << "nothing was blocked at " << l2;
      EXPECT_EQ(backend->stats().layers_packed, 1);
    }
  }
}

TEST(Context, RefusesImpossibleThreadCounts) {
  const auto backend = MakeBackend();
  for (const int threads : {0, -1, 1 << 20}) EXPECT_EQ(backend->CreateContext(threads).status().code(), PLAIT_INVALID_ARGUMENT) << threads;
}

TEST(Context, ParksAndRunsAgain) {
  Random random(4);
  const auto backend = MakeBackend();
  const auto context = std::move(*backend->CreateContext(2));
  OperatorCase c(ConvGraph(random, 3, 8, 64, 16), TensorMemory::Gaps::kNone, random);
  const std::vector<float> first = c.RunWhole(*backend, context.get());
  context->Park();
  EXPECT_TRUE(SameBits(c.RunWhole(*backend, context.get()), first));
  context->Park();
  context->Park();
}

TEST(Kernels, LeaveTheRoundingModeAlone) {
  Random random(5);
  const auto backend = MakeBackend();
  const auto context = std::move(*backend->CreateContext(1));
  const int before = std::fegetround();
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  OperatorCase(ConvGraph(random, 3, 8, 64, 6), TensorMemory::Gaps::kNone, random).RunWhole(*backend, context.get());
  OperatorCase(NegateGraph(DType::kF32), TensorMemory::Gaps::kNone, random).RunWhole(*backend, context.get());
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(before);
}

TEST(Refusals, OtherDtypesAreNamed) {
  const auto backend = MakeBackend();
  const KernelSupport support = backend->rules().Supports(NegateGraph(DType::kF16), 0);
  EXPECT_FALSE(support.supported);
  EXPECT_NE(support.reason.find("\"x\" is f16"), std::string::npos) << support.reason;
}

TEST(Refusals, ComputedWeightsAreNamed) {
  GraphBuilder b("dynamic");
  const TensorId x = b.Input("x", {1, 5, 5, 3}), w = b.Input("w", {8, 3, 3, 3});
  const Graph graph = OneOperator(b, b.Add("conv", OpKind::kConv2D, {x, w, kNoTensor}, Conv2DAttrs{}));
  const auto backend = MakeBackend();
  const KernelSupport support = backend->rules().Supports(graph, 0);
  EXPECT_FALSE(support.supported);
  EXPECT_NE(support.reason.find("\"w\""), std::string::npos) << support.reason;
}

TEST(Refusals, BadRequestsAreErrorsNotCrashes) {
  Random random(6);
  const Graph graph = ConvGraph(random, 3, 4, 32, 6);
  const auto backend = MakeBackend();
  const auto context = std::move(*backend->CreateContext(1));
  const auto data = ConstData::Allocate(1 << 16);
  View in{0, 0, Region::Whole({1, 6, 6, 4}), 0, DenseStrides({1, 6, 6, 4}), DType::kF32};
  View out{0, 3, Region::Whole({1, 6, 6, 32}), 0, DenseStrides({1, 6, 6, 32}), DType::kF32};
  View weights, bias;
  KernelRequest good{&graph, 0, out.region, "", {{&in, data->mutable_data()}, {&weights, nullptr}, {&bias, nullptr}}, {&out, data->mutable_data()}};
  EXPECT_TRUE(backend->CreateKernel(context.get(), good).ok());

  KernelRequest bad = good;
  bad.kernel = "xnnpack.conv2d.gemm";
  EXPECT_EQ(backend->CreateKernel(context.get(), bad).status().code(), PLAIT_UNSUPPORTED);
  bad = good;
  bad.region.begin[1] = 3;
  EXPECT_EQ(backend->CreateKernel(context.get(), bad).status().code(), PLAIT_INVALID_ARGUMENT);
  bad = good;
  bad.region.size[3] = 0;
  EXPECT_EQ(backend->CreateKernel(context.get(), bad).status().code(), PLAIT_INVALID_ARGUMENT);
  bad = good;
  bad.reads.pop_back();
  EXPECT_EQ(backend->CreateKernel(context.get(), bad).status().code(), PLAIT_INVALID_ARGUMENT);
  bad = good;
  bad.reads[0].data = nullptr;
  EXPECT_EQ(backend->CreateKernel(context.get(), bad).status().code(), PLAIT_INVALID_ARGUMENT);
  bad = good;
  View narrow = in;
  narrow.region.size[1] = 3;
  bad.reads[0].view = &narrow;
  const Status status = backend->CreateKernel(context.get(), bad).status();
  EXPECT_EQ(status.code(), PLAIT_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("\"conv\""), std::string::npos) << status.message();
}

}  // namespace
}  // namespace plait
