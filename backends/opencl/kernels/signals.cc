#include "backends/opencl/kernels/sources.h"

namespace plait::opencl {

const char kSignalsSource[] = R"CL(
// Until `word` has reached `ticket`. Tickets only grow, and wrap around: the sign of their difference in unsigned arithmetic tells.
KERNEL gate(volatile __global const uint* word, int ticket) {
  while ((int)(*word - (uint)ticket) < 0) {
  }
  mem_fence(CLK_GLOBAL_MEM_FENCE);
}

KERNEL signal(volatile __global uint* word, int ticket) {
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  *word = (uint)ticket;
}
)CL";

}  // namespace plait::opencl
