// Lists of cores as people and the Linux kernel write them: "0-3,5", and clusters of them: "0-3/4-6/7".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace plait {

// Larger ids are refused: no Linux kernel is built for more cores, and a list from a damaged file must not allocate without bound.
inline constexpr int kMaxCpuId = 65535;

// A Linux CPU list: numbers and ascending ranges parted by commas, blanks at the ends ignored. Ascending, without duplicates. The empty
// text is the empty list. InvalidArgument quotes the text and says which piece is wrong.
Result<std::vector<int>> ParseCpuList(std::string_view text);

// "0-3,5"; empty for an empty list. `cpus` ascending without duplicates.
std::string FormatCpuList(std::span<const int> cpus);

// Clusters parted by '/', each a CPU list that is not empty; no core stands in two of them. The order is kept.
Result<std::vector<std::vector<int>>> ParseClusters(std::string_view text);

}  // namespace plait
