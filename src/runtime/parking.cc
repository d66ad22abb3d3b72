#include "src/runtime/parking.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace plait {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);

void SleepWhile(const std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns) {
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000);
  timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, timeout_ns < 0 ? nullptr : &timeout, nullptr, 0);
}

void WakeSleepers(const std::atomic<uint32_t>* word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1 << 30, nullptr, nullptr, 0);
}

void Backoff::Pause() {
  constexpr int kSpins = 4096;  // 50 to 200 us, as long as a pause takes on common cores
  if (++spins_ < kSpins) {
    CpuPause();
  } else {
    ::sched_yield();
  }
}

}  // namespace plait
