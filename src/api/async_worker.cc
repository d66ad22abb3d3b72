#include "src/api/async_worker.h"

#include <exception>
#include <utility>

namespace plait::c_api {

struct AsyncWorker::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> job;    // waiting
  bool is_working = false;
  bool is_stopped = false;
  bool has_thread = false;
  std::thread::id thread_id;
};

AsyncWorker::AsyncWorker() : state_(std::make_shared<State>()) {}

AsyncWorker::~AsyncWorker() { Stop(); }

Status AsyncWorker::Post(std::function<void()> job) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->has_thread) {
    try {
      thread_ = std::thread([state = state_] { Main(state); });
    } catch (const std::exception& e) {  // system_error or bad_alloc
      return OutOfMemory("no thread can be made for asynchronous runs: ", e.what());
    }
    state_->has_thread = true;
    state_->thread_id = thread_.get_id();
  }
  state_->job = std::move(job);
  state_->changed.notify_all();
  return Status();
}

void AsyncWorker::WaitIdle() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return !state_->job && !state_->is_working; });
}

void AsyncWorker::Stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_stopped = true;
    state_->changed.notify_all();
  }
  if (!thread_.joinable()) return;
  if (IsThisThread()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

bool AsyncWorker::IsThisThread() const {
  const std::lock_guard lock(state_->mutex);
  return state_->has_thread && state_->thread_id == std::this_thread::get_id();
}

void AsyncWorker::Main(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->changed.wait(lock, [&] { return state->job || state->is_stopped; });
    if (!state->job) return;
    std::function<void()> job = std::move(state->job);
    state->job = nullptr;
    state->is_working = true;
    lock.unlock();
    job();
    job = nullptr;  // may destroy the worker: only `state` is left then
    lock.lock();
    state->is_working = false;
    state->changed.notify_all();
  }
}

}  // namespace plait::c_api
