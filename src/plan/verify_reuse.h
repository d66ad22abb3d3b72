// The verifier's last rule: buffers that share memory are in use one after the other, but for kernels that write over what they read.
#pragma once

#include <functional>

#include "src/plan/plan.h"

namespace plait {

struct StepRef {
  LaneId lane;
  int64_t step;
};

// `before(a, b)`: whether step `a` is finished, and b's lane knows it, before step `b` starts. Every view lies inside its buffer.
Status CheckMemoryReuse(const Graph& graph, const StepProgram& program, const std::function<bool(StepRef, StepRef)>& before);

}  // namespace plait
