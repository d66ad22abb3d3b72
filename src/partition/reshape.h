// What a Reshape does to strides and to regions.
#pragma once

#include <optional>
#include <vector>

#include "src/graph/dims.h"

namespace plait {

// Whether elements of `shape` that lie at `strides` follow each other without gaps, row-major. Axes of size 1 do not
// matter.
bool IsDense(const Dims& shape, const Dims& strides);

// The strides of the same elements in the same places, seen as `to` instead of `from` (equal counts); nullopt if no strides
// can say that, or if the innermost axis would not have stride 1.
std::optional<Dims> ReshapeStrides(const Dims& from, const Dims& strides, const Dims& to);

// Boxes of a tensor of shape `to` that hold the elements of `region` of a tensor of shape `from` with the same elements in
// row-major order. Exact (disjoint, nothing more) while that takes at most `max_boxes`; else larger, but never smaller.
std::vector<Region> ReshapeRegion(const Dims& from, const Region& region, const Dims& to, int max_boxes = 64);

}  // namespace plait
