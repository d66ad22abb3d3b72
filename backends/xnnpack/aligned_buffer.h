// Zero-filled memory on a cache line, with the slack that XNNPACK's over-reads need.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "backends/interface/steps.h"

namespace plait::xnn {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~AlignedBuffer() { ::operator delete(data_, kAlignment, std::nothrow); }

  // data() is nullptr if the memory cannot be had.
  static AlignedBuffer Allocate(int64_t bytes) {
    AlignedBuffer out;
    const size_t total = static_cast<size_t>(bytes) + kBufferSlack;
    out.data_ = ::operator new(total, kAlignment, std::nothrow);
    // Workspaces must begin as zeros: XNNPACK does not write the padding behind weights that it packs there (docs/xnnpack.md, "Tiles").
    if (out.data_ != nullptr) std::memset(out.data_, 0, total);
    return out;
  }

  void* data() const { return data_; }
  float* floats() const { return static_cast<float*>(data_); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  void* data_ = nullptr;
};

}  // namespace plait::xnn
