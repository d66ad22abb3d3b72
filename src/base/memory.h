// Memory for what is large (weights, packed weights, activations, workspaces): from the application's allocator, if it handed one in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace plait {

inline constexpr size_t kBlockAlignment = 64;  // a cache line

// Both functions on any thread, several at a time. `allocate` returns nullptr if there is no memory; what they throw is caught.
struct Allocator {
  void* (*allocate)(void* user, size_t bytes, size_t alignment) = nullptr;
  void (*release)(void* user, void* data, size_t bytes) = nullptr;
  void* user = nullptr;
};

// For all blocks from now on; nullptr: the system's. Blocks go back to where they came from. Thread-safe.
void SetAllocator(std::shared_ptr<const Allocator> allocator);

// Owns one piece of memory, zero-filled, aligned to kBlockAlignment. Movable; thread-compatible.
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), allocator_(std::move(other.allocator_)) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(allocator_, other.allocator_);
    return *this;
  }
  ~Block();

  // data() is nullptr if the memory cannot be had. Zeroing also brings the pages in, so that the first inference takes no faults.
  static Block Allocate(size_t bytes) noexcept;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  std::shared_ptr<const Allocator> allocator_;  // nullptr: the system's
};

}  // namespace plait
