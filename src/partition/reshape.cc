#include "src/partition/reshape.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace plait {
namespace {

// Axes [a, a_end) of one shape hold the same elements as axes [b, b_end) of the other.
struct AxisGroup {
  int a, a_end, b, b_end;
};

// The finest division of two shapes with equal counts into groups of axes that correspond. Trailing axes of size 1 that
// have no counterpart stay out of every group.
std::vector<AxisGroup> MatchAxes(const Dims& from, const Dims& to) {
  std::vector<AxisGroup> groups;
  int a = 0, b = 0;
  while (a < from.rank() && b < to.rank()) {
    int a_end = a + 1, b_end = b + 1;
    int64_t a_count = from[a], b_count = to[b];
    while (a_count != b_count) {
      if (a_count < b_count && a_end < from.rank()) {
        a_count *= from[a_end++];
      } else if (b_end < to.rank()) {
        b_count *= to[b_end++];
      } else {
        break;
      }
    }
    groups.push_back({a, a_end, b, b_end});
    a = a_end;
    b = b_end;
  }
  return groups;
}

struct Range {
  int64_t begin, end;
};

// The flat ranges of a box in axes [first, last) of `shape`; one that encloses them all if they are more than `limit`.
std::vector<Range> FlatRanges(const Dims& shape, const Region& box, int first, int last, int limit) {
  // Axes from `solid` on are covered whole, so that the axis before them is cut into one run.
  int solid = last;
  while (solid > first && box.size[solid - 1] == shape[solid - 1]) --solid;
  int64_t run = 1;
  for (int i = std::max(first, solid - 1); i < last; ++i) run *= box.size[i];
  int64_t runs = 1;
  for (int i = first; i < solid - 1; ++i) runs *= box.size[i];

  Dims stride = Dims::Filled(shape.rank(), 1);
  for (int i = last - 2; i >= first; --i) stride[i] = stride[i + 1] * shape[i + 1];
  int64_t base = 0, end = 1;
  for (int i = first; i < last; ++i) {
    base += box.begin[i] * stride[i];
    end += (box.begin[i] + box.size[i] - 1) * stride[i];
  }
  if (runs > limit) return {{base, end}};

  std::vector<Range> ranges;
  for (int64_t r = 0; r < runs; ++r) {
    int64_t rest = r, at = base;
    for (int i = solid - 2; i >= first; --i) {
      at += rest % box.size[i] * stride[i];
      rest /= box.size[i];
    }
    if (!ranges.empty() && ranges.back().end == at) {
      ranges.back().end = at + run;
    } else {
      ranges.push_back({at, at + run});
    }
  }
  return ranges;
}

// A flat range as boxes in axes [first, last) of `shape`, written into those axes of copies of `blank`.
void RangeToBoxes(const Dims& shape, int first, int last, Range range, const Region& blank, std::vector<Region>* out) {
  if (range.begin >= range.end) return;
  if (first >= last) {
    out->push_back(blank);
    return;
  }
  int64_t stride = 1;
  for (int i = first + 1; i < last; ++i) stride *= shape[i];
  const int64_t head = range.begin / stride, tail = (range.end - 1) / stride;
  Region box = blank;
  box.begin[first] = head;
  box.size[first] = 1;
  if (head == tail) {
    RangeToBoxes(shape, first + 1, last, {range.begin - head * stride, range.end - head * stride}, box, out);
    return;
  }
  int64_t whole_begin = head, whole_end = tail + 1;
  if (range.begin != head * stride) {
    RangeToBoxes(shape, first + 1, last, {range.begin - head * stride, stride}, box, out);
    ++whole_begin;
  }
  const bool partial_tail = range.end != (tail + 1) * stride;
  if (partial_tail) --whole_end;
  if (whole_end > whole_begin) {
    box.begin[first] = whole_begin;
    box.size[first] = whole_end - whole_begin;
    for (int i = first + 1; i < last; ++i) {
      box.begin[i] = 0;
      box.size[i] = shape[i];
    }
    out->push_back(box);
  }
  if (partial_tail) {
    box = blank;
    box.begin[first] = tail;
    box.size[first] = 1;
    RangeToBoxes(shape, first + 1, last, {0, range.end - tail * stride}, box, out);
  }
}

void EncloseAll(std::vector<Region>* boxes) {
  Region all = boxes->front();
  for (const Region& box : *boxes) all = Enclose(all, box);
  boxes->assign(1, all);
}

}  // namespace

bool IsDense(const Dims& shape, const Dims& strides) {
  int64_t expected = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

std::optional<Dims> ReshapeStrides(const Dims& from, const Dims& strides, const Dims& to) {
  Dims out = Dims::Filled(to.rank(), 0);
  for (const AxisGroup& g : MatchAxes(from, to)) {
    // Inside a group the old axes have to be one run of equal steps.
    int64_t step = 0, expected = 0;
    for (int i = g.a_end - 1; i >= g.a; --i) {
      if (from[i] == 1) continue;
      if (step == 0) {
        step = expected = strides[i];
      } else if (strides[i] != expected) {
        return std::nullopt;
      }
      expected *= from[i];
    }
    for (int i = g.b_end - 1; i >= g.b; --i) {
      out[i] = to[i] == 1 ? 0 : step;
      step *= to[i];
    }
  }
  // Axes of size 1 are never stepped over; their strides are those of a dense tensor around what lies inside them.
  int64_t around = 1;
  for (int i = to.rank() - 1; i >= 0; --i) {
    if (to[i] == 1) out[i] = around;
    around = out[i] * to[i];
  }
  if (to.rank() > 0 && out.back() != 1) return std::nullopt;
  return out;
}

std::vector<Region> ReshapeRegion(const Dims& from, const Region& region, const Dims& to, int max_boxes) {
  std::vector<Region> boxes(1, {Dims::Filled(to.rank(), 0), Dims::Filled(to.rank(), 1)});
  if (region.IsEmpty()) {
    boxes[0].size = Dims::Filled(to.rank(), 0);
    return boxes;
  }
  for (const AxisGroup& g : MatchAxes(from, to)) {
    const bool same = g.a_end - g.a == 1 && g.b_end - g.b == 1;
    if (same) {
      for (Region& box : boxes) {
        box.begin[g.b] = region.begin[g.a];
        box.size[g.b] = region.size[g.a];
      }
      continue;
    }
    std::vector<Region> pieces;
    const Region blank{Dims::Filled(to.rank(), 0), Dims::Filled(to.rank(), 1)};
    for (const Range& range : FlatRanges(from, region, g.a, g.a_end, max_boxes)) {
      RangeToBoxes(to, g.b, g.b_end, range, blank, &pieces);
    }
    if (static_cast<int64_t>(pieces.size() * boxes.size()) > max_boxes) EncloseAll(&pieces);
    std::vector<Region> product;
    product.reserve(pieces.size() * boxes.size());
    for (const Region& box : boxes) {
      for (const Region& piece : pieces) {
        Region both = box;
        for (int i = g.b; i < g.b_end; ++i) {
          both.begin[i] = piece.begin[i];
          both.size[i] = piece.size[i];
        }
        product.push_back(both);
      }
    }
    boxes = std::move(product);
  }
  return boxes;
}

}  // namespace plait
