#include "backends/xnnpack/xnn_operator.h"

namespace plait::xnn {

std::mutex& CreationMutex() {
  static std::mutex* mutex = new std::mutex;  // never destroyed: operators may outlive static destruction
  return *mutex;
}

Status ToStatus(xnn_status status, const char* call) {
  switch (status) {
    case xnn_status_success: return Status();
    case xnn_status_invalid_parameter: return InvalidArgument(call, ": XNNPACK refused a parameter");
    case xnn_status_unsupported_parameter: return Unsupported(call, ": XNNPACK supports no such parameter");
    case xnn_status_unsupported_hardware: return Unsupported(call, ": XNNPACK supports no such processor");
    case xnn_status_out_of_memory: return OutOfMemory(call, ": XNNPACK had no memory");
    default: return Internal(call, ": XNNPACK status ", static_cast<int>(status));
  }
}

XnnOperator::~XnnOperator() {
  if (op_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(CreationMutex());
  xnn_delete_operator(op_);
}

}  // namespace plait::xnn
