// Loops over the windows of a part: pooling, and depthwise convolutions that XNNPACK has no kernel for.
#pragma once

#include "backends/xnnpack/kernels.h"
#include "backends/xnnpack/loops.h"
#include "backends/xnnpack/operands.h"
#include "src/base/checked.h"

namespace plait::xnn {

// The taps of one window that lie on existing pixels.
struct WindowTaps {
  Pixels x;
  int64_t first_row = 0, first_col = 0;  // of the kernel
};

// Taps [first, first + count) of `kernel` that hit one of `size` elements, the window starting at `start` (may be negative).
struct TapRange {
  int64_t first = 0, count = 0;
};
inline TapRange ExistingTaps(int64_t start, int64_t kernel, int64_t dilation, int64_t size) {
  TapRange out;
  out.first = start < 0 ? CeilDiv(-start, dilation) : 0;
  if (start >= size) return out;
  const int64_t last = (size - 1 - start) / dilation;  // last tap on an element
  out.count = (last < kernel - 1 ? last : kernel - 1) - out.first + 1;
  if (out.count < 0) out.count = 0;
  return out;
}

// Calls f(taps, y) for every output pixel of the part, y at its first channel.
template <typename F>
void ForWindows(pthreadpool_t pool, const Window& w, const WindowAttrs& a, const F& f) noexcept {
  ParallelRanges(pool, w.batch * w.out_rows, 1, [&](int64_t begin, int64_t count) {
    for (int64_t i = begin; i < begin + count; ++i) {
      const int64_t n = i / w.out_rows, oy = i % w.out_rows;
      const int64_t y0 = oy * a.stride_h - w.pad.top;
      const TapRange rows = ExistingTaps(y0, a.kernel_h, a.dilation_h, w.in_rows);
      const float* row = w.input + n * w.in_strides[0] + (y0 + rows.first * a.dilation_h) * w.in_strides[1];
      float* y = w.output + n * w.out_strides[0] + oy * w.out_strides[1];
      for (int64_t ox = 0; ox < w.out_cols; ++ox, y += w.out_strides[2]) {
        const int64_t x0 = ox * a.stride_w - w.pad.left;
        const TapRange cols = ExistingTaps(x0, a.kernel_w, a.dilation_w, w.in_cols);
        WindowTaps taps;
        taps.x = {row + (x0 + cols.first * a.dilation_w) * w.in_strides[2], rows.count, cols.count, a.dilation_h * w.in_strides[1],
                  a.dilation_w * w.in_strides[2]};
        taps.first_row = rows.first;
        taps.first_col = cols.first;
        f(taps, y);
      }
    }
  });
}

}  // namespace plait::xnn
