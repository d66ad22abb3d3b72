// What a plait_session stands for: a session that serves one call at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "src/api/async_worker.h"
#include "src/api/c_objects.h"
#include "src/runtime/session.h"

struct plait_session {
 public:
  plait_session(std::shared_ptr<const plait_plan> plan, std::unique_ptr<plait::Session> session, bool has_timings);

  // The right to use the session, until it is destroyed. Calls from the callback of run_async have it already.
  class Use {
   public:
    explicit Use(plait_session* session, bool owns) : session_(session), owns_(owns) {}
    Use(Use&& other) noexcept : session_(other.session_), owns_(other.owns_) { other.owns_ = false; }
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (owns_) session_->in_use_.store(false, std::memory_order_release);
    }
    // Left to the asynchronous inference that has been started.
    void Abandon() { owns_ = false; }

   private:
    plait_session* session_;
    bool owns_;
  };
  plait::Result<Use> Claim();

  const plait::Graph& graph() const { return *plan->planned.graph; }
  plait::Status Run();  // claimed
  plait::Status UseBuffers(std::span<void* const> inputs, std::span<void* const> outputs);  // claimed
  // Claimed; gives the claim to the worker. `self` is this session.
  plait::Status RunAsync(std::shared_ptr<plait_session> self, plait_run_callback callback, void* user, Use* use);
  void Cancel();
  plait::Status Wait();
  // After the handle is gone: waits until nothing is in progress, and keeps it so.
  void Retire();

  plait_session_stats Stats() const;

  const std::shared_ptr<const plait_plan> plan;
  const std::unique_ptr<plait::Session> session;
  const bool has_timings;

 private:
  void Work(plait_session* handle, plait_run_callback callback, void* user);

  std::atomic<bool> in_use_{false};
  std::atomic<bool> async_pending_{false};    // from run_async until the inference has ended
  std::atomic<bool> async_cancelled_{false};
  bool has_next_ = false;                     // the callback has started another inference; the worker's thread only
  mutable std::mutex stats_mutex_;
  plait_session_stats stats_ = PLAIT_SESSION_STATS_INIT;
  double total_us_ = 0;
  plait::c_api::AsyncWorker worker_;          // last: its thread uses the rest
};
