#include "src/partition/cuts.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

namespace plait {
namespace {

TEST(Combine, TakesTheLeastCommonMultipleAndTheLargerMinimum) {
  const CutRule both = Combine({4, 8}, {6, 2});
  EXPECT_EQ(both.alignment, 12);
  EXPECT_EQ(both.minimum, 8);
  EXPECT_EQ(Combine({0, 1}, {4, 1}).alignment, 0);
  EXPECT_EQ(Combine({int64_t{1} << 40, 1}, {(int64_t{1} << 40) - 1, 1}).alignment, 0) << "the multiple overflows";
}

TEST(MakeCutAxis, EveryIntervalOfMinUnitsReachesTheMinimum) {
  std::mt19937 random(7);
  int cuttable = 0;
  for (int round = 0; round < 5000; ++round) {
    SCOPED_TRACE(round);
    const Dims shape{1, 2, static_cast<int64_t>(1 + random() % 200)};
    const CutRule rule{static_cast<int64_t>(random() % 20), static_cast<int64_t>(1 + random() % 40)};
    const int max_units = static_cast<int>(2 + random() % 20);
    const auto cut = MakeCutAxis(shape, {2, AxisRole::kChannels}, rule, max_units);
    if (!cut) continue;
    ++cuttable;
    ASSERT_GE(cut->units, 2);
    ASSERT_LE(cut->units, max_units);
    ASSERT_GE(cut->units, 2 * cut->min_units);
    ASSERT_EQ(cut->unit % rule.alignment, 0);
    std::vector<Region> units;
    for (int u = 0; u < cut->units; ++u) {
      units.push_back(UnitRegion(shape, *cut, u, 1));
      if (u + cut->min_units > cut->units) continue;
      const Region part = UnitRegion(shape, *cut, u, cut->min_units);
      ASSERT_GE(part.size[2], rule.minimum);
      ASSERT_EQ(part.begin[2] % rule.alignment, 0);
    }
    ASSERT_TRUE(TilesExactly(shape, units));
  }
  EXPECT_GT(cuttable, 1000);
}

TEST(MakeCutAxis, RefusesWhatCannotBeCutInTwo) {
  const Dims shape{1, 7, 7, 20};
  EXPECT_FALSE(MakeCutAxis(shape, {3, AxisRole::kChannels}, {0, 1}, 8));
  EXPECT_FALSE(MakeCutAxis(shape, {3, AxisRole::kChannels}, {32, 1}, 8));
  EXPECT_FALSE(MakeCutAxis(shape, {3, AxisRole::kChannels}, {16, 16}, 8)) << "the tail of 4 is below the minimum";
  EXPECT_FALSE(MakeCutAxis(shape, {0, AxisRole::kBatch}, {1, 1}, 8));
  EXPECT_TRUE(MakeCutAxis(shape, {1, AxisRole::kRows}, {1, 1}, 8));
}

TEST(TilesExactly, AgreesWithCountingEveryElement) {
  std::mt19937 random(11);
  int tiling = 0;
  for (int round = 0; round < 20000; ++round) {
    const Dims shape{2, 3, 4};
    std::vector<Region> regions{Region::Whole(shape)};
    for (int cut = 0; cut < 3; ++cut) {
      Region& r = regions[random() % regions.size()];
      const int axis = static_cast<int>(random() % 3);
      if (r.size[axis] < 2) continue;
      Region other = r;
      const int64_t at = static_cast<int64_t>(1 + random() % static_cast<uint64_t>(r.size[axis] - 1));
      other.begin[axis] += at;
      other.size[axis] -= at;
      r.size[axis] = at;
      regions.push_back(other);
    }
    if (random() % 2 == 0) {  // spoil one
      Region& r = regions[random() % regions.size()];
      const int axis = static_cast<int>(random() % 3);
      (random() % 2 == 0 ? r.begin : r.size)[axis] += static_cast<int64_t>(random() % 3) - 1;
    }
    std::multiset<int64_t> elements;
    bool in_range = true;
    for (const Region& r : regions) {
      for (int i = 0; i < 3; ++i) {
        in_range = in_range && r.size[i] > 0 && r.begin[i] >= 0 && r.begin[i] + r.size[i] <= shape[i];
      }
      for (int64_t a = 0; a < r.size[0]; ++a) {
        for (int64_t b = 0; b < r.size[1]; ++b) {
          for (int64_t c = 0; c < r.size[2]; ++c) {
            elements.insert(((r.begin[0] + a) * 3 + r.begin[1] + b) * 4 + r.begin[2] + c);
          }
        }
      }
    }
    const std::set<int64_t> distinct(elements.begin(), elements.end());
    const bool expected = in_range && elements.size() == 24 && distinct.size() == 24;
    tiling += expected;
    ASSERT_EQ(TilesExactly(shape, regions), expected) << round;
  }
  EXPECT_GT(tiling, 5000);
}

TEST(TilesExactly, SurvivesAbsurdRegions) {
  const Dims shape{4, 4};
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(TilesExactly(shape, {}));
  EXPECT_FALSE(TilesExactly(shape, {{Dims{0, huge}, Dims{4, 4}}}));
  EXPECT_FALSE(TilesExactly(shape, {{Dims{0, 0}, Dims{huge, huge}}}));
  EXPECT_FALSE(TilesExactly(shape, {{Dims{0}, Dims{4}}}));
  EXPECT_FALSE(TilesExactly(shape, {{Dims{-1, 0}, Dims{4, 4}}}));
}

std::set<int64_t> LinesOf(const Region& r, const Dims& strides, int64_t element_bytes, int64_t offset, int64_t line) {
  std::set<int64_t> lines;
  for (int64_t i = 0; i < r.Count(); ++i) {
    int64_t rest = i, at = offset;
    for (int axis = r.size.rank() - 1; axis >= 0; --axis) {
      at += (r.begin[axis] + rest % r.size[axis]) * strides[axis] * element_bytes;
      rest /= r.size[axis];
    }
    for (int64_t b = at; b < at + element_bytes; ++b) lines.insert(b / line);
  }
  return lines;
}

TEST(ShareCacheLine, AgreesWithCountingEveryByte) {
  std::mt19937 random(13);
  int shared = 0, apart = 0;
  for (int round = 0; round < 4000; ++round) {
    SCOPED_TRACE(round);
    const int64_t element = random() % 2 == 0 ? 4 : 2;
    const Dims shape{static_cast<int64_t>(1 + random() % 3), static_cast<int64_t>(1 + random() % 5),
                     static_cast<int64_t>(1 + random() % 40)};
    // Rows with gaps, as in a Concat.
    const int64_t row = random() % 2 == 0 ? 64 / element * static_cast<int64_t>(1 + random() % 3) + (shape[2] > 64 / element ? 64 / element * 3 : 0)
                                          : shape[2] + static_cast<int64_t>(random() % 9);
    const int64_t pitch = std::max(row, shape[2]);
    const Dims strides{pitch * shape[1], pitch, 1};
    const int64_t offset = element * static_cast<int64_t>(random() % 20);
    auto any = [&] {
      Region r = Region::Whole(shape);
      for (int i = 0; i < 3; ++i) {
        if (random() % 2 == 0) continue;
        r.begin[i] = static_cast<int64_t>(random() % static_cast<uint64_t>(shape[i]));
        r.size[i] = static_cast<int64_t>(1 + random() % static_cast<uint64_t>(shape[i] - r.begin[i]));
      }
      return r;
    };
    const Region a = any(), b = any();
    const std::set<int64_t> lines = LinesOf(a, strides, element, offset, 64);
    bool expected = false;
    for (int64_t line : LinesOf(b, strides, element, offset, 64)) expected = expected || lines.count(line) != 0;
    (expected ? shared : apart)++;
    ASSERT_EQ(ShareCacheLine(a, b, strides, element, offset), expected)
        << ToString(a) << ToString(b) << " pitch " << pitch << " offset " << offset;
  }
  EXPECT_GT(shared, 500);
  EXPECT_GT(apart, 200);
}

TEST(ShareCacheLine, ChannelCutsOnLinesStayApart) {
  const Dims shape{1, 56, 56, 64};
  Region low = Region::Whole(shape), high = low;
  low.size[3] = 32;
  high.begin[3] = high.size[3] = 32;
  EXPECT_FALSE(ShareCacheLine(low, high, DenseStrides(shape), 4, 0));
  EXPECT_TRUE(ShareCacheLine(low, high, DenseStrides(shape), 1, 0));
  EXPECT_TRUE(ShareCacheLine(low, high, DenseStrides(shape), 4, 32));
}

}  // namespace
}  // namespace plait
