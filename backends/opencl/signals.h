// What host and CPU device tell each other without the driver: a word of shared memory in each direction.
//
// A driver like PoCL's puts its workers to sleep when their queue is empty, and waking one takes tens of microseconds; so does asking an event until its
// completion has gone through the driver's locks. A GPU's command processor has neither cost. So work that waits for another lane is enqueued early, behind
// a gate: a kernel that looks at a word until the host opens it. And behind the work stands a kernel that writes a word at which the host looks.
#pragma once

#include <atomic>
#include <memory>

#include "backends/opencl/launch.h"

namespace plait::opencl {

// Used by the lane's host thread.
class Signals {
 public:
  // nullptr where the device needs none (it is no CPU) or cannot do it (no atomics in shared virtual memory).
  static Result<std::unique_ptr<Signals>> Create(std::shared_ptr<Device> device);
  // The queue that they were enqueued in is finished.
  ~Signals();

  // A ticket that follows all before (modulo 2^32).
  cl_uint Draw() { return ++drawn_; }
  // Holds what is enqueued behind it until Open(ticket).
  cl_int EnqueueGate(cl_command_queue queue, cl_uint ticket);
  // Opens all gates with tickets up to this one.
  void Open(cl_uint ticket) noexcept { words_->gate.store(ticket, std::memory_order_release); }
  void OpenAll() noexcept { Open(drawn_); }
  // Tells the host that everything enqueued before is done. `event` may be null.
  cl_int EnqueueSignal(cl_command_queue queue, cl_uint ticket, cl_event* event);
  bool IsDone(cl_uint ticket) const { return static_cast<cl_int>(words_->done.load(std::memory_order_acquire) - ticket) >= 0; }

 private:
  // The first tickets lie before the change of sign, so that every session passes it within its first segments instead of after days.
  static constexpr cl_uint kFirst = 0x7ffffff8;
  // On lines of their own: each is polled by one side while the other one writes.
  struct Words {
    alignas(64) std::atomic<cl_uint> gate{kFirst};
    alignas(64) std::atomic<cl_uint> done{kFirst};
  };

  explicit Signals(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  cl_int EnqueueWith(cl_command_queue queue, const Launch& launch, cl_uint ticket, cl_event* event);

  std::shared_ptr<Device> device_;
  Words* words_ = nullptr;  // shared virtual memory
  Launch gate_, signal_;
  cl_uint drawn_ = kFirst;
};

}  // namespace plait::opencl
