#include "plait/plait.h"

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
