// Operators that only move elements. Each works on constants, too, at once and without adding to the graph.
#include <algorithm>
#include <cstring>
#include <limits>

#include "src/base/checked.h"
#include "src/formats/onnx/lowering.h"

namespace plait {
namespace {

constexpr size_t kMaxPieces = 4096;  // that one Concat joins

// The same elements in another shape.
void EmitReshape(OnnxLowering& n, const OnnxValuePtr& x, const Dims& shape) {
  if (!n.ok()) return;
  if (x->is_constant()) return n.SetConstant(0, shape, x->constant->data, x->constant->dtype);
  if (shape == x->shape) return n.SetAlias(0, x);
  // (N, C, H, W) to (N, C, H W) or back is a reshape of the channels-last tensor as well.
  const bool keeps_channels = (shape.rank() == 3 || shape.rank() == 4) && x->shape.rank() >= 3 &&
                              shape[0] == x->shape[0] && shape[1] == x->shape[1];
  if (keeps_channels && OnnxLowering::PreferLast({x})) {
    return n.EmitLast(0, OpKind::kReshape, {n.Last(x)}, ReshapeAttrs{ToLast(shape)});
  }
  n.EmitPlain(0, OpKind::kReshape, {n.Plain(x)}, ReshapeAttrs{shape});
}

bool FitsRank(OnnxLowering& n, size_t rank) {
  if (rank > static_cast<size_t>(kMaxRank)) {
    n.Fail(Unsupported("makes a tensor of rank ", rank, "; at most ", kMaxRank, " are supported"));
  }
  return n.ok();
}

// The product of non-negative sizes, or -1 on overflow.
int64_t Product(const Dims& dims) { return CountOf(dims).value_or(-1); }

void ImportReshape(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const std::vector<int64_t> wanted = n.IntsIn(1);
  const bool zero_is_zero = n.Int("allowzero", 0) != 0;
  if (!n.ok() || !FitsRank(n, wanted.size())) return;
  Dims shape;
  int open = -1;
  for (const int64_t v : wanted) {
    const int i = shape.rank();
    if (v == -1 && open >= 0) return n.Fail(InvalidArgument("leaves two sizes open (-1)"));
    if (v < -1) return n.Fail(InvalidArgument("asks for the size ", v, " in dimension ", i));
    if (v == -1) open = i;
    if (v == 0 && !zero_is_zero && i >= x->shape.rank()) {
      return n.Fail(InvalidArgument("copies dimension ", i, " of a tensor of rank ", x->shape.rank()));
    }
    shape.push_back(v == -1 ? 1 : v == 0 && !zero_is_zero ? x->shape[i] : v);
  }
  const int64_t known = Product(shape), count = x->shape.Count();
  if (open >= 0 && known > 0 && count % known == 0) shape[open] = count / known;
  if (Product(shape) != count) {
    return n.Fail(InvalidArgument("cannot make ", ToString(shape),
                                  open >= 0 ? StrCat(" (dimension ", open, " open)") : std::string(), " of ",
                                  ToString(x->shape)));
  }
  EmitReshape(n, x, shape);
}

void ImportFlatten(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  int64_t axis = n.Int("axis", 1);
  const int rank = x->shape.rank();
  if (axis < -rank || axis > rank) n.Fail(InvalidArgument("its axis ", axis, " is outside a tensor of rank ", rank));
  if (!n.ok()) return;
  if (axis < 0) axis += rank;
  Dims shape{1, 1};
  for (int i = 0; i < rank; ++i) shape[i < axis ? 0 : 1] *= x->shape[i];
  EmitReshape(n, x, shape);
}

// Axes of Squeeze, Unsqueeze: an attribute before opset 13, an input since.
std::vector<int64_t> AxesOf(OnnxLowering& n) {
  if (n.opset() < 13) return n.Ints("axes");
  return n.Has(1) ? n.IntsIn(1) : std::vector<int64_t>();
}

void ImportSqueeze(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const std::vector<int32_t> axes = n.Axes(AxesOf(n), x->shape.rank());
  if (!n.ok()) return;
  Dims shape;
  for (int i = 0; i < x->shape.rank(); ++i) {
    const bool named = std::binary_search(axes.begin(), axes.end(), i);
    if (named && x->shape[i] != 1) return n.Fail(InvalidArgument("squeezes dimension ", i, " of ", ToString(x->shape)));
    if (!named && !(axes.empty() && x->shape[i] == 1)) shape.push_back(x->shape[i]);
  }
  EmitReshape(n, x, shape);
}

void ImportUnsqueeze(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const std::vector<int64_t> wanted = AxesOf(n);
  if (!n.ok() || !FitsRank(n, wanted.size()) || !FitsRank(n, wanted.size() + static_cast<size_t>(x->shape.rank()))) {
    return;
  }
  const int rank = x->shape.rank() + static_cast<int>(wanted.size());
  const std::vector<int32_t> axes = n.Axes(wanted, rank);
  if (!n.ok()) return;
  Dims shape;
  for (int i = 0, from = 0; i < rank; ++i) {
    shape.push_back(std::binary_search(axes.begin(), axes.end(), i) ? 1 : x->shape[from++]);
  }
  EmitReshape(n, x, shape);
}

void ImportTranspose(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const int rank = x->shape.rank();
  std::vector<int32_t> perm;
  for (const int64_t axis : n.Ints("perm")) perm.push_back(static_cast<int32_t>(axis >= 0 && axis < rank ? axis : -1));
  if (n.Find("perm") == nullptr) {
    for (int i = rank - 1; i >= 0; --i) perm.push_back(i);
  }
  std::vector<int32_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < static_cast<int>(sorted.size()); ++i) {
    if (sorted[static_cast<size_t>(i)] != i) return n.Fail(InvalidArgument("its attribute 'perm' is no permutation"));
  }
  if (static_cast<int>(perm.size()) != rank) {
    n.Fail(InvalidArgument("its attribute 'perm' has ", perm.size(), " entries for rank ", rank));
  }
  if (!n.ok()) return;
  if (x->is_constant()) {
    const Dims dense = DenseStrides(x->shape);
    Dims shape, strides;
    for (const int32_t p : perm) {
      shape.push_back(x->shape[p]);
      strides.push_back(dense[p]);
    }
    const OnnxTensor& c = *x->constant;
    const std::shared_ptr<ConstData> data = n.NewData(shape, c.dtype);
    if (data != nullptr) GatherStrided(c.data->data(), 0, shape, strides, c.dtype, data->mutable_data());
    return n.SetConstant(0, shape, data, c.dtype);
  }
  if (std::is_sorted(perm.begin(), perm.end())) return n.SetAlias(0, x);
  if (rank == 3 || rank == 4) {
    // The two layouts of one tensor: what the file transposes may exist already.
    if (perm == ToLastPermutation(rank) && OnnxLowering::PreferLast({x})) return n.SetTensor(0, n.Last(x), false);
    if (perm == FromLastPermutation(rank)) return n.SetTensor(0, n.Plain(x), true);
  }
  n.EmitPlain(0, OpKind::kTranspose, {n.Plain(x)}, TransposeAttrs{perm});
}

void ConcatConstants(OnnxLowering& n, const std::vector<OnnxValuePtr>& values, int axis, const Dims& shape) {
  const DType dtype = values[0]->constant->dtype;
  const std::shared_ptr<ConstData> data = n.NewData(shape, dtype);
  if (data == nullptr) return;
  int64_t outer = shape.Count() == 0 ? 0 : 1, inner = SizeOf(dtype);
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  auto* out = static_cast<std::byte*>(data->mutable_data());
  for (int64_t o = 0; o < outer; ++o) {
    for (const OnnxValuePtr& v : values) {
      const int64_t bytes = v->shape[axis] * inner;
      if (bytes > 0) {
        std::memcpy(out, static_cast<const std::byte*>(v->constant->data->data()) + o * bytes,
                    static_cast<size_t>(bytes));
      }
      out += bytes;
    }
  }
  n.SetConstant(0, shape, data, dtype);
}

void ImportConcat(OnnxLowering& n) {
  std::vector<OnnxValuePtr> values;
  for (int i = 0; i < n.input_count(); ++i) values.push_back(n.In(i));
  if (values.empty()) n.Fail(InvalidArgument("has no inputs"));
  if (n.Find("axis") == nullptr) n.Fail(InvalidArgument("has no attribute 'axis'"));
  if (!n.ok()) return;
  Dims shape = values[0]->shape;
  const int axis = n.Axis(n.Int("axis", 0), shape.rank());
  if (!n.ok()) return;
  bool constant = true;
  std::optional<int64_t> total = 0;
  for (const OnnxValuePtr& v : values) {
    bool fits = v->shape.rank() == shape.rank() && v->is_int() == values[0]->is_int();
    for (int i = 0; fits && i < shape.rank(); ++i) fits = i == axis || v->shape[i] == shape[i];
    if (!fits) {
      return n.Fail(
          InvalidArgument("joins ", ToString(v->shape), " to ", ToString(values[0]->shape), " along axis ", axis));
    }
    total = total ? CheckedAdd(*total, v->shape[axis]) : std::nullopt;
    constant = constant && v->is_constant();
  }
  if (!total) return n.Fail(InvalidArgument("makes an axis whose size overflows"));
  shape[axis] = *total;
  if (constant) return ConcatConstants(n, values, axis, shape);
  values.erase(std::remove_if(values.begin(), values.end(), [&](const OnnxValuePtr& v) { return v->shape[axis] == 0; }),
               values.end());
  if (values.size() == 1) return n.SetAlias(0, values[0]);
  // A constant operand cannot be had channels-last at any rank but 4.
  const bool last = OnnxLowering::PreferLast(values);
  std::vector<TensorId> inputs;
  for (const OnnxValuePtr& v : values) inputs.push_back(last ? n.Last(v) : n.Plain(v));
  n.EmitIn(last, 0, OpKind::kConcat, std::move(inputs), ConcatAttrs{last ? LastAxis(axis, shape.rank()) : axis});
}

// The box of `x` from begin, of size `size`, as output `output`; with `shape` if that is not the box' own.
void EmitSlice(OnnxLowering& n, int output, const OnnxValuePtr& x, const Dims& begin, const Dims& size,
               const Dims* shape = nullptr) {
  if (!n.ok()) return;
  if (x->is_constant()) {
    const OnnxTensor& c = *x->constant;
    const std::shared_ptr<ConstData> data = n.NewData(size, c.dtype);
    if (data == nullptr) return;
    const Dims strides = DenseStrides(x->shape);
    int64_t offset = 0;
    for (int i = 0; i < begin.rank(); ++i) offset += begin[i] * strides[i];
    GatherStrided(c.data->data(), offset, size, strides, c.dtype, data->mutable_data());
    return n.SetConstant(output, shape != nullptr ? *shape : size, data, c.dtype);
  }
  if (size.Count() == 0) return n.Fail(Unsupported("cuts out nothing: ", ToString(size), " of ", ToString(x->shape)));
  if (shape != nullptr) {
    const TensorId slice = n.Emit("slice", OpKind::kSlice, {n.Plain(x)}, SliceAttrs{begin, size});
    return n.EmitPlain(output, OpKind::kReshape, {slice}, ReshapeAttrs{*shape});
  }
  if (size == x->shape) return n.SetAlias(output, x);
  if (OnnxLowering::PreferLast({x})) {
    return n.EmitLast(output, OpKind::kSlice, {n.Last(x)}, SliceAttrs{ToLast(begin), ToLast(size)});
  }
  n.EmitPlain(output, OpKind::kSlice, {n.Plain(x)}, SliceAttrs{begin, size});
}

void ImportSplit(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const int axis = n.Axis(n.Int("axis", 0), x->shape.rank());
  std::vector<int64_t> sizes = n.opset() < 13 ? n.Ints("split") : n.Has(1) ? n.IntsIn(1) : std::vector<int64_t>();
  if (!n.ok() || x->shape.rank() == 0) return n.Fail(InvalidArgument("splits a scalar"));
  const int64_t extent = x->shape[axis];
  const auto outputs = static_cast<int64_t>(n.node().outputs.size());
  if (sizes.empty()) {
    const int64_t each = CeilDiv(extent, outputs);
    for (int64_t at = 0; at < extent; at += each) sizes.push_back(std::min(each, extent - at));
  }
  int64_t left = extent;
  for (const int64_t s : sizes) {
    if (s < 0 || s > left) {
      return n.Fail(InvalidArgument("its parts do not add up to the ", extent, " of dimension ", axis));
    }
    left -= s;
  }
  if (left != 0 || static_cast<int64_t>(sizes.size()) != outputs) {
    return n.Fail(InvalidArgument("its ", sizes.size(), " parts for ", outputs, " outputs do not add up to the ",
                                  extent, " of dimension ", axis));
  }
  Dims begin = Dims::Filled(x->shape.rank(), 0), size = x->shape;
  for (int64_t i = 0; i < outputs; ++i) {
    size[axis] = sizes[static_cast<size_t>(i)];
    if (n.Wanted(static_cast<int>(i))) EmitSlice(n, static_cast<int>(i), x, begin, size);
    begin[axis] += size[axis];
  }
}

// The elements `taken` of `axis`, in that order, as a Concat of Slices: neighbours are one Slice.
TensorId TakeAlong(OnnxLowering& n, TensorId x, int axis, const std::vector<int64_t>& taken) {
  if (!n.ok()) return kNoTensor;
  if (taken.empty()) n.Fail(Unsupported("takes no element of dimension ", axis));
  const Dims shape = n.Shape(x);
  std::vector<TensorId> pieces;
  for (size_t i = 0; i < taken.size() && n.ok();) {
    size_t end = i + 1;
    while (end < taken.size() && taken[end] == taken[end - 1] + 1) ++end;
    Dims begin = Dims::Filled(shape.rank(), 0), size = shape;
    begin[axis] = taken[i];
    size[axis] = static_cast<int64_t>(end - i);
    pieces.push_back(size == shape ? x : n.Emit("piece", OpKind::kSlice, {x}, SliceAttrs{begin, size}));
    if (pieces.size() > kMaxPieces) n.Fail(Unsupported("takes more than ", kMaxPieces, " separate pieces"));
    i = end;
  }
  if (!n.ok()) return kNoTensor;
  return pieces.size() == 1 ? pieces[0] : n.Emit("taken", OpKind::kConcat, std::move(pieces), ConcatAttrs{axis});
}

struct SliceSpec {
  std::vector<int64_t> starts, ends, axes, steps;
};

SliceSpec ReadSlice(OnnxLowering& n) {
  if (n.opset() < 10) return {n.Ints("starts"), n.Ints("ends"), n.Ints("axes"), {}};
  return {n.IntsIn(1), n.IntsIn(2), n.Has(3) ? n.IntsIn(3) : std::vector<int64_t>(),
          n.Has(4) ? n.IntsIn(4) : std::vector<int64_t>()};
}

void ImportSlice(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  SliceSpec spec = ReadSlice(n);
  const int rank = x->shape.rank();
  const size_t count = spec.starts.size();
  if (spec.axes.empty()) {
    for (size_t i = 0; i < count; ++i) spec.axes.push_back(static_cast<int64_t>(i));
  }
  if (spec.steps.empty()) spec.steps.assign(count, 1);
  if (spec.ends.size() != count || spec.axes.size() != count || spec.steps.size() != count) {
    n.Fail(InvalidArgument("its starts, ends, axes and steps have ", count, ", ", spec.ends.size(), ", ",
                           spec.axes.size(), " and ", spec.steps.size(), " entries"));
  }
  if (!n.ok()) return;
  n.Axes(spec.axes, rank);  // in range, no duplicates
  Dims begin = Dims::Filled(rank, 0), size = x->shape;
  std::vector<std::pair<int, std::vector<int64_t>>> stepped;  // axes with a step other than 1, and what they take
  for (size_t i = 0; n.ok() && i < count; ++i) {
    const int axis = n.Axis(spec.axes[i], rank);
    const int64_t extent = x->shape[axis], step = spec.steps[i];
    if (step == 0) return n.Fail(InvalidArgument("takes steps of 0"));
    // Negative positions count from the end; both are clipped to the tensor.
    const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;
    auto position = [&](int64_t v) {
      return std::clamp<int64_t>(v < 0 ? std::max(v, -extent - 1) + extent : v, low, high);
    };
    const int64_t first = position(spec.starts[i]), end = position(spec.ends[i]);
    if (step != 1) {
      std::vector<int64_t> taken;  // one too many at most: TakeAlong refuses those
      for (int64_t at = first; taken.size() <= kMaxPieces && (step > 0 ? at < end : at > end);
           at += std::clamp(step, -extent - 1, extent + 1)) {
        taken.push_back(at);
      }
      stepped.emplace_back(axis, std::move(taken));
      continue;
    }
    begin[axis] = first;
    size[axis] = std::max<int64_t>(0, end - first);
  }
  if (stepped.empty() || !n.ok()) return EmitSlice(n, 0, x, begin, size);
  if (size.Count() == 0) return n.Fail(Unsupported("cuts out nothing: ", ToString(size), " of ", ToString(x->shape)));
  TensorId y = n.Plain(x);
  if (!(size == x->shape)) y = n.Emit("slice", OpKind::kSlice, {y}, SliceAttrs{begin, size});
  for (const auto& [axis, taken] : stepped) y = TakeAlong(n, y, axis, taken);
  if (n.ok()) n.SetTensor(0, y, false);
}

void ImportGather(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const OnnxTensor* indices = n.Constant(1);
  const int rank = x->shape.rank();
  const int axis = n.Axis(n.Int("axis", 0), rank);
  if (indices == nullptr || !n.ok()) return;
  if (!indices->is_int()) return n.Fail(InvalidArgument("its indices are not integers"));
  const int64_t extent = x->shape[axis], count = indices->count();
  std::vector<int64_t> at(indices->data->as<int64_t>(), indices->data->as<int64_t>() + count);
  bool contiguous = count > 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t& v = at[static_cast<size_t>(i)];
    if (v < -extent || v >= extent) {
      return n.Fail(InvalidArgument("its index ", v, " is outside dimension ", axis, " of ", ToString(x->shape)));
    }
    if (v < 0) v += extent;
    contiguous = contiguous && v == at[0] + i;
  }
  Dims begin = Dims::Filled(rank, 0), size = x->shape, shape;
  if (!FitsRank(n, static_cast<size_t>(rank - 1 + indices->shape.rank()))) return;
  for (int i = 0; i < axis; ++i) shape.push_back(x->shape[i]);
  for (const int64_t d : indices->shape) shape.push_back(d);
  for (int i = axis + 1; i < rank; ++i) shape.push_back(x->shape[i]);
  if (contiguous) {
    begin[axis] = at[0];
    size[axis] = count;
    return EmitSlice(n, 0, x, begin, size, shape == size ? nullptr : &shape);
  }
  if (!x->is_constant()) {
    const TensorId gathered = TakeAlong(n, n.Plain(x), axis, at);
    return n.EmitPlain(0, OpKind::kReshape, {gathered}, ReshapeAttrs{shape});
  }
  const OnnxTensor& c = *x->constant;
  const std::shared_ptr<ConstData> data = n.NewData(shape, c.dtype);
  if (data == nullptr) return;
  int64_t outer = shape.Count() == 0 ? 0 : 1, inner = SizeOf(c.dtype);
  for (int i = 0; i < axis; ++i) outer *= x->shape[i];
  for (int i = axis + 1; i < rank; ++i) inner *= x->shape[i];
  auto* out = static_cast<std::byte*>(data->mutable_data());
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t v : at) {
      if (inner > 0) {
        std::memcpy(out, static_cast<const std::byte*>(c.data->data()) + (o * extent + v) * inner,
                    static_cast<size_t>(inner));
      }
      out += inner;
    }
  }
  n.SetConstant(0, shape, data, c.dtype);
}

// Which element of an extent padding position `at` (negative, or beyond it) repeats.
int64_t PaddedFrom(const std::string& mode, int64_t at, int64_t extent) {
  if (mode == "edge") return std::clamp<int64_t>(at, 0, extent - 1);
  const int64_t period = mode == "wrap" || extent == 1 ? extent : 2 * (extent - 1);
  const int64_t within = (at % period + period) % period;
  return within < extent ? within : period - within;
}

void PadFromItself(OnnxLowering& n, const OnnxValuePtr& x, const std::string& mode, const Dims& before,
                   const Dims& after) {
  TensorId y = n.Plain(x);
  for (int axis = 0; axis < x->shape.rank(); ++axis) {
    const int64_t extent = x->shape[axis];
    if (before[axis] == 0 && after[axis] == 0) continue;
    if (std::max(before[axis], after[axis]) > static_cast<int64_t>(kMaxPieces)) {
      return n.Fail(Unsupported("pads dimension ", axis, " by more than ", kMaxPieces, " in mode '", mode, "'"));
    }
    std::vector<int64_t> front, back;
    for (int64_t at = -before[axis]; at < 0; ++at) front.push_back(PaddedFrom(mode, at, extent));
    for (int64_t at = extent; at < extent + after[axis]; ++at) back.push_back(PaddedFrom(mode, at, extent));
    std::vector<TensorId> pieces = {y};
    if (!front.empty()) pieces.insert(pieces.begin(), TakeAlong(n, y, axis, front));
    if (!back.empty()) pieces.push_back(TakeAlong(n, y, axis, back));
    y = n.Emit("padded", OpKind::kConcat, std::move(pieces), ConcatAttrs{axis});
  }
  if (n.ok()) n.SetTensor(0, y, false);
}

// Padding per axis of the file's layout; `pads` holds all begins, then all ends, of `axes`.
void ImportPad(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const int rank = x->shape.rank();
  const std::string mode = n.String("mode", "constant");
  const bool as_input = n.opset() >= 11;
  const std::vector<int64_t> pads = as_input ? n.IntsIn(1) : n.Ints("pads");
  const float value = as_input ? n.ScalarIn(2, 0.0f) : n.Float("value", 0.0f);
  std::vector<int64_t> axes;
  if (as_input && n.Has(3)) {
    axes = n.IntsIn(3);
    n.Axes(axes, rank);
  } else {
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  }
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap") {
    n.Fail(Unsupported("pads in mode '", mode, "'; constant, edge, reflect and wrap are supported"));
  }
  if (n.ok() && pads.size() != 2 * axes.size()) {
    n.Fail(InvalidArgument("has ", pads.size(), " paddings for ", axes.size(), " dimensions"));
  }
  if (!n.ok()) return;
  PadAttrs attrs{Dims::Filled(rank, 0), Dims::Filled(rank, 0), value};
  bool any = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = n.Axis(axes[i], rank);
    const int64_t before = pads[i], after = pads[axes.size() + i];
    if (before < 0 || after < 0) return n.Fail(Unsupported("cuts off elements by negative padding; use Slice"));
    if (std::max(before, after) > std::numeric_limits<int32_t>::max()) {
      return n.Fail(InvalidArgument("pads dimension ", axis, " by ", before, " and ", after));
    }
    attrs.before[axis] = before;
    attrs.after[axis] = after;
    any = any || before > 0 || after > 0;
  }
  if (!any) return n.SetAlias(0, x);
  if (mode != "constant") return PadFromItself(n, x, mode, attrs.before, attrs.after);
  const bool last = OnnxLowering::PreferLast({x});
  if (last) {
    attrs.before = ToLast(attrs.before);
    attrs.after = ToLast(attrs.after);
  }
  n.EmitIn(last, 0, OpKind::kPad, {last ? n.Last(x) : n.Plain(x)}, attrs);
}

// `x` several times in a row along `axis`.
TensorId RepeatAlong(OnnxLowering& n, TensorId x, int axis, int64_t times) {
  if (times < 1 || times > static_cast<int64_t>(kMaxPieces)) {
    n.Fail(Unsupported("repeats a computed tensor ", times, " times; 1 to ", kMaxPieces, " are supported"));
  }
  if (!n.ok() || times == 1) return x;
  return n.Emit("repeated", OpKind::kConcat, std::vector<TensorId>(static_cast<size_t>(times), x), ConcatAttrs{axis});
}

void ImportTile(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const std::vector<int64_t> repeats = n.IntsIn(1);
  if (!n.ok()) return;
  if (static_cast<int>(repeats.size()) != x->shape.rank()) {
    return n.Fail(InvalidArgument("has ", repeats.size(), " repeats for rank ", x->shape.rank()));
  }
  TensorId y = n.Plain(x);
  for (int i = 0; i < x->shape.rank(); ++i) y = RepeatAlong(n, y, i, repeats[static_cast<size_t>(i)]);
  if (n.ok()) n.SetTensor(0, y, false);
}

void ImportExpand(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const std::vector<int64_t> wanted = n.IntsIn(1);
  if (!n.ok() || !FitsRank(n, wanted.size())) return;
  Dims target;
  for (const int64_t v : wanted) {
    if (v < 0) return n.Fail(InvalidArgument("expands to the size ", v));
    target.push_back(v);
  }
  const std::optional<Dims> shape = BroadcastShape(x->shape, target);
  if (!shape) return n.Fail(InvalidArgument("cannot expand ", ToString(x->shape), " to ", ToString(target)));
  if (*shape == x->shape) return n.SetAlias(0, x);
  if (!x->is_constant()) {
    Dims spread = Dims::Filled(shape->rank(), 1);
    for (int i = 0; i < x->shape.rank(); ++i) spread[shape->rank() - 1 - i] = x->shape.back(i);
    TensorId y = n.Emit("ranked", OpKind::kReshape, {n.Plain(x)}, ReshapeAttrs{spread});
    for (int i = 0; i < shape->rank(); ++i) {
      if (spread[i] != (*shape)[i]) y = RepeatAlong(n, y, i, (*shape)[i]);
    }
    if (n.ok()) n.SetTensor(0, y, false);
    return;
  }
  const OnnxTensor& c = *x->constant;
  const std::shared_ptr<ConstData> data = n.NewData(*shape, c.dtype);
  if (data == nullptr) return;
  GatherStrided(c.data->data(), 0, *shape, BroadcastStrides(x->shape, *shape), c.dtype, data->mutable_data());
  n.SetConstant(0, *shape, data, c.dtype);
}

void ImportIdentity(OnnxLowering& n) { n.SetAlias(0, n.In(0)); }

void ImportDropout(OnnxLowering& n) {
  n.OnlyFirstOutput();
  if (n.Has(2) && n.ScalarIn(2, 0.0f) != 0.0f) n.Fail(Unsupported("drops elements (training_mode)"));
  n.SetAlias(0, n.In(0));
}

}  // namespace

const OnnxHandlerTable& OnnxViewHandlers() {
  static const OnnxHandlerTable table = {
      {"Concat", ImportConcat},
      {"Dropout", ImportDropout},
      {"Expand", ImportExpand},
      {"Flatten", ImportFlatten},
      {"Gather", ImportGather},
      {"Identity", ImportIdentity},
      {"Pad", ImportPad},
      {"Reshape", ImportReshape},
      {"Slice", ImportSlice},
      {"Split", ImportSplit},
      {"Squeeze", ImportSqueeze},
      {"Tile", ImportTile},
      {"Transpose", ImportTranspose},
      {"Unsqueeze", ImportUnsqueeze},
  };
  return table;
}

}  // namespace plait
