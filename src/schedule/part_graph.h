// The parts of a schedule as a graph: which part reads what of which other part.
#pragma once

#include <cstddef>
#include <vector>

#include "src/schedule/schedule.h"

namespace plait {

// Elements that one part reads and another (or the caller) has written.
struct PartRead {
  int producer = -1;            // index into Schedule::parts; -1: a graph input
  TensorId tensor = kNoTensor;  // the producer's output, or the graph input
  Region region;                // of that tensor
};

// [part] -> what it reads, seen through views, by operand; no read twice. The schedule's shape must be sound (CheckParts).
std::vector<std::vector<PartRead>> ReadsOfParts(const Graph& graph, const Schedule& schedule);

// More parts of one operator than any search makes; what comes from a file is held to it.
inline constexpr size_t kMaxPartsPerOp = 256;

// Ids and regions are in range, every part stands in its lane's order once, and the parts of every operator that is no view
// tile its output.
Status CheckParts(const Graph& graph, size_t lane_count, const Schedule& schedule);

// Parts in an order that lanes can follow: every part after those that it reads and those before it on its lane.
// InvalidArgument names a part that waits for ever.
Result<std::vector<int>> ExecutionOrder(const Graph& graph, const Schedule& schedule,
                                        const std::vector<std::vector<PartRead>>& reads);

}  // namespace plait
