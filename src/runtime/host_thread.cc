#include "src/runtime/host_thread.h"

#include <unistd.h>

#include <algorithm>
#include <future>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "src/base/clock.h"
#include "src/runtime/parking.h"

namespace plait {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<const Lane*, std::weak_ptr<HostThread>> threads;
};

// Never destroyed: sessions may end in static destructors.
Registry& TheRegistry() {
  static Registry& registry = *new Registry;
  return registry;
}

}  // namespace

HostThread::HostThread(std::shared_ptr<Lane> lane) : lane_(std::move(lane)), pid_(::getpid()) {}

Result<std::shared_ptr<HostThread>> HostThread::Of(const std::shared_ptr<Lane>& lane) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  std::erase_if(registry.threads, [](const auto& entry) { return entry.second.expired(); });
  if (std::shared_ptr<HostThread> thread = registry.threads[lane.get()].lock()) {
    if (thread->pid_ == ::getpid()) return thread;
    return Status(PLAIT_WRONG_PROCESS, "lane " + lane->name() + " was started before a fork() and cannot be used in the child; open it again there");
  }

  std::shared_ptr<HostThread> thread(new HostThread(lane));
  try {
    thread->thread_ = std::thread([host = thread.get()] { host->Main(); });
  } catch (const std::system_error& error) {
    return OutOfMemory("cannot create a thread for lane ", lane->name(), ": ", error.what());
  }
  Status status;
  thread->RunHere([&] { status = lane->Start(/*is_own_thread=*/true); });
  PLAIT_RETURN_IF_ERROR(status.Annotated("lane " + lane->name()));
  registry.threads[lane.get()] = thread;
  return thread;
}

HostThread::~HostThread() {
  if (!thread_.joinable()) return;
  if (::getpid() != pid_) {
    thread_.detach();
    return;
  }
  job_ = nullptr;
  task_ = nullptr;
  ticket_.fetch_add(1, std::memory_order_seq_cst);
  WakeSleepers(&ticket_);
  thread_.join();
}

Status HostThread::Adopt(const std::shared_ptr<Lane>& lane) {
  Backoff backoff;
  while (!TryClaim()) backoff.Pause();
  Status status;
  RunHere([&] {
    if (std::find(adopted_.begin(), adopted_.end(), lane) != adopted_.end()) return;
    status = lane->Start(/*is_own_thread=*/false);
    if (status.ok()) adopted_.push_back(lane);
  });
  Release();
  return status.Annotated("lane " + lane->name());
}

void HostThread::RunHere(std::function<void()> task) {
  std::promise<void> done;
  job_ = nullptr;
  task_ = [&] {
    task();
    done.set_value();
  };
  ticket_.fetch_add(1, std::memory_order_seq_cst);
  WakeIfParked();
  done.get_future().wait();
}

void HostThread::Post(HostJob* job) {
  job_ = job;
  ticket_.fetch_add(1, std::memory_order_seq_cst);
}

void HostThread::WakeIfParked() {
  // Only the thread itself takes the flag down: a peer that is late with an older job may come here just before the thread falls asleep, and
  // a flag taken down then would let the next job's wake-up be skipped.
  if (parked_.load(std::memory_order_seq_cst)) WakeSleepers(&ticket_);
}

uint32_t HostThread::AwaitTicket(uint32_t seen, int64_t spin_ns) {
  if (spin_ns > 0) {
    const int64_t end_ns = NowNs() + spin_ns;
    do {
      for (int i = 0; i < 16; ++i) {
        const uint32_t ticket = ticket_.load(std::memory_order_acquire);
        if (ticket != seen) return ticket;
        CpuPause();
      }
    } while (NowNs() < end_ns);
  }
  lane_->Park();
  for (const std::shared_ptr<Lane>& lane : adopted_) lane->Park();
  uint32_t ticket = seen;
  while (ticket == seen) {
    parked_.store(true, std::memory_order_seq_cst);
    ticket = ticket_.load(std::memory_order_seq_cst);
    if (ticket != seen) break;
    SleepWhile(ticket_, seen, -1);
    ticket = ticket_.load(std::memory_order_seq_cst);
  }
  parked_.store(false, std::memory_order_relaxed);
  return ticket;
}

void HostThread::Main() {
  int64_t spin_ns = 0;
  for (uint32_t seen = 0;;) {
    seen = AwaitTicket(seen, spin_ns);
    if (HostJob* const job = job_) {
      spin_ns = job->idle_spin_ns;
      RunJob(job);
    } else if (task_) {
      spin_ns = 0;
      task_();
    } else {
      return;
    }
  }
}

void HostThread::RunJob(HostJob* job) {
  InferenceState& state = *job->state;
  // The caller may have lost its core to this thread before it could wake the others.
  for (HostThread* peer : job->peers) peer->WakeIfParked();
  for (HostJob::Hosted& hosted : job->lanes) {
    hosted.is_done = false;
    hosted.lane->Submit(job->inference);
  }
  Backoff backoff;
  size_t active = job->lanes.size();
  while (active > 0 && state.stop.load(std::memory_order_acquire) == 0) {
    bool has_progress = false;
    for (HostJob::Hosted& hosted : job->lanes) {
      if (hosted.is_done) continue;
      const LaneState lane_state = hosted.lane->Poll();
      if (lane_state == LaneState::kIdle) {
        hosted.is_done = true;
        --active;
      } else if (lane_state == LaneState::kFailed) {
        int none = -1;
        state.failed_lane.compare_exchange_strong(none, hosted.id, std::memory_order_acq_rel);
        state.Stop(StopReason::kLaneFailed);
        break;
      }
      has_progress |= lane_state != LaneState::kWaiting;
    }
    if (has_progress) {
      backoff.Reset();
    } else {
      backoff.Pause();
    }
  }
  if (active > 0) {
    for (HostJob::Hosted& hosted : job->lanes) {
      if (!hosted.is_done) hosted.lane->Abandon();
    }
    state.abandoned.store(true, std::memory_order_relaxed);
  }
  if (state.remaining.fetch_sub(1, std::memory_order_seq_cst) == 1 && state.caller_sleeps.load(std::memory_order_seq_cst)) {
    WakeSleepers(&state.remaining);
  }
  state.departures.fetch_add(1, std::memory_order_release);
}

}  // namespace plait
