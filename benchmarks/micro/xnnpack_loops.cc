// The backend's own loops beside XNNPACK's operators for the same work, and what a kernel adds to xnn_run_operator.
#include <benchmark/benchmark.h>
#include <xnnpack.h>

#include "benchmarks/micro/prepared_kernel.h"

namespace plait {
namespace {

void RunKernel(benchmark::State& state, Graph (*make)()) {
  PreparedKernel kernel(make(), 0, 1);
  for (auto _ : state) {
    if (!kernel.Run().ok()) state.SkipWithError("the kernel failed");
  }
}

void RunOperators(benchmark::State& state, const std::vector<xnn_operator_t>& ops) {
  for (auto _ : state) {
    for (const xnn_operator_t op : ops) {
      if (xnn_run_operator(op, nullptr) != xnn_status_success) state.SkipWithError("the operator failed");
    }
  }
  for (const xnn_operator_t op : ops) xnn_delete_operator(op);
}

void Check(xnn_status status) {
  if (status != xnn_status_success) std::abort();
}

// A fully connected operator so small that little but the call is left.
Graph TinyLayer() {
  GraphBuilder b("tiny");
  return Built(b, b.Add("fc", OpKind::kFullyConnected, {b.Input("x", {1, 16}), Weights(b, "w", {16, 16}), Weights(b, "bias", {16})},
                        FullyConnectedAttrs{}));
}
void TinyLayerXnn(benchmark::State& state) {
  Check(xnn_initialize(nullptr));
  std::vector<float> w(256, 0.1f), bias(16, 0.2f), x(32, 0.3f), y(32);
  xnn_operator_t op = nullptr;
  Check(xnn_create_fully_connected_nc_f32(16, 16, 16, 16, w.data(), bias.data(), -1e30f, 1e30f, 0, nullptr, nullptr, &op));
  Check(xnn_reshape_fully_connected_nc_f32(op, 1, nullptr));
  Check(xnn_setup_fully_connected_nc_f32(op, x.data(), y.data()));
  RunOperators(state, {op});
}

constexpr int64_t kSide = 56, kChannels = 96, kElements = kSide * kSide * kChannels;
TensorId Image(GraphBuilder& b, const char* name) { return b.Input(name, {1, kSide, kSide, kChannels}); }

Graph Silu() {
  GraphBuilder b("silu");
  return Built(b, b.Add("silu", OpKind::kUnary, {Image(b, "x")}, UnaryAttrs{UnaryKind::kSilu, Clamp{}}));
}
void SiluXnn(benchmark::State& state) {
  Check(xnn_initialize(nullptr));
  std::vector<float> x(kElements + 16, 0.3f), y(kElements + 16);
  xnn_operator_t sigmoid = nullptr, multiply = nullptr;
  Check(xnn_create_unary_elementwise_nc(xnn_unary_sigmoid, xnn_datatype_fp32, xnn_datatype_fp32, nullptr, nullptr, nullptr, 0, &sigmoid));
  Check(xnn_reshape_unary_elementwise_nc(sigmoid, 1, kElements, kElements, kElements, nullptr));
  Check(xnn_setup_unary_elementwise_nc(sigmoid, x.data(), y.data()));
  const size_t shape = kElements;
  Check(xnn_create_binary_elementwise_nd(xnn_binary_multiply, xnn_datatype_fp32, nullptr, nullptr, nullptr, 0, &multiply));
  Check(xnn_reshape_binary_elementwise_nd(multiply, 1, &shape, 1, &shape, nullptr));
  Check(xnn_setup_binary_elementwise_nd(multiply, x.data(), y.data(), y.data()));
  RunOperators(state, {sigmoid, multiply});
}

Graph AddRelu() {
  GraphBuilder b("add");
  return Built(b, b.Add("add", OpKind::kBinary, {Image(b, "a"), Image(b, "b")}, BinaryAttrs{BinaryKind::kAdd, kRelu}));
}
void AddXnn(benchmark::State& state) {
  Check(xnn_initialize(nullptr));
  std::vector<float> a(kElements + 16, 0.3f), b(kElements + 16, 0.1f), y(kElements + 16);
  xnn_operator_t op = nullptr;
  const size_t shape = kElements;
  Check(xnn_create_binary_elementwise_nd(xnn_binary_add, xnn_datatype_fp32, nullptr, nullptr, nullptr, 0, &op));
  Check(xnn_reshape_binary_elementwise_nd(op, 1, &shape, 1, &shape, nullptr));
  Check(xnn_setup_binary_elementwise_nd(op, a.data(), b.data(), y.data()));
  RunOperators(state, {op});
}

Graph MulChannels() {
  GraphBuilder b("mul");
  return Built(b, b.Add("mul", OpKind::kBinary, {Image(b, "a"), b.Input("b", {1, 1, 1, kChannels})}, BinaryAttrs{BinaryKind::kMul, Clamp{}}));
}
void MulChannelsXnn(benchmark::State& state) {
  Check(xnn_initialize(nullptr));
  std::vector<float> a(kElements + 16, 0.3f), b(kChannels + 16, 0.1f), y(kElements + 16);
  xnn_operator_t op = nullptr;
  const size_t left[] = {1, kSide, kSide, kChannels}, right[] = {1, 1, 1, kChannels};
  Check(xnn_create_binary_elementwise_nd(xnn_binary_multiply, xnn_datatype_fp32, nullptr, nullptr, nullptr, 0, &op));
  Check(xnn_reshape_binary_elementwise_nd(op, 4, left, 4, right, nullptr));
  Check(xnn_setup_binary_elementwise_nd(op, a.data(), b.data(), y.data()));
  RunOperators(state, {op});
}

Graph Pool(OpKind kind) {
  GraphBuilder b("pool");
  Pool2DAttrs a;
  a.kernel_h = a.kernel_w = 3;
  a.stride_h = a.stride_w = 2;
  a.pad = {1, 1, 1, 1};
  return Built(b, b.Add("pool", kind, {Image(b, "x")}, a));
}
Graph MaxPool() { return Pool(OpKind::kMaxPool2D); }
Graph AveragePool() { return Pool(OpKind::kAveragePool2D); }
void MaxPoolXnn(benchmark::State& state) {
  Check(xnn_initialize(nullptr));
  std::vector<float> x(kElements + 16, 0.3f), y(kElements + 16);
  xnn_operator_t op = nullptr;
  size_t h = 0, w = 0;
  Check(xnn_create_max_pooling2d_nhwc_f32(1, 1, 1, 1, 3, 3, 2, 2, 1, 1, -1e30f, 1e30f, 0, &op));
  Check(xnn_reshape_max_pooling2d_nhwc_f32(op, 1, kSide, kSide, kChannels, kChannels, kChannels, &h, &w, nullptr));
  Check(xnn_setup_max_pooling2d_nhwc_f32(op, x.data(), y.data()));
  RunOperators(state, {op});
}
void AveragePoolXnn(benchmark::State& state) {
  Check(xnn_initialize(nullptr));
  std::vector<float> x(kElements + 16, 0.3f), y(kElements + 16), workspace(1 << 20);
  xnn_operator_t op = nullptr;
  size_t h = 0, w = 0, bytes = 0, alignment = 0;
  Check(xnn_create_average_pooling2d_nhwc_f32(1, 1, 1, 1, 3, 3, 2, 2, -1e30f, 1e30f, 0, &op));
  Check(xnn_reshape_average_pooling2d_nhwc_f32(op, 1, kSide, kSide, kChannels, kChannels, kChannels, &bytes, &alignment, &h, &w, nullptr));
  Check(xnn_setup_average_pooling2d_nhwc_f32(op, workspace.data(), x.data(), y.data()));
  RunOperators(state, {op});
}

Graph Mean() {
  GraphBuilder b("mean");
  return Built(b, b.Add("mean", OpKind::kReduceMean, {Image(b, "x")}, ReduceAttrs{{1, 2}, true}));
}
void MeanXnn(benchmark::State& state) {
  Check(xnn_initialize(nullptr));
  std::vector<float> x(kElements + 16, 0.3f), y(kChannels + 16);
  xnn_operator_t op = nullptr;
  const int64_t axes[] = {1, 2};
  const size_t shape[] = {1, kSide, kSide, kChannels};
  size_t bytes = 0, alignment = 0;
  Check(xnn_create_reduce_nd(xnn_reduce_mean, xnn_datatype_fp32, nullptr, nullptr, 0, &op));
  Check(xnn_reshape_reduce_nd(op, 2, axes, 4, shape, &bytes, &alignment, nullptr));
  Check(xnn_setup_reduce_nd(op, nullptr, x.data(), y.data()));  // it crashes with the workspace that it asks for
  RunOperators(state, {op});
}

Graph ToNhwc() {
  GraphBuilder b("transpose");
  return Built(b, b.Add("transpose", OpKind::kTranspose, {b.Input("x", {1, kChannels, kSide, kSide})}, TransposeAttrs{{0, 2, 3, 1}}));
}
void ToNhwcXnn(benchmark::State& state) {
  Check(xnn_initialize(nullptr));
  std::vector<float> x(kElements + 16, 0.3f), y(kElements + 16);
  xnn_operator_t op = nullptr;
  const size_t shape[] = {1, kChannels, kSide, kSide}, perm[] = {0, 2, 3, 1};
  Check(xnn_create_transpose_nd_x32(0, &op));
  Check(xnn_reshape_transpose_nd_x32(op, 4, shape, perm, nullptr));
  Check(xnn_setup_transpose_nd_x32(op, x.data(), y.data()));
  RunOperators(state, {op});
}

// A depthwise 7x7 layer, for which XNNPACK has a grouped convolution only.
Graph Depthwise7() {
  GraphBuilder b("depthwise");
  Conv2DAttrs a;
  a.pad = {3, 3, 3, 3};
  return Built(b, b.Add("dw", OpKind::kDepthwiseConv2D, {b.Input("x", {1, 28, 28, 44}), Weights(b, "w", {7, 7, 44}), kNoTensor}, a));
}
void Depthwise7Xnn(benchmark::State& state) {
  Check(xnn_initialize(nullptr));
  std::vector<float> x(28 * 28 * 44 + 16, 0.3f), y(28 * 28 * 44 + 16), w(49 * 44, 0.1f);
  xnn_operator_t op = nullptr;
  size_t h = 0, ww = 0, bytes = 0, alignment = 0;
  Check(xnn_create_convolution2d_nhwc_f32(3, 3, 3, 3, 7, 7, 1, 1, 1, 1, 44, 1, 1, 44, 44, w.data(), nullptr, -1e30f, 1e30f,
                                          XNN_FLAG_DEPTHWISE_CONVOLUTION, nullptr, nullptr, &op));
  Check(xnn_reshape_convolution2d_nhwc_f32(op, 1, 28, 28, &bytes, &alignment, &h, &ww, nullptr));
  std::vector<float> workspace(bytes + 64);
  Check(xnn_setup_convolution2d_nhwc_f32(op, workspace.data(), x.data(), y.data()));
  RunOperators(state, {op});
}

BENCHMARK_CAPTURE(RunKernel, tiny_layer, TinyLayer);
BENCHMARK(TinyLayerXnn);
BENCHMARK_CAPTURE(RunKernel, silu, Silu);
BENCHMARK(SiluXnn);
BENCHMARK_CAPTURE(RunKernel, add_relu, AddRelu);
BENCHMARK(AddXnn);
BENCHMARK_CAPTURE(RunKernel, mul_channels, MulChannels);
BENCHMARK(MulChannelsXnn);
BENCHMARK_CAPTURE(RunKernel, max_pool, MaxPool);
BENCHMARK(MaxPoolXnn);
BENCHMARK_CAPTURE(RunKernel, average_pool, AveragePool);
BENCHMARK(AveragePoolXnn);
BENCHMARK_CAPTURE(RunKernel, mean, Mean);
BENCHMARK(MeanXnn);
BENCHMARK_CAPTURE(RunKernel, to_nhwc, ToNhwc);
BENCHMARK(ToNhwcXnn);
BENCHMARK_CAPTURE(RunKernel, depthwise7, Depthwise7);
BENCHMARK(Depthwise7Xnn);

}  // namespace
}  // namespace plait

BENCHMARK_MAIN();
