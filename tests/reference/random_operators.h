// Random graphs of one operator, and strided copies of tensors' regions.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "backends/interface/cpu_kernels.h"
#include "src/graph/builder.h"
#include "src/graph/graph.h"

namespace plait {

class RandomOperators {
 public:
  explicit RandomOperators(unsigned seed) : random_(seed) {}

  int Int(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool Flip() { return Int(0, 1) == 1; }
  float Real() { return std::normal_distribution<float>()(random_); }
  std::vector<float> Values(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = Real();
    return values;
  }

  // A graph of one operator of the kind: small odd sizes, random attributes; weights are graph inputs half of the time.
  Result<Graph> Make(OpKind kind);

  // A box inside `shape`, not empty.
  Region Box(const Dims& shape) {
    Region box = Region::Whole(shape);
    for (int i = 0; i < shape.rank(); ++i) {
      box.begin[i] = Int(0, static_cast<int>(shape[i]) - 1);
      box.size[i] = Int(1, static_cast<int>(shape[i] - box.begin[i]));
    }
    return box;
  }

 private:
  Dims Shape(int rank, int largest = 5) {
    Dims shape;
    for (int i = 0; i < rank; ++i) shape.push_back(Int(1, largest));
    return shape;
  }
  TensorId Weights(GraphBuilder& b, const std::string& name, const Dims& shape) {
    return Flip() ? b.Input(name, shape) : b.Constant(name, shape, Values(shape.Count()));
  }
  Clamp RandomClamp() { return Flip() ? Clamp{} : Clamp{-0.5f, 0.75f}; }

  TensorId Convolution(GraphBuilder& b, bool depthwise);
  TensorId PoolOf(GraphBuilder& b, OpKind kind);
  TensorId Multiply(GraphBuilder& b);
  TensorId BroadcastBinary(GraphBuilder& b);
  TensorId Mean(GraphBuilder& b);
  TensorId Norm(GraphBuilder& b, OpKind kind);
  TensorId Join(GraphBuilder& b);
  TensorId Move(GraphBuilder& b, OpKind kind);

  std::mt19937 random_;
};

// Whether the operator has values for positive inputs only.
inline bool NeedsPositive(const Operator& op) {
  if (op.kind != OpKind::kUnary) return false;
  const UnaryKind kind = op.as<UnaryAttrs>().kind;
  return kind == UnaryKind::kSqrt || kind == UnaryKind::kLog;
}

// A region of a tensor copied into memory of its own with gaps between rows. All other elements there are NaN.
class StridedCopy {
 public:
  StridedCopy(TensorId tensor, const Region& region, RandomOperators& random) {
    view_.tensor = tensor;
    view_.region = region;
    view_.strides = Dims::Filled(region.size.rank(), 1);
    for (int i = region.size.rank() - 2; i >= 0; --i) {
      view_.strides[i] = view_.strides[i + 1] * region.size[i + 1] + random.Int(0, 3);
    }
    int64_t extent = 1;
    for (int i = 0; i < region.size.rank(); ++i) extent += (region.size[i] - 1) * view_.strides[i];
    memory_.assign(static_cast<size_t>(extent + 2 * kGuard), std::numeric_limits<float>::quiet_NaN());
  }

  // Calls f(index in the dense tensor, element here) for the region.
  template <typename F>
  void ForEach(const Dims& shape, F&& f) {
    const Dims dense = DenseStrides(shape);
    const Region& region = view_.region;
    for (int64_t n = 0; n < region.Count(); ++n) {
      int64_t rest = n, there = 0, here = 0;
      for (int i = region.size.rank() - 1; i >= 0; --i) {
        const int64_t at = rest % region.size[i];
        rest /= region.size[i];
        there += (region.begin[i] + at) * dense[i];
        here += at * view_.strides[i];
      }
      f(static_cast<size_t>(there), memory_[static_cast<size_t>(here + kGuard)]);
    }
  }

  // The number of elements that are not NaN.
  int64_t Written() const {
    int64_t count = 0;
    for (float v : memory_) count += std::isnan(v) ? 0 : 1;
    return count;
  }
  BoundView bound() { return {&view_, memory_.data() + kGuard}; }
  View& view() { return view_; }

 private:
  static constexpr int64_t kGuard = 16;
  View view_;
  std::vector<float> memory_;
};

inline TensorId RandomOperators::Convolution(GraphBuilder& b, bool depthwise) {
  Conv2DAttrs attrs;
  const int kh = Int(1, 3), kw = Int(1, 3);
  attrs.stride_h = Int(1, 2);
  attrs.stride_w = Int(1, 2);
  attrs.dilation_h = Int(1, 2);
  attrs.dilation_w = Int(1, 2);
  attrs.pad = {Int(0, kh - 1), Int(0, kw - 1), Int(0, kh - 1), Int(0, kw - 1)};
  if (Flip()) attrs.pad = {};
  attrs.clamp = RandomClamp();
  attrs.groups = depthwise ? 1 : Int(1, 3);
  const int64_t in = Int(1, 5), out = Int(1, 9);
  const Dims image{Int(1, 2), Int(6, 9), Int(6, 9), depthwise ? out : in * attrs.groups};
  const int64_t channels = depthwise ? out : out * attrs.groups;
  const Dims weights = depthwise ? Dims{kh, kw, out} : Dims{channels, kh, kw, in};
  std::vector<TensorId> inputs{b.Input("x", image), Weights(b, "w", weights)};
  if (Flip()) inputs.push_back(Weights(b, "bias", {channels}));
  return b.Add("op", depthwise ? OpKind::kDepthwiseConv2D : OpKind::kConv2D, inputs, attrs);
}

inline TensorId RandomOperators::PoolOf(GraphBuilder& b, OpKind kind) {
  Pool2DAttrs attrs;
  attrs.kernel_h = Int(1, 3);
  attrs.kernel_w = Int(1, 3);
  attrs.stride_h = Int(1, 2);
  attrs.stride_w = Int(1, 2);
  attrs.pad = {Int(0, attrs.kernel_h - 1), Int(0, attrs.kernel_w - 1), Int(0, attrs.kernel_h - 1),
               Int(0, attrs.kernel_w - 1)};
  attrs.count_include_pad = kind == OpKind::kAveragePool2D && Flip();
  attrs.clamp = RandomClamp();
  return b.Add("op", kind, {b.Input("x", {Int(1, 2), Int(4, 7), Int(4, 7), Int(1, 5)})}, attrs);
}

inline TensorId RandomOperators::Multiply(GraphBuilder& b) {
  const bool transposed = Flip();
  Dims left, right;
  for (int i = Int(0, 2); i > 0; --i) {
    left.push_back(Int(1, 3));
    right.push_back(left.back());
  }
  const int64_t depth = Int(1, 7), columns = Int(1, 19);
  left.push_back(Int(1, 9));
  left.push_back(depth);
  right.push_back(transposed ? columns : depth);
  right.push_back(transposed ? depth : columns);
  return b.Add("op", OpKind::kMatMul, {b.Input("a", left), Weights(b, "b", right)}, MatMulAttrs{transposed});
}

inline TensorId RandomOperators::BroadcastBinary(GraphBuilder& b) {
  Dims left = Shape(Int(1, 4)), right;
  for (int i = Int(0, left.rank() - 1); i < left.rank(); ++i) right.push_back(Flip() ? left[i] : 1);
  for (int i = left.rank() - right.rank(); i < left.rank(); ++i) {
    if (right[i - left.rank() + right.rank()] == left[i] && Int(0, 3) == 0) left[i] = 1;
  }
  const TensorId x = b.Input("x", left), y = Weights(b, "y", right);
  const auto kind = static_cast<BinaryKind>(Int(0, 5));
  return b.Add("op", OpKind::kBinary, Flip() ? std::vector<TensorId>{x, y} : std::vector<TensorId>{y, x},
               BinaryAttrs{kind, RandomClamp()});
}

inline TensorId RandomOperators::Mean(GraphBuilder& b) {
  const Dims shape = Shape(Int(1, 4));
  ReduceAttrs attrs;
  for (int i = 0; i < shape.rank(); ++i) {
    if (Flip() || (i + 1 == shape.rank() && attrs.axes.empty())) attrs.axes.push_back(i);
  }
  attrs.keep_dims = Flip();
  return b.Add("op", OpKind::kReduceMean, {b.Input("x", shape)}, attrs);
}

inline TensorId RandomOperators::Norm(GraphBuilder& b, OpKind kind) {
  const Dims shape = Shape(Int(1, 4), 9);
  std::vector<TensorId> inputs{b.Input("x", shape), Weights(b, "gamma", {shape.back()}),
                               Weights(b, "beta", {shape.back()})};
  if (kind == OpKind::kBatchNorm) {
    inputs.push_back(Weights(b, "mean", {shape.back()}));
    std::vector<float> variance = Values(shape.back());
    for (float& v : variance) v = std::abs(v) + 0.25f;
    inputs.push_back(b.Constant("variance", {shape.back()}, variance));
  }
  return b.Add("op", kind, inputs, NormAttrs{1e-3f});
}

inline TensorId RandomOperators::Join(GraphBuilder& b) {
  const Dims shape = Shape(Int(1, 4));
  const int axis = Int(0, shape.rank() - 1);
  std::vector<TensorId> parts;
  for (int i = Int(1, 4); i > 0; --i) {
    Dims part = shape;
    part[axis] = Int(1, 4);
    parts.push_back(b.Input("part" + std::to_string(i), part));
  }
  return b.Add("op", OpKind::kConcat, parts, ConcatAttrs{axis});
}

inline TensorId RandomOperators::Move(GraphBuilder& b, OpKind kind) {
  const Dims shape = Shape(Int(1, 4));
  const TensorId x = b.Input("x", shape);
  if (kind == OpKind::kSlice) {
    const Region box = Box(shape);
    return b.Add("op", kind, {x}, SliceAttrs{box.begin, box.size});
  }
  if (kind == OpKind::kPad) {
    Dims before, after;
    for (int i = 0; i < shape.rank(); ++i) {
      before.push_back(Int(0, 2));
      after.push_back(Int(0, 2));
    }
    return b.Add("op", kind, {x}, PadAttrs{before, after, Flip() ? 0.0f : 1.5f});
  }
  if (kind == OpKind::kTranspose) {
    std::vector<int32_t> perm;
    for (int i = 0; i < shape.rank(); ++i) perm.insert(perm.begin() + Int(0, i), i);
    return b.Add("op", kind, {x}, TransposeAttrs{perm});
  }
  Dims target;  // neighbouring axes joined or not, and perhaps one of extent 1
  for (int i = 0; i < shape.rank(); ++i) {
    if (i > 0 && Flip()) target[target.rank() - 1] *= shape[i];
    else target.push_back(shape[i]);
  }
  if (Flip()) target.push_back(1);
  return b.Add("op", kind, {x}, ReshapeAttrs{target});
}

inline Result<Graph> RandomOperators::Make(OpKind kind) {
  GraphBuilder b("random");
  TensorId out = kNoTensor;
  switch (kind) {
    case OpKind::kConv2D: out = Convolution(b, false); break;
    case OpKind::kDepthwiseConv2D: out = Convolution(b, true); break;
    case OpKind::kFullyConnected: {
      Dims x = Shape(Int(1, 3), 9);
      const int64_t columns = Int(1, 19);
      std::vector<TensorId> inputs{b.Input("x", x), Weights(b, "w", {columns, x.back()})};
      if (Flip()) inputs.push_back(Weights(b, "bias", {columns}));
      out = b.Add("op", kind, inputs, FullyConnectedAttrs{RandomClamp()});
      break;
    }
    case OpKind::kMatMul: out = Multiply(b); break;
    case OpKind::kBinary: out = BroadcastBinary(b); break;
    case OpKind::kUnary: {
      const auto unary = static_cast<UnaryKind>(Int(0, static_cast<int>(UnaryKind::kLog)));
      out = b.Add("op", kind, {b.Input("x", Shape(Int(1, 4)))},
                  UnaryAttrs{unary, unary == UnaryKind::kClamp ? RandomClamp() : Clamp{}});
      break;
    }
    case OpKind::kMaxPool2D:
    case OpKind::kAveragePool2D: out = PoolOf(b, kind); break;
    case OpKind::kReduceMean: out = Mean(b); break;
    case OpKind::kSoftmax: out = b.Add("op", kind, {b.Input("x", Shape(Int(1, 4), 9))}, SoftmaxAttrs{}); break;
    case OpKind::kLayerNorm:
    case OpKind::kBatchNorm: out = Norm(b, kind); break;
    case OpKind::kConcat: out = Join(b); break;
    case OpKind::kSlice:
    case OpKind::kReshape:
    case OpKind::kTranspose:
    case OpKind::kPad: out = Move(b, kind); break;
  }
  b.Output(out);
  return b.Build();
}

}  // namespace plait
