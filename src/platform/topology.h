// Cores and clusters of this machine, from sysfs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/platform/sysfs.h"

namespace plait {

struct Core {
  int id = 0;
  int package = -1;        // -1: unknown
  int64_t capacity = 0;    // the kernel's cpu_capacity, 1024 for the strongest core of the chip; 0: unknown
  int64_t max_khz = 0;     // 0: unknown
  int64_t l2_bytes = 0;    // 0: unknown
  int l2_sharers = 1;      // cores that share that L2
};

// Like cores that belong together: what becomes a CPU lane.
struct Cluster {
  std::vector<int> cpus;   // ascending
  int64_t capacity = 0;    // of one core; 0: unknown
  int64_t max_khz = 0;
  int64_t l2_bytes = 0;    // of one core's L2, shared or not
};

struct Topology {
  std::string cpu;                 // what the machine calls its processor; "unknown processor" if it does not say
  std::vector<Core> cores;         // ascending ids; only cores that are online and allowed
  std::vector<Cluster> clusters;   // strongest (summed over its cores) first, then by lowest core
};

// Never fails: what cannot be read is unknown, and without any clue all cores make one cluster. `allowed`: cores that the process may use
// (affinity.h); empty: all that are online.
//
// Cores are of one cluster if they share package, capacity and clock domain. Clock domains of one core (as on PCs) say nothing, so there
// maximum clocks within 10 % count as equal; where nothing tells cores apart, the kernel's cluster ids do.
Topology ReadTopology(const SysFs& sysfs, std::span<const int> allowed);

// Clocks and heat, for reports; nullopt: unknown.
std::optional<int64_t> CurrentKhz(const SysFs& sysfs, int cpu);
std::optional<double> HottestCelsius(const SysFs& sysfs);  // over thermal zones that belong to the processor, else over all

}  // namespace plait
