#include "src/base/memory.h"

#include <cstring>
#include <mutex>
#include <new>

namespace plait {
namespace {

struct Current {
  std::mutex mutex;
  std::shared_ptr<const Allocator> allocator;
};

// Never destroyed: models may be static objects.
Current& TheCurrent() {
  static Current& current = *new Current;
  return current;
}

void Release(const Allocator* allocator, void* data, size_t bytes) noexcept {
  if (allocator == nullptr) return ::operator delete(data, std::align_val_t{kBlockAlignment});
  try {
    allocator->release(allocator->user, data, bytes);
  } catch (...) {
    // The application's to answer for: what it keeps is lost to it alone.
  }
}

}  // namespace

void SetAllocator(std::shared_ptr<const Allocator> allocator) {
  Current& current = TheCurrent();
  const std::lock_guard lock(current.mutex);
  current.allocator.swap(allocator);
}

Block Block::Allocate(size_t bytes) noexcept {
  Block block;
  if (bytes == 0) bytes = 1;
  {
    Current& current = TheCurrent();
    const std::lock_guard lock(current.mutex);
    block.allocator_ = current.allocator;
  }
  void* data = nullptr;
  if (const Allocator* const allocator = block.allocator_.get()) {
    try {
      data = allocator->allocate(allocator->user, bytes, kBlockAlignment);
    } catch (...) {
      return Block();
    }
    if (reinterpret_cast<uintptr_t>(data) % kBlockAlignment != 0) {
      Release(allocator, data, bytes);
      return Block();
    }
  } else {
    data = ::operator new(bytes, std::align_val_t{kBlockAlignment}, std::nothrow);
  }
  if (data == nullptr) return Block();
  std::memset(data, 0, bytes);
  block.data_ = data;
  block.bytes_ = bytes;
  return block;
}

Block::~Block() {
  if (data_ != nullptr) Release(allocator_.get(), data_, bytes_);
}

}  // namespace plait
