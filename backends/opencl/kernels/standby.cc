#include "backends/opencl/kernels/sources.h"

namespace plait::opencl {

const char kStandbySource[] = R"CL(
// Until `word` changes from `begin`, at most `turns` looks at it.
KERNEL standby(volatile __global const int* word, int begin, int turns) {
  for (int i = 0; i < turns && *word == begin; ++i) {
  }
}
)CL";

}  // namespace plait::opencl
