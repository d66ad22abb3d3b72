#include "backends/opencl/kernels/sources.h"

namespace plait::opencl {

const char kSignalsSource[] = R"CL(
// Until `word` has reached `ticket`. Tickets only grow; differences survive their wrapping around.
KERNEL gate(volatile __global const int* word, int ticket) {
  while (*word - ticket < 0) {
  }
  mem_fence(CLK_GLOBAL_MEM_FENCE);
}

KERNEL signal(volatile __global int* word, int ticket) {
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  *word = ticket;
}
)CL";

}  // namespace plait::opencl
