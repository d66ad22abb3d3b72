// XNNPACK operators as values with an owner. XNNPACK's creation and deletion are not thread-safe: one lock guards both.
#pragma once

#include <pthreadpool.h>
#include <xnnpack.h>

#include <mutex>
#include <utility>

#include "src/base/status.h"

namespace plait::xnn {

// Held around every XNNPACK create and delete in the process.
std::mutex& CreationMutex();

// InvalidArgument, Unsupported, OutOfMemory or Internal, naming `call`; ok for xnn_status_success.
Status ToStatus(xnn_status status, const char* call);

// Owns one operator. Move-only; run by one thread at a time.
class XnnOperator {
 public:
  XnnOperator() = default;
  explicit XnnOperator(xnn_operator_t op) : op_(op) {}
  XnnOperator(XnnOperator&& other) noexcept : op_(std::exchange(other.op_, nullptr)) {}
  XnnOperator& operator=(XnnOperator&& other) noexcept {
    std::swap(op_, other.op_);
    return *this;
  }
  ~XnnOperator();

  xnn_operator_t get() const { return op_; }
  xnn_status Run(pthreadpool_t pool) const noexcept { return xnn_run_operator(op_, pool); }

 private:
  xnn_operator_t op_ = nullptr;
};

// Calls `create(&op)` under the lock.
template <typename Create>
Result<XnnOperator> MakeOperator(const char* name, Create&& create) {
  xnn_operator_t op = nullptr;
  xnn_status status;
  {
    const std::lock_guard<std::mutex> lock(CreationMutex());
    status = create(&op);
  }
  PLAIT_RETURN_IF_ERROR(ToStatus(status, name));
  return XnnOperator(op);
}

}  // namespace plait::xnn
