// Keeps a CPU device awake while its lane waits for another one.
//
// A driver like PoCL's puts its workers to sleep when their queue is empty, and waking one takes tens of microseconds, far more than a GPU's command
// processor takes to see new work. So a lane that waits gives the device a kernel that looks at a word of shared memory until the lane changes it, for a
// third of a millisecond at most: a core that a lane shares with others is not held for longer, and nothing depends on the kernel.
#pragma once

#include <atomic>
#include <memory>

#include "backends/opencl/launch.h"

namespace plait::opencl {

// Used by the lane's host thread.
class Standby {
 public:
  // nullptr where the device needs none (it is no CPU) or cannot do it (no atomics in shared virtual memory).
  static Result<std::unique_ptr<Standby>> Create(std::shared_ptr<Device> device);
  // The queue that Begin was called with is finished.
  ~Standby();

  bool is_on() const { return is_on_; }
  // Enqueues and flushes the kernel unless it is on already.
  cl_int Begin(cl_command_queue queue);
  // Lets it end, after the work that it waited for has been flushed.
  void End() noexcept;

 private:
  explicit Standby(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  std::shared_ptr<Device> device_;
  std::atomic<cl_int>* word_ = nullptr;  // shared virtual memory
  Launch launch_;
  cl_int begin_ = 0;
  bool is_on_ = false;
};

}  // namespace plait::opencl
