// Zero-filled memory on a cache line, with the slack that XNNPACK's over-reads need.
#pragma once

#include <cstdint>

#include "backends/interface/steps.h"
#include "src/base/memory.h"

namespace plait::xnn {

class AlignedBuffer {
 public:
  // data() is nullptr if the memory cannot be had. Workspaces must begin as zeros: XNNPACK does not write the padding behind weights that it packs
  // there (docs/xnnpack.md, "Tiles").
  static AlignedBuffer Allocate(int64_t bytes) {
    AlignedBuffer out;
    out.block_ = Block::Allocate(static_cast<size_t>(bytes) + kBufferSlack);
    return out;
  }

  void* data() const { return block_.data(); }
  float* floats() const { return static_cast<float*>(data()); }

 private:
  Block block_;
};

}  // namespace plait::xnn
