// Whether a missing GPU lane is a reason to skip a test.
#pragma once

#include <algorithm>
#include <vector>

#include "backends/opencl/opencl.h"

namespace plait {

// Only the absence of a device is a reason to skip; one that is there and cannot be opened is a fault. To be asked after lanes were opened: it
// starts the drivers, which must not happen before a lane has confined them.
inline bool HasOpenClDevice() {
  const std::vector<OpenClDeviceInfo> devices = ListOpenClDevices();
  return std::any_of(devices.begin(), devices.end(), [](const OpenClDeviceInfo& device) { return device.refused.empty(); });
}

}  // namespace plait
