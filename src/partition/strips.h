// Strips: consecutive operators cut once, alike, so that nothing is handed over inside.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "src/graph/graph.h"
#include "src/graph/operators.h"
#include "src/partition/cuts.h"

namespace plait {

// One operator of a strip with the axis of its output that is cut, and what its kernels ask of cuts there.
struct StripOperator {
  OpId op = kNoOp;
  SplitAxis axis{};
  CutRule rule;
};

// The operators of a strip that is cut by rows; nullopt if one of them has no rows. `rule` says what the kernels that may run it ask.
std::optional<std::vector<StripOperator>> RowStrip(const Graph& graph, const std::vector<OpId>& ops, const std::function<CutRule(OpId, const SplitAxis&)>& rule);

// Whether these operators (two or more, in topological order, no views) can be a strip: what any but the last computes is read by others of them alone,
// directly and not through a view, and is no graph output. `readers` is [tensor] -> operators that read it.
bool CanBeStrip(const Graph& graph, const std::vector<std::vector<OpId>>& readers, const std::vector<OpId>& ops);

// [tensor] -> the operators that read it, ascending.
std::vector<std::vector<OpId>> ReadersOf(const Graph& graph);

// What each operator of a strip computes so that the last one can compute `last`: whole rows with the halo that the later ones read, rounded outwards to
// where its kernels can be cut. nullopt if `last` reads nothing of some operator or a part would be too small.
std::optional<std::vector<Region>> StripRegions(const Graph& graph, const std::vector<StripOperator>& strip, const Region& last);

}  // namespace plait
