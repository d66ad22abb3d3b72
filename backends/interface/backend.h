// What a backend tells the planner about its kernels. Pure: asks no device, runs nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/graph/graph.h"
#include "src/graph/operators.h"
#include "src/partition/cuts.h"

namespace plait {

struct KernelSupport {
  bool supported = false;
  std::string kernel;  // the kernel id that would run the whole operator, e.g. "xnnpack.gemm"
  std::string reason;  // if not supported: what is missing, for people
};

// Thread-safe, immutable.
class KernelRules {
 public:
  virtual ~KernelRules() = default;
  virtual std::string_view name() const = 0;  // "xnnpack", "opencl", "reference"
  virtual KernelSupport Supports(const Graph& graph, OpId op) const = 0;
  // How the operator's kernel may be cut along `axis` so that parts equal the whole bit for bit.
  virtual CutRule Cut(const Graph& graph, OpId op, SplitAxis axis) const = 0;
  // See StrideSupport in src/partition/storage.h.
  virtual bool Strided(const Graph& graph, OpId op, int operand) const = 0;
};

}  // namespace plait
