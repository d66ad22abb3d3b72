// Rewrites that keep a graph's results (up to rounding) and make it cheaper to run.
#pragma once

#include "src/graph/graph.h"

namespace plait {

// Runs every pass below in the right order until nothing changes, then validates. The order is part of the contract: one
// input graph gives one output graph, byte for byte.
Result<Graph> Optimize(const Graph& graph);

// Each pass returns whether it changed the graph. Graph inputs and outputs keep their names, shapes and order.
bool FoldConstants(Graph* graph);       // operators whose inputs are all constant, evaluated at load (fixed-order loops)
bool FoldBatchNorm(Graph* graph);       // and per-channel products, into the convolution or fully connected operator before it (or those before a Concat); else a 1x1 DepthwiseConv2D
bool FoldScales(Graph* graph);          // a scalar factor into the FullyConnected whose moved result it scales, or the left operand of whose product
bool FuseClamps(Graph* graph);          // Unary kClamp into the producer's clamp
bool FusePadding(Graph* graph);         // Pad with 0 into the following convolution or average pool (count_include_pad)
bool FuseBias(Graph* graph);            // Binary add of a per-channel constant into the producer's bias
bool RecognizeGelu(Graph* graph);       // x * 0.5 * (1 + erf(x / sqrt 2)) in its usual orders
bool RecognizeLayerNorm(Graph* graph);  // mean, subtract, square, mean, add epsilon, sqrt, divide, scale, shift
bool RecognizeActivations(Graph* graph);  // x * sigmoid(x), x * hardsigmoid(x), x / 6 + 0.5 clamped
bool CancelTransposes(Graph* graph);    // moves Transposes through elementwise operators, Concat, Pad, ReduceMean, Softmax; removes inverse pairs
bool SimplifyViews(Graph* graph);       // identity Reshape/Slice/Transpose/Copy, chains of them, Transposes that move no byte become Reshapes, MatMul of a constant becomes FullyConnected, Concat of a prefix Concat reuses it, equal operators of equal operands become one
bool RemoveDeadCode(Graph* graph);      // operators and constants that no output needs

}  // namespace plait
