// Conv2D and DepthwiseConv2D.
#include "src/graph/operators/declarations.h"

namespace plait {
namespace {

struct Windows {
  Window rows, columns;
};

Windows WindowsOf(const Conv2DAttrs& a, const Dims& x, int64_t kernel_h, int64_t kernel_w) {
  return {{x[1], kernel_h, a.stride_h, a.dilation_h, a.pad.top, a.pad.bottom},
          {x[2], kernel_w, a.stride_w, a.dilation_w, a.pad.left, a.pad.right}};
}

Windows ConvWindows(const Graph& graph, const Operator& op) {
  const Dims& w = graph.input(op, 1).shape;
  return WindowsOf(op.as<Conv2DAttrs>(), graph.input(op, 0).shape, w[1], w[2]);
}

Windows DepthwiseWindows(const Graph& graph, const Operator& op) {
  const Dims& w = graph.input(op, 1).shape;
  return WindowsOf(op.as<Conv2DAttrs>(), graph.input(op, 0).shape, w[0], w[1]);
}

Result<Dims> OutputShape(const Operator& op, const Windows& windows, int64_t batch, int64_t channels) {
  PLAIT_RETURN_IF_ERROR(CheckClamp(op, op.as<Conv2DAttrs>().clamp));
  PLAIT_ASSIGN_OR_RETURN(const int64_t rows, WindowPositions(op, "rows", windows.rows));
  PLAIT_ASSIGN_OR_RETURN(const int64_t columns, WindowPositions(op, "columns", windows.columns));
  return Dims{batch, rows, columns, channels};
}

// Batch and image axes of the activation's region; its channel range stays whole.
Region ImageRegion(const Dims& x, const Windows& windows, const Region& out) {
  Region in = Region::Whole(x);
  in.begin[0] = out.begin[0];
  in.size[0] = out.size[0];
  SetWindowRange(&in, 1, windows.rows, out.begin[1], out.size[1]);
  SetWindowRange(&in, 2, windows.columns, out.begin[2], out.size[2]);
  return in;
}

Result<Dims> ConvShape(const Graph& graph, const Operator& op) {
  PLAIT_RETURN_IF_ERROR(CheckRank(graph, op, 0, 4));
  PLAIT_RETURN_IF_ERROR(CheckRank(graph, op, 1, 4));
  const Dims& x = graph.input(op, 0).shape;
  const Dims& w = graph.input(op, 1).shape;
  const int64_t groups = op.as<Conv2DAttrs>().groups;
  if (groups < 1 || w[0] % groups != 0) return OpError(op, groups, " groups do not divide ", w[0], " output channels");
  if (x[3] != SaturatingMul(w[3], groups)) {
    return OpError(op, DescribeInput(graph, op, 0), " has ", x[3], " channels, but ", DescribeInput(graph, op, 1), " with ", groups,
                   " groups reads ", SaturatingMul(w[3], groups));
  }
  PLAIT_RETURN_IF_ERROR(CheckVector(graph, op, 2, w[0]));
  return OutputShape(op, ConvWindows(graph, op), x[0], w[0]);
}

Region ConvRegion(const Graph& graph, const Operator& op, int i, const Region& out) {
  if (i > 0) {
    Region in = Region::Whole(graph.input(op, i).shape);
    in.begin[0] = out.begin[3];
    in.size[0] = out.size[3];
    return in;
  }
  Region in = ImageRegion(graph.input(op, 0).shape, ConvWindows(graph, op), out);
  const int64_t groups = op.as<Conv2DAttrs>().groups;
  if (groups > 1) {
    const int64_t out_per_group = graph.input(op, 1).shape[0] / groups;
    const int64_t in_per_group = graph.input(op, 1).shape[3];
    const int64_t first = out.begin[3] / out_per_group;
    const int64_t end = CeilDiv(out.begin[3] + out.size[3], out_per_group);
    in.begin[3] = first * in_per_group;
    in.size[3] = out.size[3] == 0 ? 0 : (end - first) * in_per_group;
  } else if (out.size[3] == 0) {
    in.size[3] = 0;
  }
  return in;
}

// Channel cuts inside a group are valid, too: they read the whole group. Kernels that run whole groups say so in their cut rules.
std::vector<SplitAxis> SplitImage(const Graph& graph, const Operator& op) { return ImageSplitAxes(graph.output(op).shape); }

Work ConvWork(const Graph& graph, const Operator& op, const Region& out) {
  const Dims& w = graph.input(op, 1).shape;
  return MeasureWork(graph, op, out, w[1] * w[2] * w[3]);
}

Result<Dims> DepthwiseShape(const Graph& graph, const Operator& op) {
  PLAIT_RETURN_IF_ERROR(CheckRank(graph, op, 0, 4));
  PLAIT_RETURN_IF_ERROR(CheckRank(graph, op, 1, 3));
  const Dims& x = graph.input(op, 0).shape;
  const Dims& w = graph.input(op, 1).shape;
  if (x[3] != w[2]) {
    return OpError(op, DescribeInput(graph, op, 0), " has ", x[3], " channels, but ", DescribeInput(graph, op, 1), " has ", w[2]);
  }
  PLAIT_RETURN_IF_ERROR(CheckVector(graph, op, 2, w[2]));
  return OutputShape(op, DepthwiseWindows(graph, op), x[0], w[2]);
}

Region DepthwiseRegion(const Graph& graph, const Operator& op, int i, const Region& out) {
  const Dims& shape = graph.input(op, i).shape;
  Region in = i == 0 ? ImageRegion(shape, DepthwiseWindows(graph, op), out) : Region::Whole(shape);
  in.begin[shape.rank() - 1] = out.begin[3];
  in.size[shape.rank() - 1] = out.size[3];
  return in;
}

Work DepthwiseWork(const Graph& graph, const Operator& op, const Region& out) {
  const Dims& w = graph.input(op, 1).shape;
  return MeasureWork(graph, op, out, w[0] * w[1]);
}

}  // namespace

const OperatorDecl kConv2DDecl = {OpKind::kConv2D, "Conv2D", 2, 3, ConvShape, ConvRegion, SplitImage, ConvWork};
const OperatorDecl kDepthwiseConv2DDecl = {
    OpKind::kDepthwiseConv2D, "DepthwiseConv2D", 2, 3, DepthwiseShape, DepthwiseRegion, SplitImage, DepthwiseWork};

}  // namespace plait
