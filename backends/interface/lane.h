// Lanes: resources with an order of work of their own. The contract is asynchronous; it assumes no thread per lane.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/interface/backend.h"
#include "backends/interface/steps.h"

namespace plait {

// One lane's progress on its own cache line; see steps.h. Written by the lane with release, read with acquire.
struct alignas(64) LaneCounter {
  std::atomic<uint64_t> finished{0};
};

struct StepTiming {
  int64_t start_ns = 0;  // steady clock (base/clock.h)
  int64_t end_ns = 0;
};

struct BindOptions {
  bool strict = false;               // GPU lanes: own shadow arena, filled and emptied by Acquire and Publish alone, in whole cache lines
  double handoff_latency_us = 0;     // GPU lanes: injected into every Acquire and every Publish
  bool timings = false;              // keep a StepTiming per step of the last inference
};

struct BindRequest {
  std::shared_ptr<const Graph> graph;            // kept alive by the program
  std::shared_ptr<const StepProgram> program;    // verified
  LaneId lane = 0;
  void* arena = nullptr;                         // host address of arena_bytes; outlives the bound lane
  std::span<LaneCounter> counters;               // one per lane; outlives it
  BindOptions options;
  // [buffer]: where the buffer lies instead of in the arena (nullptr: there); empty: all in the arena. Such a buffer is touched by CPU lanes only, and
  // has kBufferSlack readable bytes behind it. Needed during Bind only.
  std::span<std::byte* const> elsewhere;
};

enum class LaneState : uint8_t {
  kIdle,      // no inference submitted, or the last one is finished
  kProgress,  // did something; poll again at once
  kWaiting,   // waits for another lane or its device
  kFailed,    // error() says why; no further step will run
};

// A lane's steps bound to memory, ready to run again and again. Used by one thread at a time (the lane's host thread).
class BoundLane {
 public:
  virtual ~BoundLane() = default;
  // Starts inference `n` (0, 1, ...). Only when idle. Never blocks.
  virtual void Submit(uint64_t n) noexcept = 0;
  // Advances without blocking: a CPU lane runs at most one step, a GPU lane submits what may start and notes what has finished.
  // Finished steps are announced in the lane's counter.
  virtual LaneState Poll() noexcept = 0;
  // Gives the inference up: after it returns the device touches no memory of the session. May block for work in flight, bounded.
  virtual void Abandon() noexcept = 0;
  virtual Status error() const = 0;
  // Of the last finished inference, one per step; empty unless BindOptions::timings. Bookkeeping steps may hold zeros.
  virtual std::span<const StepTiming> timings() const = 0;
  // What submitting to the device took the host thread in the last finished inference; 0 for lanes that run on their own thread.
  virtual int64_t submission_ns() const { return 0; }
  // Compute steps that run on the reference backend for want of anything better.
  virtual int reference_steps() const { return 0; }
};

// Memory that a GPU lane shares with the host.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual void* host() const = 0;
};

class Lane {
 public:
  virtual ~Lane() = default;
  virtual const std::string& name() const = 0;
  virtual LaneKind kind() const = 0;
  virtual const KernelRules& rules() const = 0;
  // Whether this lane sees the host's cache lines coherently; if not, parts of different domains must not share one.
  virtual bool coherent() const = 0;
  // Called on the lane's host thread before the first Bind (a CPU lane pins the thread and makes its pool here). `is_own_thread`:
  // the thread belongs to this lane alone and may be pinned. Called again, on another thread, when a later session finds the former
  // host thread gone (nothing is bound then) or hosts the lane elsewhere.
  virtual Status Start(bool is_own_thread) = 0;
  // Cores that the lane's own threads were confined to, as the system says; empty: not pinned, or not started.
  virtual std::vector<int> affinity() const { return {}; }
  // Called on the host thread when no inference is in flight and none is expected soon.
  virtual void Park() noexcept {}
  // Memory that both this lane and the host can use in place; nullptr value: any host memory will do.
  virtual Result<std::unique_ptr<SharedMemory>> AllocateShared(int64_t bytes) = 0;
  // Prepares every step. Not on the hot path; thread-safe against other lanes' Bind. The lane outlives what it bound.
  virtual Result<std::unique_ptr<BoundLane>> Bind(const BindRequest& request) = 0;
};

}  // namespace plait
