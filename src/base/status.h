// Status helpers used by every room. Result<T> and Status themselves are public: include/plait/result.hpp.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <type_traits>

#include "plait/result.hpp"

namespace plait {

// What a message is put together from: a value by its address, and how it is written. Messages are made in one place, not where they
// are needed: written out at each of some thousand sites, streams were a third of the library.
struct Piece {
  const void* value;
  void (*write)(std::ostream& out, const void* value);

  template <typename T>
  static Piece Of(const T& value) {
    if constexpr (std::is_array_v<T>) {
      static_assert(std::is_same_v<std::remove_cv_t<std::remove_extent_t<T>>, char>);
      return {value, [](std::ostream& out, const void* text) { out << static_cast<const char*>(text); }};
    } else {
      return {&value, [](std::ostream& out, const void* any) { out << *static_cast<const T*>(any); }};
    }
  }
};
std::string Join(const Piece* pieces, size_t count);
[[gnu::cold]] Status Failure(plait_status code, const Piece* pieces, size_t count);

// All arguments written one after another, as operator<< would.
template <typename... Args>
std::string StrCat(const Args&... args) {
  const Piece pieces[] = {Piece::Of(args)...};
  return Join(pieces, sizeof...(args));
}
template <typename... Args>
Status FailureOf(plait_status code, const Args&... args) {
  const Piece pieces[] = {Piece::Of(args)...};
  return Failure(code, pieces, sizeof...(args));
}

template <typename... Args>
Status InvalidArgument(const Args&... args) { return FailureOf(PLAIT_INVALID_ARGUMENT, args...); }
template <typename... Args>
Status NotFound(const Args&... args) { return FailureOf(PLAIT_NOT_FOUND, args...); }
template <typename... Args>
Status Unsupported(const Args&... args) { return FailureOf(PLAIT_UNSUPPORTED, args...); }
template <typename... Args>
Status OutOfMemory(const Args&... args) { return FailureOf(PLAIT_OUT_OF_MEMORY, args...); }
template <typename... Args>
Status IoError(const Args&... args) { return FailureOf(PLAIT_IO_ERROR, args...); }
template <typename... Args>
Status Corrupt(const Args&... args) { return FailureOf(PLAIT_CORRUPT, args...); }
template <typename... Args>
Status DeviceLost(const Args&... args) { return FailureOf(PLAIT_DEVICE_LOST, args...); }
template <typename... Args>
Status Internal(const Args&... args) { return FailureOf(PLAIT_INTERNAL, args...); }

}  // namespace plait

#define PLAIT_CONCAT_INNER_(a, b) a##b
#define PLAIT_CONCAT_(a, b) PLAIT_CONCAT_INNER_(a, b)

// Returns the Status of `expr` from the enclosing function unless it is ok.
#define PLAIT_RETURN_IF_ERROR(expr)                   \
  do {                                                \
    ::plait::Status plait_status_ = (expr);           \
    if (!plait_status_.ok()) return plait_status_;    \
  } while (false)

// PLAIT_ASSIGN_OR_RETURN(auto x, F()): x = the value of F(), or returns its Status.
#define PLAIT_ASSIGN_OR_RETURN(lhs, expr) \
  PLAIT_ASSIGN_OR_RETURN_(PLAIT_CONCAT_(plait_result_, __LINE__), lhs, expr)
#define PLAIT_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return tmp.status();           \
  lhs = std::move(tmp).value()
