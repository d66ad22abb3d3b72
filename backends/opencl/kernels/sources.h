// OpenCL C sources of the kernel families. Every kernel takes offsets and strides in elements, so that it computes any
// region of its operator in place, and every sum has one fixed order that no tile, part or chunk changes.
#pragma once

namespace plait::opencl {

// Compile options: VW (vector width), NV (vectors a column tile; NV * VW == kTileColumns), MR (rows a register tile),
// LOCAL_ONE (work-groups of one item, for CPU devices).
extern const char kPrelude[];        // before every family
extern const char kGemmSource[];     // gemm, gemm_strided, conv, pack_transposed
extern const char kDepthwiseSource[];
extern const char kPoolSource[];     // max_pool, average_pool
extern const char kElementwiseSource[];  // binary_*, unary_*
extern const char kRowsSource[];     // softmax, layer_norm, reduce_*
extern const char kLayoutSource[];   // transpose, pad, copy_lines
extern const char kSignalsSource[];

}  // namespace plait::opencl
