// XNNPACK's start: once a process, before anything asks XNNPACK for an operator.
#pragma once

#include "src/base/status.h"

namespace plait::xnn {

// Initialises XNNPACK and has it choose its GEMM tiles. Thread-safe; the same answer ever after. Unsupported if XNNPACK cannot run here.
//
// On x86 with FMA but without AVX-512, XNNPACK takes a tile of 5 rows by 16 channels. Its ten accumulators, the operands and two limits do not fit
// sixteen registers as gcc allots them: one accumulator lives in memory, and every step waits for its store to be forwarded. The tile of 4 rows that XNNPACK
// keeps for AMD's first Zen needs none, and is 1.8 to 2.3 times as fast on a Zen 3 (docs/xnnpack.md, "Tiles"). So while XNNPACK chooses, the name of the
// microarchitecture that cpuinfo tells it is Zen; afterwards it is what it was. A thread that reads cpuinfo's microarchitecture meanwhile may see that name.
// PLAIT_XNNPACK_TILES=default in the environment leaves the choice to XNNPACK.
const Status& InitializeXnnpack();

// Whether InitializeXnnpack() chose the tile of 4 rows.
bool UsesFourRowTiles();

}  // namespace plait::xnn
