// What kernels need to know about the memory of a request: collapsed loops and sliding windows.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/interface/cpu_kernels.h"

namespace plait::xnn {

inline float* Floats(const BoundView& v) { return static_cast<float*>(v.data); }
inline bool IsPresent(const KernelRequest& r, size_t input) {
  return input < r.reads.size() && r.reads[input].view != nullptr && r.reads[input].view->tensor != kNoTensor;
}

// A view's elements in a loop over up to kMaxRank axes, innermost last. Several operands share the sizes and have strides of their own.
template <size_t kOperands>
struct LoopNest {
  Dims size;                                // at least one axis
  std::array<Dims, kOperands> strides;      // elements; 0 where an operand is broadcast

  int64_t inner() const { return size.back(); }
  int64_t rows() const { return inner() == 0 ? 0 : size.Count() / inner(); }
};

// Merges neighbouring axes that every operand walks through without a gap and drops axes of size 1; one axis at least is left.
template <size_t kOperands>
LoopNest<kOperands> MergeAxes(const Dims& extent, const std::array<Dims, kOperands>& strides) {
  LoopNest<kOperands> reversed;
  for (int axis = extent.rank() - 1; axis >= 0; --axis) {
    if (extent[axis] == 1) continue;
    const int last = reversed.size.rank() - 1;
    bool mergeable = last >= 0;
    for (size_t i = 0; mergeable && i < kOperands; ++i) {
      mergeable = strides[i][axis] == reversed.strides[i][last] * reversed.size[last];
    }
    if (mergeable) {
      reversed.size[last] *= extent[axis];
      continue;
    }
    reversed.size.push_back(extent[axis]);
    for (size_t i = 0; i < kOperands; ++i) reversed.strides[i].push_back(strides[i][axis]);
  }
  if (reversed.size.rank() == 0) {
    reversed.size.push_back(1);
    for (Dims& s : reversed.strides) s.push_back(1);
  }
  LoopNest<kOperands> out;
  for (int i = reversed.size.rank() - 1; i >= 0; --i) {
    out.size.push_back(reversed.size[i]);
    for (size_t k = 0; k < kOperands; ++k) out.strides[k].push_back(reversed.strides[k][i]);
  }
  return out;
}

// MergeAxes so that rows are runs of contiguous (stride 1) or constant (stride 0) elements of every operand, if need be of one.
template <size_t kOperands>
LoopNest<kOperands> Collapse(const Dims& extent, const std::array<Dims, kOperands>& strides) {
  LoopNest<kOperands> out = MergeAxes<kOperands>(extent, strides);
  bool contiguous = true;
  for (const Dims& s : out.strides) contiguous = contiguous && (s.back() == 0 || s.back() == 1);
  if (contiguous) return out;
  out.size.push_back(1);
  for (Dims& s : out.strides) s.push_back(1);
  return out;
}

// Walks the rows of a nest from any row on: the offsets of the row's first element for every operand.
template <size_t kOperands>
class RowCursor {
 public:
  RowCursor(const LoopNest<kOperands>& nest, int64_t row) : nest_(nest), outer_(nest.size.rank() - 1) {
    for (int axis = outer_ - 1; axis >= 0; --axis) {
      index_[static_cast<size_t>(axis)] = row % nest.size[axis];
      row /= nest.size[axis];
      for (size_t k = 0; k < kOperands; ++k) offsets_[k] += index_[static_cast<size_t>(axis)] * nest.strides[k][axis];
    }
  }
  int64_t offset(size_t operand) const { return offsets_[operand]; }
  void Next() {
    for (int axis = outer_ - 1; axis >= 0; --axis) {
      int64_t& i = index_[static_cast<size_t>(axis)];
      for (size_t k = 0; k < kOperands; ++k) offsets_[k] += nest_.strides[k][axis];
      if (++i < nest_.size[axis]) return;
      for (size_t k = 0; k < kOperands; ++k) offsets_[k] -= i * nest_.strides[k][axis];
      i = 0;
    }
  }

 private:
  const LoopNest<kOperands>& nest_;
  int outer_;
  std::array<int64_t, kMaxRank> index_{};
  std::array<int64_t, kOperands> offsets_{};
};

// All axes but the innermost; for strides, too.
inline Dims OuterAxes(const Dims& dims) {
  Dims out;
  for (int i = 0; i + 1 < dims.rank(); ++i) out.push_back(dims[i]);
  return out;
}

// Elements follow each other without gaps; axes of size 1 may have any stride.
bool IsDense(const Dims& extent, const Dims& strides);
inline bool IsDense(const View& view) { return IsDense(view.extent(), view.strides); }

// A sliding window over the rows and columns of [N,H,W,C], for one part: how much input, where, and how much padding.
struct WindowAttrs {
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  Padding pad;
};
struct Window {
  int64_t batch = 1, in_rows = 0, in_cols = 0, out_rows = 0, out_cols = 0;
  Padding pad;                        // of this part: only where its taps leave the tensor
  const float* input = nullptr;       // first pixel, first channel of the read view
  Dims in_strides;                    // elements
  float* output = nullptr;
  Dims out_strides;
};
// Unsupported if the part's taps all lie in padding.
Result<Window> MakeWindow(const KernelRequest& request, const WindowAttrs& attrs);

// How XNNPACK would run a window: pixels at one stride, rows following rows.
struct PixelWindow {
  bool possible = false;              // false: the views have gaps that XNNPACK cannot skip
  int64_t in_pixel_stride = 0, out_pixel_stride = 0;
  std::vector<int64_t> images;        // image indices at which an operator starts ...
  int64_t images_each = 1;            // ... and how many images it runs
  int64_t in_rows = 0, in_cols = 0;   // as told to XNNPACK
};
PixelWindow AsPixels(const Window& window, const WindowAttrs& attrs, int64_t in_channels, int64_t out_channels);

}  // namespace plait::xnn
