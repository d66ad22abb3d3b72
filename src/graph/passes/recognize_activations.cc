// Activations that exporters write as several operators.
#include <algorithm>

#include "src/graph/passes/constants.h"
#include "src/graph/passes/editor.h"

namespace plait {
namespace {

// The value scale * x + shift, clamped: what a short chain of Binary operators with scalars and clamps computes from x.
struct ClampedLine {
  TensorId x = kNoTensor;
  double scale = 1, shift = 0;
  Clamp clamp;
};

void ApplyClamp(const Clamp& clamp, ClampedLine* line) {
  line->clamp = {std::clamp(line->clamp.min, clamp.min, clamp.max), std::clamp(line->clamp.max, clamp.min, clamp.max)};
}

// Scaling after the clamp scales the clamp, too; `factor` > 0.
void Scale(double factor, ClampedLine* line) {
  line->scale *= factor;
  line->shift *= factor;
  line->clamp.min = static_cast<float>(line->clamp.min * factor);
  line->clamp.max = static_cast<float>(line->clamp.max * factor);
}

void Shift(double by, ClampedLine* line) {
  line->shift += by;
  line->clamp.min = static_cast<float>(line->clamp.min + by);
  line->clamp.max = static_cast<float>(line->clamp.max + by);
}

// Applies one operator of the chain after what `line` holds; returns the operand that the chain goes on with, kNoTensor if the
// operator is something else.
TensorId ApplyOperator(const Editor& editor, OpId id, ClampedLine* line) {
  const Operator& op = editor.op(id);
  if (op.kind == OpKind::kUnary && op.as<UnaryAttrs>().kind == UnaryKind::kClamp) {
    ApplyClamp(op.as<UnaryAttrs>().clamp, line);
    return op.inputs[0];
  }
  TensorId operand = kNoTensor;
  if (const auto add = MatchScalar(editor, id, BinaryKind::kAdd)) {
    Shift(add->value, line);
    operand = add->other;
  } else if (const auto mul = MatchScalar(editor, id, BinaryKind::kMul); mul && mul->value > 0) {
    Scale(mul->value, line);
    operand = mul->other;
  } else if (const auto div = MatchScalar(editor, id, BinaryKind::kDiv); div && !div->scalar_first && div->value > 0) {
    Scale(1.0 / div->value, line);
    operand = div->other;
  } else {
    return kNoTensor;
  }
  ApplyClamp(op.as<BinaryAttrs>().clamp, line);
  return operand;
}

bool IsHardSigmoid(const ClampedLine& line, double scale) {
  return Near(static_cast<float>(line.scale), scale / 6) && Near(static_cast<float>(line.shift), scale / 2) && line.clamp.min == 0 &&
         Near(line.clamp.max, scale);
}

// The tensor x for which `tensor` is scale * HardSigmoid(x); kNoTensor if there is none.
TensorId MatchHardSigmoid(const Editor& editor, TensorId tensor, double scale) {
  constexpr int kLongest = 4;  // add, clamp, multiply and one more
  std::vector<OpId> chain;
  for (int i = 0; i < kLongest; ++i) {
    const OpId p = editor.producer(tensor);
    if (p == kNoOp) break;
    if (scale == 1 && UnaryProducer(editor, tensor, UnaryKind::kHardSigmoid) != kNoOp && chain.empty()) return editor.op(p).inputs[0];
    ClampedLine probe;
    tensor = ApplyOperator(editor, p, &probe);
    if (tensor == kNoTensor) break;
    chain.push_back(p);
    ClampedLine line{tensor};
    for (auto o = chain.rbegin(); o != chain.rend(); ++o) ApplyOperator(editor, *o, &line);
    if (IsHardSigmoid(line, scale)) return tensor;
  }
  return kNoTensor;
}

// x * f(x) in either order.
bool RecognizeProduct(Editor& editor, OpId id) {
  const Operator& op = editor.op(id);
  const auto& attrs = op.as<BinaryAttrs>();
  if (attrs.kind != BinaryKind::kMul || !attrs.clamp.IsNone()) return false;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const TensorId x = op.inputs[i], f = op.inputs[1 - i];
    const OpId sigmoid = UnaryProducer(editor, f, UnaryKind::kSigmoid);
    if (sigmoid != kNoOp && editor.op(sigmoid).inputs[0] == x) {
      editor.Become(id, OpKind::kUnary, {x}, UnaryAttrs{UnaryKind::kSilu});
      return true;
    }
    if (MatchHardSigmoid(editor, f, 1) == x) {
      editor.Become(id, OpKind::kUnary, {x}, UnaryAttrs{UnaryKind::kHardSwish});
      return true;
    }
  }
  return false;
}

// (x * (6 * HardSigmoid(x))) / 6, the division being written as a product, too.
bool RecognizeScaledProduct(Editor& editor, OpId id) {
  TensorId product = kNoTensor;
  if (const auto div = MatchScalar(editor, id, BinaryKind::kDiv); div && !div->scalar_first && Near(div->value, 6)) product = div->other;
  if (const auto mul = MatchScalar(editor, id, BinaryKind::kMul); mul && Near(mul->value, 1.0 / 6)) product = mul->other;
  if (product == kNoTensor || !editor.op(id).as<BinaryAttrs>().clamp.IsNone()) return false;
  const OpId inner = BinaryProducer(editor, product, BinaryKind::kMul);
  if (inner == kNoOp) return false;
  const std::vector<TensorId> in = editor.op(inner).inputs;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (MatchHardSigmoid(editor, in[1 - i], 6) != in[i]) continue;
    editor.Become(id, OpKind::kUnary, {in[i]}, UnaryAttrs{UnaryKind::kHardSwish});
    return true;
  }
  return false;
}

}  // namespace

void RecognizeActivations(Editor& editor) {
  for (const OpId id : editor.Order()) {
    if (!editor.alive(id)) continue;
    const OpKind kind = editor.op(id).kind;
    if (kind == OpKind::kBinary && (RecognizeProduct(editor, id) || RecognizeScaledProduct(editor, id))) continue;
    const TensorId x = MatchHardSigmoid(editor, editor.op(id).output, 1);
    if (x != kNoTensor && (kind == OpKind::kBinary || editor.op(id).as<UnaryAttrs>().kind != UnaryKind::kHardSigmoid)) {
      editor.Become(id, OpKind::kUnary, {x}, UnaryAttrs{UnaryKind::kHardSigmoid});
    }
  }
}

}  // namespace plait
