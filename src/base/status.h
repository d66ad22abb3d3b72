// Status helpers used by every room. Result<T> and Status themselves are public: include/plait/result.hpp.
#pragma once

#include <sstream>
#include <string>

#include "plait/result.hpp"

namespace plait {

// All arguments written one after another, as operator<< would.
template <typename... Args>
std::string StrCat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

template <typename... Args>
Status InvalidArgument(const Args&... args) { return Status(PLAIT_INVALID_ARGUMENT, StrCat(args...)); }
template <typename... Args>
Status NotFound(const Args&... args) { return Status(PLAIT_NOT_FOUND, StrCat(args...)); }
template <typename... Args>
Status Unsupported(const Args&... args) { return Status(PLAIT_UNSUPPORTED, StrCat(args...)); }
template <typename... Args>
Status OutOfMemory(const Args&... args) { return Status(PLAIT_OUT_OF_MEMORY, StrCat(args...)); }
template <typename... Args>
Status IoError(const Args&... args) { return Status(PLAIT_IO_ERROR, StrCat(args...)); }
template <typename... Args>
Status Corrupt(const Args&... args) { return Status(PLAIT_CORRUPT, StrCat(args...)); }
template <typename... Args>
Status DeviceLost(const Args&... args) { return Status(PLAIT_DEVICE_LOST, StrCat(args...)); }
template <typename... Args>
Status Internal(const Args&... args) { return Status(PLAIT_INTERNAL, StrCat(args...)); }

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
