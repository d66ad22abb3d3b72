// Threads that run lanes. Private to the runtime.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "backends/interface/lane.h"

namespace plait {

enum class StopReason : uint32_t { kNone, kLaneFailed, kCancelled, kTimeout };

// What a session and its host threads tell each other during an inference. Reused for every inference of the session.
struct InferenceState {
  std::atomic<uint32_t> remaining{0};        // hosts at work; the caller sleeps on it
  std::atomic<bool> caller_sleeps{false};
  std::atomic<uint32_t> stop{0};             // StopReason; anyone may ask, everyone looks between two steps
  std::atomic<int> failed_lane{-1};          // the first one
  std::atomic<bool> abandoned{false};        // some lane gave the inference up
  std::atomic<uint64_t> departures{0};       // hosts that will not touch this object again, summed over all inferences

  void Stop(StopReason reason) {
    uint32_t none = 0;
    stop.compare_exchange_strong(none, static_cast<uint32_t>(reason), std::memory_order_acq_rel);
  }
};

class HostThread;

// The lanes of a session that one thread hosts.
struct HostJob {
  struct Hosted {
    LaneId id = 0;
    BoundLane* lane = nullptr;
    bool is_done = false;
  };
  std::vector<Hosted> lanes;
  uint64_t inference = 0;
  InferenceState* state = nullptr;
  std::vector<HostThread*> peers;  // all hosts of the inference: whoever runs first wakes those that still sleep
  int64_t idle_spin_ns = 0;  // how long to spin for the next inference before parking
};

// The thread of a lane: a CPU lane's lead thread, or the submitting thread of a GPU lane that no CPU lane hosts. Sessions over the same lane
// share it and take turns. It sleeps between inferences.
class HostThread {
 public:
  // The thread of `lane`, made and started (Lane::Start) if there is none.
  static Result<std::shared_ptr<HostThread>> Of(const std::shared_ptr<Lane>& lane);
  // Joins. In a forked child, where the thread does not exist, leaves it alone.
  ~HostThread();
  HostThread(const HostThread&) = delete;
  HostThread& operator=(const HostThread&) = delete;

  // Starts another lane that is to be polled here. Waits for a running inference. Once per lane.
  Status Adopt(const std::shared_ptr<Lane>& lane);

  // A session claims all its hosts before it posts to any.
  bool TryClaim() { return !claimed_.exchange(true, std::memory_order_acquire); }
  void Release() { claimed_.store(false, std::memory_order_release); }

  // Hands the thread its lanes for one inference; `job` stays untouched until its state says that it is finished. Claimed only.
  void Post(HostJob* job);
  // After Post: wakes the thread if it sleeps. Apart from Post so that all lanes have work before the first system call. Any thread.
  void WakeIfParked();

 private:
  explicit HostThread(std::shared_ptr<Lane> lane);
  void Main();
  uint32_t AwaitTicket(uint32_t seen, int64_t spin_ns);
  static void RunJob(HostJob* job);
  void RunHere(std::function<void()> task);  // claimed only; waits for it

  const std::shared_ptr<Lane> lane_;
  const pid_t pid_;
  std::vector<std::shared_ptr<Lane>> adopted_;    // touched by the thread itself only
  std::atomic<bool> claimed_{false};
  alignas(64) std::atomic<uint32_t> ticket_{0};   // grows with each task; the thread sleeps on it
  std::atomic<bool> parked_{false};
  HostJob* job_ = nullptr;                // of the last ticket; nullptr: task_
  std::function<void()> task_;            // empty: quit
  std::thread thread_;
};

}  // namespace plait
