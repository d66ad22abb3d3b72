// One declaration per operator kind: shape, regions, axes, work. Adding an operator starts (and, for the logical side, ends) here.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/graph/graph.h"

namespace plait {

// What cutting along an output axis means for the operator; decides which cuts kernels can do without copying.
enum class AxisRole : uint8_t {
  kBatch,     // independent images, heads or matrices
  kRows,      // image rows (with halo), tokens, matrix rows
  kColumns,   // image columns; offered by no kernel yet, its place is kept
  kChannels,  // innermost: output channels or matrix columns
};

struct SplitAxis {
  int axis;  // index into the output's shape
  AxisRole role;
};

struct Work {
  int64_t macs = 0;           // multiply-accumulates of convolutions, fully connected and matmul operators; 0 for all others
  int64_t input_bytes = 0;    // activations read
  int64_t weight_bytes = 0;   // constants read
  int64_t output_bytes = 0;
};

// All functions take an operator of a graph that holds valid tensor ids; after Validate() they cannot fail unless they say so.
struct OperatorDecl {
  OpKind kind;
  std::string_view name;
  int min_inputs, max_inputs;
  // The output's shape from the inputs' shapes and the attributes; InvalidArgument if they do not fit together.
  Result<Dims> (*infer_shape)(const Graph&, const Operator&);
  // The region of input `i` that is read to compute `out` of the output; for weights and bias, too. An absent optional
  // input is never asked for. May be larger than needed, never smaller; clipped to the tensor.
  Region (*input_region)(const Graph&, const Operator&, int i, const Region& out);
  // Axes along which parts are independent. Empty: only whole.
  std::vector<SplitAxis> (*split_axes)(const Graph&, const Operator&);
  Work (*work)(const Graph&, const Operator&, const Region& out);
};

const OperatorDecl& Declaration(OpKind kind);

// Shorthands that look the declaration up.
Result<Dims> InferShape(const Graph& graph, const Operator& op);
Region InputRegion(const Graph& graph, const Operator& op, int input, const Region& out);
std::vector<SplitAxis> SplitAxes(const Graph& graph, const Operator& op);
Work WorkOf(const Graph& graph, const Operator& op, const Region& out);
Work WorkOf(const Graph& graph, const Operator& op);  // whole
int64_t TotalMacs(const Graph& graph);
int64_t ParameterCount(const Graph& graph);  // elements of constants that published implementations count: no running statistics of BatchNorm, no shape-like constants

// Whether kernels may write the output over operand `operand` where both lie in the same places: they read no element of it after they have written the output's
// element there or another one that needs it. All backends keep this. Unary, Binary and Softmax with an operand of the output's shape and dtype.
bool MayWriteOver(const Graph& graph, const Operator& op, int operand);

// Concat, Slice and Reshape move no bytes (once PlaceCopies has run): they take no part in schedules.
bool IsView(OpKind kind);

}  // namespace plait
