// Buffers that may lie in the same bytes, since kernels write over what they read for the last time.
#pragma once

#include <vector>

#include "src/plan/clocks.h"
#include "src/plan/plan.h"

namespace plait {

// [buffer] -> the buffer whose bytes it takes over; itself if none. Chains are followed to their first buffer. Both are activations of equal size, some step
// writes the one over the other as MayWriteOver() allows, and every other use of the older one that touches a byte of a use of the newer one is finished before it starts.
std::vector<BufferId> BuffersInPlace(const Graph& graph, const StepProgram& program, const Clocks& clocks);

}  // namespace plait
