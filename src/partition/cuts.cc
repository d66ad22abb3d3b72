#include "src/partition/cuts.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "src/base/checked.h"

namespace plait {
namespace {

// A box of elements at fixed strides in memory, in bytes, outermost axis first, axes of one element left out.
struct ByteBox {
  int rank = 0;
  std::array<int64_t, kMaxRank> size{}, stride{};
  int64_t offset = 0;  // of the first byte
  int64_t run = 0;     // contiguous bytes at every position of the axes above
};

ByteBox MakeByteBox(const Region& region, const Dims& strides, int64_t element_bytes, int64_t offset_bytes) {
  ByteBox box;
  box.offset = offset_bytes;
  for (int i = 0; i < region.size.rank(); ++i) {
    box.offset += region.begin[i] * strides[i] * element_bytes;
    box.size[static_cast<size_t>(i)] = region.size[i];
    box.stride[static_cast<size_t>(i)] = strides[i] * element_bytes;
  }
  box.rank = region.size.rank();
  box.run = element_bytes;
  while (box.rank > 0) {
    const size_t last = static_cast<size_t>(box.rank - 1);
    if (box.size[last] != 1 && box.stride[last] != box.run) break;
    box.run *= box.size[last];
    --box.rank;
  }
  return box;
}

int64_t EndOf(const ByteBox& box) {
  int64_t end = box.offset + box.run;
  for (int i = 0; i < box.rank; ++i) end += (box.size[static_cast<size_t>(i)] - 1) * box.stride[static_cast<size_t>(i)];
  return end;
}

// Whether the box has a byte in [low, high). The strides of a tensor nest: everything inside one position of an axis ends
// before the next position begins, so at most two positions of each axis can touch an interval shorter than all between.
bool Touches(const ByteBox& box, int axis, int64_t offset, int64_t low, int64_t high) {
  for (; axis < box.rank; ++axis) {
    const int64_t n = box.size[static_cast<size_t>(axis)], stride = box.stride[static_cast<size_t>(axis)];
    if (n == 1) continue;
    // Position p covers [offset + p * stride, offset + p * stride + span).
    int64_t span = box.run;
    for (int i = axis + 1; i < box.rank; ++i) {
      span += (box.size[static_cast<size_t>(i)] - 1) * box.stride[static_cast<size_t>(i)];
    }
    const int64_t first = low < offset + span ? 0 : (low - offset - span) / stride + 1;
    const int64_t last = high <= offset ? -1 : (high - offset - 1) / stride;
    const int64_t from = std::max<int64_t>(0, first), to = std::min(n - 1, last);
    if (from > to) return false;
    // A position strictly inside lies in the interval whole.
    if (to - from >= 2) return true;
    if (to > from && Touches(box, axis + 1, offset + from * stride, low, high)) return true;
    offset += to * stride;
  }
  return low < offset + box.run && offset < high;
}

int64_t FloorTo(int64_t value, int64_t line) { return value / line * line; }

}  // namespace

CutRule Combine(const CutRule& a, const CutRule& b) {
  CutRule out{0, std::max(a.minimum, b.minimum)};
  if (a.alignment <= 0 || b.alignment <= 0) return out;
  const std::optional<int64_t> multiple = CheckedMul(a.alignment / std::gcd(a.alignment, b.alignment), b.alignment);
  if (multiple) out.alignment = *multiple;
  return out;
}

std::optional<CutAxis> MakeCutAxis(const Dims& output_shape, SplitAxis axis, const CutRule& rule, int max_units) {
  if (rule.alignment <= 0 || max_units < 2) return std::nullopt;
  CutAxis out;
  out.axis = axis.axis;
  out.role = axis.role;
  out.extent = output_shape[axis.axis];
  if (rule.alignment >= out.extent || rule.minimum > out.extent / 2) return std::nullopt;
  const int64_t pieces = CeilDiv(out.extent, rule.alignment);
  out.unit = rule.alignment * CeilDiv(pieces, max_units);
  const int64_t units = CeilDiv(out.extent, out.unit);
  // Any interval of min_units units has to reach the minimum, also one that ends with the shorter last unit.
  const int64_t last = out.extent - (units - 1) * out.unit;
  const int64_t min_units = last >= rule.minimum ? 1 : 1 + CeilDiv(rule.minimum - last, out.unit);
  if (2 * min_units > units) return std::nullopt;
  out.units = static_cast<int>(units);
  out.min_units = static_cast<int>(min_units);
  return out;
}

Region UnitRegion(const Dims& output_shape, const CutAxis& axis, int first, int count) {
  Region region = Region::Whole(output_shape);
  const int64_t begin = first * axis.unit;
  region.begin[axis.axis] = begin;
  region.size[axis.axis] = std::min(axis.extent, (first + count) * axis.unit) - begin;
  return region;
}

bool TilesExactly(const Dims& shape, const std::vector<Region>& regions) {
  constexpr size_t kMaxPairwise = 2048;  // beyond it only cuts along one axis are recognised
  int64_t left = shape.Count();
  for (const Region& region : regions) {
    if (region.begin.rank() != shape.rank() || region.size.rank() != shape.rank()) return false;
    int64_t count = 1;
    for (int i = 0; i < shape.rank(); ++i) {
      if (region.begin[i] < 0 || region.size[i] < 1 || region.size[i] > shape[i] ||
          region.begin[i] > shape[i] - region.size[i]) {
        return false;
      }
      count *= region.size[i];
    }
    if (count > left) return false;
    left -= count;
  }
  if (left != 0) return false;
  // Counts add up, so the regions tile if they are disjoint. Cut along one axis, they are disjoint if sorted neighbours
  // are.
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool alone = std::all_of(regions.begin(), regions.end(), [&](const Region& r) {
      for (int i = 0; i < shape.rank(); ++i) {
        if (i != axis && r.size[i] != shape[i]) return false;
      }
      return true;
    });
    if (!alone) continue;
    std::vector<std::pair<int64_t, int64_t>> spans;
    for (const Region& r : regions) spans.emplace_back(r.begin[axis], r.begin[axis] + r.size[axis]);
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i) {
      if (spans[i].first < spans[i - 1].second) return false;
    }
    return true;
  }
  if (regions.size() > kMaxPairwise) return false;
  for (size_t i = 0; i < regions.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!Intersect(regions[i], regions[j]).IsEmpty()) return false;
    }
  }
  return true;
}

bool ShareCacheLine(const Region& a, const Region& b, const Dims& strides, int64_t element_bytes, int64_t offset_bytes,
                    int64_t line_bytes) {
  return ShareCacheLine({a, strides, offset_bytes}, {b, strides, offset_bytes}, element_bytes, line_bytes);
}

bool ShareCacheLine(const PlacedRegion& a, const PlacedRegion& b, int64_t element_bytes, int64_t line_bytes) {
  if (a.region.IsEmpty() || b.region.IsEmpty()) return false;
  const ByteBox x = MakeByteBox(a.region, a.strides, element_bytes, a.offset_bytes);
  const ByteBox y = MakeByteBox(b.region, b.strides, element_bytes, b.offset_bytes);
  const int64_t y_low = FloorTo(y.offset, line_bytes), y_high = RoundUp(EndOf(y), line_bytes);
  if (RoundUp(EndOf(x), line_bytes) <= y_low || y_high <= FloorTo(x.offset, line_bytes)) return false;

  // Walk the runs of x, rounded to lines, and ask whether y has a byte there. Along an axis whose step is whole lines
  // only the distance of two positions matters: the first and the last position of x meet every distance that there is,
  // unless y is much shorter.
  constexpr int64_t kMaxRuns = 1 << 16;
  const bool alike = x.rank == y.rank && x.stride == y.stride;
  std::array<int64_t, kMaxRank> steps{}, count{};
  int64_t runs = 1;
  for (size_t i = 0; i < static_cast<size_t>(x.rank); ++i) {
    const bool periodic = alike && x.stride[i] % line_bytes == 0 && x.size[i] <= y.size[i] + 1 && x.size[i] > 2;
    count[i] = periodic ? 2 : x.size[i];
    steps[i] = periodic ? (x.size[i] - 1) * x.stride[i] : x.stride[i];
    runs *= count[i];
    if (runs > kMaxRuns) return true;
  }
  for (int64_t r = 0; r < runs; ++r) {
    int64_t rest = r, at = x.offset;
    for (int i = x.rank - 1; i >= 0; --i) {
      at += rest % count[static_cast<size_t>(i)] * steps[static_cast<size_t>(i)];
      rest /= count[static_cast<size_t>(i)];
    }
    if (Touches(y, 0, y.offset, FloorTo(at, line_bytes), RoundUp(at + x.run, line_bytes))) return true;
  }
  return false;
}

}  // namespace plait
