// DepthwiseConv2D and the pools: sums over a window, channel by channel.
#include <cmath>
#include <limits>

#include "backends/reference/kernels.h"

namespace plait::reference {
namespace {

// The window of an output pixel over an image: which taps lie inside.
struct Window {
  int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  Padding pad;
  int64_t height, width;

  // Calls f(ky, kx, y, x) for the taps inside the image, row by row.
  template <typename F>
  void ForEachTap(int64_t out_y, int64_t out_x, F&& f) const {
    for (int64_t ky = 0; ky < kernel_h; ++ky) {
      const int64_t y = out_y * stride_h - pad.top + ky * dilation_h;
      if (y < 0 || y >= height) continue;
      for (int64_t kx = 0; kx < kernel_w; ++kx) {
        const int64_t x = out_x * stride_w - pad.left + kx * dilation_w;
        if (x < 0 || x >= width) continue;
        f(ky, kx, y, x);
      }
    }
  }
};

Window PoolWindow(const KernelArgs& args) {
  const Pool2DAttrs& a = args.op->as<Pool2DAttrs>();
  const Dims& x = args.in_shape(0);
  return {a.kernel_h, a.kernel_w, a.stride_h, a.stride_w, 1, 1, a.pad, x[1], x[2]};
}

}  // namespace

std::unique_ptr<CpuKernel> MakeDepthwiseConv2D(KernelArgs args) {
  const Conv2DAttrs& a = args.op->as<Conv2DAttrs>();
  const Dims& x_shape = args.in_shape(0);
  const Dims& w_shape = args.in_shape(1);
  const Window window{w_shape[0],   w_shape[1], a.stride_h, a.stride_w, a.dilation_h,
                      a.dilation_w, a.pad,      x_shape[1], x_shape[2]};
  std::vector<float> sums(static_cast<size_t>(args.region.size[3]));
  return MakeKernel([args = std::move(args), window, clamp = a.clamp, sums = std::move(sums)]() mutable {
    const int64_t first = args.region.begin[3], count = args.region.size[3];
    const float* bias = args.in.size() > 2 && args.in[2].data != nullptr ? args.in[2].At(first) : nullptr;
    ForEachRow(args.region, [&](const Dims& at) {
      float* sum = sums.data();
      for (int64_t c = 0; c < count; ++c) sum[c] = bias == nullptr ? 0.0f : bias[c];
      window.ForEachTap(at[1], at[2], [&](int64_t ky, int64_t kx, int64_t y, int64_t x) {
        const float* from = args.in[0].At(Dims{at[0], y, x, first});
        const float* w = args.in[1].At(Dims{ky, kx, first});
        for (int64_t c = 0; c < count; ++c) sum[c] += from[c] * w[c];
      });
      float* to = args.out.At(at);
      for (int64_t c = 0; c < count; ++c) to[c] = Apply(clamp, sum[c]);
    });
  });
}

std::unique_ptr<CpuKernel> MakeMaxPool2D(KernelArgs args) {
  const Window window = PoolWindow(args);
  const Clamp clamp = args.op->as<Pool2DAttrs>().clamp;
  return MakeKernel([args = std::move(args), window, clamp] {
    const int64_t count = args.region.size[3];
    ForEachRow(args.region, [&](const Dims& at) {
      float* to = args.out.At(at);
      std::fill(to, to + count, -std::numeric_limits<float>::infinity());
      window.ForEachTap(at[1], at[2], [&](int64_t, int64_t, int64_t y, int64_t x) {
        const float* from = args.in[0].At(Dims{at[0], y, x, at[3]});
        for (int64_t c = 0; c < count; ++c) to[c] = from[c] > to[c] || std::isnan(from[c]) ? from[c] : to[c];
      });
      for (int64_t c = 0; c < count; ++c) to[c] = Apply(clamp, to[c]);
    });
  });
}

std::unique_ptr<CpuKernel> MakeAveragePool2D(KernelArgs args) {
  const Window window = PoolWindow(args);
  const Pool2DAttrs attrs = args.op->as<Pool2DAttrs>();
  std::vector<float> sums(static_cast<size_t>(args.region.size[3]));
  return MakeKernel([args = std::move(args), window, attrs, sums = std::move(sums)]() mutable {
    const int64_t count = args.region.size[3];
    ForEachRow(args.region, [&](const Dims& at) {
      float* sum = sums.data();
      std::fill(sums.begin(), sums.end(), 0.0f);
      int64_t taps = 0;
      window.ForEachTap(at[1], at[2], [&](int64_t, int64_t, int64_t y, int64_t x) {
        ++taps;
        const float* from = args.in[0].At(Dims{at[0], y, x, at[3]});
        for (int64_t c = 0; c < count; ++c) sum[c] += from[c];
      });
      if (attrs.count_include_pad) taps = window.kernel_h * window.kernel_w;
      const float divisor = static_cast<float>(std::max<int64_t>(taps, 1));  // a window of padding alone averages to 0
      float* to = args.out.At(at);
      for (int64_t c = 0; c < count; ++c) to[c] = Apply(attrs.clamp, sum[c] / divisor);
    });
  });
}

}  // namespace plait::reference
