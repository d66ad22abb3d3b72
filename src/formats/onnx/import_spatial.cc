// Convolutions, pools and what else works on images. 1-D ones run as 2-D ones of height 1.
#include <algorithm>
#include <limits>

#include "src/base/checked.h"
#include "src/formats/onnx/lowering.h"

namespace plait {
namespace {

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();

// A sliding window along one axis. Everything fits 31 bits once read.
struct WindowAxis {
  int64_t input = 1, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
  int64_t Extent() const { return dilation * (kernel - 1) + 1; }
  int64_t Room() const { return input + before + after - Extent(); }  // negative: the window does not fit
};

struct Window2D {
  WindowAxis h, w;
  Padding Pad() const {
    return {static_cast<int32_t>(h.before), static_cast<int32_t>(w.before), static_cast<int32_t>(h.after),
            static_cast<int32_t>(w.after)};
  }
};

// One entry per spatial axis, or `fallback` for all when the attribute is absent.
std::vector<int64_t> PerAxis(OnnxLowering& n, const char* name, size_t count, int64_t fallback, int64_t least) {
  std::vector<int64_t> values = n.Ints(name);
  if (values.empty()) values.assign(count, fallback);
  if (values.size() != count) {
    n.Fail(InvalidArgument("its attribute '", name, "' has ", values.size(), " entries instead of ", count));
    return std::vector<int64_t>(count, fallback);
  }
  for (const int64_t v : values) {
    if (v < least || v > kMaxInt32) {
      n.Fail(InvalidArgument("its attribute '", name, "' holds ", v, ", which is not within ", least, "..", kMaxInt32));
    }
  }
  return n.ok() ? values : std::vector<int64_t>(count, fallback);
}

void PadAutomatically(const std::string& mode, WindowAxis* axis) {
  const int64_t outputs = CeilDiv(axis->input, axis->stride);
  const int64_t total = std::max<int64_t>(0, (outputs - 1) * axis->stride + axis->Extent() - axis->input);
  axis->before = mode == "SAME_LOWER" ? total - total / 2 : total / 2;
  axis->after = total - axis->before;
}

// `spatial`: the input's extents (one or two), `kernel` likewise.
Window2D ReadWindow(OnnxLowering& n, const std::vector<int64_t>& spatial, const std::vector<int64_t>& kernel) {
  const size_t axes = spatial.size();
  const std::vector<int64_t> strides = PerAxis(n, "strides", axes, 1, 1);
  const std::vector<int64_t> dilations = PerAxis(n, "dilations", axes, 1, 1);
  const std::vector<int64_t> pads = PerAxis(n, "pads", 2 * axes, 0, 0);
  const std::string mode = n.String("auto_pad", "NOTSET");
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER") {
    n.Fail(InvalidArgument("its attribute 'auto_pad' is '", mode, "'"));
  }
  Window2D window;
  for (size_t i = 0; i < axes; ++i) {
    WindowAxis& axis = i + 1 == axes ? window.w : window.h;
    axis = {spatial[i], kernel[i], strides[i], dilations[i], pads[i], pads[axes + i]};
    if (mode != "NOTSET") axis.before = axis.after = 0;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") PadAutomatically(mode, &axis);
    if (axis.Room() < 0 || std::max(axis.before, axis.after) > kMaxInt32) {
      n.Fail(InvalidArgument("its kernel of ", axis.kernel, " with dilation ", axis.dilation,
                             " does not fit an extent of ", axis.input, " padded by ", axis.before, " and ",
                             axis.after));
    }
  }
  return window;
}

std::vector<int64_t> Spatial(const Dims& shape) { return std::vector<int64_t>(shape.begin() + 2, shape.end()); }

// Checks that input 0 is an image (N, C, H, W) or a sequence (N, C, L).
bool IsImage(OnnxLowering& n, const OnnxValuePtr& x) {
  const int rank = x->shape.rank();
  if (rank == 5) n.Fail(Unsupported("works on volumes (rank 5); images and sequences are supported"));
  if (rank != 3 && rank != 4) {
    n.Fail(InvalidArgument("its input '", x->name, "' has rank ", rank, " instead of 3 or 4"));
  }
  return n.ok();
}

// The channels-last tensor of rank 4.
TensorId Image(OnnxLowering& n, const OnnxValuePtr& x) {
  const TensorId last = n.Last(x);
  if (x->shape.rank() == 4 || !n.ok()) return last;
  const Dims s = n.Shape(last);
  return n.Emit("image", OpKind::kReshape, {last}, ReshapeAttrs{Dims{s[0], 1, s[1], s[2]}});
}

// Ends an operator that ran on Image(): back to rank 3 if that is what came in.
void EmitImage(OnnxLowering& n, int file_rank, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
  if (file_rank == 4) return n.EmitLast(0, kind, std::move(inputs), std::move(attrs));
  const TensorId out = n.Emit("rows", kind, std::move(inputs), std::move(attrs));
  if (!n.ok()) return;
  const Dims s = n.Shape(out);
  n.EmitLast(0, OpKind::kReshape, {out}, ReshapeAttrs{Dims{s[0], s[2], s[3]}});
}

void ImportConv(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const OnnxTensor* w = n.FloatConstant(1);
  const OnnxTensor* bias = n.Has(2) ? n.FloatConstant(2) : nullptr;
  if (!n.ok() || !IsImage(n, x)) return;
  const int rank = x->shape.rank();
  if (w->shape.rank() != rank) {
    return n.Fail(InvalidArgument("its weights have the shape ", ToString(w->shape), ", its input rank ", rank));
  }
  const int64_t groups = n.Int("group", 1);
  const int64_t out_channels = w->shape[0], group_channels = w->shape[1], channels = x->shape[1];
  if (groups < 1 || groups > kMaxInt32 || channels % groups != 0 || out_channels % groups != 0 ||
      channels / groups != group_channels) {
    return n.Fail(InvalidArgument("its ", groups, " groups do not fit ", channels, " input channels and weights of ",
                                  ToString(w->shape)));
  }
  const std::vector<int64_t> kernel = Spatial(w->shape);
  const std::vector<int64_t> declared = n.Ints("kernel_shape");
  if (!declared.empty() && declared != kernel) {
    return n.Fail(InvalidArgument("its attribute 'kernel_shape' differs from its weights' ", ToString(w->shape)));
  }
  const Window2D window = ReadWindow(n, Spatial(x->shape), kernel);
  if (bias != nullptr && !(bias->shape == Dims{out_channels})) {
    n.Fail(InvalidArgument("its bias has the shape ", ToString(bias->shape), " instead of ", out_channels));
  }
  if (!n.ok()) return;
  const int64_t kh = rank == 4 ? kernel[0] : 1, kw = kernel.back();
  Conv2DAttrs attrs;
  attrs.stride_h = static_cast<int32_t>(window.h.stride);
  attrs.stride_w = static_cast<int32_t>(window.w.stride);
  attrs.dilation_h = static_cast<int32_t>(window.h.dilation);
  attrs.dilation_w = static_cast<int32_t>(window.w.dilation);
  attrs.pad = window.Pad();
  const bool depthwise = groups == channels && out_channels == channels && channels > 1;
  TensorId weights;
  if (depthwise) {
    weights = n.Rearranged(*w, "hwc", Dims{kh, kw, channels}, Dims{kw, 1, kh * kw});
  } else {
    attrs.groups = static_cast<int32_t>(groups);
    weights = n.Rearranged(*w, "ohwi", Dims{out_channels, kh, kw, group_channels},
                           Dims{group_channels * kh * kw, kw, 1, kh * kw});
  }
  std::vector<TensorId> inputs = {Image(n, x), weights};
  if (bias != nullptr) inputs.push_back(n.Plain(n.In(2)));
  EmitImage(n, rank, depthwise ? OpKind::kDepthwiseConv2D : OpKind::kConv2D, std::move(inputs), attrs);
}

// The axis' windows as ceil_mode counts them, by more padding behind. The last one has to begin before the padding behind.
void RoundUpWindows(WindowAxis* axis) {
  int64_t outputs = CeilDiv(axis->Room(), axis->stride) + 1;
  if ((outputs - 1) * axis->stride >= axis->input + axis->before) --outputs;
  axis->after = std::max(axis->after, (outputs - 1) * axis->stride + axis->kernel - axis->input - axis->before);
}

Pool2DAttrs PoolAttrs(const Window2D& window) {
  Pool2DAttrs attrs;
  attrs.kernel_h = static_cast<int32_t>(window.h.kernel);
  attrs.kernel_w = static_cast<int32_t>(window.w.kernel);
  attrs.stride_h = static_cast<int32_t>(window.h.stride);
  attrs.stride_w = static_cast<int32_t>(window.w.stride);
  attrs.pad = window.Pad();
  return attrs;
}

Window2D ReadPool(OnnxLowering& n, const OnnxValuePtr& x) {
  const std::vector<int64_t> spatial = Spatial(x->shape);
  if (n.Find("kernel_shape") == nullptr) n.Fail(InvalidArgument("has no attribute 'kernel_shape'"));
  const std::vector<int64_t> kernel = PerAxis(n, "kernel_shape", spatial.size(), 1, 1);
  Window2D window = ReadWindow(n, spatial, kernel);
  if (window.h.dilation != 1 || window.w.dilation != 1) n.Fail(Unsupported("dilated pooling"));
  for (const WindowAxis* axis : {&window.h, &window.w}) {
    if (std::max(axis->before, axis->after) >= axis->kernel) {
      n.Fail(InvalidArgument("its padding of ", std::max(axis->before, axis->after), " is not less than its kernel of ",
                             axis->kernel));
    }
  }
  return window;
}

void ImportMaxPool(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  n.OnlyFirstOutput();
  if (!n.ok() || !IsImage(n, x)) return;
  Window2D window = ReadPool(n, x);
  if (!n.ok()) return;
  if (n.Int("ceil_mode", 0) != 0) {
    RoundUpWindows(&window.h);
    RoundUpWindows(&window.w);
  }
  EmitImage(n, x->shape.rank(), OpKind::kMaxPool2D, {Image(n, x)}, PoolAttrs(window));
}

void ImportAveragePool(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  if (!n.ok() || !IsImage(n, x)) return;
  Window2D window = ReadPool(n, x);
  bool count_padding = n.Int("count_include_pad", 0) != 0;
  const bool round_up = n.Int("ceil_mode", 0) != 0;
  if (!n.ok()) return;
  TensorId image = Image(n, x);
  if (round_up) {
    Window2D longer = window;
    RoundUpWindows(&longer.h);
    RoundUpWindows(&longer.w);
    const bool grows = !(longer.Pad() == window.Pad());
    if (grows && count_padding && !(window.Pad() == Padding{})) {
      // The file's padding counts, what rounding up adds does not: pad first, then pool with the rest.
      PadAttrs pad;
      pad.before = Dims{0, window.h.before, window.w.before, 0};
      pad.after = Dims{0, window.h.after, window.w.after, 0};
      image = n.Emit("padded", OpKind::kPad, {image}, pad);
      longer.h.after -= window.h.after;
      longer.w.after -= window.w.after;
      longer.h.before = longer.w.before = 0;
    }
    if (grows) count_padding = false;
    window = longer;
  }
  Pool2DAttrs attrs = PoolAttrs(window);
  attrs.count_include_pad = count_padding && !(attrs.pad == Padding{});
  EmitImage(n, x->shape.rank(), OpKind::kAveragePool2D, {image}, attrs);
}

void ImportGlobalAveragePool(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  if (!n.ok() || !IsImage(n, x)) return;
  ReduceAttrs attrs;
  for (int i = 1; i + 1 < x->shape.rank(); ++i) attrs.axes.push_back(i);
  n.EmitLast(0, OpKind::kReduceMean, {n.Last(x)}, attrs);
}

void ImportGlobalMaxPool(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  if (!n.ok() || !IsImage(n, x)) return;
  const std::vector<int64_t> spatial = Spatial(x->shape);
  if (*std::max_element(spatial.begin(), spatial.end()) > kMaxInt32) {
    return n.Fail(InvalidArgument("its input is too large"));
  }
  Pool2DAttrs attrs;
  attrs.kernel_h = spatial.size() == 2 ? static_cast<int32_t>(spatial[0]) : 1;
  attrs.kernel_w = static_cast<int32_t>(spatial.back());
  EmitImage(n, x->shape.rank(), OpKind::kMaxPool2D, {Image(n, x)}, attrs);
}

void ImportBatchNormalization(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  n.OnlyFirstOutput();
  if (n.Int("training_mode", 0) != 0) n.Fail(Unsupported("normalises by the batch's own statistics (training_mode)"));
  if (n.Int("spatial", 1) == 0) n.Fail(Unsupported("normalises every position by itself (spatial = 0)"));
  if (!n.ok()) return;
  const int rank = x->shape.rank();
  if (rank < 2 || rank > 4) return n.Fail(Unsupported("works on rank ", rank, "; ranks 2 to 4 are supported"));
  const bool last = rank > 2;
  std::vector<TensorId> inputs = {last ? n.Last(x) : n.Plain(x)};
  for (int i = 1; i < 5; ++i) {
    const OnnxTensor* c = n.FloatConstant(i);
    if (c != nullptr && !(c->shape == Dims{x->shape[1]})) {
      n.Fail(
          InvalidArgument("its input '", c->name, "' has the shape ", ToString(c->shape), " instead of ", x->shape[1]));
    }
    if (!n.ok()) return;
    inputs.push_back(n.Plain(n.In(i)));
  }
  n.EmitIn(last, 0, OpKind::kBatchNorm, std::move(inputs), NormAttrs{n.Float("epsilon", 1e-5f)});
}

// x / (bias + alpha * mean of squares over `size` neighbouring channels) ^ beta. The mean is an average pool along the
// channels, taken as the columns of a one-channel image; the power is exp(-beta * log).
void ImportLrn(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  if (!n.ok() || !IsImage(n, x)) return;
  const int64_t size = n.Int("size", 0);
  const float alpha = n.Float("alpha", 1e-4f), beta = n.Float("beta", 0.75f), bias = n.Float("bias", 1.0f);
  const int64_t channels = x->shape[1];
  if (size < 1 || size > kMaxInt32) n.Fail(InvalidArgument("its size is ", size));
  if (!n.ok()) return;
  const TensorId image = n.Last(x);
  const TensorId square = n.Emit("square", OpKind::kUnary, {image}, UnaryAttrs{UnaryKind::kSquare, {}});
  const int64_t pixels = x->shape.Count() / x->shape[0] / channels;
  const TensorId columns =
      n.Emit("columns", OpKind::kReshape, {square}, ReshapeAttrs{Dims{x->shape[0], pixels, channels, 1}});
  Pool2DAttrs pool;
  pool.kernel_w = static_cast<int32_t>(size);
  pool.pad.left = static_cast<int32_t>((size - 1) / 2);
  pool.pad.right = static_cast<int32_t>(size - 1 - (size - 1) / 2);
  pool.count_include_pad = size > 1;
  const TensorId mean = n.Emit("mean", OpKind::kAveragePool2D, {columns}, pool);
  const TensorId scaled =
      n.Emit("scaled", OpKind::kBinary, {mean, n.ScalarConstant(alpha)}, BinaryAttrs{BinaryKind::kMul, {}});
  const TensorId base =
      n.Emit("base", OpKind::kBinary, {scaled, n.ScalarConstant(bias)}, BinaryAttrs{BinaryKind::kAdd, {}});
  const TensorId log = n.Emit("log", OpKind::kUnary, {base}, UnaryAttrs{UnaryKind::kLog, {}});
  const TensorId power =
      n.Emit("power", OpKind::kBinary, {log, n.ScalarConstant(-beta)}, BinaryAttrs{BinaryKind::kMul, {}});
  const TensorId factor = n.Emit("factor", OpKind::kUnary, {power}, UnaryAttrs{UnaryKind::kExp, {}});
  if (!n.ok()) return;
  const TensorId shaped = n.Emit("factors", OpKind::kReshape, {factor}, ReshapeAttrs{n.Shape(image)});
  n.EmitLast(0, OpKind::kBinary, {image, shaped}, BinaryAttrs{BinaryKind::kMul, {}});
}

}  // namespace

const OnnxHandlerTable& OnnxSpatialHandlers() {
  static const OnnxHandlerTable table = {
      {"AveragePool", ImportAveragePool},
      {"BatchNormalization", ImportBatchNormalization},
      {"Conv", ImportConv},
      {"GlobalAveragePool", ImportGlobalAveragePool},
      {"GlobalMaxPool", ImportGlobalMaxPool},
      {"LRN", ImportLrn},
      {"MaxPool", ImportMaxPool},
  };
  return table;
}

}  // namespace plait
