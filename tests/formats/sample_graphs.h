// Graphs that between them use every operator kind and attribute, for round trips.
#pragma once

#include <numeric>

#include "src/graph/builder.h"

namespace plait {

inline std::vector<float> Ramp(int64_t count, float from, float step) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = from + step * static_cast<float>(i % 7);
  return values;
}

// One operator of every kind, most attributes away from their defaults.
inline Result<Graph> EveryOperator() {
  GraphBuilder b("every operator");
  const TensorId image = b.Input("image", {1, 3, 9, 8});
  const TensorId nhwc = b.Add("nhwc", OpKind::kTranspose, {image}, TransposeAttrs{{0, 2, 3, 1}});
  Conv2DAttrs conv;
  conv.stride_h = 2;
  conv.pad = {1, 0, 1, 2};
  conv.clamp = kRelu6;
  const TensorId w = b.Constant("conv.weight", {4, 3, 3, 3}, Ramp(108, -0.3f, 0.1f));
  const TensorId bias = b.Constant("conv.bias", {4}, Ramp(4, -0.1f, 0.1f));
  const TensorId c = b.Add("conv", OpKind::kConv2D, {nhwc, w, bias}, conv);
  Conv2DAttrs depthwise;
  depthwise.dilation_h = 2;
  depthwise.pad = {2, 1, 2, 1};
  const TensorId dw = b.Add("depthwise", OpKind::kDepthwiseConv2D,
                            {c, b.Constant("dw.weight", {3, 3, 4}, Ramp(36, 0.4f, -0.1f))}, depthwise);
  std::vector<TensorId> bn = {dw};
  for (const char* name : {"gamma", "beta", "mean", "variance"}) {
    bn.push_back(b.Constant(name, {4}, Ramp(4, 0.5f, 0.2f)));
  }
  const TensorId normed = b.Add("norm", OpKind::kBatchNorm, bn, NormAttrs{1e-3f});
  const TensorId swish = b.Add("swish", OpKind::kUnary, {normed}, UnaryAttrs{UnaryKind::kHardSwish, {}});
  const TensorId clamped = b.Add("clamped", OpKind::kUnary, {swish}, UnaryAttrs{UnaryKind::kClamp, {-0.25f, 3.0f}});
  Pool2DAttrs pool;
  pool.kernel_h = pool.kernel_w = 2;
  pool.pad = {1, 1, 0, 0};
  const TensorId max = b.Add("max", OpKind::kMaxPool2D, {clamped}, pool);
  pool.count_include_pad = true;
  const TensorId mean = b.Add("average", OpKind::kAveragePool2D, {clamped}, pool);
  const TensorId joined = b.Add("joined", OpKind::kConcat, {max, mean}, ConcatAttrs{3});
  const TensorId padded = b.Add("padded", OpKind::kPad, {joined}, PadAttrs{{0, 1, 0, 0}, {0, 0, 2, 0}, 0.5f});
  const TensorId cut = b.Add("cut", OpKind::kSlice, {padded}, SliceAttrs{{0, 1, 1, 2}, {1, 4, 4, 6}});
  const TensorId scaled = b.Add("scaled", OpKind::kBinary, {cut, b.Constant("scale", {6}, Ramp(6, 0.5f, 0.25f))},
                                BinaryAttrs{BinaryKind::kMul, kRelu});
  const TensorId tokens = b.Add("tokens", OpKind::kReshape, {scaled}, ReshapeAttrs{{1, 16, 6}});
  const TensorId ln = b.Add(
      "layer_norm", OpKind::kLayerNorm,
      {tokens, b.Constant("ln.g", {6}, Ramp(6, 1, 0.1f)), b.Constant("ln.b", {6}, Ramp(6, 0, 0.1f))}, NormAttrs{});
  const TensorId scores = b.Add("scores", OpKind::kMatMul, {ln, ln}, MatMulAttrs{true});
  const TensorId attention = b.Add("attention", OpKind::kSoftmax, {scores}, SoftmaxAttrs{});
  const TensorId mixed = b.Add("mixed", OpKind::kMatMul, {attention, ln}, MatMulAttrs{});
  const TensorId fc = b.Add(
      "fc", OpKind::kFullyConnected,
      {mixed, b.Constant("fc.weight", {5, 6}, Ramp(30, -0.3f, 0.1f)), b.Constant("fc.bias", {5}, Ramp(5, 0, 0.1f))},
      FullyConnectedAttrs{});
  const TensorId pooled = b.Add("pooled", OpKind::kReduceMean, {fc}, ReduceAttrs{{1}, false});
  b.Output(pooled);
  b.Output(padded);
  return b.Build();
}

}  // namespace plait
