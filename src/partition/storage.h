// Where tensors live: which of them are views into others, so that Concat, Slice and Reshape move no bytes.
#pragma once

#include <functional>
#include <vector>

#include "src/graph/graph.h"

namespace plait {

// Whether the kernels of every lane in use can read operand `operand` of operator `op` (or write its output, operand ==
// kOutputOperand) with arbitrary strides on all but the innermost axis. False: the tensor there has to be dense.
inline constexpr int kOutputOperand = -1;
using StrideSupport = std::function<bool(const Graph&, OpId op, int operand)>;

// Position of a tensor inside its root. A root is a tensor with memory of its own; it is dense.
struct TensorStorage {
  TensorId root = kNoTensor;  // itself, for a root
  int64_t offset = 0;         // elements from the root's first
  Dims strides;               // elements, one per axis of the tensor
};

// Inserts Unary kCopy operators so that afterwards every Concat, Slice and Reshape is a view: Concat operands that
// cannot be written in place (a graph input or constant, wanted by two Concats, producer or reader without strides),
// strided tensors whose reader needs them dense, and graph outputs that would be views of something else.
// Deterministic.
Result<Graph> PlaceCopies(const Graph& graph, const StrideSupport& strided);

// The storage of every tensor of a graph returned by PlaceCopies. Constants and graph inputs are roots.
Result<std::vector<TensorStorage>> AssignStorage(const Graph& graph);

}  // namespace plait
