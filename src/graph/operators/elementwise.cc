// Binary and Unary.
#include <algorithm>

#include "src/graph/operators/declarations.h"

namespace plait {
namespace {

Result<Dims> BinaryShape(const Graph& graph, const Operator& op) {
  const auto& attrs = op.as<BinaryAttrs>();
  if (attrs.kind > BinaryKind::kMin) return OpError(op, "unknown kind ", static_cast<int>(attrs.kind));
  PLAIT_RETURN_IF_ERROR(CheckClamp(op, attrs.clamp));
  const Dims& a = graph.input(op, 0).shape;
  const Dims& b = graph.input(op, 1).shape;
  Dims out = Dims::Filled(std::max(a.rank(), b.rank()), 1);
  for (int i = 0; i < out.rank(); ++i) {
    const int64_t da = i < a.rank() ? a.back(i) : 1;
    const int64_t db = i < b.rank() ? b.back(i) : 1;
    if (da != db && da != 1 && db != 1) {
      return OpError(op, DescribeInput(graph, op, 0), " and ", DescribeInput(graph, op, 1), " do not broadcast");
    }
    out[out.rank() - 1 - i] = std::max(da, db);
  }
  return out;
}

Region BinaryRegion(const Graph& graph, const Operator& op, int input, const Region& out) {
  Region in = Region::Whole(graph.input(op, input).shape);
  const int skipped = out.size.rank() - in.size.rank();
  for (int i = 0; i < in.size.rank(); ++i) {
    if (in.size[i] != 1) in.begin[i] = out.begin[i + skipped];
    in.size[i] = in.size[i] != 1 ? out.size[i + skipped] : std::min<int64_t>(1, out.size[i + skipped]);
  }
  return in;
}

Result<Dims> UnaryShape(const Graph& graph, const Operator& op) {
  const auto& attrs = op.as<UnaryAttrs>();
  if (attrs.kind > UnaryKind::kLog) return OpError(op, "unknown kind ", static_cast<int>(attrs.kind));
  PLAIT_RETURN_IF_ERROR(CheckClamp(op, attrs.clamp));
  if (attrs.kind != UnaryKind::kClamp && !attrs.clamp.IsNone()) return OpError(op, "only kind clamp has a clamp");
  return graph.input(op, 0).shape;
}

Region SameRegion(const Graph&, const Operator&, int, const Region& out) { return out; }

std::vector<SplitAxis> SplitElementwise(const Graph& graph, const Operator& op) { return ElementwiseSplitAxes(graph.output(op).shape); }

}  // namespace

const OperatorDecl kBinaryDecl = {OpKind::kBinary, "Binary", 2, 2, BinaryShape, BinaryRegion, SplitElementwise, MoveWork};
const OperatorDecl kUnaryDecl = {OpKind::kUnary, "Unary", 1, 1, UnaryShape, SameRegion, SplitElementwise, MoveWork};

}  // namespace plait
