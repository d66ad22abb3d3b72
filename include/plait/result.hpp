// Status and Result<T>: errors as values. No exceptions, no RTTI needed.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "plait/plait.h"

namespace plait {

// The outcome of an operation: PLAIT_OK, or a code with a message that names what is wrong and what to do about it.
// Copyable value; thread-compatible.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(plait_status code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == PLAIT_OK; }
  plait_status code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same outcome with `context` and ": " before the message; unchanged when ok.
  Status Annotated(const std::string& context) const {
    return ok() ? *this : Status(code_, context + ": " + message_);
  }

 private:
  plait_status code_ = PLAIT_OK;
  std::string message_;
};

// A T, or the Status that says why there is none. Reading value() of a failed Result is a programmer's error (it
// terminates); check ok() first. Never holds an ok Status.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}            // NOLINT: implicit by design
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {}     // NOLINT: implicit by design

  bool ok() const { return state_.index() == 0; }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T& value() & { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }
  Status status() const { return ok() ? Status() : *std::get_if<1>(&state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace plait
