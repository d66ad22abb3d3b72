// GELU and layer normalisation, as exporters write them.
#include <cmath>

#include "src/graph/passes/constants.h"
#include "src/graph/passes/editor.h"

namespace plait {
namespace {

// x such that `tensor` is x / sqrt(2), written as a quotient or a product; else kNoTensor.
TensorId MatchOverSqrt2(const Editor& editor, TensorId tensor) {
  const OpId p = editor.producer(tensor);
  if (const auto div = MatchScalar(editor, p, BinaryKind::kDiv); div && !div->scalar_first && Near(div->value, std::sqrt(2.0))) return div->other;
  if (const auto mul = MatchScalar(editor, p, BinaryKind::kMul); mul && Near(mul->value, std::sqrt(0.5))) return mul->other;
  return kNoTensor;
}

// Multiplies `factor` by what stands beside `tensor` in the product `id`: a scalar, x, or x times a scalar. False if it is something else.
bool TakeFactor(const Editor& editor, OpId id, TensorId tensor, TensorId x, double* factor, int* x_count) {
  if (const auto mul = MatchScalar(editor, id, BinaryKind::kMul); mul && mul->other == tensor) {
    *factor *= mul->value;
    return true;
  }
  if (const auto div = MatchScalar(editor, id, BinaryKind::kDiv); div && div->other == tensor && !div->scalar_first) {
    *factor /= div->value;
    return true;
  }
  const Operator& op = editor.op(id);
  if (op.as<BinaryAttrs>().kind != BinaryKind::kMul) return false;
  const TensorId other = op.inputs[0] == tensor ? op.inputs[1] : op.inputs[0];
  if (other != x) {
    const OpId p = editor.producer(other);
    const auto mul = MatchScalar(editor, p, BinaryKind::kMul);
    const auto div = MatchScalar(editor, p, BinaryKind::kDiv);
    if (mul && mul->other == x) {
      *factor *= mul->value;
    } else if (div && div->other == x && !div->scalar_first) {
      *factor /= div->value;
    } else {
      return false;
    }
    if (!editor.op(p).as<BinaryAttrs>().clamp.IsNone()) return false;
  }
  ++*x_count;
  return true;
}

void GeluFrom(Editor& editor, OpId erf) {
  const TensorId x = MatchOverSqrt2(editor, editor.op(erf).inputs[0]);
  const OpId sum = editor.OnlyReader(editor.op(erf).output);
  if (x == kNoTensor || sum == kNoOp) return;
  const auto one = MatchScalar(editor, sum, BinaryKind::kAdd);
  if (!one || one->value != 1.0f || !editor.op(sum).as<BinaryAttrs>().clamp.IsNone()) return;
  // Climb through the products of 1 + erf(..) until x and one half have both been met.
  constexpr int kMostProducts = 3;
  double factor = 1;
  int x_count = 0;
  TensorId tensor = editor.op(sum).output;
  for (int i = 0; i < kMostProducts; ++i) {
    const OpId product = editor.OnlyReader(tensor);
    if (product == kNoOp || editor.op(product).kind != OpKind::kBinary) return;
    if (!TakeFactor(editor, product, tensor, x, &factor, &x_count) || x_count > 1) return;
    const bool clamped = !editor.op(product).as<BinaryAttrs>().clamp.IsNone();
    tensor = editor.op(product).output;
    if (x_count == 1 && Near(static_cast<float>(factor), 0.5) && editor.tensor(tensor).shape == editor.tensor(x).shape) {
      if (!clamped) editor.Become(product, OpKind::kUnary, {x}, UnaryAttrs{UnaryKind::kGelu});
      return;
    }
    if (clamped) return;
  }
}

// x if the operator is the mean over the innermost axis, which is kept; else kNoTensor.
TensorId MatchInnermostMean(const Editor& editor, TensorId tensor) {
  const OpId p = editor.ProducerOfKind(tensor, OpKind::kReduceMean);
  if (p == kNoOp) return kNoTensor;
  const auto& attrs = editor.op(p).as<ReduceAttrs>();
  const int last = editor.input(p, 0).shape.rank() - 1;
  return attrs.keep_dims && attrs.axes == std::vector<int32_t>{last} ? editor.op(p).inputs[0] : kNoTensor;
}

// The operand of a square, written as Unary or as a product with itself.
TensorId MatchSquare(const Editor& editor, TensorId tensor) {
  const OpId unary = UnaryProducer(editor, tensor, UnaryKind::kSquare);
  if (unary != kNoOp) return editor.op(unary).inputs[0];
  const OpId product = BinaryProducer(editor, tensor, BinaryKind::kMul);
  if (product == kNoOp || editor.op(product).inputs[0] != editor.op(product).inputs[1]) return kNoTensor;
  return editor.op(product).inputs[0];
}

// x if the tensor is x - mean(x).
TensorId MatchCentred(const Editor& editor, TensorId tensor) {
  const OpId sub = BinaryProducer(editor, tensor, BinaryKind::kSub);
  if (sub == kNoOp) return kNoTensor;
  const TensorId x = editor.op(sub).inputs[0];
  return MatchInnermostMean(editor, editor.op(sub).inputs[1]) == x ? x : kNoTensor;
}

// The deviation sqrt(mean((x - mean(x))^2) + epsilon) of x.
bool MatchDeviation(const Editor& editor, TensorId tensor, TensorId x, float* epsilon) {
  const OpId root = UnaryProducer(editor, tensor, UnaryKind::kSqrt);
  if (root == kNoOp) return false;
  const OpId sum = editor.producer(editor.op(root).inputs[0]);
  const auto add = MatchScalar(editor, sum, BinaryKind::kAdd);
  if (!add || !editor.op(sum).as<BinaryAttrs>().clamp.IsNone() || !(add->value >= 0) || !std::isfinite(add->value)) return false;
  const TensorId squares = MatchInnermostMean(editor, add->other);
  const TensorId centred = squares == kNoTensor ? kNoTensor : MatchSquare(editor, squares);
  *epsilon = add->value;
  return centred != kNoTensor && MatchCentred(editor, centred) == x;
}

// x if the operator computes (x - mean(x)) / deviation(x), as a quotient or as a product with the reciprocal.
TensorId MatchNormalized(const Editor& editor, OpId id, float* epsilon) {
  const auto& attrs = editor.op(id).as<BinaryAttrs>();
  const std::vector<TensorId>& in = editor.op(id).inputs;
  if (!attrs.clamp.IsNone()) return kNoTensor;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    TensorId divisor = in[1 - i];
    if (attrs.kind == BinaryKind::kMul) {
      const OpId reciprocal = UnaryProducer(editor, divisor, UnaryKind::kReciprocal);
      if (reciprocal == kNoOp) continue;
      divisor = editor.op(reciprocal).inputs[0];
    } else if (attrs.kind != BinaryKind::kDiv || i == 1) {
      continue;
    }
    const TensorId x = MatchCentred(editor, in[i]);
    if (x != kNoTensor && MatchDeviation(editor, divisor, x, epsilon)) return x;
  }
  return kNoTensor;
}

// The per-channel constant that the operator alone multiplies or adds to `tensor`.
std::optional<std::vector<float>> ChannelOperand(const Editor& editor, OpId id, TensorId tensor, BinaryKind kind) {
  if (id == kNoOp || editor.op(id).kind != OpKind::kBinary || editor.op(id).as<BinaryAttrs>().kind != kind) return std::nullopt;
  const std::vector<TensorId>& in = editor.op(id).inputs;
  return ChannelValues(editor, in[0] == tensor ? in[1] : in[0], editor.tensor(tensor).shape);
}

void LayerNormFrom(Editor& editor, OpId id) {
  NormAttrs attrs;
  const TensorId x = MatchNormalized(editor, id, &attrs.epsilon);
  if (x == kNoTensor) return;
  const auto channels = static_cast<size_t>(editor.tensor(x).shape.back());
  std::vector<float> gamma(channels, 1.0f), beta(channels, 0.0f);
  OpId last = id;
  const OpId scale = editor.OnlyReader(editor.op(last).output);
  if (const auto values = ChannelOperand(editor, scale, editor.op(last).output, BinaryKind::kMul)) {
    if (editor.op(scale).as<BinaryAttrs>().clamp.IsNone()) {
      gamma = *values;
      last = scale;
    }
  }
  const OpId shift = editor.OnlyReader(editor.op(last).output);
  if (const auto values = ChannelOperand(editor, shift, editor.op(last).output, BinaryKind::kAdd)) {
    if (editor.op(shift).as<BinaryAttrs>().clamp.IsNone()) {
      beta = *values;
      last = shift;
    }
  }
  const Dims shape{static_cast<int64_t>(channels)};
  const std::string name = editor.op(last).name;
  const TensorId gamma_id = editor.AddConstant(name + ".gamma", shape, gamma), beta_id = editor.AddConstant(name + ".beta", shape, beta);
  if (gamma_id != kNoTensor && beta_id != kNoTensor) editor.Become(last, OpKind::kLayerNorm, {x, gamma_id, beta_id}, attrs);
}

}  // namespace

void RecognizeGelu(Editor& editor) {
  for (const OpId id : editor.Order()) {
    if (!editor.alive(id) || editor.op(id).kind != OpKind::kUnary || editor.op(id).as<UnaryAttrs>().kind != UnaryKind::kErf) continue;
    GeluFrom(editor, id);
  }
}

void RecognizeLayerNorm(Editor& editor) {
  for (const OpId id : editor.Order()) {
    if (editor.alive(id) && editor.op(id).kind == OpKind::kBinary) LayerNormFrom(editor, id);
  }
}

}  // namespace plait
