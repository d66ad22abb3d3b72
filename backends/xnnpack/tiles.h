// The channel tiles of this processor's XNNPACK kernels. XNNPACK tells nobody; the size of the packed weights, which grows by a
// tile's bytes at a time, does.
#pragma once

#include <array>
#include <cstdint>

#include "src/base/status.h"

namespace plait::xnn {

inline constexpr int64_t kMaxProbedTaps = 32;

struct Tiles {
  int64_t convolution = 0;      // output channels a tile of convolutions (1x1 and larger)
  int64_t fully_connected = 0;  // ... of fully connected and of matrix multiplication with dynamic weights
  int64_t scale_shift = 0;      // 1x1 depthwise, stride 1
  // By number of taps (kernel_h * kernel_w); 0: XNNPACK has no depthwise kernel for so many.
  std::array<int64_t, kMaxProbedTaps + 1> depthwise{};

  int64_t Depthwise(int64_t kernel_h, int64_t kernel_w) const {
    return kernel_h > kMaxProbedTaps || kernel_w > kMaxProbedTaps || kernel_h * kernel_w > kMaxProbedTaps
               ? 0 : depthwise[static_cast<size_t>(kernel_h * kernel_w)];
  }
};

// Probed once per process, after InitializeXnnpack; the same value ever after. Unsupported if XNNPACK cannot run here.
const Result<Tiles>& ProbedTiles();

}  // namespace plait::xnn
