// Elementwise operators, rows (softmax, layer norm, mean) and layout (transpose, pad).
#include <algorithm>
#include <cmath>

#include "backends/opencl/operand.h"
#include "src/base/checked.h"

namespace plait::opencl {
namespace {

const char* KernelOf(BinaryKind kind) {
  switch (kind) {
    case BinaryKind::kAdd: return "binary_add";
    case BinaryKind::kSub: return "binary_sub";
    case BinaryKind::kMul: return "binary_mul";
    case BinaryKind::kDiv: return "binary_div";
    case BinaryKind::kMax: return "binary_max";
    case BinaryKind::kMin: return "binary_min";
  }
  return "";
}

const char* KernelOf(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::kCopy: return "unary_copy";
    case UnaryKind::kClamp: return "unary_clamp";
    case UnaryKind::kSigmoid: return "unary_sigmoid";
    case UnaryKind::kHardSigmoid: return "unary_hard_sigmoid";
    case UnaryKind::kHardSwish: return "unary_hard_swish";
    case UnaryKind::kSilu: return "unary_silu";
    case UnaryKind::kGelu: return "unary_gelu";
    case UnaryKind::kTanh: return "unary_tanh";
    case UnaryKind::kExp: return "unary_exp";
    case UnaryKind::kSqrt: return "unary_sqrt";
    case UnaryKind::kErf: return "unary_erf";
    case UnaryKind::kNegate: return "unary_negate";
    case UnaryKind::kAbs: return "unary_abs";
    case UnaryKind::kSquare: return "unary_square";
    case UnaryKind::kReciprocal: return "unary_reciprocal";
    case UnaryKind::kLog: return "unary_log";
  }
  return "";
}

// Strides of `operand` along the axes of an output of rank `rank` that it broadcasts to.
Dims BroadcastStrides(const Operand& operand, int rank) {
  Dims strides = Dims::Filled(rank, 0);
  const int missing = rank - operand.strides.rank();
  for (int i = 0; i < operand.strides.rank(); ++i) {
    if (operand.tensor->shape[i] > 1) strides[missing + i] = operand.strides[i];
  }
  return strides;
}

// Coordinates in a tensor of `shape` of an output coordinate that it broadcasts to.
Dims BroadcastBegin(const Dims& shape, const Dims& begin) {
  Dims own = Dims::Filled(shape.rank(), 0);
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] > 1) own[i] = begin[begin.rank() - shape.rank() + i];
  }
  return own;
}

}  // namespace

Status StepLowering::Binary() {
  PLAIT_ASSIGN_OR_RETURN(const Operand a, Read(0));
  PLAIT_ASSIGN_OR_RETURN(const Operand b, Read(1));
  PLAIT_ASSIGN_OR_RETURN(const Operand y, Write());
  const auto& attrs = op_.as<BinaryAttrs>();
  const int rank = out().size.rank();
  Axes all = MergedAxes(out().size, {BroadcastStrides(a, rank), BroadcastStrides(b, rank), y.strides});
  EnsureUnitInner(&all, 2);
  // The kernel's inner loop knows strides 0 and 1.
  const auto simple = [&](int64_t stride) { return stride == 0 || stride == 1; };
  if (!simple(all.back().strides[0]) || !simple(all.back().strides[1])) all.push_back({1, {1, 1, 1}});
  const int64_t a_at = a.At(BroadcastBegin(a.tensor->shape, out().begin)), b_at = b.At(BroadcastBegin(b.tensor->shape, out().begin));
  return ForEachOuter(all, 4, [&](const Axes& axes, const auto& offsets) -> Status {
    const int64_t rows = axes[0].extent * axes[1].extent * axes[2].extent;
    const Division division = Divide(rows, axes[3].extent);
    LaunchBuilder launch(device(), Family::kElementwise, KernelOf(attrs.kind));
    launch.Arg(a.memory)
        .Arg({a_at + offsets[0], axes[0].strides[0], axes[1].strides[0], axes[2].strides[0], axes[3].strides[0], 0, 0, 0})
        .Arg(b.memory)
        .Arg({b_at + offsets[1], axes[0].strides[1], axes[1].strides[1], axes[2].strides[1], axes[3].strides[1], 0, 0, 0})
        .Arg(y.memory)
        .Arg({y.At(out().begin) + offsets[2], axes[0].strides[2], axes[1].strides[2], axes[2].strides[2], 1, 0, 0, 0})
        .Arg({axes[1].extent, axes[2].extent, rows, axes[3].extent, division.rows, division.chunk, 0, 0})
        .Arg(attrs.clamp.min, attrs.clamp.max);
    return Add(launch.Finish(division.row_items, division.chunk_items));
  });
}

// y = f(x) over the part, x walked with strides of its own per output axis.
Status StepLowering::Walk(const Operand& x, const Dims& x_strides, int64_t x_offset, const std::string& kernel, Clamp clamp) {
  PLAIT_ASSIGN_OR_RETURN(const Operand y, Write());
  Axes all = MergedAxes(out().size, {x_strides, y.strides});
  EnsureUnitInner(&all, 1);
  return ForEachOuter(all, 4, [&](const Axes& axes, const auto& offsets) -> Status {
    const int64_t rows = axes[0].extent * axes[1].extent * axes[2].extent;
    const Division division = Divide(rows, axes[3].extent);
    LaunchBuilder launch(device(), Family::kElementwise, kernel);
    launch.Arg(x.memory)
        .Arg({x_offset + offsets[0], axes[0].strides[0], axes[1].strides[0], axes[2].strides[0], axes[3].strides[0], 0, 0, 0})
        .Arg(y.memory)
        .Arg({y.At(out().begin) + offsets[1], axes[0].strides[1], axes[1].strides[1], axes[2].strides[1], 1, 0, 0, 0})
        .Arg({axes[1].extent, axes[2].extent, rows, axes[3].extent, division.rows, division.chunk, 0, 0})
        .Arg(clamp.min, clamp.max);
    return Add(launch.Finish(division.row_items, division.chunk_items));
  });
}

Status StepLowering::Unary() {
  PLAIT_ASSIGN_OR_RETURN(const Operand x, Read(0));
  const auto& attrs = op_.as<UnaryAttrs>();
  return Walk(x, x.strides, x.At(out().begin), KernelOf(attrs.kind), attrs.clamp);
}

Status StepLowering::Softmax() {
  PLAIT_ASSIGN_OR_RETURN(const Operand x, Read(0));
  PLAIT_ASSIGN_OR_RETURN(const Operand y, Write());
  const int last = out().size.rank() - 1;
  Dims outer = out().size;
  outer[last] = 1;
  return ForEachOuter(MergedAxes(outer, {x.strides, y.strides}), 3, [&](const Axes& axes, const auto& offsets) -> Status {
    const int64_t rows = axes[0].extent * axes[1].extent * axes[2].extent, length = out().size[last];
    const int64_t item_rows = RowsAnItem(rows, 4 * length);
    LaunchBuilder launch(device(), Family::kRows, "softmax");
    launch.Arg(x.memory)
        .Arg({x.At(out().begin) + offsets[0], axes[0].strides[0], axes[1].strides[0], axes[2].strides[0], 1, 0, 0, 0})
        .Arg(y.memory)
        .Arg({y.At(out().begin) + offsets[1], axes[0].strides[1], axes[1].strides[1], axes[2].strides[1], 1, 0, 0, 0})
        .Arg({axes[1].extent, axes[2].extent, rows, length, item_rows, 0, 0, 0});
    return Add(launch.Finish(CeilDiv(rows, item_rows)));
  });
}

Status StepLowering::LayerNorm() {
  PLAIT_ASSIGN_OR_RETURN(const Operand x, Read(0));
  PLAIT_ASSIGN_OR_RETURN(const Operand y, Write());
  PLAIT_ASSIGN_OR_RETURN(const Memory gamma, Packed(input(1), "", nullptr, 0));
  PLAIT_ASSIGN_OR_RETURN(const Memory beta, Packed(input(2), "", nullptr, 0));
  const int last = out().size.rank() - 1;
  Dims outer = out().size;
  outer[last] = 1;
  return ForEachOuter(MergedAxes(outer, {x.strides, y.strides}), 3, [&](const Axes& axes, const auto& offsets) -> Status {
    const int64_t rows = axes[0].extent * axes[1].extent * axes[2].extent, length = out().size[last];
    const int64_t item_rows = RowsAnItem(rows, 4 * length);
    LaunchBuilder launch(device(), Family::kRows, "layer_norm");
    launch.Arg(x.memory)
        .Arg({x.At(out().begin) + offsets[0], axes[0].strides[0], axes[1].strides[0], axes[2].strides[0], 1, 0, 0, 0})
        .Arg(gamma)
        .Arg(beta)
        .Arg(y.memory)
        .Arg({y.At(out().begin) + offsets[1], axes[0].strides[1], axes[1].strides[1], axes[2].strides[1], 1, 0, 0, 0})
        .Arg({axes[1].extent, axes[2].extent, rows, length, item_rows, 0, 0, 0})
        .Arg(op_.as<NormAttrs>().epsilon);
    return Add(launch.Finish(CeilDiv(rows, item_rows)));
  });
}

Status StepLowering::ReduceMean() {
  PLAIT_ASSIGN_OR_RETURN(const Operand x, Read(0));
  PLAIT_ASSIGN_OR_RETURN(const Operand y, Write());
  const auto& attrs = op_.as<ReduceAttrs>();
  const Dims& shape = input(0).shape;
  Dims kept, kept_x, kept_y, reduced, reduced_x, begin = Dims::Filled(shape.rank(), 0);
  int64_t count = 1;
  for (int i = 0, o = 0; i < shape.rank(); ++i) {
    if (std::find(attrs.axes.begin(), attrs.axes.end(), i) != attrs.axes.end()) {
      reduced.push_back(shape[i]);
      reduced_x.push_back(x.strides[i]);
      count *= shape[i];
      if (attrs.keep_dims) ++o;
      continue;
    }
    begin[i] = out().begin[o];
    kept.push_back(out().size[o]);
    kept_x.push_back(x.strides[i]);
    kept_y.push_back(y.strides[o]);
    ++o;
  }
  const bool inner = attrs.axes.back() == shape.rank() - 1;
  // The innermost axis is summed in vectors: kept apart, so that the order of the sum does not depend on strides.
  const Axis innermost{inner ? reduced.back() : 1, {1}};
  if (inner) reduced[reduced.rank() - 1] = 1;
  Axes inside = MergedAxes(reduced, {reduced_x});
  if (inner) inside.push_back(innermost);
  Axes outside = MergedAxes(kept, {kept_x, kept_y});
  const size_t most = inner ? 3 : 2;
  if (inside.size() > most) return Unsupported("the mean over ", inside.size(), " separate axes; at most ", most, " can be had");
  PadFront(&inside, most);
  if (!inner) {
    EnsureUnitInner(&outside, 1);
    if (outside.back().strides[0] != 1) outside.push_back({1, {1, 1, 1}});
  }
  const int64_t inner_count = inner ? inside[2].extent : 1;
  return ForEachOuter(outside, inner ? 3 : 4, [&](const Axes& axes, const auto& offsets) -> Status {
    const int64_t rows = axes[0].extent * axes[1].extent * axes[2].extent, length = inner ? 1 : axes[3].extent;
    Division division{RowsAnItem(rows, count), 1, 1, 1};
    division.row_items = CeilDiv(rows, division.rows);
    if (!inner) division = Divide(rows, length);
    LaunchBuilder launch(device(), Family::kRows, inner ? "reduce_inner" : "reduce_kept");
    launch.Arg(x.memory)
        .Arg({x.At(begin) + offsets[0], axes[0].strides[0], axes[1].strides[0], axes[2].strides[0], 1, inside[0].strides[0], inside[1].strides[0], 0})
        .Arg(y.memory)
        .Arg({y.At(out().begin) + offsets[1], axes[0].strides[1], axes[1].strides[1], axes[2].strides[1], 1, 0, 0, 0})
        .Arg({axes[1].extent, axes[2].extent, rows, length, division.rows, division.chunk, 0, 0})
        .Arg({inside[0].extent, inside[1].extent, inner_count, count});
    return Add(launch.Finish(division.row_items, division.chunk_items));
  });
}

Status StepLowering::Transpose() {
  PLAIT_ASSIGN_OR_RETURN(const Operand x, Read(0));
  PLAIT_ASSIGN_OR_RETURN(const Operand y, Write());
  const auto& perm = op_.as<TransposeAttrs>().perm;
  const int rank = out().size.rank();
  Dims x_strides = Dims::Filled(rank, 0), begin = Dims::Filled(rank, 0);
  for (int i = 0; i < rank; ++i) {
    const int from = perm[static_cast<size_t>(i)];
    x_strides[i] = x.strides[from];
    begin[from] = out().begin[i];
  }
  Axes all = MergedAxes(out().size, {x_strides, y.strides});
  const auto contiguous = std::find_if(all.begin(), all.end(), [](const Axis& axis) { return axis.strides[0] == 1; });
  const bool tiled = !all.empty() && all.back().strides[1] == 1 && all.back().strides[0] != 1 && contiguous != all.end();
  if (!tiled) return Walk(x, x_strides, x.At(begin), "unary_copy", Clamp());
  // Walks 8 x 8 blocks of the axis that is contiguous in x and the one that is contiguous in y; the former goes last but one.
  const Axis p = *contiguous;
  all.erase(contiguous);
  all.insert(all.end() - 1, p);
  return ForEachOuter(all, 5, [&](const Axes& axes, const auto& offsets) -> Status {
    const int64_t outer = axes[0].extent * axes[1].extent * axes[2].extent;
    const bool whole = device().tuning().single_item_groups && (device().info().compute_units == 1 || outer >= 4 * device().info().compute_units);
    const int64_t item = whole ? RoundUp(p.extent, 8) : 8 * (device().tuning().single_item_groups ? CeilDiv(p.extent, 32 * device().info().compute_units) : 1);
    LaunchBuilder launch(device(), Family::kLayout, "transpose");
    launch.Arg(x.memory)
        .Arg({x.At(begin) + offsets[0], axes[0].strides[0], axes[1].strides[0], axes[2].strides[0], axes[4].strides[0], 0, 0, 0})
        .Arg(y.memory)
        .Arg({y.At(out().begin) + offsets[1], axes[0].strides[1], axes[1].strides[1], axes[2].strides[1], axes[3].strides[1], 0, 0, 0})
        .Arg({axes[1].extent, axes[2].extent, outer, axes[3].extent, axes[4].extent, item, 0, 0});
    return Add(launch.Finish(CeilDiv(p.extent, item), outer));
  });
}

namespace {

// An axis of a padded part: output coordinates [begin, begin + extent), where the input fills [before, before + inner).
struct PadAxis {
  int64_t extent = 1, begin = 0, before = 0, inner = 1, x_stride = 0, y_stride = 0;
};

}  // namespace

Status StepLowering::Pad() {
  PLAIT_ASSIGN_OR_RETURN(const Operand x, Read(0));
  PLAIT_ASSIGN_OR_RETURN(const Operand y, Write());
  const auto& attrs = op_.as<PadAttrs>();
  const Dims& shape = input(0).shape;
  std::vector<PadAxis> axes;
  for (int i = 0; i < shape.rank(); ++i) {
    const PadAxis axis{out().size[i], out().begin[i], attrs.before[i], shape[i], x.strides[i], y.strides[i]};
    const bool plain = axis.before == 0 && attrs.after[i] == 0 && axis.extent == axis.inner;
    if (!axes.empty() && plain && axes.back().x_stride == axis.x_stride * axis.extent && axes.back().y_stride == axis.y_stride * axis.extent) {
      PadAxis& outer = axes.back();
      outer = {outer.extent * axis.extent, outer.begin * axis.extent, outer.before * axis.extent, outer.inner * axis.extent, axis.x_stride, axis.y_stride};
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty() || axes.back().x_stride != 1 || axes.back().y_stride != 1) axes.push_back({1, 0, 0, 1, 1, 1});
  if (axes.size() < 4) axes.insert(axes.begin(), 4 - axes.size(), PadAxis{});
  const size_t outer = axes.size() - 4;
  const PadAxis* in = axes.data() + outer;
  std::vector<int64_t> place(outer, 0);
  while (true) {
    int64_t x_at = x.zero, y_at = y.At(out().begin);
    bool filled = false;
    for (size_t i = 0; i < outer; ++i) {
      const int64_t coordinate = place[i] + axes[i].begin - axes[i].before;
      filled |= coordinate < 0 || coordinate >= axes[i].inner;
      x_at += coordinate * axes[i].x_stride;
      y_at += place[i] * axes[i].y_stride;
    }
    const int64_t rows = in[0].extent * in[1].extent * in[2].extent;
    const int64_t item_rows = RowsAnItem(rows, in[3].extent);
    LaunchBuilder launch(device(), Family::kLayout, "pad");
    launch.Arg(x.memory)
        .Arg({x_at, in[0].x_stride, in[1].x_stride, in[2].x_stride, 1, 0, 0, 0})
        .Arg(y.memory)
        .Arg({y_at, in[0].y_stride, in[1].y_stride, in[2].y_stride, 1, 0, 0, 0})
        .Arg({in[1].extent, in[2].extent, rows, in[3].extent, item_rows, 0, 0, 0})
        .Arg({in[0].begin, in[1].begin, in[2].begin, in[3].begin})
        .Arg({in[0].before, in[1].before, in[2].before, in[3].before})
        .Arg({filled ? 0 : in[0].inner, in[1].inner, in[2].inner, in[3].inner})
        .Arg(attrs.value);
    PLAIT_RETURN_IF_ERROR(Add(launch.Finish(CeilDiv(rows, item_rows))));
    size_t i = outer;
    while (i > 0 && ++place[i - 1] == axes[i - 1].extent) place[--i] = 0;
    if (i == 0) return Status();
  }
}

}  // namespace plait::opencl
