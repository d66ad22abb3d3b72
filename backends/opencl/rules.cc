#include "backends/opencl/rules.h"

#include <algorithm>

#include "backends/opencl/opencl.h"

namespace plait::opencl {

std::string KernelId(OpKind kind) {
  switch (kind) {
    case OpKind::kConv2D: return "opencl.conv2d.gemm";
    case OpKind::kDepthwiseConv2D: return "opencl.depthwise";
    case OpKind::kFullyConnected: return "opencl.fully_connected.gemm";
    case OpKind::kMatMul: return "opencl.matmul.gemm";
    case OpKind::kBinary: return "opencl.binary";
    case OpKind::kUnary: return "opencl.unary";
    case OpKind::kMaxPool2D: return "opencl.max_pool";
    case OpKind::kAveragePool2D: return "opencl.average_pool";
    case OpKind::kReduceMean: return "opencl.reduce_mean";
    case OpKind::kSoftmax: return "opencl.softmax";
    case OpKind::kLayerNorm: return "opencl.layer_norm";
    case OpKind::kBatchNorm: return "opencl.batch_norm";
    case OpKind::kTranspose: return "opencl.transpose";
    case OpKind::kPad: return "opencl.pad";
    case OpKind::kConcat:
    case OpKind::kSlice:
    case OpKind::kReshape: return "";
  }
  return "";
}

namespace {

class Rules final : public KernelRules {
 public:
  std::string_view name() const override { return "opencl"; }

  KernelSupport Supports(const Graph& graph, OpId id) const override {
    const Operator& op = graph.op(id);
    KernelSupport support;
    support.kernel = KernelId(op.kind);
    if (IsView(op.kind)) {
      support.reason = StrCat(Name(op.kind), " is a view; no kernel runs it");
      return support;
    }
    for (TensorId tensor : op.inputs) {
      if (tensor != kNoTensor && graph.tensor(tensor).dtype != DType::kF32) return NeedsF32(graph.tensor(tensor));
    }
    if (graph.output(op).dtype != DType::kF32) return NeedsF32(graph.output(op));
    // Weights are packed when a plan is bound, so they have to be known then.
    const bool weights = op.kind == OpKind::kConv2D || op.kind == OpKind::kDepthwiseConv2D || op.kind == OpKind::kFullyConnected ||
                         op.kind == OpKind::kLayerNorm || op.kind == OpKind::kBatchNorm;
    for (size_t i = 1; weights && i < op.inputs.size(); ++i) {
      if (op.inputs[i] != kNoTensor && !graph.tensor(op.inputs[i]).is_constant()) {
        support.reason = StrCat(Name(op.kind), " needs constant weights; ", graph.tensor(op.inputs[i]).name, " is computed");
        return support;
      }
    }
    if (op.kind == OpKind::kReduceMean && ReducedAxes(graph, op) > 2) {
      support.reason = StrCat("the mean over ", ReducedAxes(graph, op), " axes besides the innermost; the OpenCL kernel takes two");
      return support;
    }
    support.supported = true;
    return support;
  }

  CutRule Cut(const Graph& graph, OpId id, SplitAxis axis) const override {
    const Operator& op = graph.op(id);
    switch (axis.role) {
      case AxisRole::kColumns: return {};
      case AxisRole::kBatch:
      case AxisRole::kRows: return {1, 1};
      case AxisRole::kChannels: break;
    }
    if (op.kind == OpKind::kConv2D) {
      const int64_t groups = op.as<Conv2DAttrs>().groups;
      const int64_t group_channels = graph.output(op).shape.back() / std::max<int64_t>(groups, 1);
      // A cut inside a group falls between its tiles; between groups that are no whole number of tiles, only at their borders.
      if (groups > 1 && group_channels % kTileColumns != 0) return {group_channels, group_channels};
    }
    return {kTileColumns, kTileColumns};
  }

  bool Strided(const Graph&, OpId, int) const override { return true; }

 private:
  // Axes of more than one element that are averaged, without the innermost.
  static int ReducedAxes(const Graph& graph, const Operator& op) {
    const Dims& shape = graph.input(op, 0).shape;
    int count = 0;
    for (int32_t axis : op.as<ReduceAttrs>().axes) count += axis + 1 < shape.rank() && shape[axis] > 1;
    return count;
  }
  static KernelSupport NeedsF32(const Tensor& tensor) {
    return {false, "", StrCat("tensor ", tensor.name, " is ", Name(tensor.dtype), "; the OpenCL kernels compute in f32")};
  }
};

}  // namespace
}  // namespace plait::opencl

namespace plait {

const KernelRules& OpenClKernelRules() {
  static const opencl::Rules rules;
  return rules;
}

}  // namespace plait
