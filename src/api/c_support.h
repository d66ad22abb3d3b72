// What every function of the C API goes through: no exception leaves, failures are remembered for the thread, handles are looked
// up, structs of other sizes are read.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "src/base/status.h"

namespace plait::c_api {

// Keeps the message for plait_last_error() and returns the code; an ok status leaves the message alone.
plait_status Conclude(const Status& status) noexcept;
// The message for what is being thrown; to be called from a catch block.
plait_status ConcludeException() noexcept;

// Runs `body`, which returns a Status, as the body of a C function.
template <typename Body>
plait_status Guarded(Body&& body) noexcept {
  try {
    return Conclude(body());
  } catch (...) {
    return ConcludeException();
  }
}

inline Status NullArgument(const char* name) { return InvalidArgument(name, " is NULL"); }

enum class HandleKind { kLanes, kModel, kPlan, kSession };
template <typename T>
struct HandleOf;  // specialised beside each object: kKind, and kName with its article

// Handles that are alive. A handle is looked up, never followed, so that one that was destroyed or is of another kind is found
// out, and an object that is in use stays.
void AddHandle(const void* handle, HandleKind kind, std::shared_ptr<void> object);
// `name`: the parameter's, `what`: what it should be; for messages.
Result<std::shared_ptr<void>> FindHandle(const void* handle, HandleKind kind, const char* name, const char* what);
// Takes the handle out. In a process forked from the one that made it the object is left alone for ever, and nullptr returned.
Result<std::shared_ptr<void>> RemoveHandle(const void* handle, HandleKind kind, const char* name, const char* what);

template <typename T>
void Publish(std::shared_ptr<T> object, T** handle) {
  T* const raw = object.get();
  AddHandle(raw, HandleOf<T>::kKind, std::move(object));
  *handle = raw;
}
template <typename T>
Result<std::shared_ptr<T>> Find(const T* handle, const char* name) {
  PLAIT_ASSIGN_OR_RETURN(std::shared_ptr<void> object, FindHandle(handle, HandleOf<T>::kKind, name, HandleOf<T>::kName));
  return std::static_pointer_cast<T>(std::move(object));
}
template <typename T>
Result<std::shared_ptr<T>> Remove(const T* handle, const char* name) {
  PLAIT_ASSIGN_OR_RETURN(std::shared_ptr<void> object, RemoveHandle(handle, HandleOf<T>::kKind, name, HandleOf<T>::kName));
  return std::static_pointer_cast<T>(std::move(object));
}
template <typename T>
plait_status Destroy(T* handle, const char* name) noexcept {
  return Guarded([&]() -> Status { return handle == nullptr ? Status() : Remove(handle, name).status(); });
}

// Copies the `size` bytes that a caller's struct of type `type` says it has (first member, size_t) over the defaults that `known`
// holds; `least`: the size in the first version that had it.
Status ReadSized(const void* given, size_t least, size_t size, void* known, const char* type);
// Writes `filled` (of `size` bytes) into the caller's struct, as much as it says it has room for, leaving its size.
Status WriteSized(const void* filled, size_t least, size_t size, void* given, const char* type);

// The size that a struct had in the first version with it; to be specialised for a struct that has grown.
template <typename T>
inline constexpr size_t kFirstSize = sizeof(T);

// NULL: the defaults.
template <typename T>
Result<T> ReadOptions(const T* given, const T& defaults, const char* type) {
  T known = defaults;
  if (given != nullptr) PLAIT_RETURN_IF_ERROR(ReadSized(given, kFirstSize<T>, sizeof(T), &known, type));
  return known;
}
template <typename T>
Status WriteInfo(const T& filled, T* given, const char* type) {
  return WriteSized(&filled, kFirstSize<T>, sizeof(T), given, type);
}

// A copy for plait_string_free().
Result<char*> CopyText(const std::string& text);

}  // namespace plait::c_api
