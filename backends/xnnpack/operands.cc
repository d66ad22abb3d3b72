#include "backends/xnnpack/operands.h"

#include <algorithm>

namespace plait::xnn {
namespace {

struct Span1D {
  int64_t first = 0, count = 0;  // input elements that exist
  int64_t before = 0, after = 0;  // padding
};

// The input that outputs [begin, begin + count) read along one axis of `size` elements.
Span1D InputSpan(int64_t begin, int64_t count, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad_before, int64_t size) {
  const int64_t first = begin * stride - pad_before;
  const int64_t last = first + (count - 1) * stride + (kernel - 1) * dilation;
  Span1D out;
  out.first = std::max<int64_t>(0, first);
  out.count = std::min(last, size - 1) - out.first + 1;
  out.before = out.first - first;
  out.after = std::max<int64_t>(0, last - (size - 1));
  return out;
}

int64_t Outputs(int64_t padded, int64_t kernel, int64_t stride, int64_t dilation) {
  return (padded - ((kernel - 1) * dilation + 1)) / stride + 1;
}

}  // namespace

bool IsDense(const Dims& extent, const Dims& strides) {
  int64_t expected = 1;
  for (int axis = extent.rank() - 1; axis >= 0; --axis) {
    if (extent[axis] == 1) continue;
    if (strides[axis] != expected) return false;
    expected *= extent[axis];
  }
  return true;
}

Result<Window> MakeWindow(const KernelRequest& request, const WindowAttrs& a) {
  const Operator& op = request.graph->op(request.op);
  const Dims& in_shape = request.graph->input(op, 0).shape;
  const View& read = *request.reads[0].view;
  const Region& out = request.region;
  const Span1D rows = InputSpan(out.begin[1], out.size[1], a.kernel_h, a.stride_h, a.dilation_h, a.pad.top, in_shape[1]);
  const Span1D cols = InputSpan(out.begin[2], out.size[2], a.kernel_w, a.stride_w, a.dilation_w, a.pad.left, in_shape[2]);
  if (rows.count <= 0 || cols.count <= 0) {
    return Unsupported("operator \"", op.name, "\": region ", ToString(out), " reads nothing but padding");
  }
  const int64_t row_skip = rows.first - read.region.begin[1], col_skip = cols.first - read.region.begin[2];
  if (row_skip < 0 || col_skip < 0 || row_skip + rows.count > read.region.size[1] || col_skip + cols.count > read.region.size[2]) {
    return InvalidArgument("operator \"", op.name, "\": its input view ", ToString(read.region), " does not hold what region ",
                           ToString(out), " reads");
  }
  Window w;
  w.batch = out.size[0];
  w.in_rows = rows.count;
  w.in_cols = cols.count;
  w.out_rows = out.size[1];
  w.out_cols = out.size[2];
  const auto i32 = [](int64_t v) { return static_cast<int32_t>(v); };
  w.pad = {i32(rows.before), i32(cols.before), i32(rows.after), i32(cols.after)};
  w.in_strides = read.strides;
  w.input = Floats(request.reads[0]) + row_skip * read.strides[1] + col_skip * read.strides[2];
  w.output = Floats(request.write);
  w.out_strides = request.write.view->strides;
  return w;
}

PixelWindow AsPixels(const Window& w, const WindowAttrs& a, int64_t in_channels, int64_t out_channels) {
  PixelWindow p;
  p.in_rows = w.in_rows;
  p.in_cols = w.in_cols;
  // Columns: XNNPACK takes the width for the distance of rows.
  p.in_pixel_stride = w.in_cols > 1 ? w.in_strides[2] : w.in_rows > 1 ? w.in_strides[1] : in_channels;
  if (w.in_rows > 1 && w.in_strides[1] != p.in_cols * p.in_pixel_stride) {
    // Columns at the right that no window reads may belong to the width, if the number of outputs stays.
    if (w.pad.right != 0 || w.in_strides[1] % p.in_pixel_stride != 0) return p;
    p.in_cols = w.in_strides[1] / p.in_pixel_stride;
    if (p.in_cols < w.in_cols || Outputs(p.in_cols + w.pad.left, a.kernel_w, a.stride_w, a.dilation_w) != w.out_cols) return p;
  }
  const bool one_pixel_out = w.out_rows * w.out_cols == 1;
  p.out_pixel_stride = w.out_cols > 1 ? w.out_strides[2] : w.out_rows > 1 ? w.out_strides[1] : out_channels;
  if (!one_pixel_out && w.out_rows > 1 && w.out_strides[1] != w.out_cols * p.out_pixel_stride) return p;
  if (p.in_pixel_stride < in_channels || p.out_pixel_stride < out_channels) return p;
  p.possible = true;
  p.images_each = w.batch;
  p.images = {0};
  if (w.batch == 1) return p;
  // Rows below the last window may belong to the image, too, so that one image follows the other.
  const int64_t in_row = p.in_cols * p.in_pixel_stride;
  if (w.pad.bottom == 0 && w.in_strides[0] % in_row == 0) {
    const int64_t rows = w.in_strides[0] / in_row;
    if (rows >= w.in_rows && Outputs(rows + w.pad.top, a.kernel_h, a.stride_h, a.dilation_h) == w.out_rows) p.in_rows = rows;
  }
  const bool follow = w.in_strides[0] == p.in_rows * in_row && w.out_strides[0] == w.out_rows * w.out_cols * p.out_pixel_stride;
  if (follow) return p;
  p.in_rows = w.in_rows;
  p.images_each = 1;
  for (int64_t n = 1; n < w.batch; ++n) p.images.push_back(n);
  return p;
}

}  // namespace plait::xnn
