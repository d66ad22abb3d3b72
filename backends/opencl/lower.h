// From a compute step to kernel launches.
#pragma once

#include <memory>
#include <vector>

#include "backends/interface/steps.h"
#include "backends/opencl/launch.h"

namespace plait::opencl {

// What steps are lowered against. Everything outlives the launches.
struct LowerContext {
  Device* device = nullptr;
  const Graph* graph = nullptr;
  const StepProgram* program = nullptr;
  Memory arena;
  Memory scratch;                                 // ScratchElements of the largest step; shared, as the queue is in order
  std::vector<std::shared_ptr<ClMem>>* keep = nullptr;  // constants that the launches use
};

// Elements of scratch memory that the step's launches need.
int64_t ScratchElements(const Graph& graph, const Step& step);

// The launches of a Compute step, in order. Unsupported or InvalidArgument names the operator.
Result<std::vector<Launch>> LowerStep(const LowerContext& context, const Step& step);

}  // namespace plait::opencl
