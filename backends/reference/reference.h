// The reference backend: every operator kind, f32, any region of any strided view, on the calling thread. It is the
// oracle of the tests and the last resort of lanes whose own backend lacks an operator.
//
// Every sum has one fixed order (kernel rows, kernel columns, input channels; row-major for means) that does not
// depend on the region, so parts equal the whole bit for bit for every cut.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backends/interface/cpu_kernels.h"
#include "src/graph/graph.h"

namespace plait {

// Kernel ids are "reference.<operator kind in lower case>". Contexts hold no threads: work runs on the caller
// whatever `threads` says. Concat, Slice and Reshape are there as copying kernels, so that graphs can run before any
// pass.
std::shared_ptr<CpuBackend> CreateReferenceBackend();

// Called with every computed tensor right after its operator has run; the span is dense, row-major, and lives during
// the call only.
using TensorObserver = std::function<void(TensorId, std::span<const float>)>;

// Runs a whole validated graph, operator by operator, each tensor in a dense buffer that is freed after its last
// reader. `inputs` holds one dense row-major buffer per graph input, in order, each of the tensor's bytes; `outputs`
// becomes one vector per graph output. Unsupported names the operator and tensor that is not f32. Thread-safe.
Status EvaluateReference(const Graph& graph, std::span<const void* const> inputs,
                         std::vector<std::vector<std::byte>>* outputs, const TensorObserver& observe = {});

}  // namespace plait
