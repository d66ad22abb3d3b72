// Waiting, short and long: a pause for loops that spin, and sleeping on a word of memory until another thread changes it.
#pragma once

#include <atomic>
#include <cstdint>

namespace plait {

// Tells the core that this is a spin loop.
inline void CpuPause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield" ::: "memory");
#endif
}

// Sleeps while `word` holds `expected`, at most `timeout_ns` (negative: without bound). May return early; the caller looks again.
void SleepWhile(const std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns);

// Wakes every thread that sleeps on `word`. Reads nothing from it: the word may be gone already.
void WakeSleepers(const std::atomic<uint32_t>* word);

// Spins first and gives the core away once spinning has gone on for some hundred microseconds, so that lanes that have to share a core
// make progress.
class Backoff {
 public:
  void Reset() { spins_ = 0; }
  void Pause();

 private:
  int spins_ = 0;
};

}  // namespace plait
