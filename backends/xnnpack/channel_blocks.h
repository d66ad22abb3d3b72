// Channel blocks: XNNPACK walks rows outermost, so every row tile streams all packed weights. A part whose weights overflow L2 runs as
// a list of operators over blocks of channels whose weights stay there. docs/xnnpack.md has the measurements behind the rule.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/base/checked.h"

namespace plait::xnn {

inline constexpr int64_t kBlockPercentOfL2 = 60;
inline constexpr int64_t kBlockMinRows = 64;  // below, the second pass over the input costs what the weights save

// Channels a block for a part of `channels` channels with `channel_bytes` of weights each over `rows` rows or pixels: a multiple of
// `tile`, or all of them.
inline int64_t ChannelBlock(int64_t channels, int64_t channel_bytes, int64_t rows, int64_t tile, int64_t l2_bytes) {
  const int64_t budget = l2_bytes * kBlockPercentOfL2 / 100;
  if (rows < kBlockMinRows || channels * channel_bytes <= budget) return channels;
  const int64_t most = std::max(tile, budget / channel_bytes / tile * tile);
  return std::min(channels, RoundUp(CeilDiv(channels, CeilDiv(channels, most)), tile));
}

// The next block when `rest` channels are left: a rest narrower than a tile joins its neighbour, as XNNPACK takes another kernel there.
inline int64_t NextBlock(int64_t rest, int64_t block, int64_t tile) { return rest - block < tile ? rest : block; }

}  // namespace plait::xnn
