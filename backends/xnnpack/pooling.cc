// MaxPool2D and AveragePool2D. Loops of our own: they take any strides, and divide by the window or by its existing pixels as asked
// (XNNPACK's average pooling knows the latter only).
#include "backends/xnnpack/kernels.h"
#include "backends/xnnpack/windows.h"

namespace plait::xnn {
namespace {

struct PoolLoop {
  Window window;
  WindowAttrs attrs;
  int64_t channels = 0;
  bool is_max = false, count_include_pad = false;
  Clamp clamp;

  void operator()(pthreadpool_t pool) const noexcept {
    ForWindows(pool, window, attrs, [this](const WindowTaps& taps, float* y) {
      if (is_max) return MaxPixels(taps.x, clamp, y, channels);
      const int64_t pixels = count_include_pad ? attrs.kernel_h * attrs.kernel_w : taps.x.rows * taps.x.cols;
      SumPixels(taps.x, 1.0f / static_cast<float>(pixels), clamp, y, channels);
    });
  }
};

}  // namespace

KernelResult MakePool(const KernelEnv& env, const KernelRequest& request) {
  const Operator& op = request.graph->op(request.op);
  const Pool2DAttrs& a = op.as<Pool2DAttrs>();
  PoolLoop loop;
  loop.attrs = {a.kernel_h, a.kernel_w, a.stride_h, a.stride_w, 1, 1, a.pad};
  PLAIT_ASSIGN_OR_RETURN(loop.window, MakeWindow(request, loop.attrs));
  loop.window.input += request.region.begin[3] - request.reads[0].view->region.begin[3];
  loop.channels = request.region.size[3];
  loop.is_max = op.kind == OpKind::kMaxPool2D;
  loop.count_include_pad = a.count_include_pad;
  loop.clamp = a.clamp;
  const int64_t bytes = request.region.Count() * a.kernel_h * a.kernel_w * 4;
  return MakeLoop(env.PoolFor(0, bytes), std::move(loop));
}

}  // namespace plait::xnn
