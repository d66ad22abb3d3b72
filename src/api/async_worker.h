// A thread that does one job at a time, made when the first is given.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "src/base/status.h"

namespace plait::c_api {

// Thread-safe. The destructor and Stop() wait for the job, except on the worker's own thread, where the worker ends after it.
class AsyncWorker {
 public:
  AsyncWorker();
  ~AsyncWorker();
  AsyncWorker(const AsyncWorker&) = delete;
  AsyncWorker& operator=(const AsyncWorker&) = delete;

  // Hands the worker its next job: none is waiting, and none is running except on the thread that calls this. OutOfMemory if no
  // thread can be made.
  Status Post(std::function<void()> job);
  // Until no job is waiting or running. Not on the worker's thread.
  void WaitIdle();
  void Stop();
  bool IsThisThread() const;

 private:
  struct State;
  static void Main(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;  // outlives a worker that is destroyed by its own job
  std::thread thread_;
};

}  // namespace plait::c_api
