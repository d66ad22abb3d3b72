#include "src/platform/affinity.h"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "src/platform/cpu_list.h"

namespace plait {
namespace {

// Sets are sized at run time: the fixed cpu_set_t ends at core 1023.
struct FreeSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, FreeSet>;

}  // namespace

Status SetThreadAffinity(std::span<const int> cpus) {
  int max_id = -1;
  for (int cpu : cpus) {
    if (cpu < 0 || cpu > kMaxCpuId) return InvalidArgument("cannot pin a thread to core ", cpu, ": core numbers are 0 to ", kMaxCpuId);
    max_id = std::max(max_id, cpu);
  }
  if (max_id < 0) return InvalidArgument("cannot pin a thread to an empty set of cores");
  const size_t bytes = CPU_ALLOC_SIZE(max_id + 1);
  const CpuSet set(CPU_ALLOC(max_id + 1));
  if (set == nullptr) return OutOfMemory("no memory for a set of ", max_id + 1, " cores");
  CPU_ZERO_S(bytes, set.get());
  for (int cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), bytes, set.get());
  if (::sched_setaffinity(0, bytes, set.get()) != 0) {
    return InvalidArgument("cannot pin a thread to cores ", FormatCpuList(cpus), ": ", std::strerror(errno),
                           "; none of them is online and allowed for this process");
  }
  return Status();
}

std::vector<int> ThreadAffinity() {
  // The kernel refuses sets smaller than its own with EINVAL.
  for (int count = 1024; count <= kMaxCpuId + 1; count *= 4) {
    const size_t bytes = CPU_ALLOC_SIZE(count);
    const CpuSet set(CPU_ALLOC(count));
    if (set == nullptr) return {};
    CPU_ZERO_S(bytes, set.get());
    if (::sched_getaffinity(0, bytes, set.get()) != 0) {
      if (errno == EINVAL) continue;
      return {};
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < count; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set.get())) cpus.push_back(cpu);
    }
    return cpus;
  }
  return {};
}

}  // namespace plait
