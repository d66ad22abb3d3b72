#include "backends/xnnpack/rules.h"

#include <numeric>

#include "backends/xnnpack/kernels.h"
#include "src/base/checked.h"

namespace plait::xnn {
namespace {

constexpr int64_t kLine = 16;  // f32 elements of a cache line: neighbouring parts of loops of our own share none

// The first tensor of `op` whose dtype is not f32, or nullptr.
const Tensor* FirstOtherDtype(const Graph& graph, const Operator& op) {
  for (const TensorId id : op.inputs) {
    if (id != kNoTensor && graph.tensor(id).dtype != DType::kF32) return &graph.tensor(id);
  }
  return graph.output(op).dtype == DType::kF32 ? nullptr : &graph.output(op);
}

// The first input from `first` on that is computed where the kernel needs a constant, or nullptr.
const Tensor* FirstComputed(const Graph& graph, const Operator& op, size_t first) {
  for (size_t i = first; i < op.inputs.size(); ++i) {
    if (op.inputs[i] != kNoTensor && !graph.tensor(op.inputs[i]).is_constant()) return &graph.tensor(op.inputs[i]);
  }
  return nullptr;
}

bool NeedsConstants(OpKind kind) {
  return kind == OpKind::kConv2D || kind == OpKind::kDepthwiseConv2D || kind == OpKind::kFullyConnected || kind == OpKind::kLayerNorm ||
         kind == OpKind::kBatchNorm;
}

std::string ConvolutionId(const Graph& graph, const Operator& op) {
  const Dims& w = graph.input(op, 1).shape;
  const Conv2DAttrs& a = op.as<Conv2DAttrs>();
  const bool gemm = w[1] == 1 && w[2] == 1 && a.stride_h == 1 && a.stride_w == 1 && a.pad == Padding{};
  return gemm ? "xnnpack.conv2d.gemm" : "xnnpack.conv2d.igemm";
}

std::string DepthwiseId(const Tiles& tiles, const Graph& graph, const Operator& op) {
  const Dims& w = graph.input(op, 1).shape;
  const Conv2DAttrs& a = op.as<Conv2DAttrs>();
  if (!HasDepthwiseKernel(tiles, a, w[0], w[1])) return "xnnpack.dwconv.loop";
  const bool scale_shift = w[0] == 1 && w[1] == 1 && a.stride_h == 1 && a.stride_w == 1 && a.pad == Padding{};
  return scale_shift ? "xnnpack.vmulcaddc" : "xnnpack.dwconv";
}

// Padding at least as large as the window makes rows that read nothing but padding; such an operator runs whole.
bool HasEmptyWindows(const Graph& graph, const Operator& op) {
  int64_t kernel_h = 1, dilation_h = 1, top = 0, bottom = 0;
  if (op.kind == OpKind::kConv2D || op.kind == OpKind::kDepthwiseConv2D) {
    const Conv2DAttrs& a = op.as<Conv2DAttrs>();
    kernel_h = graph.input(op, 1).shape[op.kind == OpKind::kConv2D ? 1 : 0];
    dilation_h = a.dilation_h;
    top = a.pad.top;
    bottom = a.pad.bottom;
  } else {
    const Pool2DAttrs& a = op.as<Pool2DAttrs>();
    kernel_h = a.kernel_h;
    top = a.pad.top;
    bottom = a.pad.bottom;
  }
  const int64_t extent = (kernel_h - 1) * dilation_h + 1;
  return top >= extent || bottom >= extent;
}

CutRule ChannelRule(const Tiles& tiles, const Graph& graph, const Operator& op) {
  switch (op.kind) {
    case OpKind::kConv2D: {
      const int64_t groups = op.as<Conv2DAttrs>().groups, group_out = graph.output(op).shape[3] / groups;
      if (groups == 1) return {tiles.convolution, tiles.convolution};
      // Whole groups, and enough of them that XNNPACK's choice of kernel stays what it is for the whole.
      const int64_t width = RoundUp(kLine, group_out);
      return {width, width};
    }
    case OpKind::kDepthwiseConv2D: {
      const Dims& w = graph.input(op, 1).shape;
      const int64_t tile = DepthwiseTile(tiles, op.as<Conv2DAttrs>(), w[0], w[1]);
      const int64_t width = tile == 0 ? kLine : std::lcm(tile, kLine);
      return {width, width};
    }
    case OpKind::kFullyConnected:
    case OpKind::kMatMul: return {tiles.fully_connected, tiles.fully_connected};
    case OpKind::kTranspose:
    case OpKind::kPad: return {1, 1};
    default: return {kLine, 1};
  }
}

}  // namespace

KernelSupport XnnRules::Supports(const Graph& graph, OpId id) const {
  const Operator& op = graph.op(id);
  if (const Tensor* other = FirstOtherDtype(graph, op); other != nullptr) {
    return {false, "", StrCat("tensor \"", other->name, "\" is ", Name(other->dtype), "; the XNNPACK backend computes f32 only")};
  }
  if (NeedsConstants(op.kind)) {
    if (const Tensor* computed = FirstComputed(graph, op, 1); computed != nullptr) {
      return {false, "", StrCat("tensor \"", computed->name, "\" is computed; the XNNPACK backend packs constant weights only")};
    }
  }
  switch (op.kind) {
    case OpKind::kConv2D: return {true, ConvolutionId(graph, op), ""};
    case OpKind::kDepthwiseConv2D: return {true, DepthwiseId(tiles_, graph, op), ""};
    case OpKind::kFullyConnected: return {true, "xnnpack.fully_connected", ""};
    case OpKind::kMatMul: return {true, "xnnpack.batch_matrix_multiply", ""};
    case OpKind::kBinary: return {true, "xnnpack.binary", ""};
    case OpKind::kUnary: return {true, op.as<UnaryAttrs>().kind == UnaryKind::kCopy ? "xnnpack.copy" : "xnnpack.unary", ""};
    case OpKind::kMaxPool2D: return {true, "xnnpack.max_pooling2d", ""};
    case OpKind::kAveragePool2D: return {true, "xnnpack.average_pooling2d", ""};
    case OpKind::kReduceMean: return {true, "xnnpack.mean", ""};
    case OpKind::kSoftmax: return {true, "xnnpack.softmax", ""};
    case OpKind::kLayerNorm: return {true, "xnnpack.layer_norm", ""};
    case OpKind::kBatchNorm: return {true, "xnnpack.batch_norm", ""};
    case OpKind::kTranspose: return {true, "xnnpack.transpose", ""};
    case OpKind::kPad: return {true, "xnnpack.pad", ""};
    case OpKind::kConcat:
    case OpKind::kSlice:
    case OpKind::kReshape: break;
  }
  return {false, "", StrCat(Name(op.kind), " is a view; it has no kernel")};
}

CutRule XnnRules::Cut(const Graph& graph, OpId id, SplitAxis axis) const {
  const Operator& op = graph.op(id);
  const bool windowed = op.kind == OpKind::kConv2D || op.kind == OpKind::kDepthwiseConv2D || op.kind == OpKind::kMaxPool2D ||
                        op.kind == OpKind::kAveragePool2D;
  switch (axis.role) {
    case AxisRole::kBatch: return {1, 1};
    case AxisRole::kRows: return {windowed && HasEmptyWindows(graph, op) ? 0 : 1, 1};
    case AxisRole::kColumns: return {windowed ? 0 : 1, 1};
    case AxisRole::kChannels: return ChannelRule(tiles_, graph, op);
  }
  return {0, 1};
}

bool XnnRules::Strided(const Graph& graph, OpId id, int operand) const {
  const Operator& op = graph.op(id);
  if (op.kind != OpKind::kMatMul) return true;
  // Rows of one matrix may have strides; batches are one call on dense operands, and the second operand is packed dense.
  const Dims& out = graph.output(op).shape;
  return operand != 1 && out.Count() == out.back(0) * out.back(1);
}

}  // namespace plait::xnn
