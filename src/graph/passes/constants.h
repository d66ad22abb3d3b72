// Private to the passes: reading constants.
#pragma once

#include <optional>
#include <vector>

#include "src/graph/passes/editor.h"

namespace plait {

// The constant's elements, or nullptr if the tensor is computed, absent or not f32.
const float* Floats(const Editor& editor, TensorId id);
// The value of an f32 constant with one element.
std::optional<float> ScalarOf(const Editor& editor, TensorId id);
// An f32 constant that, broadcast against a tensor of `shape`, has one value per channel (innermost) or one for all: its
// `shape.back()` values. It must not broadcast the tensor to a larger shape.
std::optional<std::vector<float>> ChannelValues(const Editor& editor, TensorId id, const Dims& shape);
// Whether two values are equal up to the rounding of constants that exporters print and compute.
bool Near(float value, double expected);

// A Binary operator of `kind` with an operand that is a scalar constant.
struct ScalarOperand {
  TensorId other;
  float value;
  bool scalar_first;  // value op other
};
std::optional<ScalarOperand> MatchScalar(const Editor& editor, OpId op, BinaryKind kind);

// The operator that computes the tensor if it is a Unary of `kind`; else kNoOp.
OpId UnaryProducer(const Editor& editor, TensorId id, UnaryKind kind);
// The same for a Binary of `kind` without a clamp.
OpId BinaryProducer(const Editor& editor, TensorId id, BinaryKind kind);

}  // namespace plait
