// Normalisations by statistics of the data itself, from means, squares and roots. All work in the file's layout.
#include <algorithm>
#include <cmath>

#include "src/formats/onnx/lowering.h"

namespace plait {
namespace {

TensorId Unary(OnnxLowering& n, const char* hint, TensorId x, UnaryKind kind) {
  return n.Emit(hint, OpKind::kUnary, {x}, UnaryAttrs{kind, {}});
}
TensorId Binary(OnnxLowering& n, const char* hint, TensorId a, TensorId b, BinaryKind kind) {
  return n.Emit(hint, OpKind::kBinary, {a, b}, BinaryAttrs{kind, {}});
}
TensorId Mean(OnnxLowering& n, TensorId x, const std::vector<int32_t>& axes) {
  return n.Emit("mean", OpKind::kReduceMean, {x}, ReduceAttrs{axes, true});
}

std::vector<int32_t> AxesFrom(int first, int rank) {
  std::vector<int32_t> axes;
  for (int i = first; i < rank; ++i) axes.push_back(i);
  return axes;
}

// x minus its mean, the mean, and 1 / sqrt(variance + epsilon), over `axes`.
struct Statistics {
  TensorId mean, deviation, inverse;
};

Statistics StatisticsOf(OnnxLowering& n, TensorId x, const std::vector<int32_t>& axes, float epsilon) {
  Statistics s;
  s.mean = Mean(n, x, axes);
  s.deviation = Binary(n, "deviation", x, s.mean, BinaryKind::kSub);
  const TensorId variance = Mean(n, Unary(n, "square", s.deviation, UnaryKind::kSquare), axes);
  const TensorId shifted = Binary(n, "shifted", variance, n.ScalarConstant(epsilon), BinaryKind::kAdd);
  s.inverse = Unary(n, "inverse", Unary(n, "root", shifted, UnaryKind::kSqrt), UnaryKind::kReciprocal);
  return s;
}

// Input `i`, one number a channel, in a shape that broadcasts along axis 1 of a tensor of rank `rank`.
TensorId PerChannel(OnnxLowering& n, int i, int64_t channels, int rank) {
  const OnnxValuePtr v = n.In(i);
  if (!n.ok()) return kNoTensor;
  if (!(v->shape == Dims{channels})) {
    n.Fail(InvalidArgument("its input '", v->name, "' has the shape ", ToString(v->shape), " instead of ", channels));
    return kNoTensor;
  }
  Dims shape = Dims::Filled(rank, 1);
  shape[1] = channels;
  return n.Emit("channels", OpKind::kReshape, {n.Plain(v)}, ReshapeAttrs{shape});
}

// The checked input of a normalisation over (N, C, spatial...).
OnnxValuePtr ChannelInput(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  if (n.ok() && x->shape.rank() < 3) n.Fail(InvalidArgument("its input '", x->name, "' has rank ", x->shape.rank()));
  return x;
}

void ImportInstanceNormalization(OnnxLowering& n) {
  const OnnxValuePtr x = ChannelInput(n);
  if (!n.ok()) return;
  const int rank = x->shape.rank();
  const Statistics s = StatisticsOf(n, n.Plain(x), AxesFrom(2, rank), n.Float("epsilon", 1e-5f));
  const TensorId normal = Binary(n, "normal", s.deviation, s.inverse, BinaryKind::kMul);
  const TensorId scaled = Binary(n, "scaled", normal, PerChannel(n, 1, x->shape[1], rank), BinaryKind::kMul);
  n.EmitPlain(0, OpKind::kBinary, {scaled, PerChannel(n, 2, x->shape[1], rank)}, BinaryAttrs{BinaryKind::kAdd, {}});
}

// Scales are one a channel since opset 21, one a group before.
void ImportGroupNormalization(OnnxLowering& n) {
  const OnnxValuePtr x = ChannelInput(n);
  const int64_t groups = n.Int("num_groups", 0);
  const float epsilon = n.Float("epsilon", 1e-5f);
  if (!n.ok()) return;
  const int rank = x->shape.rank();
  const int64_t channels = x->shape[1];
  if (groups < 1 || channels % groups != 0) {
    return n.Fail(InvalidArgument("its ", groups, " groups do not divide ", channels, " channels"));
  }
  int64_t pixels = 1;
  for (int i = 2; i < rank; ++i) pixels *= x->shape[i];
  const Dims grouped{x->shape[0], groups, channels / groups * pixels};
  const TensorId rows = n.Emit("groups", OpKind::kReshape, {n.Plain(x)}, ReshapeAttrs{grouped});
  const Statistics s = StatisticsOf(n, rows, {2}, epsilon);
  TensorId y = Binary(n, "normal", s.deviation, s.inverse, BinaryKind::kMul);
  const bool by_group = n.opset() < 21;
  if (!by_group) y = n.Emit("image", OpKind::kReshape, {y}, ReshapeAttrs{x->shape});
  const int64_t scales = by_group ? groups : channels;
  const int out_rank = by_group ? 3 : rank;
  y = Binary(n, "scaled", y, PerChannel(n, 1, scales, out_rank), BinaryKind::kMul);
  y = Binary(n, "moved", y, PerChannel(n, 2, scales, out_rank), BinaryKind::kAdd);
  n.EmitPlain(0, OpKind::kReshape, {y}, ReshapeAttrs{x->shape});
}

void ImportMeanVarianceNormalization(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const std::vector<int64_t> listed = n.Ints("axes");
  if (!n.ok()) return;
  const std::vector<int32_t> axes =
      n.Axes(n.Find("axes") == nullptr ? std::vector<int64_t>{0, 2, 3} : listed, x->shape.rank());
  if (n.ok() && axes.empty()) return n.Fail(InvalidArgument("its attribute 'axes' is empty"));
  const Statistics s = StatisticsOf(n, n.Plain(x), axes, 1e-9f);
  n.EmitPlain(0, OpKind::kBinary, {s.deviation, s.inverse}, BinaryAttrs{BinaryKind::kMul, {}});
}

void ImportLpNormalization(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const int64_t p = n.Int("p", 2);
  const int axis = n.Axis(n.Int("axis", -1), x->shape.rank());
  if (p != 1 && p != 2) n.Fail(InvalidArgument("its attribute 'p' is ", p, "; 1 and 2 are possible"));
  if (!n.ok()) return;
  const TensorId plain = n.Plain(x);
  const TensorId sizes = Unary(n, "sizes", plain, p == 1 ? UnaryKind::kAbs : UnaryKind::kSquare);
  const auto count = static_cast<float>(x->shape[axis]);
  TensorId norm = Binary(n, "norm", Mean(n, sizes, {axis}), n.ScalarConstant(count), BinaryKind::kMul);
  if (p == 2) norm = Unary(n, "root", norm, UnaryKind::kSqrt);
  n.EmitPlain(0, OpKind::kBinary, {plain, norm}, BinaryAttrs{BinaryKind::kDiv, {}});
}

}  // namespace

void ImportLayerNormWithStatistics(OnnxLowering& n, int axis, float epsilon) {
  const OnnxValuePtr x = n.In(0), scale = n.In(1);
  if (!n.ok()) return;
  const Statistics s = StatisticsOf(n, n.Plain(x), AxesFrom(axis, x->shape.rank()), epsilon);
  const TensorId normal = Binary(n, "normal", s.deviation, s.inverse, BinaryKind::kMul);
  TensorId y = Binary(n, "scaled", normal, n.Plain(scale), BinaryKind::kMul);
  if (n.Has(2)) y = Binary(n, "moved", y, n.Plain(n.In(2)), BinaryKind::kAdd);
  if (!n.ok()) return;
  if (!(n.Shape(y) == x->shape)) return n.Fail(InvalidArgument("its scale or bias does not broadcast to its input"));
  n.SetTensor(0, y, false);
  if (n.Wanted(1)) n.SetTensor(1, s.mean, false);
  if (n.Wanted(2)) n.SetTensor(2, s.inverse, false);
}

const OnnxHandlerTable& OnnxNormHandlers() {
  static const OnnxHandlerTable table = {
      {"GroupNormalization", ImportGroupNormalization},
      {"InstanceNormalization", ImportInstanceNormalization},
      {"LpNormalization", ImportLpNormalization},
      {"MeanVarianceNormalization", ImportMeanVarianceNormalization},
  };
  return table;
}

}  // namespace plait
