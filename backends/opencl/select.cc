#include "backends/opencl/select.h"

#include <dirent.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <set>

#include "src/platform/affinity.h"
#include "src/platform/cpu_list.h"

namespace plait::opencl {
namespace {

std::string DeviceString(const ClApi& api, cl_device_id id, cl_device_info what) {
  size_t bytes = 0;
  if (api.clGetDeviceInfo(id, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (api.clGetDeviceInfo(id, what, bytes, text.data(), nullptr) != CL_SUCCESS) return "";
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

std::string PlatformString(const ClApi& api, cl_platform_id id, cl_platform_info what) {
  size_t bytes = 0;
  if (api.clGetPlatformInfo(id, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (api.clGetPlatformInfo(id, what, bytes, text.data(), nullptr) != CL_SUCCESS) return "";
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

template <typename T>
T DeviceValue(const ClApi& api, cl_device_id id, cl_device_info what) {
  T value{};
  if (api.clGetDeviceInfo(id, what, sizeof(value), &value, nullptr) != CL_SUCCESS) return T{};
  return value;
}

FoundDevice Describe(const ClApi& api, cl_platform_id platform, cl_device_id id) {
  FoundDevice found;
  found.id = id;
  OpenClDeviceInfo& info = found.info;
  info.platform = PlatformString(api, platform, CL_PLATFORM_NAME);
  info.platform_version = PlatformString(api, platform, CL_PLATFORM_VERSION);
  info.device = DeviceString(api, id, CL_DEVICE_NAME);
  info.vendor = DeviceString(api, id, CL_DEVICE_VENDOR);
  info.driver_version = DeviceString(api, id, CL_DRIVER_VERSION);
  const auto type = DeviceValue<cl_device_type>(api, id, CL_DEVICE_TYPE);
  info.is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
  info.is_gpu = (type & CL_DEVICE_TYPE_GPU) != 0;
  info.compute_units = static_cast<int>(DeviceValue<cl_uint>(api, id, CL_DEVICE_MAX_COMPUTE_UNITS));
  info.max_work_group_size = static_cast<int64_t>(DeviceValue<size_t>(api, id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  info.global_memory_bytes = static_cast<int64_t>(DeviceValue<cl_ulong>(api, id, CL_DEVICE_GLOBAL_MEM_SIZE));
  info.max_allocation_bytes = static_cast<int64_t>(DeviceValue<cl_ulong>(api, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  info.unified_memory = DeviceValue<cl_bool>(api, id, CL_DEVICE_HOST_UNIFIED_MEMORY) == CL_TRUE;
  if (api.has_svm()) {
    const auto svm = DeviceValue<cl_device_svm_capabilities>(api, id, CL_DEVICE_SVM_CAPABILITIES);
    info.fine_grained_svm = (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0;
    info.svm_atomics = info.fine_grained_svm && (svm & CL_DEVICE_SVM_ATOMICS) != 0;
    info.system_svm = (svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM) != 0;
  }
  info.fp16 = DeviceString(api, id, CL_DEVICE_EXTENSIONS).find("cl_khr_fp16") != std::string::npos;
  const std::string version = DeviceString(api, id, CL_DEVICE_VERSION);  // "OpenCL 3.0 ..."
  if (DeviceValue<cl_bool>(api, id, CL_DEVICE_AVAILABLE) != CL_TRUE) {
    info.refused = "the driver says that the device is not available";
  } else if (DeviceValue<cl_bool>(api, id, CL_DEVICE_COMPILER_AVAILABLE) != CL_TRUE) {
    info.refused = "the driver has no OpenCL C compiler";
  } else if (version.rfind("OpenCL 1.0", 0) == 0 || version.rfind("OpenCL 1.1", 0) == 0) {
    info.refused = "the device is older than OpenCL 1.2: " + version;
  } else if (info.compute_units < 1) {
    info.refused = "the driver reports no compute units";
  }
  return found;
}

// Threads of this process.
std::set<int> ThreadIds() {
  std::set<int> ids;
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return ids;
  while (const dirent* entry = ::readdir(tasks)) {
    const int id = std::atoi(entry->d_name);
    if (id > 0) ids.insert(id);
  }
  ::closedir(tasks);
  return ids;
}

struct DriverState {
  std::mutex mutex;
  std::vector<int> worker_ids;  // threads that the drivers started
  std::vector<int> cpus;        // where they are confined; empty: anywhere
  bool started = false;
};

DriverState& Drivers() {
  static DriverState state;
  return state;
}

Status ConfineThreads(const std::vector<int>& ids, const std::vector<int>& cpus) {
  const int highest = *std::max_element(cpus.begin(), cpus.end());
  const size_t bytes = CPU_ALLOC_SIZE(highest + 1);
  cpu_set_t* set = CPU_ALLOC(highest + 1);
  if (set == nullptr) return OutOfMemory("no memory for a set of ", highest + 1, " cores");
  CPU_ZERO_S(bytes, set);
  for (int cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), bytes, set);
  int refused = 0;
  for (int id : ids) refused += ::sched_setaffinity(id, bytes, set) != 0;
  CPU_FREE(set);
  if (refused > 0) return Unsupported(refused, " threads of the OpenCL driver cannot be moved to cores ", FormatCpuList(cpus));
  return Status();
}

}  // namespace

std::vector<FoundDevice> FindDevices(const ClApi& api) {
  std::vector<FoundDevice> found;
  cl_uint count = 0;
  if (api.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return found;
  std::vector<cl_platform_id> platforms(count);
  if (api.clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) return found;
  for (cl_platform_id platform : platforms) {
    cl_uint devices = 0;
    cl_int error = api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices);
    std::vector<cl_device_id> ids(error == CL_SUCCESS ? devices : 0);
    if (!ids.empty()) error = api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr);
    if (ids.empty() || error != CL_SUCCESS) {
      FoundDevice none;
      none.info.platform = PlatformString(api, platform, CL_PLATFORM_NAME);
      none.info.platform_version = PlatformString(api, platform, CL_PLATFORM_VERSION);
      const bool empty = error == CL_SUCCESS || error == CL_DEVICE_NOT_FOUND;
      none.info.refused = empty ? "the platform has no device" : "its devices cannot be listed: " + ClErrorName(error);
      found.push_back(none);
      continue;
    }
    for (cl_device_id id : ids) found.push_back(Describe(api, platform, id));
  }
  return found;
}

FoundDevice DescribeDevice(const ClApi& api, cl_device_id id) {
  return Describe(api, DeviceValue<cl_platform_id>(api, id, CL_DEVICE_PLATFORM), id);
}

Status StartDrivers(const ClApi& api, const std::vector<int>& cpus) {
  DriverState& state = Drivers();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (state.started) {
    if (cpus.empty() || cpus == state.cpus) return Status();
    PLAIT_RETURN_IF_ERROR(ConfineThreads(state.worker_ids, cpus));
    state.cpus = cpus;
    return Status();
  }
  const std::vector<int> before = ThreadAffinity();
  if (!cpus.empty()) {
    ::setenv("POCL_MAX_PTHREAD_COUNT", std::to_string(cpus.size()).c_str(), /*overwrite=*/0);
    PLAIT_RETURN_IF_ERROR(SetThreadAffinity(cpus).Annotated("confining the OpenCL device"));
    if (ThreadAffinity() != cpus) {
      const std::vector<int> got = ThreadAffinity();
      if (!before.empty()) (void)SetThreadAffinity(before);
      return Unsupported("the OpenCL device was to be confined to cores ", FormatCpuList(cpus), ", but only cores ",
                         FormatCpuList(got), " can be had");
    }
  }
  const std::set<int> old_threads = ThreadIds();
  FindDevices(api);
  state.started = true;
  state.cpus = cpus;
  for (int id : ThreadIds()) {
    if (old_threads.count(id) == 0) state.worker_ids.push_back(id);
  }
  if (!cpus.empty() && !before.empty()) return SetThreadAffinity(before);
  return Status();
}

Result<FoundDevice> ChooseDevice(const std::vector<FoundDevice>& found, const OpenClLaneConfig& config) {
  const FoundDevice* best = nullptr;
  int best_rank = 0;
  std::string seen;
  for (const FoundDevice& candidate : found) {
    const OpenClDeviceInfo& info = candidate.info;
    std::string reason = info.refused;
    if (reason.empty() && info.platform.find(config.platform_filter) == std::string::npos) reason = "its platform was not asked for";
    if (reason.empty() && info.device.find(config.device_filter) == std::string::npos) reason = "was not asked for";
    if (reason.empty() && info.is_cpu && !config.allow_cpu_device) reason = "is a CPU; CPU devices are taken only when asked for";
    if (!reason.empty()) {
      seen += StrCat(seen.empty() ? "" : "; ", info.platform, info.device.empty() ? "" : " / ", info.device, ": ", reason);
      continue;
    }
    // Where a CPU device was asked for, it is what was meant; PoCL before others, which may run GPU code on the CPU.
    const bool pocl = info.platform.find("Portable Computing Language") != std::string::npos;
    int rank = info.is_gpu ? 2 : 1;
    if (config.allow_cpu_device && info.is_cpu) rank = pocl ? 4 : 3;
    if (rank > best_rank) {
      best = &candidate;
      best_rank = rank;
    }
  }
  if (best != nullptr) return *best;
  return NotFound("lane ", config.name, ": no OpenCL device can be used (", seen.empty() ? "there is no OpenCL platform" : seen, ")");
}

}  // namespace plait::opencl

namespace plait {

std::vector<OpenClDeviceInfo> ListOpenClDevices(const ClApi* api) {
  std::vector<OpenClDeviceInfo> infos;
  if (api == nullptr) {
    auto loaded = LoadSystemOpenCl();
    if (!loaded.ok()) return infos;
    api = *loaded;
  }
  if (!opencl::StartDrivers(*api, {}).ok()) return infos;
  for (const opencl::FoundDevice& found : opencl::FindDevices(*api)) infos.push_back(found.info);
  return infos;
}

}  // namespace plait
