// Concat, Slice, Reshape, Transpose and Pad: operators that only move elements.
#include <cmath>

#include "src/graph/operators/declarations.h"

namespace plait {
namespace {

std::vector<SplitAxis> OnlyWhole(const Graph&, const Operator&) { return {}; }
std::vector<SplitAxis> SplitElementwise(const Graph& graph, const Operator& op) { return ElementwiseSplitAxes(graph.output(op).shape); }

Result<Dims> ConcatShape(const Graph& graph, const Operator& op) {
  const int axis = op.as<ConcatAttrs>().axis;
  Dims out = graph.input(op, 0).shape;
  if (axis < 0 || axis >= out.rank()) return OpError(op, "axis ", axis, " is not one of ", DescribeInput(graph, op, 0));
  for (int i = 1; i < static_cast<int>(op.inputs.size()); ++i) {
    const Dims& x = graph.input(op, i).shape;
    bool fits = x.rank() == out.rank();
    for (int d = 0; fits && d < out.rank(); ++d) fits = d == axis || x[d] == out[d];
    if (!fits) {
      return OpError(op, DescribeInput(graph, op, i), " does not fit ", DescribeInput(graph, op, 0), " outside axis ", axis);
    }
    out[axis] = SaturatingAdd(out[axis], x[axis]);
  }
  return out;
}

Region ConcatRegion(const Graph& graph, const Operator& op, int input, const Region& out) {
  const int axis = op.as<ConcatAttrs>().axis;
  Region shifted = out;
  for (int i = 0; i < input; ++i) shifted.begin[axis] -= graph.input(op, i).shape[axis];
  Region in = Intersect(shifted, Region::Whole(graph.input(op, input).shape));
  if (in.size[axis] == 0) in.begin[axis] = 0;
  return in;
}

Result<Dims> SliceShape(const Graph& graph, const Operator& op) {
  const auto& a = op.as<SliceAttrs>();
  const Dims& x = graph.input(op, 0).shape;
  bool fits = a.begin.rank() == x.rank() && a.size.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) {
    fits = a.begin[i] >= 0 && a.size[i] >= 1 && a.size[i] <= x[i] && a.begin[i] <= x[i] - a.size[i];
  }
  if (!fits) return OpError(op, "begin ", ToString(a.begin), " and size ", ToString(a.size), " leave ", DescribeInput(graph, op, 0));
  return a.size;
}

Region SliceRegion(const Graph&, const Operator& op, int, const Region& out) {
  Region in = out;
  for (int i = 0; i < in.begin.rank(); ++i) in.begin[i] += op.as<SliceAttrs>().begin[i];
  return in;
}

Result<Dims> ReshapeShape(const Graph& graph, const Operator& op) {
  const Dims& shape = op.as<ReshapeAttrs>().shape;
  int64_t count = 1;
  for (const int64_t d : shape) {
    if (d < 1) return OpError(op, "shape ", ToString(shape), " has a size below 1");
    count = SaturatingMul(count, d);
  }
  if (count != graph.input(op, 0).shape.Count()) {
    return OpError(op, "shape ", ToString(shape), " has not as many elements as ", DescribeInput(graph, op, 0));
  }
  return shape;
}

// The smallest box of axes [first, end) of `shape` that holds the row-major positions low..high of these axes.
void SetEnclosingBox(Region* box, const Dims& shape, int first, int end, int64_t low, int64_t high) {
  int64_t inner = 1;
  for (int i = first; i < end; ++i) inner *= shape[i];
  bool whole = false;  // once low and high differ on an axis, everything further in may be touched
  for (int i = first; i < end; ++i) {
    inner /= shape[i];
    const int64_t a = low / inner, b = high / inner;
    box->begin[i] = whole ? 0 : a;
    box->size[i] = whole ? shape[i] : b - a + 1;
    whole = whole || a != b;
    low -= a * inner;
    high -= b * inner;
  }
}

// Input and output axes are taken in the smallest groups with equal element counts, so that a box stays exact on every axis
// that the reshape leaves alone and where groups are cut at whole inner axes.
Region ReshapeRegion(const Graph& graph, const Operator& op, int, const Region& out) {
  const Dims& x = graph.input(op, 0).shape;
  const Dims& y = op.as<ReshapeAttrs>().shape;
  Region in = Region::Whole(x);
  if (out.IsEmpty()) {
    in.size = Dims::Filled(x.rank(), 0);
    return in;
  }
  int i = 0, j = 0;
  while (i < x.rank() || j < y.rank()) {
    const int first_i = i, first_j = j;
    int64_t x_count = 1, y_count = 1;
    if (i < x.rank()) x_count = x[i++];
    if (j < y.rank()) y_count = y[j++];
    while (x_count != y_count) {
      if (x_count < y_count) {
        x_count *= x[i++];
      } else {
        y_count *= y[j++];
      }
    }
    int64_t low = 0, high = 0;
    for (int k = first_j; k < j; ++k) {
      low = low * y[k] + out.begin[k];
      high = high * y[k] + out.begin[k] + out.size[k] - 1;
    }
    SetEnclosingBox(&in, x, first_i, i, low, high);
  }
  return in;
}

Result<Dims> TransposeShape(const Graph& graph, const Operator& op) {
  const auto& perm = op.as<TransposeAttrs>().perm;
  const Dims& x = graph.input(op, 0).shape;
  if (static_cast<int>(perm.size()) != x.rank()) {
    return OpError(op, "perm has ", perm.size(), " entries for ", DescribeInput(graph, op, 0));
  }
  Dims out;
  uint32_t seen = 0;
  for (const int axis : perm) {
    if (axis < 0 || axis >= x.rank() || (seen >> axis & 1) != 0) return OpError(op, "perm is no permutation: axis ", axis);
    seen |= 1u << axis;
    out.push_back(x[axis]);
  }
  return out;
}

Region TransposeRegion(const Graph&, const Operator& op, int, const Region& out) {
  const auto& perm = op.as<TransposeAttrs>().perm;
  Region in = out;
  for (size_t i = 0; i < perm.size(); ++i) {
    in.begin[perm[i]] = out.begin[static_cast<int>(i)];
    in.size[perm[i]] = out.size[static_cast<int>(i)];
  }
  return in;
}

Result<Dims> PadShape(const Graph& graph, const Operator& op) {
  const auto& a = op.as<PadAttrs>();
  const Dims& x = graph.input(op, 0).shape;
  if (a.before.rank() != x.rank() || a.after.rank() != x.rank()) {
    return OpError(op, "padding of ranks ", a.before.rank(), " and ", a.after.rank(), " for ", DescribeInput(graph, op, 0));
  }
  if (std::isnan(a.value)) return OpError(op, "the padding's value is not a number");
  Dims out;
  for (int i = 0; i < x.rank(); ++i) {
    if (a.before[i] < 0 || a.after[i] < 0) return OpError(op, "negative padding ", a.before[i], " or ", a.after[i], " on axis ", i, "; use Slice");
    out.push_back(SaturatingAdd(SaturatingAdd(x[i], a.before[i]), a.after[i]));
  }
  return out;
}

Region PadRegion(const Graph& graph, const Operator& op, int, const Region& out) {
  const auto& a = op.as<PadAttrs>();
  Region shifted = out;
  for (int i = 0; i < out.begin.rank(); ++i) shifted.begin[i] -= a.before[i];
  Region in = Intersect(shifted, Region::Whole(graph.input(op, 0).shape));
  for (int i = 0; i < in.size.rank(); ++i) {
    if (in.size[i] == 0) in.begin[i] = 0;
  }
  return in;
}

}  // namespace

// The bound on operands keeps walks over one Concat, which are quadratic in them, short.
const OperatorDecl kConcatDecl = {OpKind::kConcat, "Concat", 1, 4096, ConcatShape, ConcatRegion, OnlyWhole, MoveWork};
const OperatorDecl kSliceDecl = {OpKind::kSlice, "Slice", 1, 1, SliceShape, SliceRegion, OnlyWhole, MoveWork};
const OperatorDecl kReshapeDecl = {OpKind::kReshape, "Reshape", 1, 1, ReshapeShape, ReshapeRegion, OnlyWhole, MoveWork};
const OperatorDecl kTransposeDecl = {OpKind::kTranspose, "Transpose", 1, 1, TransposeShape, TransposeRegion, SplitElementwise, MoveWork};
const OperatorDecl kPadDecl = {OpKind::kPad, "Pad", 1, 1, PadShape, PadRegion, SplitElementwise, MoveWork};

}  // namespace plait
