#include "src/api/session_object.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "src/base/clock.h"
#include "src/base/log.h"

using plait::NowNs;
using plait::Result;
using plait::Status;

plait_session::plait_session(std::shared_ptr<const plait_plan> used_plan, std::unique_ptr<plait::Session> used_session, bool with_timings)
    : plan(std::move(used_plan)), session(std::move(used_session)), has_timings(with_timings) {
  stats_.predicted_us = plan->planned.plan->schedule.predicted_us;
  stats_.memory_bytes = static_cast<uint64_t>(plan->planned.plan->program.arena_bytes);
}

Result<plait_session::Use> plait_session::Claim() {
  // The worker's thread is in a callback, or it would not be here.
  if (worker_.IsThisThread()) return Use(this, false);
  if (in_use_.exchange(true, std::memory_order_acquire)) return Status(PLAIT_BUSY, "the session is serving another call");
  return Use(this, true);
}

Status plait_session::Run() {
  const int64_t start_ns = NowNs();
  const Status status = session->Run();
  const double us = static_cast<double>(NowNs() - start_ns) / 1e3;
  const std::lock_guard lock(stats_mutex_);
  if (!status.ok()) {
    stats_.failed += status.code() != PLAIT_BUSY;
    return status;
  }
  ++stats_.runs;
  total_us_ += us;
  stats_.last_us = us;
  stats_.min_us = stats_.runs == 1 ? us : std::min(stats_.min_us, us);
  stats_.max_us = std::max(stats_.max_us, us);
  return status;
}

Status plait_session::UseBuffers(std::span<void* const> inputs, std::span<void* const> outputs) {
  PLAIT_RETURN_IF_ERROR(session->UseBuffers(inputs, outputs));
  const std::lock_guard lock(stats_mutex_);
  stats_.copied_bytes = static_cast<uint64_t>(session->copied_bytes());
  return Status();
}

Status plait_session::RunAsync(std::shared_ptr<plait_session> self, plait_run_callback callback, void* user, Use* use) {
  if (has_next_) return Status(PLAIT_BUSY, "the callback has started the next inference already");
  plait_session* const handle = self.get();
  std::function<void()> job = [self = std::move(self), handle, callback, user] { self->Work(handle, callback, user); };
  async_cancelled_.store(false);
  async_pending_.store(true);
  has_next_ = true;
  const Status status = worker_.Post(std::move(job));
  if (status.ok()) {
    use->Abandon();
  } else {
    has_next_ = false;
    async_pending_.store(false);
  }
  return status;
}

void plait_session::Work(plait_session* handle, plait_run_callback callback, void* user) {
  has_next_ = false;
  Status status(PLAIT_CANCELLED, "the inference was cancelled");
  if (!async_cancelled_.load()) {
    const Status outcome = Run();
    // Cancelled between its start and its end, wherever that fell.
    if (!outcome.ok() || !async_cancelled_.load()) status = outcome;
  }
  async_pending_.store(false);
  try {
    callback(user, handle, status.code(), status.message().c_str());
  } catch (...) {
    plait::Log(plait::LogLevel::kError, "the callback of an asynchronous run threw an exception");
  }
  if (!has_next_) in_use_.store(false, std::memory_order_release);
}

void plait_session::Cancel() {
  if (async_pending_.load()) async_cancelled_.store(true);
  static_cast<void>(session->Cancel());
}

Status plait_session::Wait() {
  if (worker_.IsThisThread()) return plait::InvalidArgument("a session's own callback cannot wait for it");
  worker_.WaitIdle();
  return Status();
}

void plait_session::Retire() {
  if (worker_.IsThisThread()) {
    async_cancelled_.store(true);  // what this callback may have started
    return;
  }
  constexpr int kYields = 64;
  for (int i = 0; in_use_.exchange(true, std::memory_order_acquire); ++i) {
    const timespec pause{0, 50'000};
    if (i < kYields) {
      ::sched_yield();
    } else {
      ::nanosleep(&pause, nullptr);
    }
  }
  worker_.Stop();
}

plait_session_stats plait_session::Stats() const {
  const std::lock_guard lock(stats_mutex_);
  plait_session_stats stats = stats_;
  stats.mean_us = stats.runs > 0 ? total_us_ / static_cast<double>(stats.runs) : 0;
  return stats;
}
