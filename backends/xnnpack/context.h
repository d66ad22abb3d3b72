// One CPU lane's threads.
#pragma once

#include <pthreadpool.h>

#include <memory>

#include "backends/interface/cpu_kernels.h"

namespace plait::xnn {

// A lane of one thread has no pool at all: pool() is nullptr and everything runs on the caller.
class XnnContext final : public CpuContext {
 public:
  // InvalidArgument for a count outside 1..1024; OutOfMemory if the system refuses the threads now.
  static Result<std::unique_ptr<XnnContext>> Create(int threads);
  ~XnnContext() override;

  // Puts spinning workers to sleep; they would burn their cores for milliseconds after the last job.
  void Park() noexcept override;

  pthreadpool_t pool() const { return pool_; }
  int threads() const { return threads_; }

 private:
  XnnContext(pthreadpool_t pool, int threads) : pool_(pool), threads_(threads) {}
  pthreadpool_t pool_;
  int threads_;
};

}  // namespace plait::xnn
