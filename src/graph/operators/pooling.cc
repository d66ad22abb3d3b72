// MaxPool2D, AveragePool2D and ReduceMean.
#include <algorithm>

#include "src/graph/operators/declarations.h"

namespace plait {
namespace {

Window RowWindow(const Graph& graph, const Operator& op) {
  const auto& a = op.as<Pool2DAttrs>();
  return {graph.input(op, 0).shape[1], a.kernel_h, a.stride_h, 1, a.pad.top, a.pad.bottom};
}

Window ColumnWindow(const Graph& graph, const Operator& op) {
  const auto& a = op.as<Pool2DAttrs>();
  return {graph.input(op, 0).shape[2], a.kernel_w, a.stride_w, 1, a.pad.left, a.pad.right};
}

Result<Dims> PoolShape(const Graph& graph, const Operator& op) {
  PLAIT_RETURN_IF_ERROR(CheckRank(graph, op, 0, 4));
  PLAIT_RETURN_IF_ERROR(CheckClamp(op, op.as<Pool2DAttrs>().clamp));
  const Window rows = RowWindow(graph, op), columns = ColumnWindow(graph, op);
  PLAIT_ASSIGN_OR_RETURN(const int64_t height, WindowPositions(op, "rows", rows));
  PLAIT_ASSIGN_OR_RETURN(const int64_t width, WindowPositions(op, "columns", columns));
  for (const Window& w : {rows, columns}) {
    if (std::max(w.pad_before, w.pad_after) >= w.kernel) {
      return OpError(op, "padding ", w.pad_before, " and ", w.pad_after, " must be less than the kernel's ", w.kernel,
                     ", or a window would hold nothing but padding");
    }
  }
  const Dims& x = graph.input(op, 0).shape;
  return Dims{x[0], height, width, x[3]};
}

Region PoolRegion(const Graph& graph, const Operator& op, int, const Region& out) {
  Region in = out;
  SetWindowRange(&in, 1, RowWindow(graph, op), out.begin[1], out.size[1]);
  SetWindowRange(&in, 2, ColumnWindow(graph, op), out.begin[2], out.size[2]);
  return in;
}

std::vector<SplitAxis> SplitImage(const Graph& graph, const Operator& op) { return ImageSplitAxes(graph.output(op).shape); }

bool Reduces(const ReduceAttrs& attrs, int axis) { return std::find(attrs.axes.begin(), attrs.axes.end(), axis) != attrs.axes.end(); }

Result<Dims> ReduceShape(const Graph& graph, const Operator& op) {
  const auto& a = op.as<ReduceAttrs>();
  const Dims& x = graph.input(op, 0).shape;
  if (a.axes.empty()) return OpError(op, "no axes to reduce; use a Unary copy instead");
  int previous = -1;
  for (const int axis : a.axes) {
    if (axis <= previous || axis >= x.rank()) {
      return OpError(op, "axis ", axis, " must be ascending and within 0..", x.rank() - 1, " of ", DescribeInput(graph, op, 0));
    }
    previous = axis;
  }
  Dims out;
  for (int i = 0; i < x.rank(); ++i) {
    if (!Reduces(a, i)) {
      out.push_back(x[i]);
    } else if (a.keep_dims) {
      out.push_back(1);
    }
  }
  return out;
}

Region ReduceRegion(const Graph& graph, const Operator& op, int, const Region& out) {
  const auto& a = op.as<ReduceAttrs>();
  Region in = Region::Whole(graph.input(op, 0).shape);
  if (out.IsEmpty()) in.size = Dims::Filled(in.size.rank(), 0);
  int next = 0;
  for (int i = 0; i < in.size.rank(); ++i) {
    if (!Reduces(a, i)) {
      in.begin[i] = out.begin[next];
      in.size[i] = out.size[next];
    }
    if (!Reduces(a, i) || a.keep_dims) ++next;
  }
  return in;
}

// A reduced axis that is kept has extent 1 and is never offered.
std::vector<SplitAxis> SplitReduce(const Graph& graph, const Operator& op) { return ElementwiseSplitAxes(graph.output(op).shape); }

}  // namespace

const OperatorDecl kMaxPool2DDecl = {OpKind::kMaxPool2D, "MaxPool2D", 1, 1, PoolShape, PoolRegion, SplitImage, MoveWork};
const OperatorDecl kAveragePool2DDecl = {OpKind::kAveragePool2D, "AveragePool2D", 1, 1, PoolShape, PoolRegion, SplitImage, MoveWork};
const OperatorDecl kReduceMeanDecl = {OpKind::kReduceMean, "ReduceMean", 1, 1, ReduceShape, ReduceRegion, SplitReduce, MoveWork};

}  // namespace plait
