#include "src/plan/boxes.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace plait {
namespace {

// The union of two boxes if it is a box: one holds the other, or they differ along one axis only and leave no gap there.
std::optional<Region> Join(const Region& a, const Region& b) {
  if (Contains(a, b)) return a;
  if (Contains(b, a)) return b;
  int differing = 0;
  for (int i = 0; i < a.begin.rank(); ++i) {
    if (a.begin[i] == b.begin[i] && a.size[i] == b.size[i]) continue;
    if (++differing > 1) return std::nullopt;
    const bool has_gap = a.begin[i] + a.size[i] < b.begin[i] || b.begin[i] + b.size[i] < a.begin[i];
    if (has_gap) return std::nullopt;
  }
  return Enclose(a, b);
}

}  // namespace

void SubtractBox(const Region& hole, std::vector<Region>* boxes) {
  std::vector<Region> left;
  for (Region box : *boxes) {
    const Region common = Intersect(box, hole);
    if (common.IsEmpty()) {
      left.push_back(box);
      continue;
    }
    // Cut off what lies before and behind the common part, axis by axis; the rest shrinks to the common part itself.
    for (int i = 0; i < box.begin.rank(); ++i) {
      const int64_t box_end = box.begin[i] + box.size[i], common_end = common.begin[i] + common.size[i];
      if (common.begin[i] > box.begin[i]) {
        Region before = box;
        before.size[i] = common.begin[i] - box.begin[i];
        left.push_back(before);
      }
      if (common_end < box_end) {
        Region behind = box;
        behind.begin[i] = common_end;
        behind.size[i] = box_end - common_end;
        left.push_back(behind);
      }
      box.begin[i] = common.begin[i];
      box.size[i] = common.size[i];
    }
  }
  *boxes = std::move(left);
}

void JoinBoxes(std::vector<Region>* boxes) {
  for (bool joined = true; joined;) {
    joined = false;
    for (size_t i = 0; i < boxes->size() && !joined; ++i) {
      for (size_t j = i + 1; j < boxes->size() && !joined; ++j) {
        if (const std::optional<Region> both = Join((*boxes)[i], (*boxes)[j])) {
          (*boxes)[i] = *both;
          boxes->erase(boxes->begin() + static_cast<std::ptrdiff_t>(j));
          joined = true;
        }
      }
    }
  }
}

}  // namespace plait
