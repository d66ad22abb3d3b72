// Kernels that run on the calling thread (and a pool of the lane's own): the contract between CPU lanes and their backends.
#pragma once

#include <memory>
#include <vector>

#include "backends/interface/backend.h"
#include "backends/interface/steps.h"

namespace plait {

// State of one CPU lane in one backend, e.g. its thread pool. Made on the lane's pinned lead thread, used by that thread only.
class CpuContext {
 public:
  virtual ~CpuContext() = default;
  // Called when the lane goes idle, so that pool threads park rather than spin. Cheap if there is nothing to do.
  virtual void Park() noexcept {}
};

// A view with its address. `data` points at the region's first element.
struct BoundView {
  const View* view = nullptr;
  void* data = nullptr;
};

struct KernelRequest {
  const Graph* graph = nullptr;   // outlives the kernel
  OpId op = kNoOp;
  Region region;                  // of the output
  std::string kernel;             // id as planned; empty: the backend's choice
  std::vector<BoundView> reads;   // one per operator input; constants, too (data: the constant's first element of the region)
  BoundView write;
};

// One prepared step: addresses, weights and workspaces are fixed. Allocates nothing when it runs.
class CpuKernel {
 public:
  virtual ~CpuKernel() = default;
  virtual Status Run() noexcept = 0;
};

class CpuBackend {
 public:
  virtual ~CpuBackend() = default;
  virtual const KernelRules& rules() const = 0;
  // `threads` >= 1 including the caller; workers inherit the caller's affinity. Fails rather than hangs if threads cannot be made.
  virtual Result<std::unique_ptr<CpuContext>> CreateContext(int threads) = 0;
  // The kernel for one part. `context` outlives it. Thread-safe. Packed weights are shared between kernels of one backend object.
  virtual Result<std::unique_ptr<CpuKernel>> CreateKernel(CpuContext* context, const KernelRequest& request) = 0;
};

}  // namespace plait
