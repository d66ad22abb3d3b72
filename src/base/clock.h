// Time as the runtime and the calibration see it.
#pragma once

#include <chrono>
#include <cstdint>

namespace plait {

// Nanoseconds of the steady clock; differences are meaningful, absolute values are not. Thread-safe.
inline int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace plait
