// Softmax, LayerNorm and BatchNorm.
#include <cmath>

#include "src/graph/operators/declarations.h"

namespace plait {
namespace {

Result<Dims> SoftmaxShape(const Graph& graph, const Operator& op) {
  const Dims& x = graph.input(op, 0).shape;
  if (x.rank() < 1) return OpError(op, DescribeInput(graph, op, 0), " must have rank 1 or more");
  return x;
}

Result<Dims> NormShape(const Graph& graph, const Operator& op) {
  const Dims& x = graph.input(op, 0).shape;
  if (x.rank() < 1) return OpError(op, DescribeInput(graph, op, 0), " must have rank 1 or more");
  const float epsilon = op.as<NormAttrs>().epsilon;
  if (!std::isfinite(epsilon) || epsilon < 0) return OpError(op, "epsilon ", epsilon, " must be finite and not negative");
  for (int i = 1; i < static_cast<int>(op.inputs.size()); ++i) PLAIT_RETURN_IF_ERROR(CheckVector(graph, op, i, x.back()));
  return x;
}

// `x_innermost_whole`: statistics are taken over the innermost axis.
Region NormRegion(const Graph& graph, const Operator& op, int i, const Region& out, bool x_innermost_whole) {
  const int last = out.size.rank() - 1;
  if (i > 0) return {Dims{out.begin[last]}, Dims{out.size[last]}};
  Region in = out;
  if (x_innermost_whole) {
    in.begin[last] = 0;
    in.size[last] = out.size[last] == 0 ? 0 : graph.input(op, 0).shape.back();
  }
  return in;
}

Region WholeInnermostRegion(const Graph& graph, const Operator& op, int i, const Region& out) { return NormRegion(graph, op, i, out, true); }
Region BatchNormRegion(const Graph& graph, const Operator& op, int i, const Region& out) { return NormRegion(graph, op, i, out, false); }

std::vector<SplitAxis> SplitElementwise(const Graph& graph, const Operator& op) { return ElementwiseSplitAxes(graph.output(op).shape); }

std::vector<SplitAxis> SplitOuter(const Graph& graph, const Operator& op) {
  std::vector<SplitAxis> axes = ElementwiseSplitAxes(graph.output(op).shape);
  if (!axes.empty() && axes.back().role == AxisRole::kChannels) axes.pop_back();
  return axes;
}

}  // namespace

const OperatorDecl kSoftmaxDecl = {OpKind::kSoftmax, "Softmax", 1, 1, SoftmaxShape, WholeInnermostRegion, SplitOuter, MoveWork};
const OperatorDecl kLayerNormDecl = {OpKind::kLayerNorm, "LayerNorm", 3, 3, NormShape, WholeInnermostRegion, SplitOuter, MoveWork};
const OperatorDecl kBatchNormDecl = {OpKind::kBatchNorm, "BatchNorm", 5, 5, NormShape, BatchNormRegion, SplitElementwise, MoveWork};

}  // namespace plait
