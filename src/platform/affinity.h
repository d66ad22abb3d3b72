// Which cores a thread may run on.
#pragma once

#include <span>
#include <vector>

#include "src/base/status.h"

namespace plait {

// Confines the calling thread, and threads that it creates later, to `cpus` (not empty). The kernel silently drops cores that are offline or
// outside the process's cpuset, so read the result back. InvalidArgument if no core of the list can be had.
Status SetThreadAffinity(std::span<const int> cpus);

// Cores that the calling thread may run on, ascending; empty if the system will not say.
std::vector<int> ThreadAffinity();

}  // namespace plait
