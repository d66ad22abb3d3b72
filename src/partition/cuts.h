// Cutting an operator's output into parts along one axis.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/graph/graph.h"
#include "src/graph/operators.h"

namespace plait {

// What a kernel asks of cuts along one axis: positions at multiples of `alignment` and parts of at least `minimum`
// elements (a last part may end at the tensor's end). alignment == 0: the kernel cannot be cut there.
struct CutRule {
  int64_t alignment = 0;
  int64_t minimum = 1;
};
// The rule that satisfies both: least common multiple, larger minimum; alignment 0 if either has 0 or the multiple
// overflows.
CutRule Combine(const CutRule& a, const CutRule& b);

// An axis of one operator with the granularity at which every lane can cut it.
struct CutAxis {
  int axis;            // output axis
  AxisRole role;
  int64_t extent;      // elements along the axis
  int64_t unit;        // elements a unit; the last unit may be shorter
  int units;           // CeilDiv(extent, unit), 2..max_units
  int min_units;       // a part's least number of units
};

// The axis divided into at most `max_units` units that obey `rule`; nullopt if fewer than two parts are possible.
std::optional<CutAxis> MakeCutAxis(const Dims& output_shape, SplitAxis axis, const CutRule& rule, int max_units);

// Units [first, first + count) of the axis as a region of the output.
Region UnitRegion(const Dims& output_shape, const CutAxis& axis, int first, int count);

// Whether the regions tile the tensor exactly: disjoint, and nothing left out.
bool TilesExactly(const Dims& shape, const std::vector<Region>& regions);

// Whether two regions of a tensor stored with `strides` (elements of `element_bytes`, first byte at a multiple of
// `line_bytes` plus `offset_bytes`) touch a common cache line. Conservative: true when in doubt.
bool ShareCacheLine(const Region& a, const Region& b, const Dims& strides, int64_t element_bytes, int64_t offset_bytes,
                    int64_t line_bytes = 64);

// The same for regions of two tensors that lie in one root, e.g. two operands of a Concat.
struct PlacedRegion {
  Region region;
  Dims strides;              // of its tensor, in elements
  int64_t offset_bytes = 0;  // of its tensor's first element; the root begins on a line
};
bool ShareCacheLine(const PlacedRegion& a, const PlacedRegion& b, int64_t element_bytes, int64_t line_bytes = 64);

}  // namespace plait
