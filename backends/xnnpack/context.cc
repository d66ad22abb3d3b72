#include "backends/xnnpack/context.h"

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <vector>

namespace plait::xnn {
namespace {

constexpr int kMaxThreads = 1024;

struct Gate {
  std::mutex mutex;
  std::condition_variable opened;
  bool open = false;
};

void* WaitForGate(void* argument) {
  Gate& gate = *static_cast<Gate*>(argument);
  std::unique_lock<std::mutex> lock(gate.mutex);
  gate.opened.wait(lock, [&] { return gate.open; });
  return nullptr;
}

// Whether `count` threads can exist at once. pthreadpool_create ignores a failed pthread_create and then waits forever.
bool CanMakeThreads(int count) {
  Gate gate;
  std::vector<pthread_t> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, WaitForGate, &gate) != 0) break;
    threads.push_back(thread);
  }
  {
    const std::lock_guard<std::mutex> lock(gate.mutex);
    gate.open = true;
  }
  gate.opened.notify_all();
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  return threads.size() == static_cast<size_t>(count);
}

}  // namespace

Result<std::unique_ptr<XnnContext>> XnnContext::Create(int threads) {
  if (threads < 1 || threads > kMaxThreads) {
    return InvalidArgument("a CPU lane of ", threads, " threads: give 1 to ", kMaxThreads);
  }
  pthreadpool_t pool = nullptr;
  if (threads > 1) {
    if (!CanMakeThreads(threads - 1)) {
      return OutOfMemory("the system refuses ", threads - 1, " more threads for a CPU lane; give it fewer cores or raise the limit (ulimit -u)");
    }
    pool = pthreadpool_create(static_cast<size_t>(threads));
    if (pool == nullptr) return OutOfMemory("pthreadpool_create(", threads, ") failed");
  }
  return std::unique_ptr<XnnContext>(new XnnContext(pool, threads));
}

XnnContext::~XnnContext() {
  if (pool_ != nullptr) pthreadpool_destroy(pool_);
}

void XnnContext::Park() noexcept {
  if (pool_ == nullptr) return;
  pthreadpool_parallelize_1d(pool_, [](void*, size_t) {}, nullptr, static_cast<size_t>(threads_), PTHREADPOOL_FLAG_YIELD_WORKERS);
}

}  // namespace plait::xnn
