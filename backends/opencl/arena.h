// The arena as the device sees it, and what Acquire and Publish do about it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <map>
#include <vector>

#include "backends/interface/lane.h"
#include "backends/opencl/launch.h"

namespace plait::opencl {

// Memory from AllocateShared that is still alive, by host address. Thread-safe.
class SharedRegistry {
 public:
  struct Entry {
    Memory memory;
    int64_t bytes = 0;
  };
  void Insert(void* host, const Entry& entry);
  void Erase(void* host);
  // The allocation that begins at `host` and has at least `bytes`; an empty Memory otherwise.
  Memory Find(void* host, int64_t bytes) const;

 private:
  mutable std::mutex mutex_;
  std::map<void*, Entry> entries_;
};

// Fine-grained shared virtual memory, registered while it lives.
Result<std::unique_ptr<SharedMemory>> AllocateSvm(std::shared_ptr<Device> device, std::shared_ptr<SharedRegistry> registry, int64_t bytes);
// A buffer in host memory, of the driver's if it can be. Unsupported if mappings of it move.
Result<std::unique_ptr<SharedMemory>> AllocateMapped(std::shared_ptr<Device> device, std::shared_ptr<SharedRegistry> registry, int64_t bytes);

// The device's side of one arena. Used by the lane's host thread.
class DeviceArena {
 public:
  virtual ~DeviceArena() = default;
  // What kernels get.
  virtual Memory memory() const = 0;
  // Prepares the handoff of `views` (Acquire: towards the device) and returns its number. Not on the hot path.
  virtual Result<int> Prepare(const StepProgram& program, const std::vector<View>& views, bool acquire) = 0;
  // Whether handoffs may be enqueued before what they move is written: the device comes to them in the queue's order, and they touch no mapping.
  virtual bool MayEnqueueAhead() const { return false; }
  // Enqueues a prepared handoff and adds the number of commands to `enqueued`.
  virtual cl_int Enqueue(cl_command_queue queue, int handoff, int* enqueued) = 0;
  // Around every inference.
  virtual cl_int Begin(cl_command_queue, int*) { return CL_SUCCESS; }
  virtual cl_int End(cl_command_queue, int*) { return CL_SUCCESS; }
};

struct ArenaRequest {
  std::shared_ptr<Device> device;
  const SharedRegistry* registry = nullptr;
  void* host = nullptr;
  int64_t bytes = 0;
  bool strict = false;
  OpenClMemory memory = OpenClMemory::kBest;
};
// The best that the device and the host's memory allow.
Result<std::unique_ptr<DeviceArena>> OpenArena(const ArenaRequest& request, cl_command_queue queue);

}  // namespace plait::opencl
