// Finding devices, and keeping CPU devices on their cores.
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/cl_api.h"
#include "backends/opencl/opencl.h"

namespace plait::opencl {

struct FoundDevice {
  cl_device_id id = nullptr;
  OpenClDeviceInfo info;
};

// All devices of all platforms, in the platforms' order. A platform that fails is an entry with id == nullptr and its reason.
std::vector<FoundDevice> FindDevices(const ClApi& api);

// `id` alone, of whatever platform.
FoundDevice DescribeDevice(const ClApi& api, cl_device_id id);

// Starts the drivers, if this is the process's first call, with the calling thread confined to `cpus` (if not empty), because PoCL's
// workers inherit its affinity; then confines workers that were started elsewhere. The calling thread's affinity is as before.
Status StartDrivers(const ClApi& api, const std::vector<int>& cpus);

// The device that `config` asks for. NotFound with everything that was seen.
Result<FoundDevice> ChooseDevice(const std::vector<FoundDevice>& found, const OpenClLaneConfig& config);

}  // namespace plait::opencl
