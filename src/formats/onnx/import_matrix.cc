// Matrix products, softmax and layer normalisation.
#include <algorithm>
#include <cmath>

#include "src/formats/onnx/lowering.h"

namespace plait {
namespace {

Dims Flattened(const Dims& shape, int axis) {
  Dims out{1, 1};
  for (int i = 0; i < shape.rank(); ++i) out[i < axis ? 0 : 1] *= shape[i];
  return out;
}

// w[Co, Ci] from a constant matrix, [Ci, Co] unless `transposed`, times `alpha`.
TensorId FullyConnectedWeights(OnnxLowering& n, const OnnxTensor& b, bool transposed, float alpha) {
  const int64_t rows = b.shape[0], columns = b.shape[1];
  const Dims shape = transposed ? b.shape : Dims{columns, rows};
  const Dims strides = transposed ? Dims{columns, 1} : Dims{1, columns};
  if (alpha == 1.0f) return n.Rearranged(b, "oi", shape, strides);
  const std::shared_ptr<ConstData> data = n.NewData(shape);
  if (data == nullptr) return kNoTensor;
  GatherStrided(b.data->data(), 0, shape, strides, DType::kF32, data->mutable_data());
  for (int64_t i = 0; i < shape.Count(); ++i) data->as<float>()[i] *= alpha;
  return n.AddConstant(n.OutputName() + "/weights", shape, data);
}

// beta * c as a vector of `channels`; kNoTensor without failing if c is no constant of such a shape.
TensorId GemmBias(OnnxLowering& n, const OnnxValuePtr& c, int64_t channels, float beta) {
  if (!c->is_constant() || c->is_int()) return kNoTensor;
  const Dims& s = c->shape;
  const bool row = s.Count() == 1 || (s.Count() == channels && s.rank() > 0 && s.back() == channels);
  if (!row) return kNoTensor;
  const std::shared_ptr<ConstData> data = n.NewData(Dims{channels});
  if (data == nullptr) return kNoTensor;
  const float* from = c->constant->data->as<float>();
  for (int64_t i = 0; i < channels; ++i) data->as<float>()[i] = beta * from[s.Count() == 1 ? 0 : i];
  return n.AddConstant(n.OutputName() + "/bias", Dims{channels}, data);
}

void ImportGemm(OnnxLowering& n) {
  const OnnxValuePtr a = n.In(0), b = n.In(1);
  const bool transpose_a = n.Int("transA", 0) != 0, transpose_b = n.Int("transB", 0) != 0;
  const float alpha = n.Float("alpha", 1.0f), beta = n.Float("beta", 1.0f);
  if (!n.ok()) return;
  if (a->shape.rank() != 2 || b->shape.rank() != 2) {
    return n.Fail(
        InvalidArgument("multiplies ", ToString(a->shape), " by ", ToString(b->shape), ", which are no matrices"));
  }
  const int64_t depth = a->shape[transpose_a ? 0 : 1], b_depth = b->shape[transpose_b ? 1 : 0];
  if (depth != b_depth) {
    return n.Fail(InvalidArgument("multiplies matrices with inner sizes ", depth, " and ", b_depth));
  }
  const int64_t columns = b->shape[transpose_b ? 0 : 1];
  TensorId x = n.Plain(a);
  if (transpose_a) x = n.Emit("a", OpKind::kTranspose, {x}, TransposeAttrs{{1, 0}});
  const bool has_bias = n.Has(2) && beta != 0.0f;
  std::vector<TensorId> inputs = {x};
  OpKind kind = OpKind::kMatMul;
  OpAttrs attrs = MatMulAttrs{transpose_b};
  TensorId bias = kNoTensor;
  if (b->is_constant()) {
    if (b->is_int()) return n.Fail(Unsupported("multiplies integers"));
    kind = OpKind::kFullyConnected;
    attrs = FullyConnectedAttrs{};
    inputs.push_back(FullyConnectedWeights(n, *b->constant, transpose_b, alpha));
    if (has_bias) bias = GemmBias(n, n.In(2), columns, beta);
    if (bias != kNoTensor) inputs.push_back(bias);
  } else {
    inputs.push_back(n.Plain(b));
  }
  const bool scale = alpha != 1.0f && !b->is_constant();
  const bool add = has_bias && bias == kNoTensor;
  if (!n.ok()) return;
  if (!scale && !add) return n.EmitPlain(0, kind, std::move(inputs), std::move(attrs));
  TensorId y = n.Emit("product", kind, std::move(inputs), std::move(attrs));
  if (scale) {
    const std::vector<TensorId> operands = {y, n.ScalarConstant(alpha)};
    if (!add) return n.EmitPlain(0, OpKind::kBinary, operands, BinaryAttrs{BinaryKind::kMul, {}});
    y = n.Emit("scaled", OpKind::kBinary, operands, BinaryAttrs{BinaryKind::kMul, {}});
  }
  TensorId c = n.Plain(n.In(2));
  if (beta != 1.0f) c = n.Emit("c", OpKind::kBinary, {c, n.ScalarConstant(beta)}, BinaryAttrs{BinaryKind::kMul, {}});
  n.EmitPlain(0, OpKind::kBinary, {y, c}, BinaryAttrs{BinaryKind::kAdd, {}});
}

// a[..., M, K] with one matrix b[K, N] for all of a.
void ImportSharedMatMul(OnnxLowering& n, const OnnxValuePtr& a, const OnnxValuePtr& b) {
  if (b->is_constant()) {
    if (b->is_int()) return n.Fail(Unsupported("multiplies integers"));
    const std::vector<TensorId> inputs = {n.Plain(a), FullyConnectedWeights(n, *b->constant, false, 1.0f)};
    return n.EmitPlain(0, OpKind::kFullyConnected, inputs, FullyConnectedAttrs{});
  }
  if (a->shape.rank() == 2) return n.EmitPlain(0, OpKind::kMatMul, {n.Plain(a), n.Plain(b)}, MatMulAttrs{});
  const int64_t depth = a->shape.back();
  const TensorId rows =
      n.Emit("rows", OpKind::kReshape, {n.Plain(a)}, ReshapeAttrs{Dims{a->shape.Count() / depth, depth}});
  const TensorId product = n.Emit("product", OpKind::kMatMul, {rows, n.Plain(b)}, MatMulAttrs{});
  Dims shape = a->shape;
  shape[shape.rank() - 1] = b->shape.back();
  n.EmitPlain(0, OpKind::kReshape, {product}, ReshapeAttrs{shape});
}

void ImportMatMul(OnnxLowering& n) {
  const OnnxValuePtr a = n.In(0), b = n.In(1);
  if (!n.ok()) return;
  const Dims &sa = a->shape, &sb = b->shape;
  if (sa.rank() < (b->is_constant() ? 1 : 2) || sb.rank() < 2) {
    return n.Fail(Unsupported("multiplies ", ToString(sa), " by ", ToString(sb), "; both need rank 2 or more"));
  }
  if (sa.back() != sb.back(1)) {
    return n.Fail(InvalidArgument("multiplies ", ToString(sa), " by ", ToString(sb), ", whose inner sizes differ"));
  }
  if (sb.rank() == 2) return ImportSharedMatMul(n, a, b);
  bool equal = sa.rank() == sb.rank();
  for (int i = 0; equal && i + 2 < sa.rank(); ++i) equal = sa[i] == sb[i];
  if (!equal) return n.Fail(Unsupported("multiplies ", ToString(sa), " by ", ToString(sb), "; batches must be equal"));
  n.EmitPlain(0, OpKind::kMatMul, {n.Plain(a), n.Plain(b)}, MatMulAttrs{});
}

std::vector<int32_t> SwapWithInnermost(int axis, int rank) {
  std::vector<int32_t> perm(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) perm[static_cast<size_t>(i)] = i;
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  return perm;
}

}  // namespace

SoftmaxAxes ReadSoftmaxAxes(OnnxLowering& n, int rank) {
  const bool flattens = n.opset() < 13;
  const int axis = n.Axis(n.Int("axis", flattens ? 1 : -1), rank);
  return {axis, flattens ? rank : axis + 1, flattens};
}

namespace {

void ImportSoftmax(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  if (!n.ok()) return;
  const int rank = x->shape.rank();
  const SoftmaxAxes axes = ReadSoftmaxAxes(n, rank);
  const int axis = axes.axis;
  if (!n.ok()) return;
  int64_t behind = 1;
  for (int i = axis + 1; i < rank; ++i) behind *= x->shape[i];
  const bool innermost = behind == 1;
  if (innermost && axis == 1 && OnnxLowering::PreferLast({x})) {
    return n.EmitLast(0, OpKind::kSoftmax, {n.Last(x)}, SoftmaxAttrs{});
  }
  if (axis == rank - 1) return n.EmitPlain(0, OpKind::kSoftmax, {n.Plain(x)}, SoftmaxAttrs{});
  if (axes.flattens || innermost) {
    const TensorId rows = n.Emit("rows", OpKind::kReshape, {n.Plain(x)}, ReshapeAttrs{Flattened(x->shape, axis)});
    const TensorId softmax = n.Emit("softmax", OpKind::kSoftmax, {rows}, SoftmaxAttrs{});
    return n.EmitPlain(0, OpKind::kReshape, {softmax}, ReshapeAttrs{x->shape});
  }
  if (axis == 1 && (rank == 3 || rank == 4)) return n.EmitLast(0, OpKind::kSoftmax, {n.Last(x)}, SoftmaxAttrs{});
  const TransposeAttrs swap{SwapWithInnermost(axis, rank)};
  const TensorId swapped = n.Emit("swapped", OpKind::kTranspose, {n.Plain(x)}, swap);
  const TensorId softmax = n.Emit("softmax", OpKind::kSoftmax, {swapped}, SoftmaxAttrs{});
  n.EmitPlain(0, OpKind::kTranspose, {softmax}, swap);
}

// A scale or shift of LayerNormalization as a vector; zeros if input `i` is absent.
TensorId NormVector(OnnxLowering& n, int i, int64_t channels) {
  if (!n.Has(i)) return n.AddConstant(n.OutputName() + "/shift", Dims{channels}, n.NewData(Dims{channels}));
  const OnnxTensor* c = n.FloatConstant(i);
  if (c == nullptr) return kNoTensor;
  if (c->count() != channels) {
    n.Fail(
        InvalidArgument("its input '", c->name, "' has ", c->count(), " elements for ", channels, " normalised ones"));
    return kNoTensor;
  }
  return c->shape.rank() == 1 ? n.Plain(n.In(i)) : n.Rearranged(*c, "vector", Dims{channels}, Dims{1});
}

void ImportLayerNormalization(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  if (!n.ok()) return;
  const int rank = x->shape.rank();
  const int axis = n.Axis(n.Int("axis", -1), rank);
  const NormAttrs attrs{n.Float("epsilon", 1e-5f)};
  if (!n.ok()) return;
  if (n.IsRead(1) || n.IsRead(2)) return ImportLayerNormWithStatistics(n, axis, attrs.epsilon);
  const int64_t channels = Flattened(x->shape, axis)[1];
  const TensorId scale = NormVector(n, 1, channels), shift = NormVector(n, 2, channels);
  if (axis == rank - 1) return n.EmitPlain(0, OpKind::kLayerNorm, {n.Plain(x), scale, shift}, attrs);
  const TensorId rows = n.Emit("rows", OpKind::kReshape, {n.Plain(x)}, ReshapeAttrs{Flattened(x->shape, axis)});
  const TensorId norm = n.Emit("normalised", OpKind::kLayerNorm, {rows, scale, shift}, attrs);
  n.EmitPlain(0, OpKind::kReshape, {norm}, ReshapeAttrs{x->shape});
}

}  // namespace

const OnnxHandlerTable& OnnxMatrixHandlers() {
  static const OnnxHandlerTable table = {
      {"Gemm", ImportGemm},
      {"LayerNormalization", ImportLayerNormalization},
      {"MatMul", ImportMatMul},
      {"Softmax", ImportSoftmax},
  };
  return table;
}

}  // namespace plait
