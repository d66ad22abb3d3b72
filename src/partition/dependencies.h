// Which regions of which operators' outputs a part reads, seen through views.
#pragma once

#include <vector>

#include "src/graph/graph.h"
#include "src/graph/operators.h"

namespace plait {

// `region` of `tensor`, which is a graph input, a constant, or the output of an operator that is no view.
struct Source {
  TensorId tensor;
  Region region;
};

// Everything of non-view tensors that lies in `region` of `tensor`: itself if it is no view, else followed through
// Concat, Slice and Reshape. The union of the returned regions covers what is read; through a Reshape that mixes axes
// it may be larger.
std::vector<Source> TraceRegion(const Graph& graph, const std::vector<OpId>& producers, TensorId tensor,
                                const Region& region);

// The same for all activation inputs of `op` when it computes `out`; constants left out; one Source per tensor,
// enclosing boxes merged.
std::vector<Source> ReadsOf(const Graph& graph, const std::vector<OpId>& producers, OpId op, const Region& out);

}  // namespace plait
