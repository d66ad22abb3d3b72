#include "src/api/c_support.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <string_view>
#include <unordered_map>

#include "src/base/log.h"
#include "src/base/memory.h"

#ifndef PLAIT_VERSION
#error "PLAIT_VERSION is set by room.cmake"
#endif

#define PLAIT_TEXT_INNER_(x) #x
#define PLAIT_TEXT_(x) PLAIT_TEXT_INNER_(x)
static_assert(std::string_view(PLAIT_VERSION) == PLAIT_TEXT_(PLAIT_VERSION_MAJOR) "." PLAIT_TEXT_(PLAIT_VERSION_MINOR) "." PLAIT_TEXT_(PLAIT_VERSION_PATCH),
              "the version in CMakeLists.txt is not that of plait.h");

namespace plait::c_api {
namespace {

// Plain memory: it serves when memory has run out, and before and after static objects live.
constexpr size_t kMessageBytes = 2048;
thread_local char last_error[kMessageBytes] = "";

void Remember(const char* text, size_t length) noexcept {
  constexpr char kCut[] = "...";
  if (length < kMessageBytes) {
    std::memcpy(last_error, text, length);
    last_error[length] = '\0';
    return;
  }
  std::memcpy(last_error, text, kMessageBytes - sizeof kCut);
  std::memcpy(last_error + kMessageBytes - sizeof kCut, kCut, sizeof kCut);
}

struct Entry {
  HandleKind kind;
  uint32_t forks;  // of the process when it was made
  std::shared_ptr<void> object;
};

// Grows in every child. Asking the system for the process' number at each call would cost more than all else that the C API does.
std::atomic<uint32_t> fork_count{0};

struct Handles {
  std::mutex mutex;
  std::unordered_map<const void*, Entry> alive;
};

Handles& TheHandles() {
  // Never destroyed: handles may be used from destructors of static objects. A fork must not find the table half changed.
  static Handles* const handles = [] {
    auto* made = new Handles;
    ::pthread_atfork([] { TheHandles().mutex.lock(); }, [] { TheHandles().mutex.unlock(); },
                     [] {
                       fork_count.fetch_add(1, std::memory_order_relaxed);
                       TheHandles().mutex.unlock();
                     });
    return made;
  }();
  return *handles;
}

// The live entry of that kind; the mutex is held.
Result<Entry*> Look(Handles* handles, const void* handle, HandleKind kind, const char* name, const char* what) {
  if (handle == nullptr) return NullArgument(name);
  const auto found = handles->alive.find(handle);
  if (found == handles->alive.end()) return InvalidArgument(name, " is no live handle: it was destroyed, or Plait never made it");
  if (found->second.kind != kind) return InvalidArgument(name, " is a handle of another kind, not ", what);
  return &found->second;
}

constexpr size_t kMostStructBytes = 4096;

Result<size_t> SizeOfStruct(const void* given, size_t least, const char* type) {
  size_t bytes = 0;
  std::memcpy(&bytes, given, sizeof bytes);
  if (bytes < least || bytes > kMostStructBytes) {
    return InvalidArgument(type, "::size is ", bytes, ", but ", least, " or more was expected; start from the struct's _INIT macro");
  }
  return bytes;
}

}  // namespace

plait_status Conclude(const Status& status) noexcept {
  if (!status.ok()) Remember(status.message().data(), status.message().size());
  return status.code();
}

plait_status ConcludeException() noexcept {
  constexpr char kNoMemory[] = "out of memory";
  try {
    throw;
  } catch (const std::bad_alloc&) {
    Remember(kNoMemory, sizeof kNoMemory - 1);
    return PLAIT_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    Remember(e.what(), std::strlen(e.what()));
  } catch (...) {
    constexpr char kUnknown[] = "an exception of unknown type was thrown";
    Remember(kUnknown, sizeof kUnknown - 1);
  }
  return PLAIT_INTERNAL;
}

void AddHandle(const void* handle, HandleKind kind, std::shared_ptr<void> object) {
  Handles& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  handles.alive.insert_or_assign(handle, Entry{kind, fork_count.load(std::memory_order_relaxed), std::move(object)});
}

Result<std::shared_ptr<void>> FindHandle(const void* handle, HandleKind kind, const char* name, const char* what) {
  Handles& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  PLAIT_ASSIGN_OR_RETURN(const Entry* entry, Look(&handles, handle, kind, name, what));
  if (entry->forks != fork_count.load(std::memory_order_relaxed)) {
    return Status(PLAIT_WRONG_PROCESS, StrCat(name, " was made before a fork() and cannot be used in the child; make another one there"));
  }
  return entry->object;
}

Result<std::shared_ptr<void>> RemoveHandle(const void* handle, HandleKind kind, const char* name, const char* what) {
  Handles& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  PLAIT_ASSIGN_OR_RETURN(Entry* entry, Look(&handles, handle, kind, name, what));
  std::shared_ptr<void> object = std::move(entry->object);
  const bool is_ours = entry->forks == fork_count.load(std::memory_order_relaxed);
  handles.alive.erase(handle);
  if (is_ours) return object;
  // Threads and devices behind it do not exist here: leaked on purpose.
  static_cast<void>(new std::shared_ptr<void>(std::move(object)));
  return std::shared_ptr<void>();
}

Status ReadSized(const void* given, size_t least, size_t size, void* known, const char* type) {
  PLAIT_ASSIGN_OR_RETURN(const size_t bytes, SizeOfStruct(given, least, type));
  const unsigned char* const from = static_cast<const unsigned char*>(given);
  for (size_t i = size; i < bytes; ++i) {
    if (from[i] != 0) return Unsupported(type, " is of a newer Plait and asks for something that version " PLAIT_VERSION " does not know");
  }
  std::memcpy(known, given, std::min(bytes, size));
  return Status();
}

Status WriteSized(const void* filled, size_t least, size_t size, void* given, const char* type) {
  if (given == nullptr) return NullArgument(type);
  PLAIT_ASSIGN_OR_RETURN(const size_t bytes, SizeOfStruct(given, least, type));
  const size_t head = sizeof(size_t), end = std::min(bytes, size);
  std::memcpy(static_cast<char*>(given) + head, static_cast<const char*>(filled) + head, end - head);
  if (bytes > size) std::memset(static_cast<char*>(given) + size, 0, bytes - size);
  return Status();
}

Result<char*> CopyText(const std::string& text) {
  char* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return OutOfMemory("no memory for a text of ", text.size(), " bytes");
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace plait::c_api

using plait::Status;
using plait::c_api::Guarded;

const char* plait_version(void) {
  return PLAIT_VERSION;
}

uint32_t plait_abi_version(void) { return PLAIT_ABI_VERSION; }

const char* plait_features(void) {
  return PLAIT_FEATURES;
}

const char* plait_last_error(void) { return plait::c_api::last_error; }

void plait_string_free(char* text) { std::free(text); }

plait_status plait_set_log_callback(plait_log_callback callback, void* user) {
  return Guarded([&] {
    if (callback == nullptr) {
      plait::SetLogSink(nullptr);
    } else {
      plait::SetLogSink([callback, user](plait::LogLevel level, const std::string& message) {
        const plait_log_level levels[] = {PLAIT_LOG_INFO, PLAIT_LOG_WARNING, PLAIT_LOG_ERROR};
        try {
          callback(user, levels[static_cast<size_t>(level)], message.c_str());
        } catch (...) {
          // Whoever logs is not to blame for the application's callback.
        }
      });
    }
    return Status();
  });
}

plait_status plait_set_allocator(const plait_allocator* allocator) {
  return Guarded([&]() -> Status {
    if (allocator == nullptr) {
      plait::SetAllocator(nullptr);
      return Status();
    }
    PLAIT_ASSIGN_OR_RETURN(const plait_allocator given, plait::c_api::ReadOptions<plait_allocator>(allocator, PLAIT_ALLOCATOR_INIT, "plait_allocator"));
    if (given.allocate == nullptr) return plait::c_api::NullArgument("plait_allocator::allocate");
    if (given.release == nullptr) return plait::c_api::NullArgument("plait_allocator::release");
    plait::SetAllocator(std::make_shared<plait::Allocator>(plait::Allocator{given.allocate, given.release, given.user}));
    return Status();
  });
}

const char* plait_status_name(plait_status status) {
  switch (status) {
    case PLAIT_OK: return "ok";
    case PLAIT_INVALID_ARGUMENT: return "invalid_argument";
    case PLAIT_NOT_FOUND: return "not_found";
    case PLAIT_UNSUPPORTED: return "unsupported";
    case PLAIT_OUT_OF_MEMORY: return "out_of_memory";
    case PLAIT_IO_ERROR: return "io_error";
    case PLAIT_CORRUPT: return "corrupt";
    case PLAIT_BUSY: return "busy";
    case PLAIT_CANCELLED: return "cancelled";
    case PLAIT_TIMEOUT: return "timeout";
    case PLAIT_DEVICE_LOST: return "device_lost";
    case PLAIT_WRONG_PROCESS: return "wrong_process";
    case PLAIT_INTERNAL: return "internal";
  }
  return "unknown";
}
