// Operators of every kind, small, with the corners that kernels stumble over.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/opencl/harness.h"

namespace plait {

struct KernelCase {
  std::string name;
  std::function<Graph(Rng&)> make;
};

inline Graph Built(GraphBuilder& builder, TensorId output) {
  builder.Output(output);
  Result<Graph> graph = builder.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(graph).value() : Graph();
}

struct ConvShape {
  int64_t n, h, w, ci, co, kh, kw;
  Conv2DAttrs attrs;
  bool bias = true;
};

inline Graph ConvGraph(Rng& rng, const ConvShape& s) {
  GraphBuilder b("conv");
  const int64_t depth = s.ci / s.attrs.groups;
  const TensorId x = b.Input("x", {s.n, s.h, s.w, s.ci});
  const TensorId w = b.Constant("w", {s.co, s.kh, s.kw, depth}, RandomValues(rng, s.co * s.kh * s.kw * depth));
  const TensorId bias = s.bias ? b.Constant("b", {s.co}, RandomValues(rng, s.co)) : kNoTensor;
  return Built(b, b.Add("conv", OpKind::kConv2D, {x, w, bias}, s.attrs));
}

inline Graph DepthwiseGraph(Rng& rng, const ConvShape& s) {
  GraphBuilder b("depthwise");
  const TensorId x = b.Input("x", {s.n, s.h, s.w, s.ci});
  const TensorId w = b.Constant("w", {s.kh, s.kw, s.ci}, RandomValues(rng, s.ci * s.kh * s.kw));
  const TensorId bias = s.bias ? b.Constant("b", {s.ci}, RandomValues(rng, s.ci)) : kNoTensor;
  return Built(b, b.Add("depthwise", OpKind::kDepthwiseConv2D, {x, w, bias}, s.attrs));
}

inline Graph FullyConnectedGraph(Rng& rng, Dims shape, int64_t co) {
  GraphBuilder b("fc");
  const TensorId x = b.Input("x", shape);
  const TensorId w = b.Constant("w", {co, shape.back()}, RandomValues(rng, co * shape.back()));
  const TensorId bias = b.Constant("b", {co}, RandomValues(rng, co));
  return Built(b, b.Add("fc", OpKind::kFullyConnected, {x, w, bias}, FullyConnectedAttrs{kRelu}));
}

inline Graph MatMulGraph(Dims a, Dims b_shape, bool transposed) {
  GraphBuilder b("matmul");
  const TensorId left = b.Input("a", a), right = b.Input("b", b_shape);
  return Built(b, b.Add("matmul", OpKind::kMatMul, {left, right}, MatMulAttrs{transposed}));
}

inline Graph BinaryGraph(Dims a, Dims c, BinaryKind kind) {
  GraphBuilder b("binary");
  const TensorId left = b.Input("a", a), right = b.Input("b", c);
  return Built(b, b.Add("binary", OpKind::kBinary, {left, right}, BinaryAttrs{kind, {-0.9f, 1.5f}}));
}

inline Graph OneInput(Dims shape, OpKind kind, OpAttrs attrs) {
  GraphBuilder b("one");
  const TensorId x = b.Input("x", shape);
  return Built(b, b.Add("op", kind, {x}, std::move(attrs)));
}

inline Graph UnaryGraph(UnaryKind kind) {
  GraphBuilder b("unary");
  const TensorId x = b.Input("x", {2, 5, 3, 19});
  return Built(b, b.Add("unary", OpKind::kUnary, {x}, UnaryAttrs{kind, kind == UnaryKind::kClamp ? Clamp{-0.5f, 0.5f} : Clamp()}));
}

inline Graph NormGraph(Rng& rng, Dims shape, OpKind kind) {
  GraphBuilder b("norm");
  const int64_t c = shape.back();
  const TensorId x = b.Input("x", shape);
  std::vector<TensorId> inputs = {x, b.Constant("gamma", {c}, RandomValues(rng, c)), b.Constant("beta", {c}, RandomValues(rng, c))};
  if (kind == OpKind::kBatchNorm) {
    inputs.push_back(b.Constant("mean", {c}, RandomValues(rng, c)));
    inputs.push_back(b.Constant("variance", {c}, RandomValues(rng, c, 0.5f, 2.0f)));
  }
  return Built(b, b.Add("norm", kind, inputs, NormAttrs{1e-5f}));
}

inline std::vector<KernelCase> KernelCases() {
  std::vector<KernelCase> cases;
  const auto conv = [&](const char* name, ConvShape s) { cases.push_back({name, [s](Rng& rng) { return ConvGraph(rng, s); }}); };
  const auto depthwise = [&](const char* name, ConvShape s) { cases.push_back({name, [s](Rng& rng) { return DepthwiseGraph(rng, s); }}); };
  const auto graph = [&](std::string name, std::function<Graph(Rng&)> make) { cases.push_back({std::move(name), std::move(make)}); };
  const Padding same{1, 1, 1, 1};
  conv("conv_pointwise", {2, 7, 9, 24, 40, 1, 1, {.clamp = kRelu6}});
  conv("conv_pointwise_stride", {1, 9, 8, 12, 20, 1, 1, {.stride_h = 2, .stride_w = 2}});
  conv("conv_pointwise_no_bias", {1, 5, 5, 8, 48, 1, 1, {}, false});
  conv("conv_3x3", {2, 10, 11, 5, 37, 3, 3, {.pad = same, .clamp = kRelu}});
  conv("conv_3x3_stride", {1, 13, 12, 3, 32, 3, 3, {.stride_h = 2, .stride_w = 2, .pad = {0, 0, 1, 1}}});
  conv("conv_dilated", {1, 12, 12, 6, 16, 3, 3, {.dilation_h = 2, .dilation_w = 3, .pad = {2, 3, 2, 3}}});
  conv("conv_1x7", {1, 9, 9, 7, 33, 1, 7, {.pad = {0, 3, 0, 3}}});
  conv("conv_grouped", {1, 8, 8, 12, 36, 3, 3, {.groups = 3, .pad = same}});
  conv("conv_grouped_tiles", {1, 8, 8, 8, 64, 3, 3, {.groups = 2, .pad = same}});
  conv("conv_larger_than_image", {1, 3, 4, 4, 16, 5, 5, {.pad = {2, 2, 2, 2}}});
  depthwise("depthwise_3x3", {2, 11, 13, 20, 20, 3, 3, {.pad = same, .clamp = kRelu6}});
  depthwise("depthwise_3x3_stride", {1, 14, 15, 32, 32, 3, 3, {.stride_h = 2, .stride_w = 2, .pad = {0, 0, 1, 1}}});
  depthwise("depthwise_5x5", {1, 12, 12, 16, 16, 5, 5, {.pad = {2, 2, 2, 2}}});
  depthwise("depthwise_5x5_stride", {1, 13, 13, 24, 24, 5, 5, {.stride_h = 2, .stride_w = 2, .pad = {2, 2, 2, 2}}, false});
  depthwise("depthwise_dilated", {1, 12, 12, 19, 19, 3, 3, {.dilation_h = 2, .dilation_w = 2, .pad = {2, 2, 2, 2}}});
  depthwise("depthwise_1x1", {1, 6, 6, 21, 21, 1, 1, {}});
  depthwise("depthwise_tiny_image", {1, 2, 2, 16, 16, 5, 5, {.pad = {2, 2, 2, 2}}});
  graph("fc_rows", [](Rng& rng) { return FullyConnectedGraph(rng, {2, 13, 31}, 50); });
  graph("fc_one_row", [](Rng& rng) { return FullyConnectedGraph(rng, {1, 130}, 203); });
  graph("matmul", [](Rng&) { return MatMulGraph({2, 3, 13, 21}, {2, 3, 21, 35}, false); });
  graph("matmul_transposed", [](Rng&) { return MatMulGraph({2, 3, 13, 21}, {2, 3, 35, 21}, true); });
  graph("matmul_flat", [](Rng&) { return MatMulGraph({17, 40}, {40, 16}, false); });
  for (int k = 0; k <= static_cast<int>(BinaryKind::kMin); ++k) {
    if (static_cast<BinaryKind>(k) == BinaryKind::kDiv) continue;  // tried with a divisor away from 0 below
    graph(StrCat("binary_", k), [k](Rng&) { return BinaryGraph({2, 5, 3, 19}, {2, 5, 3, 19}, static_cast<BinaryKind>(k)); });
  }
  graph("binary_div", [](Rng& rng) {
    GraphBuilder b("div");
    const TensorId x = b.Input("x", {3, 4, 18});
    const TensorId d = b.Constant("d", {4, 18}, RandomValues(rng, 72, 0.5f, 2.0f));
    return Built(b, b.Add("div", OpKind::kBinary, {x, d}, BinaryAttrs{BinaryKind::kDiv, {}}));
  });
  graph("binary_channel_scale", [](Rng&) { return BinaryGraph({2, 6, 5, 24}, {2, 1, 1, 24}, BinaryKind::kMul); });
  graph("binary_row_scalar", [](Rng&) { return BinaryGraph({2, 6, 17}, {2, 6, 1}, BinaryKind::kSub); });
  graph("binary_left_scalar", [](Rng&) { return BinaryGraph({1}, {4, 5, 9}, BinaryKind::kSub); });
  graph("binary_both_broadcast", [](Rng&) { return BinaryGraph({3, 1, 9}, {5, 1}, BinaryKind::kAdd); });
  graph("binary_alternating", [](Rng&) { return BinaryGraph({2, 3, 2, 3, 2, 3}, {2, 1, 2, 1, 2, 1}, BinaryKind::kAdd); });
  for (UnaryKind kind : {UnaryKind::kCopy, UnaryKind::kClamp, UnaryKind::kSigmoid, UnaryKind::kHardSigmoid, UnaryKind::kHardSwish, UnaryKind::kSilu,
                         UnaryKind::kGelu, UnaryKind::kTanh, UnaryKind::kExp, UnaryKind::kErf, UnaryKind::kNegate, UnaryKind::kAbs, UnaryKind::kSquare}) {
    graph(StrCat("unary_", static_cast<int>(kind)), [kind](Rng&) { return UnaryGraph(kind); });
  }
  const Pool2DAttrs pool{3, 3, 2, 2, {1, 1, 1, 1}, false, {}};
  graph("max_pool", [pool](Rng&) { return OneInput({2, 11, 12, 21}, OpKind::kMaxPool2D, pool); });
  graph("average_pool", [pool](Rng&) { return OneInput({2, 11, 12, 37}, OpKind::kAveragePool2D, pool); });
  graph("average_pool_padded", [pool](Rng&) {
    Pool2DAttrs padded = pool;
    padded.count_include_pad = true;
    return OneInput({1, 9, 8, 16}, OpKind::kAveragePool2D, padded);
  });
  graph("average_pool_global", [](Rng&) { return OneInput({2, 7, 7, 40}, OpKind::kAveragePool2D, Pool2DAttrs{7, 7, 1, 1, {}, false, {}}); });
  graph("mean_rows_columns", [](Rng&) { return OneInput({2, 7, 6, 43}, OpKind::kReduceMean, ReduceAttrs{{1, 2}, false}); });
  graph("mean_keep", [](Rng&) { return OneInput({2, 7, 6, 16}, OpKind::kReduceMean, ReduceAttrs{{1, 2}, true}); });
  graph("mean_inner", [](Rng&) { return OneInput({3, 5, 29}, OpKind::kReduceMean, ReduceAttrs{{2}, true}); });
  graph("mean_middle", [](Rng&) { return OneInput({3, 5, 29}, OpKind::kReduceMean, ReduceAttrs{{1}, false}); });
  graph("mean_all", [](Rng&) { return OneInput({3, 5, 29}, OpKind::kReduceMean, ReduceAttrs{{0, 1, 2}, true}); });
  graph("softmax", [](Rng&) { return OneInput({2, 3, 7, 29}, OpKind::kSoftmax, SoftmaxAttrs{}); });
  graph("softmax_short", [](Rng&) { return OneInput({5, 3}, OpKind::kSoftmax, SoftmaxAttrs{}); });
  graph("layer_norm", [](Rng& rng) { return NormGraph(rng, {2, 7, 53}, OpKind::kLayerNorm); });
  graph("batch_norm", [](Rng& rng) { return NormGraph(rng, {2, 4, 3, 21}, OpKind::kBatchNorm); });
  graph("transpose_nchw", [](Rng&) { return OneInput({2, 3, 9, 20}, OpKind::kTranspose, TransposeAttrs{{0, 2, 3, 1}}); });
  graph("transpose_nhwc", [](Rng&) { return OneInput({2, 9, 10, 19}, OpKind::kTranspose, TransposeAttrs{{0, 3, 1, 2}}); });
  graph("transpose_heads", [](Rng&) { return OneInput({1, 13, 3, 16}, OpKind::kTranspose, TransposeAttrs{{0, 2, 1, 3}}); });
  graph("transpose_matrix", [](Rng&) { return OneInput({33, 26}, OpKind::kTranspose, TransposeAttrs{{1, 0}}); });
  graph("transpose_reverse", [](Rng&) { return OneInput({2, 3, 4, 5, 9}, OpKind::kTranspose, TransposeAttrs{{4, 3, 2, 1, 0}}); });
  graph("pad", [](Rng&) { return OneInput({2, 5, 6, 11}, OpKind::kPad, PadAttrs{{0, 1, 2, 0}, {0, 2, 1, 0}, 0.25f}); });
  graph("pad_channels", [](Rng&) { return OneInput({2, 5, 6, 11}, OpKind::kPad, PadAttrs{{0, 0, 0, 3}, {0, 0, 0, 2}, -1.0f}); });
  graph("pad_deep", [](Rng&) { return OneInput({2, 2, 3, 2, 5}, OpKind::kPad, PadAttrs{{1, 1, 0, 1, 1}, {0, 1, 1, 1, 0}, 2.0f}); });
  return cases;
}

}  // namespace plait
