// The OpenCL lane: a GPU (or, where asked for, a CPU OpenCL device standing in for one) as a lane of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/interface/lane.h"

namespace plait {

struct ClApi;

struct OpenClDeviceInfo {
  std::string platform;          // "Portable Computing Language"
  std::string platform_version;
  std::string device;            // "cpu-haswell-AMD EPYC"
  std::string vendor;
  std::string driver_version;
  bool is_cpu = false;
  bool is_gpu = false;
  int compute_units = 0;
  int64_t max_work_group_size = 0;
  int64_t global_memory_bytes = 0;
  int64_t max_allocation_bytes = 0;
  bool unified_memory = false;   // host and device share physical memory
  bool fine_grained_svm = false; // and see each other's writes without map and unmap
  bool system_svm = false;       // also in memory that OpenCL did not allocate
  bool svm_atomics = false;      // and while the device works on it
  bool fp16 = false;
  std::string refused;           // why Plait cannot use it; empty: it can
};

// Every device of every platform of `api` (nullptr: the system's loader), and platforms that failed as entries with `refused`
// set. Empty if there is no loader. Starts the drivers' threads; thread-safe.
std::vector<OpenClDeviceInfo> ListOpenClDevices(const ClApi* api = nullptr);

// How the arena is shared with the device.
enum class OpenClMemory : uint8_t {
  kBest,       // the first of the following that the device can do
  kSvm,        // fine-grained shared virtual memory: in place, nothing to do at handoffs
  kMapped,     // a buffer that the driver allocates in host memory: in place, mapped and unmapped at handoffs
  kCopied,     // a buffer of the device's own; handoffs copy what they declare
};

struct OpenClLaneConfig {
  std::string name = "gpu0";
  std::string platform_filter;     // part of the platform's name; empty: any
  std::string device_filter;       // part of the device's name; empty: any
  bool allow_cpu_device = false;   // take a CPU device; else only GPUs and accelerators
  // Cores to which a CPU device is confined; empty: all. PoCL's threads inherit the affinity of the thread that starts it, so
  // the calling thread is pinned there while it does. Sets POCL_MAX_PTHREAD_COUNT unless the environment has it.
  std::vector<int> cpus;
  OpenClMemory memory = OpenClMemory::kBest;
  bool strict = false;             // the lane will be bound with BindOptions::strict: coherent() is false
  std::vector<int> host_cpus;      // Start() on an own thread pins it here; empty: not pinned
  std::string cache_dir;           // program binaries are kept here; empty: nowhere. Must be private to the user.
  const ClApi* api = nullptr;      // nullptr: the system's loader; else it outlives the lane
  // The application's own, which are retained: a cl_context, of which `device` (a cl_device_id; nullptr: its only one) is taken whatever the filters say, and
  // where its threads run is the application's business; and a cl_command_queue, in order, into which every session's commands go. A session with timings
  // takes a queue of its own if this one keeps no times. All nullptr: the lane makes its own.
  void* context = nullptr;
  void* device = nullptr;
  void* queue = nullptr;
};

// NotFound if no device qualifies, Unsupported if there is no loader or the cores cannot be had: the message says what was
// seen and why it was refused. Thread-safe.
Result<std::unique_ptr<Lane>> CreateOpenClLane(const OpenClLaneConfig& config);

// What the lane of CreateOpenClLane runs on; `lane` must come from there.
const OpenClDeviceInfo& OpenClDeviceOf(const Lane& lane);

// The rules of the OpenCL kernels, without any device.
const KernelRules& OpenClKernelRules();

}  // namespace plait
