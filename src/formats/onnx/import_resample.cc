// Operators that change an image's extents: resizing, transposed convolution, and moves between depth and space.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/checked.h"
#include "src/formats/onnx/lowering.h"

namespace plait {
namespace {

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();

// What Resize does along every axis.
struct ResizeSpec {
  std::string mode = "nearest", coordinates = "half_pixel", rounding = "round_prefer_floor";
  double cubic_a = -0.75;
  float extrapolation = 0.0f;
  bool antialias = false, exclude_outside = false;
};

struct ResizeAxis {
  int64_t in = 1, out = 1;
  double scale = 1, roi_begin = 0, roi_end = 1;
};

// The position in the input that output element `i` is taken from.
double SourcePosition(const ResizeSpec& spec, const ResizeAxis& a, int64_t i) {
  const auto in = static_cast<double>(a.in);
  const double resized = a.scale * in, x = static_cast<double>(i);
  if (spec.coordinates == "align_corners") return resized == 1 ? 0 : x * (in - 1) / (resized - 1);
  if (spec.coordinates == "asymmetric") return x / a.scale;
  if (spec.coordinates == "tf_crop_and_resize") {
    const double span = (a.roi_end - a.roi_begin) * (in - 1);
    return a.roi_begin * (in - 1) + (resized == 1 ? span / 2 : x * span / (resized - 1));
  }
  const double half = (x + 0.5) / a.scale - 0.5;
  if (spec.coordinates == "pytorch_half_pixel" && resized == 1) return 0;
  if (spec.coordinates == "half_pixel_symmetric") return in / 2 * (1 - static_cast<double>(a.out) / resized) + half;
  return half;
}

int64_t NearestIndex(const ResizeSpec& spec, double x) {
  if (spec.rounding == "floor") return static_cast<int64_t>(std::floor(x));
  if (spec.rounding == "ceil") return static_cast<int64_t>(std::ceil(x));
  return static_cast<int64_t>(spec.rounding == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5));
}

double FilterWeight(const ResizeSpec& spec, double distance) {
  const double d = std::fabs(distance), a = spec.cubic_a;
  if (spec.mode == "linear") return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// Adds what output element `i` takes of each input element to `row`. False: it lies outside the cropped input.
bool FillRow(const ResizeSpec& spec, const ResizeAxis& a, int64_t i, float* row) {
  const double x = SourcePosition(spec, a, i);
  const int64_t last = a.in - 1;
  if (spec.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(last))) return false;
  if (spec.mode == "nearest") {
    row[std::clamp<int64_t>(NearestIndex(spec, x), 0, last)] = 1;
    return true;
  }
  const double shrink = spec.antialias ? std::min(1.0, a.scale) : 1.0;
  const double support = (spec.mode == "linear" ? 1 : 2) / shrink;
  const auto first = static_cast<int64_t>(std::ceil(x - support)), end = static_cast<int64_t>(std::floor(x + support));
  double total = 0;
  for (int64_t k = first; k <= end; ++k) {
    if (!spec.exclude_outside || (k >= 0 && k <= last)) {
      total += FilterWeight(spec, (static_cast<double>(k) - x) * shrink);
    }
  }
  for (int64_t k = first; k <= end; ++k) {
    if (spec.exclude_outside && (k < 0 || k > last)) continue;
    const double w = FilterWeight(spec, (static_cast<double>(k) - x) * shrink) / total;
    row[std::clamp<int64_t>(k, 0, last)] += static_cast<float>(w);
  }
  return true;
}

std::vector<int32_t> SwapWithInnermost(int axis, int rank) {
  std::vector<int32_t> perm;
  for (int i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  return perm;
}

// One axis of `x` resized. Interpolation is linear in the input, so along one axis it is a matrix product, which every lane
// computes and which can be split; axes are independent.
TensorId ResizeAlong(OnnxLowering& n, TensorId x, int axis, const ResizeSpec& spec, const ResizeAxis& a) {
  const std::shared_ptr<ConstData> matrix = n.NewData(Dims{a.out, a.in}), outside = n.NewData(Dims{a.out});
  if (matrix == nullptr || outside == nullptr) return kNoTensor;
  bool any_outside = false, moves = a.in != a.out;
  for (int64_t i = 0; i < a.out; ++i) {
    float* row = matrix->as<float>() + i * a.in;
    if (!FillRow(spec, a, i, row)) {
      outside->as<float>()[i] = spec.extrapolation;
      any_outside = true;
    }
    moves = moves || row[i] != 1;
  }
  if (!moves && !any_outside) return x;
  const int rank = n.Shape(x).rank();
  const bool innermost = axis == rank - 1;
  const TransposeAttrs swap{SwapWithInnermost(axis, rank)};
  if (!innermost) x = n.Emit("swapped", OpKind::kTranspose, {x}, swap);
  std::vector<TensorId> inputs = {x, n.AddConstant(n.OutputName() + "/resize", Dims{a.out, a.in}, matrix)};
  if (any_outside) inputs.push_back(n.AddConstant(n.OutputName() + "/outside", Dims{a.out}, outside));
  x = n.Emit("resized", OpKind::kFullyConnected, std::move(inputs), FullyConnectedAttrs{});
  return innermost ? x : n.Emit("swapped", OpKind::kTranspose, {x}, swap);
}

bool IsOneOf(OnnxLowering& n, const char* attribute, const std::string& value, std::initializer_list<const char*> of) {
  if (std::any_of(of.begin(), of.end(), [&](const char* v) { return value == v; })) return true;
  n.Fail(Unsupported("its attribute '", attribute, "' is '", value, "'"));
  return false;
}

ResizeSpec ReadResizeSpec(OnnxLowering& n) {
  ResizeSpec spec;
  spec.mode = n.String("mode", "nearest");
  if (n.opset() < 11) {
    spec.coordinates = "asymmetric";
    spec.rounding = "floor";
    IsOneOf(n, "mode", spec.mode, {"nearest", "linear"});
    return spec;
  }
  spec.coordinates = n.String("coordinate_transformation_mode", "half_pixel");
  spec.rounding = n.String("nearest_mode", "round_prefer_floor");
  spec.cubic_a = n.Float("cubic_coeff_a", -0.75f);
  spec.extrapolation = n.Float("extrapolation_value", 0.0f);
  spec.antialias = n.Int("antialias", 0) != 0;
  spec.exclude_outside = n.Int("exclude_outside", 0) != 0;
  IsOneOf(n, "mode", spec.mode, {"nearest", "linear", "cubic"});
  IsOneOf(n, "nearest_mode", spec.rounding, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  IsOneOf(n, "coordinate_transformation_mode", spec.coordinates,
          {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
           "tf_crop_and_resize"});
  return spec;
}

// The floats of constant input `i`; empty if it is absent or empty.
std::vector<float> FloatsIn(OnnxLowering& n, int i) {
  if (!n.Has(i)) return {};
  const OnnxTensor* c = n.FloatConstant(i);
  if (c == nullptr) return {};
  return std::vector<float>(c->data->as<float>(), c->data->as<float>() + c->count());
}

// Extents from the wanted sizes; a policy other than "stretch" gives all axes one scale.
void ExtentsFromSizes(OnnxLowering& n, const std::vector<int64_t>& sizes, std::vector<ResizeAxis>* axes) {
  const std::string policy = n.String("keep_aspect_ratio_policy", "stretch");
  if (!IsOneOf(n, "keep_aspect_ratio_policy", policy, {"stretch", "not_larger", "not_smaller"})) return;
  double common = 0;
  for (size_t i = 0; i < axes->size(); ++i) {
    ResizeAxis& a = (*axes)[i];
    if (sizes[i] < 1 || sizes[i] > kMaxInt32) return n.Fail(InvalidArgument("asks for the size ", sizes[i]));
    a.out = sizes[i];
    a.scale = static_cast<double>(sizes[i]) / static_cast<double>(a.in);
    common = i == 0 ? a.scale : policy == "not_larger" ? std::min(common, a.scale) : std::max(common, a.scale);
  }
  if (policy == "stretch") return;
  for (ResizeAxis& a : *axes) {
    a.scale = common;
    const double out = std::floor(common * static_cast<double>(a.in) + 0.5);
    if (!(out >= 1) || !(out <= static_cast<double>(kMaxInt32))) {
      return n.Fail(InvalidArgument("scales an extent of ", a.in, " by ", common));
    }
    a.out = static_cast<int64_t>(out);
  }
}

void ExtentsFromScales(OnnxLowering& n, const std::vector<float>& scales, std::vector<ResizeAxis>* axes) {
  for (size_t i = 0; i < axes->size(); ++i) {
    ResizeAxis& a = (*axes)[i];
    a.scale = scales[i];
    const double out = std::floor(a.scale * static_cast<double>(a.in));
    if (!(a.scale > 0) || !(out >= 1) || !(out <= static_cast<double>(kMaxInt32))) {
      return n.Fail(InvalidArgument("scales an extent of ", a.in, " by ", a.scale));
    }
    a.out = static_cast<int64_t>(out);
  }
}

// `first_scale`: the input that holds the scales, or -1 for the attribute; sizes follow.
void ResizeBy(OnnxLowering& n, int first_scale) {
  const OnnxValuePtr x = n.In(0);
  const ResizeSpec spec = ReadResizeSpec(n);
  if (!n.ok()) return;
  const int rank = x->shape.rank();
  std::vector<int64_t> wanted = n.Ints("axes");
  if (wanted.empty()) {
    for (int i = 0; i < rank; ++i) wanted.push_back(i);
  }
  n.Axes(wanted, rank);  // in range, no duplicates
  std::vector<float> scales;
  if (first_scale >= 0) {
    scales = FloatsIn(n, first_scale);
  } else if (const OnnxAttribute* a = n.Find("scales"); a != nullptr) {
    scales = a->floats;
  }
  const bool has_sizes = n.opset() >= 11 && scales.empty() && n.Has(3);
  const std::vector<int64_t> sizes = has_sizes ? n.IntsIn(3) : std::vector<int64_t>();
  const std::vector<float> roi =
      spec.coordinates == "tf_crop_and_resize" ? FloatsIn(n, 1) : std::vector<float>();
  if (!n.ok()) return;
  const size_t count = wanted.size();
  if (!std::all_of(roi.begin(), roi.end(), [](float v) { return std::isfinite(v); })) {
    return n.Fail(InvalidArgument("its region holds what is no finite number"));
  }
  if ((has_sizes ? sizes.size() : scales.size()) != count || (!roi.empty() && roi.size() != 2 * count)) {
    return n.Fail(InvalidArgument("its scales, sizes or region do not have one entry for each of ", count, " axes"));
  }
  std::vector<ResizeAxis> axes(count);
  for (size_t i = 0; i < count; ++i) {
    axes[i].in = x->shape[n.Axis(wanted[i], rank)];
    if (!roi.empty()) axes[i].roi_begin = roi[i];
    if (!roi.empty()) axes[i].roi_end = roi[count + i];
  }
  has_sizes ? ExtentsFromSizes(n, sizes, &axes) : ExtentsFromScales(n, scales, &axes);
  TensorId y = n.Plain(x);
  for (size_t i = 0; i < count && n.ok(); ++i) y = ResizeAlong(n, y, n.Axis(wanted[i], rank), spec, axes[i]);
  if (n.ok()) n.SetTensor(0, y, false);
}

void ImportResize(OnnxLowering& n) { ResizeBy(n, n.opset() < 11 ? 1 : 2); }
void ImportUpsample(OnnxLowering& n) { ResizeBy(n, n.opset() < 9 ? -1 : 1); }

// The block size of DepthToSpace and SpaceToDepth, checked with the input's rank.
int64_t BlockSize(OnnxLowering& n, const OnnxValuePtr& x) {
  const int64_t block = n.Int("blocksize", 0);
  if (block < 1 || block > kMaxInt32) n.Fail(InvalidArgument("its attribute 'blocksize' is ", block));
  if (n.ok() && x->shape.rank() != 4) n.Fail(InvalidArgument("its input '", x->name, "' has rank ", x->shape.rank()));
  return block;
}

void Rearrange(OnnxLowering& n, const OnnxValuePtr& x, const Dims& blocks, std::vector<int32_t> perm, const Dims& out) {
  const TensorId split = n.Emit("blocks", OpKind::kReshape, {n.Plain(x)}, ReshapeAttrs{blocks});
  const TensorId moved = n.Emit("moved", OpKind::kTranspose, {split}, TransposeAttrs{std::move(perm)});
  n.EmitPlain(0, OpKind::kReshape, {moved}, ReshapeAttrs{out});
}

void ImportDepthToSpace(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const int64_t b = BlockSize(n, x);
  const std::string mode = n.String("mode", "DCR");
  if (!n.ok() || !IsOneOf(n, "mode", mode, {"DCR", "CRD"})) return;
  const Dims& s = x->shape;
  if (s[1] % (b * b) != 0) return n.Fail(InvalidArgument("blocks of ", b, " do not divide ", s[1], " channels"));
  const int64_t depth = s[1] / (b * b);
  const Dims out{s[0], depth, s[2] * b, s[3] * b};
  if (mode == "DCR") return Rearrange(n, x, Dims{s[0], b, b, depth, s[2], s[3]}, {0, 3, 4, 1, 5, 2}, out);
  Rearrange(n, x, Dims{s[0], depth, b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, out);
}

void ImportSpaceToDepth(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const int64_t b = BlockSize(n, x);
  if (!n.ok()) return;
  const Dims& s = x->shape;
  if (s[2] % b != 0 || s[3] % b != 0) {
    return n.Fail(InvalidArgument("blocks of ", b, " do not divide an image of ", s[2], "x", s[3]));
  }
  const Dims blocks{s[0], s[1], s[2] / b, b, s[3] / b, b};
  Rearrange(n, x, blocks, {0, 3, 5, 1, 2, 4}, Dims{s[0], s[1] * b * b, s[2] / b, s[3] / b});
}

}  // namespace

const OnnxHandlerTable& OnnxResampleHandlers() {
  static const OnnxHandlerTable table = {
      {"DepthToSpace", ImportDepthToSpace},
      {"Resize", ImportResize},
      {"SpaceToDepth", ImportSpaceToDepth},
      {"Upsample", ImportUpsample},
  };
  return table;
}

}  // namespace plait
