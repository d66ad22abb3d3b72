// Which kernel runs an operator, and how it may be cut.
#pragma once

#include <string>

#include "backends/interface/backend.h"

namespace plait::opencl {

// Columns of a register tile, and of the packed weights: the granularity of channel cuts.
inline constexpr int kTileColumns = 16;

// "opencl.conv2d.gemm"; empty for views.
std::string KernelId(OpKind kind);

}  // namespace plait::opencl
