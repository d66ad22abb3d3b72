#include "src/platform/cpu_list.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace plait {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// For messages: a damaged file may hold a megabyte or control characters.
std::string Quote(std::string_view text) {
  constexpr size_t kShown = 64;
  std::string out = "\"";
  for (char c : text.substr(0, kShown)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > kShown ? "...\"" : "\"");
}

bool ParseId(std::string_view text, int* id) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *id);
  return error == std::errc() && end == text.data() + text.size() && *id >= 0 && *id <= kMaxCpuId;
}

}  // namespace

Result<std::vector<int>> ParseCpuList(std::string_view text) {
  const std::string_view whole = Trim(text);
  std::vector<bool> seen;
  if (whole.empty()) return std::vector<int>();
  for (size_t at = 0; at <= whole.size();) {
    const size_t comma = std::min(whole.find(',', at), whole.size());
    const std::string_view piece = whole.substr(at, comma - at);
    const size_t dash = piece.find('-');
    int first = 0, last = 0;
    const bool good = dash == std::string_view::npos
                          ? ParseId(piece, &first) && ParseId(piece, &last)
                          : ParseId(piece.substr(0, dash), &first) && ParseId(piece.substr(dash + 1), &last) && first <= last;
    if (!good) {
      return InvalidArgument("the CPU list ", Quote(whole), " has the piece ", Quote(piece), "; expected core numbers up to ", kMaxCpuId,
                             " and ascending ranges, such as 0-3,5");
    }
    if (seen.size() <= static_cast<size_t>(last)) seen.resize(static_cast<size_t>(last) + 1);
    std::fill(seen.begin() + first, seen.begin() + last + 1, true);
    at = comma + 1;
  }
  std::vector<int> cpus;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) cpus.push_back(static_cast<int>(i));
  }
  return cpus;
}

std::string FormatCpuList(std::span<const int> cpus) {
  std::string out;
  for (size_t i = 0; i < cpus.size();) {
    size_t j = i;
    while (j + 1 < cpus.size() && cpus[j + 1] == cpus[j] + 1) ++j;
    if (!out.empty()) out += ',';
    out += std::to_string(cpus[i]);
    if (j > i) out += '-' + std::to_string(cpus[j]);
    i = j + 1;
  }
  return out;
}

Result<std::vector<std::vector<int>>> ParseClusters(std::string_view text) {
  const std::string_view whole = Trim(text);
  std::vector<std::vector<int>> clusters;
  std::set<int> taken;
  for (size_t at = 0; at <= whole.size();) {
    const size_t slash = std::min(whole.find('/', at), whole.size());
    PLAIT_ASSIGN_OR_RETURN(std::vector<int> cpus, ParseCpuList(whole.substr(at, slash - at)));
    if (cpus.empty()) {
      return InvalidArgument("the clusters ", Quote(whole), " have an empty one; expected CPU lists parted by '/', such as 0-3/4-6/7");
    }
    for (int cpu : cpus) {
      if (!taken.insert(cpu).second) return InvalidArgument("the clusters ", Quote(whole), " name core ", cpu, " twice");
    }
    clusters.push_back(std::move(cpus));
    at = slash + 1;
  }
  return clusters;
}

}  // namespace plait
