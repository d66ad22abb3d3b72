// Private to the reference backend: operands with their addresses, and one maker of kernels per operator kind.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "backends/interface/cpu_kernels.h"
#include "backends/reference/packed.h"
#include "src/graph/graph.h"

namespace plait::reference {

// A strided box of a tensor in memory. `data` is the region's first element; the innermost stride is 1 wherever the
// innermost size exceeds 1.
struct Operand {
  float* data = nullptr;  // written only for outputs; nullptr: an absent optional input
  Region region;
  Dims strides;
  bool constant = false;  // the bytes never change, so they may be packed when the kernel is made

  // The address of the element at `at`, in the tensor's coordinates.
  float* At(const Dims& at) const {
    float* p = data;
    for (int i = 0; i < at.rank(); ++i) p += (at[i] - region.begin[i]) * strides[i];
    return p;
  }
  // The same for a vector.
  float* At(int64_t i) const { return data + (i - region.begin[0]) * strides[0]; }
};

struct KernelArgs {
  const Graph* graph = nullptr;
  const Operator* op = nullptr;
  Region region;  // of the output: what the kernel computes
  std::vector<Operand> in;
  Operand out;
  PackedCache* packed = nullptr;

  const Dims& in_shape(int i) const { return graph->input(*op, i).shape; }
  const Dims& out_shape() const { return graph->output(*op).shape; }
};

template <typename F>
class FunctionKernel final : public CpuKernel {
 public:
  explicit FunctionKernel(F run) : run_(std::move(run)) {}
  Status Run() noexcept override {
    run_();
    return Status();
  }

 private:
  F run_;
};

// A kernel that calls `run`, which owns its scratch memory: it neither allocates nor throws.
template <typename F>
std::unique_ptr<CpuKernel> MakeKernel(F run) {
  return std::make_unique<FunctionKernel<F>>(std::move(run));
}

// Calls f(at) for the first element of every innermost row of `region`, in row-major order. Rank 0 is one row of one
// element.
template <typename F>
void ForEachRow(const Region& region, F&& f) {
  if (region.IsEmpty()) return;
  Dims at = region.begin;
  while (true) {
    f(std::as_const(at));
    int axis = at.rank() - 2;
    for (; axis >= 0; --axis) {
      if (++at[axis] < region.begin[axis] + region.size[axis]) break;
      at[axis] = region.begin[axis];
    }
    if (axis < 0) return;
  }
}

inline int64_t RowLength(const Region& region) { return region.size.rank() == 0 ? 1 : region.size.back(); }

// NaN stays NaN.
inline float Apply(const Clamp& clamp, float v) { return std::min(std::max(v, clamp.min), clamp.max); }

std::unique_ptr<CpuKernel> MakeConv2D(KernelArgs args);
std::unique_ptr<CpuKernel> MakeFullyConnected(KernelArgs args);
std::unique_ptr<CpuKernel> MakeMatMul(KernelArgs args);
std::unique_ptr<CpuKernel> MakeDepthwiseConv2D(KernelArgs args);
std::unique_ptr<CpuKernel> MakeMaxPool2D(KernelArgs args);
std::unique_ptr<CpuKernel> MakeAveragePool2D(KernelArgs args);
std::unique_ptr<CpuKernel> MakeBinary(KernelArgs args);
std::unique_ptr<CpuKernel> MakeUnary(KernelArgs args);
std::unique_ptr<CpuKernel> MakeBatchNorm(KernelArgs args);
std::unique_ptr<CpuKernel> MakeReduceMean(KernelArgs args);
std::unique_ptr<CpuKernel> MakeSoftmax(KernelArgs args);
std::unique_ptr<CpuKernel> MakeLayerNorm(KernelArgs args);
std::unique_ptr<CpuKernel> MakeConcat(KernelArgs args);
std::unique_ptr<CpuKernel> MakeSlice(KernelArgs args);
std::unique_ptr<CpuKernel> MakeReshape(KernelArgs args);
std::unique_ptr<CpuKernel> MakeTranspose(KernelArgs args);
std::unique_ptr<CpuKernel> MakePad(KernelArgs args);

}  // namespace plait::reference
