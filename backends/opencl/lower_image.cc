// Depthwise convolution, pooling, and the per-channel scale and shift that is a 1x1 depthwise convolution.
#include <algorithm>
#include <cmath>

#include "backends/opencl/operand.h"
#include "src/base/checked.h"

namespace plait::opencl {
namespace {

// Image rows of a part that an item takes: few enough that the input rows stay in a core's cache while all channels pass.
int64_t ImageRows(const Device& device, int64_t rows, int64_t row_elements) {
  if (!device.tuning().single_item_groups) return 1;
  constexpr int64_t kSlabElements = 32768;
  int64_t per_item = std::clamp<int64_t>(kSlabElements / std::max<int64_t>(row_elements, 1), 1, rows);
  const int64_t units = device.info().compute_units;
  if (units > 1) per_item = std::min(per_item, CeilDiv(rows, 4 * units));
  return std::max<int64_t>(per_item, 1);
}

// BatchNorm as scale (parameter 0) and shift (1) per channel.
std::vector<float> Folded(const Graph& graph, const Operator& op, bool shift) {
  const float* gamma = graph.input(op, 1).data->as<float>();
  const float* beta = graph.input(op, 2).data->as<float>();
  const float* mean = graph.input(op, 3).data->as<float>();
  const float* variance = graph.input(op, 4).data->as<float>();
  std::vector<float> values(static_cast<size_t>(graph.input(op, 1).shape.Count()));
  for (size_t c = 0; c < values.size(); ++c) {
    const float scale = gamma[c] / std::sqrt(variance[c] + op.as<NormAttrs>().epsilon);
    values[c] = shift ? beta[c] - mean[c] * scale : scale;
  }
  return values;
}

}  // namespace

Status StepLowering::Depthwise() {
  PLAIT_ASSIGN_OR_RETURN(const Operand x, Read(0));
  PLAIT_ASSIGN_OR_RETURN(const Operand y, Write());
  const auto& attrs = op_.as<Conv2DAttrs>();
  const Dims& begin = out().begin;
  const Dims& size = out().size;
  const Tensor& weights = input(1);
  PLAIT_ASSIGN_OR_RETURN(const Memory w, Packed(weights, "", nullptr, 0));
  Memory bias = w;
  if (has_input(2)) {
    PLAIT_ASSIGN_OR_RETURN(bias, Packed(input(2), "", nullptr, 0));
  }
  const int64_t kh = weights.shape[0], kw = weights.shape[1], channels = weights.shape[2];
  std::string name = "depthwise";
  if (kh == kw && (kh == 3 || kh == 5) && attrs.dilation_h == 1 && attrs.dilation_w == 1 && (attrs.stride_w == 1 || attrs.stride_w == 2)) {
    name = StrCat("depthwise_", kh, "x", kw, "s", attrs.stride_w);
  }
  const int64_t rows = size[0] * size[1];
  const int64_t item_rows = ImageRows(device(), rows, input(0).shape[2] * size[3] * attrs.stride_h);
  const int64_t item_channels = device().tuning().single_item_groups ? RoundUp(size[3], device().tuning().vector) : device().tuning().vector;
  LaunchBuilder launch(device(), Family::kDepthwise, name);
  launch.Arg(x.memory)
      .Arg({x.At({begin[0], 0, 0, begin[3]}), x.strides[0], x.strides[1], x.strides[2]})
      .Arg(w)
      .Arg({begin[3], has_input(2) ? begin[3] : -1, channels, item_channels})
      .Arg(bias)
      .Arg(y.memory)
      .Arg({y.At(begin), y.strides[0], y.strides[1], y.strides[2]})
      .Arg({rows, size[2], size[3], item_rows})
      .Arg({input(0).shape[1], input(0).shape[2], size[1], 0})
      .Arg({begin[1] * attrs.stride_h - attrs.pad.top, begin[2] * attrs.stride_w - attrs.pad.left})
      .Arg({kh, kw})
      .Arg({attrs.stride_h, attrs.stride_w, attrs.dilation_h, attrs.dilation_w})
      .Arg(attrs.clamp.min, attrs.clamp.max);
  return Add(launch.Finish(CeilDiv(size[3], item_channels), CeilDiv(rows, item_rows)));
}

Status StepLowering::BatchNorm() {
  PLAIT_ASSIGN_OR_RETURN(const Operand x, Read(0));
  PLAIT_ASSIGN_OR_RETURN(const Operand y, Write());
  Memory folded[2];
  for (const bool shift : {false, true}) {
    const std::vector<float> values = Folded(*context_.graph, op_, shift);
    PLAIT_ASSIGN_OR_RETURN(ClMem memory, device().CreateBuffer(static_cast<int64_t>(values.size() * sizeof(float)), values.data(), CL_MEM_READ_ONLY));
    folded[shift] = {memory.get(), nullptr};
    context_.keep->push_back(std::make_shared<ClMem>(std::move(memory)));
  }
  const int last = out().size.rank() - 1;
  const int64_t channels = out().size[last], first = out().begin[last];
  Dims rows = out().size;
  rows[last] = 1;
  return ForEachOuter(MergedAxes(rows, {x.strides, y.strides}), 3, [&](const Axes& axes, const auto& offsets) -> Status {
    const int64_t image_rows = axes[0].extent * axes[1].extent;
    const int64_t item_rows = ImageRows(device(), image_rows, axes[2].extent * channels);
    const int64_t item_channels = device().tuning().single_item_groups ? RoundUp(channels, device().tuning().vector) : device().tuning().vector;
    LaunchBuilder launch(device(), Family::kDepthwise, "depthwise");
    launch.Arg(x.memory)
        .Arg({x.At(out().begin) + offsets[0], axes[0].strides[0], axes[1].strides[0], axes[2].strides[0]})
        .Arg(folded[0])
        .Arg({first, first, 0, item_channels})
        .Arg(folded[1])
        .Arg(y.memory)
        .Arg({y.At(out().begin) + offsets[1], axes[0].strides[1], axes[1].strides[1], axes[2].strides[1]})
        .Arg({image_rows, axes[2].extent, channels, item_rows})
        .Arg({axes[1].extent, axes[2].extent, axes[1].extent, 0})
        .Arg({0, 0})
        .Arg({1, 1})
        .Arg({1, 1, 1, 1})
        .Arg(-INFINITY, INFINITY);
    return Add(launch.Finish(CeilDiv(channels, item_channels), CeilDiv(image_rows, item_rows)));
  });
}

Status StepLowering::Pool(bool max) {
  PLAIT_ASSIGN_OR_RETURN(const Operand x, Read(0));
  PLAIT_ASSIGN_OR_RETURN(const Operand y, Write());
  const auto& attrs = op_.as<Pool2DAttrs>();
  const Dims& begin = out().begin;
  const Dims& size = out().size;
  const int64_t height = input(0).shape[1], width = input(0).shape[2];
  const int64_t rows = size[0] * size[1];
  const bool cpu = device().tuning().single_item_groups;
  const int64_t item_rows = RowsAnItem(rows, size[2] * size[3] * attrs.kernel_h * attrs.kernel_w);
  const int64_t item_channels = cpu ? size[3] : 2 * device().tuning().vector;
  const bool padded = attrs.count_include_pad;
  LaunchBuilder launch(device(), Family::kPool, max ? "max_pool" : "average_pool");
  launch.Arg(x.memory)
      .Arg({x.At({begin[0], 0, 0, begin[3]}), x.strides[0], x.strides[1], x.strides[2]})
      .Arg(y.memory)
      .Arg({y.At(begin), y.strides[0], y.strides[1], y.strides[2]})
      .Arg({rows, size[2], size[3], item_rows})
      .Arg({height, width, size[1], item_channels})
      .Arg({begin[1] * attrs.stride_h - attrs.pad.top, begin[2] * attrs.stride_w - attrs.pad.left})
      .Arg({attrs.kernel_h, attrs.kernel_w, attrs.stride_h, attrs.stride_w})
      .Arg({padded ? -attrs.pad.top : 0, padded ? height + attrs.pad.bottom : height, padded ? -attrs.pad.left : 0,
            padded ? width + attrs.pad.right : width})
      .Arg(attrs.clamp.min, attrs.clamp.max);
  return Add(launch.Finish(CeilDiv(rows, item_rows), CeilDiv(size[3], item_channels)));
}

}  // namespace plait::opencl
