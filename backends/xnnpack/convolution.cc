// Conv2D and DepthwiseConv2D.
#include "backends/xnnpack/channel_blocks.h"
#include "backends/xnnpack/kernels.h"
#include "backends/xnnpack/loops.h"
#include "backends/xnnpack/operands.h"
#include "backends/xnnpack/windows.h"

namespace plait::xnn {
namespace {

WindowAttrs AttrsOf(const Layer& layer) {
  const Conv2DAttrs& a = layer.attrs;
  return {layer.kernel_h, layer.kernel_w, a.stride_h, a.stride_w, a.dilation_h, a.dilation_w, a.pad};
}

Layer LayerOf(const KernelRequest& request) {
  const Operator& op = request.graph->op(request.op);
  const Tensor& weights = request.graph->input(op, 1);
  Layer layer;
  layer.attrs = op.as<Conv2DAttrs>();
  layer.weights = weights.data;
  if (op.inputs.size() > 2 && op.inputs[2] != kNoTensor) layer.bias = request.graph->input(op, 2).data;
  if (op.kind == OpKind::kDepthwiseConv2D) {
    layer.kind = LayerKind::kDepthwise;
    layer.attrs.groups = 1;
    layer.kernel_h = weights.shape[0];
    layer.kernel_w = weights.shape[1];
    layer.channels = weights.shape[2];
  } else {
    layer.kernel_h = weights.shape[1];
    layer.kernel_w = weights.shape[2];
    layer.group_in = weights.shape[3];
    layer.channels = weights.shape[0];
  }
  return layer;
}

// Channels [begin, end) of the input that output channels [begin, begin + count) read.
int64_t FirstInputChannel(const Layer& layer, int64_t begin) {
  if (layer.kind == LayerKind::kDepthwise) return begin;
  return begin / layer.group_out() * layer.group_in;
}
int64_t InputChannels(const Layer& layer, int64_t count) {
  if (layer.kind == LayerKind::kDepthwise) return count;
  return layer.groups() == 1 ? layer.group_in : count / layer.group_out() * layer.group_in;
}

Status AddOperators(const KernelEnv& env, const Layer& layer, const Window& w, const PixelWindow& p, int64_t begin, int64_t count,
                    const float* input, float* output, OperatorListKernel* kernel) {
  const int64_t tile = layer.kind == LayerKind::kDepthwise ? DepthwiseTile(*env.tiles, layer.attrs, layer.kernel_h, layer.kernel_w)
                                                           : env.tiles->convolution;
  for (const int64_t image : p.images) {
    const LayerSlice slice{begin, count, p.in_pixel_stride, p.out_pixel_stride, w.pad};
    PLAIT_ASSIGN_OR_RETURN(LayerOperator made, env.store->Make(layer, slice, layer.attrs.clamp, tile));
    size_t workspace_bytes = 0, alignment = 0, out_h = 0, out_w = 0;
    const auto size = [](int64_t v) { return static_cast<size_t>(v); };
    PLAIT_RETURN_IF_ERROR(ToStatus(
        xnn_reshape_convolution2d_nhwc_f32(made.op.get(), size(p.images_each), size(p.in_rows), size(p.in_cols), &workspace_bytes,
                                           &alignment, &out_h, &out_w, kernel->pool()), "xnn_reshape_convolution2d_nhwc_f32"));
    if (static_cast<int64_t>(out_h) != w.out_rows || static_cast<int64_t>(out_w) != w.out_cols) {
      return Internal("XNNPACK would compute ", out_h, " x ", out_w, " pixels, not ", w.out_rows, " x ", w.out_cols);
    }
    void* workspace = nullptr;
    if (workspace_bytes > 0) {
      workspace = kernel->ReserveWorkspace(static_cast<int64_t>(workspace_bytes));
      if (workspace == nullptr) return OutOfMemory("no memory for a workspace of ", workspace_bytes, " bytes");
    }
    PLAIT_RETURN_IF_ERROR(ToStatus(
        xnn_setup_convolution2d_nhwc_f32(made.op.get(), workspace, input + image * w.in_strides[0], output + image * w.out_strides[0]),
        "xnn_setup_convolution2d_nhwc_f32"));
    kernel->Add(std::move(made.op));
    kernel->KeepAlive(std::move(made.image));
  }
  return Status();
}

// Depthwise windows with more taps than XNNPACK has kernels for.
struct DepthwiseLoop {
  Window window;
  WindowAttrs attrs;
  int64_t channels = 0, weights_stride = 0;
  std::shared_ptr<const ConstData> weights_owner, bias_owner;
  const float* weights = nullptr;
  const float* bias = nullptr;
  Clamp clamp;

  void operator()(pthreadpool_t pool) const noexcept {
    ForWindows(pool, window, attrs, [this](const WindowTaps& taps, float* y) {
      const Pixels w{weights + (taps.first_row * attrs.kernel_w + taps.first_col) * weights_stride, taps.x.rows, taps.x.cols,
                     attrs.kernel_w * weights_stride, weights_stride};
      DotPixels(taps.x, w, bias, clamp, y, channels);
    });
  }
};

std::unique_ptr<CpuKernel> MakeDepthwiseLoop(const KernelEnv& env, const Layer& layer, const Window& w, int64_t begin, int64_t count) {
  DepthwiseLoop loop{w, AttrsOf(layer), count, layer.channels, layer.weights, layer.bias, layer.weights->as<float>() + begin,
                     layer.bias == nullptr ? nullptr : layer.bias->as<float>() + begin, layer.attrs.clamp};
  return MakeLoop(env.context->pool(), std::move(loop));
}

}  // namespace

bool HasDepthwiseKernel(const Tiles& tiles, const Conv2DAttrs& attrs, int64_t kernel_h, int64_t kernel_w) {
  return DepthwiseTile(tiles, attrs, kernel_h, kernel_w) != 0;
}

int64_t DepthwiseTile(const Tiles& tiles, const Conv2DAttrs& attrs, int64_t kernel_h, int64_t kernel_w) {
  if (kernel_h == 1 && kernel_w == 1 && attrs.stride_h == 1 && attrs.stride_w == 1 && attrs.pad == Padding{}) return tiles.scale_shift;
  return tiles.Depthwise(kernel_h, kernel_w);
}

KernelResult MakeConvolution(const KernelEnv& env, const KernelRequest& request) {
  const Layer layer = LayerOf(request);
  const WindowAttrs attrs = AttrsOf(layer);
  PLAIT_ASSIGN_OR_RETURN(Window window, MakeWindow(request, attrs));
  const int64_t begin = request.region.begin[3], count = request.region.size[3];
  if (begin % layer.group_out() != 0 || count % layer.group_out() != 0) {
    if (layer.groups() > 1) return Unsupported("channels ", begin, " to ", begin + count, " cut a group of ", layer.group_out());
  }
  // The view may hold more channels than are read.
  window.input += FirstInputChannel(layer, begin) - request.reads[0].view->region.begin[3];
  if (layer.kind == LayerKind::kDepthwise && !HasDepthwiseKernel(*env.tiles, layer.attrs, layer.kernel_h, layer.kernel_w)) {
    return MakeDepthwiseLoop(env, layer, window, begin, count);
  }
  const PixelWindow pixels = AsPixels(window, attrs, InputChannels(layer, count), count);
  if (!pixels.possible) return std::unique_ptr<CpuKernel>();
  const int64_t taps = layer.kernel_h * layer.kernel_w;
  const int64_t out_pixels = window.batch * window.out_rows * window.out_cols;
  auto kernel = std::make_unique<OperatorListKernel>(env.PoolFor(out_pixels * count * taps * layer.group_in, out_pixels * count * 4));
  int64_t block = count;
  if (layer.kind == LayerKind::kConvolution && layer.groups() == 1) {
    block = ChannelBlock(count, taps * layer.group_in * 4, window.out_rows * window.out_cols, env.tiles->convolution, env.l2_bytes);
  }
  for (int64_t done = 0; done < count;) {
    const int64_t now = NextBlock(count - done, block, env.tiles->convolution);
    PLAIT_RETURN_IF_ERROR(AddOperators(env, layer, window, pixels, begin + done, now, window.input, window.output + done, kernel.get()));
    done += now;
  }
  return std::unique_ptr<CpuKernel>(std::move(kernel));
}

}  // namespace plait::xnn
