// Weight matrices reordered so that a few output channels lie side by side: the loops run over channels in vectors
// while each channel's own sum keeps its order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace plait::reference {

inline constexpr int64_t kTileRows = 4;      // matrix rows or output pixels computed together
inline constexpr int64_t kTileColumns = 8;   // output channels computed together

// [ceil(columns / kTileColumns)][depth][kTileColumns]; missing columns are zero.
using Packed = std::vector<float>;

inline int64_t PackedSize(int64_t columns, int64_t depth) {
  return (columns + kTileColumns - 1) / kTileColumns * kTileColumns * depth;
}

// out[r][c] = start[c] + the sum over k, in order, of rows[r][k] * panel[k][c].
void MultiplyTile(const float* const rows[kTileRows], const float* panel, int64_t depth, const float* start,
                  float out[kTileRows][kTileColumns]);

// Packed constants shared by the kernels that use the same weights. Entries live as long as a kernel holds them; a
// kernel's graph outlives it, so an address stands for one constant as long as its entry lives. Thread-safe.
class PackedCache {
 public:
  using Key = std::tuple<const void*, int64_t, int64_t>;  // first weight, columns, depth
  template <typename F>
  std::shared_ptr<const Packed> Get(const Key& key, F&& pack) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<const Packed> found = entries_[key].lock();
    if (!found) {
      std::erase_if(entries_, [](const auto& entry) { return entry.second.expired(); });
      found = std::make_shared<const Packed>(pack());
      entries_[key] = found;
    }
    return found;
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<const Packed>> entries_;
};

}  // namespace plait::reference
