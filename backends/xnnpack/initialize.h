// XNNPACK's start: once a process, before anything asks XNNPACK for an operator.
#pragma once

#include "src/base/status.h"

namespace plait::xnn {

// Initialises XNNPACK and has it choose its GEMM tiles. `owns_process`: nothing else in this process uses XNNPACK, so its kernels may be chosen for all; the first
// call's counts. Thread-safe; the same answer ever after. Unsupported if XNNPACK cannot run here.
//
// On x86 with FMA but without AVX-512, XNNPACK takes a tile of 5 rows by 16 channels. Its ten accumulators, the operands and two limits do not fit
// sixteen registers as gcc allots them: one accumulator lives in memory, and every step waits for its store to be forwarded. The tile of 4 rows that XNNPACK
// keeps for AMD's first Zen needs none, and is 1.8 to 2.3 times as fast on a Zen 3 (docs/xnnpack.md, "Tiles"). So where the process is ours, the name of the
// microarchitecture that cpuinfo tells XNNPACK while it chooses is Zen; afterwards it is what it was.
//
// The choice is the whole process', and tiles of 4 rows read four inputs at a time: whoever runs XNNPACK's matrix products with weights that are no constants has
// to zero its workspace, as this backend does and XNNPACK's subgraphs do not. Hence only where nobody else is there, or PLAIT_XNNPACK_TILES=4x16 in the
// environment says so; PLAIT_XNNPACK_TILES=default leaves the choice to XNNPACK always.
const Status& InitializeXnnpack(bool owns_process);

// Whether InitializeXnnpack chose the tile of 4 rows; false before.
bool UsesFourRowTiles();

}  // namespace plait::xnn
