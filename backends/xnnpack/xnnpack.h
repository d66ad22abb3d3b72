// The CPU backend: f32 kernels from XNNPACK's operator API, and loops of our own where XNNPACK has no operator or no strides.
// docs/xnnpack.md says which operator is run by what, and why.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/interface/cpu_kernels.h"

namespace plait {

struct XnnpackOptions {
  // Private L2 cache of one core, which decides when a part runs as a list of channel blocks. 0: read from the system.
  int64_t l2_bytes = 0;
  // Nothing else in this process uses XNNPACK: its kernels may be chosen for the whole process (docs/xnnpack.md, "Tiles"). Only what the first backend of a
  // process says counts.
  bool owns_process = false;
};

// Counters since the backend was made, for tests and reports.
struct XnnpackStats {
  int64_t layers_packed = 0;   // images of packed weights made; further parts, lanes and cuts of a layer add none
  int64_t slices_served = 0;   // operators whose weights came from an image that existed already
  int64_t packed_bytes = 0;    // in images alive now
  int64_t operators_made = 0;  // XNNPACK operators created
};

// Kernels may be created from several threads at once; each runs on its context's thread.
class XnnpackBackend : public CpuBackend {
 public:
  virtual XnnpackStats stats() const = 0;
};

// Unsupported if XNNPACK cannot run on this processor.
Result<std::shared_ptr<XnnpackBackend>> CreateXnnpackBackend(const XnnpackOptions& options);
Result<std::shared_ptr<CpuBackend>> CreateXnnpackBackend();

// "XNNPACK", and the choice of its kernels where it is ours (docs/xnnpack.md, "Tiles"): what was measured with one choice says nothing about another.
std::string DescribeXnnpack();

}  // namespace plait
