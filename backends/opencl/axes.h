// Axes of a box and how several operands walk them, with axes merged where all operands allow it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "src/base/status.h"
#include "src/graph/dims.h"

namespace plait::opencl {

inline constexpr int kMaxOperands = 3;

// One axis: its extent, and each operand's stride along it in elements.
struct Axis {
  int64_t extent = 1;
  std::array<int64_t, kMaxOperands> strides{};
};
using Axes = std::vector<Axis>;  // outermost first

// The axes of a box of `extent` with the operands' strides. Axes of one element are left out; neighbours over which every operand
// walks evenly become one.
Axes MergedAxes(const Dims& extent, std::initializer_list<Dims> strides);

// Ends with an axis along which operand `operand` has stride 1 (one of a single element is added if need be).
void EnsureUnitInner(Axes* axes, int operand);

// Pads with axes of one element in front to at least `count`.
void PadFront(Axes* axes, size_t count);

// Calls `f` with the trailing `count` axes (padded to that many) once for every place of the axes in front of them, and with the
// operands' offsets of that place. Stops at the first failure.
Status ForEachOuter(Axes axes, size_t count,
                    const std::function<Status(const Axes&, const std::array<int64_t, kMaxOperands>& offsets)>& f);

}  // namespace plait::opencl
