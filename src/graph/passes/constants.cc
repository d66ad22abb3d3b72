#include "src/graph/passes/constants.h"

#include <cmath>

namespace plait {

const float* Floats(const Editor& editor, TensorId id) {
  if (id == kNoTensor) return nullptr;
  const Tensor& t = editor.tensor(id);
  return t.is_constant() && t.dtype == DType::kF32 ? t.data->as<float>() : nullptr;
}

std::optional<float> ScalarOf(const Editor& editor, TensorId id) {
  const float* values = Floats(editor, id);
  if (values == nullptr || editor.tensor(id).shape.Count() != 1) return std::nullopt;
  return values[0];
}

std::optional<std::vector<float>> ChannelValues(const Editor& editor, TensorId id, const Dims& shape) {
  const float* values = Floats(editor, id);
  if (values == nullptr || shape.rank() == 0) return std::nullopt;
  const Dims& own = editor.tensor(id).shape;
  const int64_t count = own.Count();
  if (own.rank() > shape.rank() || (count != 1 && (count != shape.back() || own.back() != count))) return std::nullopt;
  if (count == 1) return std::vector<float>(static_cast<size_t>(shape.back()), values[0]);
  return std::vector<float>(values, values + count);
}

bool Near(float value, double expected) { return std::abs(value - expected) <= 2e-6 * std::abs(expected); }

std::optional<ScalarOperand> MatchScalar(const Editor& editor, OpId id, BinaryKind kind) {
  if (id == kNoOp || editor.op(id).kind != OpKind::kBinary || editor.op(id).as<BinaryAttrs>().kind != kind) return std::nullopt;
  const std::vector<TensorId>& in = editor.op(id).inputs;
  for (const size_t scalar : {size_t{1}, size_t{0}}) {
    const std::optional<float> value = ScalarOf(editor, in[scalar]);
    const TensorId other = in[1 - scalar];
    if (value && editor.tensor(other).shape == editor.output(id).shape) return ScalarOperand{other, *value, scalar == 0};
  }
  return std::nullopt;
}

OpId UnaryProducer(const Editor& editor, TensorId id, UnaryKind kind) {
  const OpId p = editor.ProducerOfKind(id, OpKind::kUnary);
  return p != kNoOp && editor.op(p).as<UnaryAttrs>().kind == kind ? p : kNoOp;
}

OpId BinaryProducer(const Editor& editor, TensorId id, BinaryKind kind) {
  const OpId p = editor.ProducerOfKind(id, OpKind::kBinary);
  if (p == kNoOp) return kNoOp;
  const auto& attrs = editor.op(p).as<BinaryAttrs>();
  return attrs.kind == kind && attrs.clamp.IsNone() ? p : kNoOp;
}

}  // namespace plait
