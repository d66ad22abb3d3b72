// Private to the graph room: the declarations, one per operator kind, and what they share.
#pragma once

#include <string>

#include "src/base/checked.h"
#include "src/graph/operators.h"

namespace plait {

extern const OperatorDecl kConv2DDecl, kDepthwiseConv2DDecl;                                   // convolution.cc
extern const OperatorDecl kFullyConnectedDecl, kMatMulDecl;                                    // matrix.cc
extern const OperatorDecl kBinaryDecl, kUnaryDecl;                                             // elementwise.cc
extern const OperatorDecl kMaxPool2DDecl, kAveragePool2DDecl, kReduceMeanDecl;                 // pooling.cc
extern const OperatorDecl kSoftmaxDecl, kLayerNormDecl, kBatchNormDecl;                        // normalisation.cc
extern const OperatorDecl kConcatDecl, kSliceDecl, kReshapeDecl, kTransposeDecl, kPadDecl;     // movement.cc

// A name for messages: quoted, cut after 80 characters, control characters replaced.
std::string Quoted(const std::string& name);
// "operator 'conv1' (Conv2D)".
std::string Describe(const Operator& op);
// "input 1 'weights' (64x3x3x3)".
std::string DescribeInput(const Graph& graph, const Operator& op, int i);

// InvalidArgument that begins with the operator.
template <typename... Args>
Status OpError(const Operator& op, const Args&... args) {
  return InvalidArgument(Describe(op), ": ", args...);
}

// Whether the i-th input exists (optional ones may be left out or be kNoTensor).
inline bool HasInput(const Operator& op, int i) {
  return i < static_cast<int>(op.inputs.size()) && op.inputs[static_cast<size_t>(i)] != kNoTensor;
}

// Sizes of axes, bytes in all, and the length of constant data.
Status CheckTensor(const Tensor& tensor);
Status CheckRank(const Graph& graph, const Operator& op, int input, int rank);
// The input is absent, or a vector of `length`.
Status CheckVector(const Graph& graph, const Operator& op, int input, int64_t length);
Status CheckClamp(const Operator& op, const Clamp& clamp);

// A convolution or pooling window along one image axis.
struct Window {
  int64_t input, kernel, stride, dilation, pad_before, pad_after;
  int64_t EffectiveKernel() const { return (kernel - 1) * dilation + 1; }
};
// The number of window positions; InvalidArgument if an attribute is out of range or the kernel does not fit. `axis` is "rows" or "columns".
Result<int64_t> WindowPositions(const Operator& op, const char* axis, const Window& window);
// Sets [begin, begin + size) of `region` on `axis` to the input elements that the output range reads, clipped to the input.
void SetWindowRange(Region* region, int axis, const Window& window, int64_t out_begin, int64_t out_size);

// Axis 0 as batch, 1 as rows and 3 as channels, as far as they are longer than 1.
std::vector<SplitAxis> ImageSplitAxes(const Dims& shape);
// Every axis longer than 1: the outermost is kRows, the innermost kChannels, those between kColumns.
std::vector<SplitAxis> ElementwiseSplitAxes(const Dims& shape);

int64_t SaturatingMul(int64_t a, int64_t b);
int64_t SaturatingAdd(int64_t a, int64_t b);
// Bytes that a region of the output reads and writes, and macs_per_element multiply-accumulates for each of its elements.
Work MeasureWork(const Graph& graph, const Operator& op, const Region& out, int64_t macs_per_element);
// The same for operators without multiply-accumulates.
Work MoveWork(const Graph& graph, const Operator& op, const Region& out);

}  // namespace plait
