#include "backends/opencl/axes.h"

namespace plait::opencl {

Axes MergedAxes(const Dims& extent, std::initializer_list<Dims> strides) {
  Axes axes;
  for (int i = 0; i < extent.rank(); ++i) {
    if (extent[i] == 1) continue;
    Axis axis;
    axis.extent = extent[i];
    size_t operand = 0;
    for (const Dims& of : strides) axis.strides[operand++] = of[i];
    bool merges = !axes.empty();
    for (size_t k = 0; merges && k < strides.size(); ++k) merges = axes.back().strides[k] == axis.strides[k] * axis.extent;
    if (merges) {
      axis.extent *= axes.back().extent;
      axes.back() = axis;
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

void EnsureUnitInner(Axes* axes, int operand) {
  if (!axes->empty() && axes->back().strides[static_cast<size_t>(operand)] == 1) return;
  Axis unit;
  unit.strides.fill(1);
  axes->push_back(unit);
}

void PadFront(Axes* axes, size_t count) {
  if (axes->size() < count) axes->insert(axes->begin(), count - axes->size(), Axis{});
}

Status ForEachOuter(Axes axes, size_t count,
                    const std::function<Status(const Axes&, const std::array<int64_t, kMaxOperands>& offsets)>& f) {
  PadFront(&axes, count);
  const size_t outer = axes.size() - count;
  const Axes inner(axes.begin() + static_cast<std::ptrdiff_t>(outer), axes.end());
  std::vector<int64_t> place(outer, 0);
  while (true) {
    std::array<int64_t, kMaxOperands> offsets{};
    for (size_t i = 0; i < outer; ++i) {
      for (size_t k = 0; k < offsets.size(); ++k) offsets[k] += place[i] * axes[i].strides[k];
    }
    PLAIT_RETURN_IF_ERROR(f(inner, offsets));
    size_t i = outer;
    while (i > 0 && ++place[i - 1] == axes[i - 1].extent) place[--i] = 0;
    if (i == 0) return Status();
  }
}

}  // namespace plait::opencl
