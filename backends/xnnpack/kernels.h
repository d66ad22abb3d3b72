// Makers of kernels, one per group of operators. Internal to the backend.
#pragma once

#include <memory>
#include <vector>

#include "backends/interface/cpu_kernels.h"
#include "backends/xnnpack/aligned_buffer.h"
#include "backends/xnnpack/context.h"
#include "backends/xnnpack/packed_weights.h"
#include "backends/xnnpack/tiles.h"
#include "backends/xnnpack/xnn_operator.h"

namespace plait::xnn {

// What makers need besides the request. Outlived by the backend and the context.
struct KernelEnv {
  WeightStore* store = nullptr;
  const Tiles* tiles = nullptr;
  int64_t l2_bytes = 0;
  const XnnContext* context = nullptr;

  // The context's pool, or nullptr where waking it costs more than the work: about a microsecond.
  pthreadpool_t PoolFor(int64_t macs, int64_t bytes) const {
    return macs < kSmallMacs && bytes < kSmallBytes ? nullptr : context->pool();
  }
  static constexpr int64_t kSmallMacs = 16 << 10;
  static constexpr int64_t kSmallBytes = 16 << 10;
};

// The kernel, or a null pointer if it could run with dense operands only.
using KernelResult = Result<std::unique_ptr<CpuKernel>>;

KernelResult MakeConvolution(const KernelEnv& env, const KernelRequest& request);  // Conv2D, DepthwiseConv2D
KernelResult MakeFullyConnected(const KernelEnv& env, const KernelRequest& request);
KernelResult MakeMatMul(const KernelEnv& env, const KernelRequest& request);
KernelResult MakeUnary(const KernelEnv& env, const KernelRequest& request);
KernelResult MakeBinary(const KernelEnv& env, const KernelRequest& request);
KernelResult MakePool(const KernelEnv& env, const KernelRequest& request);
KernelResult MakeReduceMean(const KernelEnv& env, const KernelRequest& request);
KernelResult MakeSoftmax(const KernelEnv& env, const KernelRequest& request);
KernelResult MakeLayerNorm(const KernelEnv& env, const KernelRequest& request);
KernelResult MakeBatchNorm(const KernelEnv& env, const KernelRequest& request);
KernelResult MakeTranspose(const KernelEnv& env, const KernelRequest& request);
KernelResult MakePad(const KernelEnv& env, const KernelRequest& request);

// Copies the region of `from` to `to` (same extents, any strides).
std::unique_ptr<CpuKernel> MakeCopy(const KernelEnv& env, const Dims& extent, const float* from, const Dims& from_strides, float* to,
                                    const Dims& to_strides);

// Whether a depthwise layer has a kernel of XNNPACK's; otherwise a loop of our own runs it.
bool HasDepthwiseKernel(const Tiles& tiles, const Conv2DAttrs& attrs, int64_t kernel_h, int64_t kernel_w);
int64_t DepthwiseTile(const Tiles& tiles, const Conv2DAttrs& attrs, int64_t kernel_h, int64_t kernel_w);

// XNNPACK operators that run one after another with addresses set up for good.
class OperatorListKernel final : public CpuKernel {
 public:
  explicit OperatorListKernel(pthreadpool_t pool) : pool_(pool) {}
  void Add(XnnOperator op) { ops_.push_back(std::move(op)); }
  void KeepAlive(std::shared_ptr<PackedImage> image) { images_.push_back(std::move(image)); }
  // Workspace that all operators share; nullptr if it cannot be had.
  void* ReserveWorkspace(int64_t bytes) {
    workspace_ = AlignedBuffer::Allocate(bytes);
    return workspace_.data();
  }
  pthreadpool_t pool() const { return pool_; }
  Status Run() noexcept override;

 private:
  std::vector<std::shared_ptr<PackedImage>> images_;  // outlive ops_
  AlignedBuffer workspace_;
  std::vector<XnnOperator> ops_;
  pthreadpool_t pool_;
};

// A loop of our own as a kernel. `Loop` has `void operator()(pthreadpool_t) const noexcept`.
template <typename Loop>
class LoopKernel final : public CpuKernel {
 public:
  LoopKernel(pthreadpool_t pool, Loop loop) : pool_(pool), loop_(std::move(loop)) {}
  Status Run() noexcept override {
    loop_(pool_);
    return Status();
  }

 private:
  pthreadpool_t pool_;
  Loop loop_;
};

template <typename Loop>
std::unique_ptr<CpuKernel> MakeLoop(pthreadpool_t pool, Loop loop) {
  return std::make_unique<LoopKernel<Loop>>(pool, std::move(loop));
}

// Calls f(begin, count) over [0, items) in ranges of about `tile` on the pool's threads (nullptr: here). Allocates nothing.
template <typename F>
void ParallelRanges(pthreadpool_t pool, int64_t items, int64_t tile, const F& f) noexcept {
  if (items <= 0) return;
  pthreadpool_parallelize_1d_tile_1d(
      pool, [](void* context, size_t begin, size_t count) {
        (*static_cast<const F*>(context))(static_cast<int64_t>(begin), static_cast<int64_t>(count));
      },
      const_cast<F*>(&f), static_cast<size_t>(items), static_cast<size_t>(tile < 1 ? 1 : tile), PTHREADPOOL_FLAG_DISABLE_DENORMALS);
}

}  // namespace plait::xnn
