// FullyConnected and MatMul.
#include "src/graph/operators/declarations.h"

namespace plait {
namespace {

Result<Dims> FullyConnectedShape(const Graph& graph, const Operator& op) {
  const Dims& x = graph.input(op, 0).shape;
  if (x.rank() < 1) return OpError(op, DescribeInput(graph, op, 0), " must have rank 1 or more");
  PLAIT_RETURN_IF_ERROR(CheckRank(graph, op, 1, 2));
  PLAIT_RETURN_IF_ERROR(CheckClamp(op, op.as<FullyConnectedAttrs>().clamp));
  const Dims& w = graph.input(op, 1).shape;
  if (x.back() != w[1]) {
    return OpError(op, DescribeInput(graph, op, 0), " has ", x.back(), " channels, but ", DescribeInput(graph, op, 1), " reads ", w[1]);
  }
  PLAIT_RETURN_IF_ERROR(CheckVector(graph, op, 2, w[0]));
  Dims out = x;
  out[out.rank() - 1] = w[0];
  return out;
}

Region FullyConnectedRegion(const Graph& graph, const Operator& op, int i, const Region& out) {
  const int last = out.size.rank() - 1;
  if (i == 0) {
    Region in = out;
    in.begin[last] = 0;
    in.size[last] = out.size[last] == 0 ? 0 : graph.input(op, 0).shape.back();
    return in;
  }
  Region in = Region::Whole(graph.input(op, i).shape);
  in.begin[0] = out.begin[last];
  in.size[0] = out.size[last];
  return in;
}

// The leading axes are one list of rows; only its outermost axis longer than 1 gives ranges of it.
std::vector<SplitAxis> SplitFullyConnected(const Graph& graph, const Operator& op) {
  const Dims& shape = graph.output(op).shape;
  std::vector<SplitAxis> axes;
  for (int i = 0; i + 1 < shape.rank() && axes.empty(); ++i) {
    if (shape[i] > 1) axes.push_back({i, AxisRole::kRows});
  }
  if (shape.back() > 1) axes.push_back({shape.rank() - 1, AxisRole::kChannels});
  return axes;
}

Work FullyConnectedWork(const Graph& graph, const Operator& op, const Region& out) {
  return MeasureWork(graph, op, out, graph.input(op, 0).shape.back());
}

Result<Dims> MatMulShape(const Graph& graph, const Operator& op) {
  const Dims& a = graph.input(op, 0).shape;
  const Dims& b = graph.input(op, 1).shape;
  if (a.rank() < 2 || b.rank() != a.rank()) {
    return OpError(op, DescribeInput(graph, op, 0), " and ", DescribeInput(graph, op, 1), " must have the same rank, 2 or more");
  }
  const bool transposed = op.as<MatMulAttrs>().transpose_b;
  if (a.back() != b.back(transposed ? 0 : 1)) {
    return OpError(op, "inner sizes of ", DescribeInput(graph, op, 0), " and ", DescribeInput(graph, op, 1),
                   transposed ? " (transposed)" : "", " differ");
  }
  Dims out = a;
  for (int i = 0; i + 2 < a.rank(); ++i) {
    if (a[i] != b[i]) return OpError(op, "batch axis ", i, " of ", DescribeInput(graph, op, 0), " and ", DescribeInput(graph, op, 1), " differs");
  }
  out[out.rank() - 1] = b.back(transposed ? 1 : 0);
  return out;
}

Region MatMulRegion(const Graph& graph, const Operator& op, int i, const Region& out) {
  const int m = out.size.rank() - 2, n = m + 1;
  const int64_t depth = out.IsEmpty() ? 0 : graph.input(op, 0).shape.back();
  Region in = out;
  const bool depth_last = i == 0 || op.as<MatMulAttrs>().transpose_b;
  if (i == 1 && depth_last) {
    in.begin[m] = out.begin[n];
    in.size[m] = out.size[n];
  }
  in.begin[depth_last ? n : m] = 0;
  in.size[depth_last ? n : m] = depth;
  return in;
}

std::vector<SplitAxis> SplitMatMul(const Graph& graph, const Operator& op) {
  const Dims& shape = graph.output(op).shape;
  std::vector<SplitAxis> axes;
  for (int i = 0; i < shape.rank(); ++i) {
    const int from_end = shape.rank() - 1 - i;
    if (shape[i] > 1) axes.push_back({i, from_end == 0 ? AxisRole::kChannels : from_end == 1 ? AxisRole::kRows : AxisRole::kBatch});
  }
  return axes;
}

Work MatMulWork(const Graph& graph, const Operator& op, const Region& out) {
  return MeasureWork(graph, op, out, graph.input(op, 0).shape.back());
}

}  // namespace

const OperatorDecl kFullyConnectedDecl = {
    OpKind::kFullyConnected, "FullyConnected", 2, 3, FullyConnectedShape, FullyConnectedRegion, SplitFullyConnected, FullyConnectedWork};
const OperatorDecl kMatMulDecl = {OpKind::kMatMul, "MatMul", 2, 2, MatMulShape, MatMulRegion, SplitMatMul, MatMulWork};

}  // namespace plait
