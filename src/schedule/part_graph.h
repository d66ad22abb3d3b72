// The parts of a schedule as a graph: which part reads what of which other part.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "src/schedule/schedule.h"

namespace plait {

// Elements that one part reads and another (or the caller) has written.
struct PartRead {
  int producer = -1;            // index into Schedule::parts; -1: a graph input
  TensorId tensor = kNoTensor;  // the producer's output, or the graph input
  Region region;                // of that tensor
};

// Strips: several operators cut alike, each lane running its share through all of them. What only the strips themselves read is private to each
// of them, so their parts may overlap (a halo is computed by both neighbours) and nothing of it is handed over.
class PrivateResults {
 public:
  PrivateResults(const Graph& graph, const Schedule& schedule);

  // Whether the operator's output is private: it is no graph output, no view touches it, all its parts are in strips, and every part that reads it
  // is in a strip that has a part of it.
  bool Contains(OpId op) const { return is_private_[static_cast<size_t>(op)]; }
  // The part of `op` in `strip`, an index into Schedule::parts; -1: none.
  int PartIn(int strip, OpId op) const;

 private:
  std::vector<bool> is_private_;                // [op]
  std::map<std::pair<int, OpId>, int> part_of_;  // by strip and operator
};

// [part] -> what it reads, seen through views, by operand; no read twice. The schedule's shape must be sound (CheckParts).
std::vector<std::vector<PartRead>> ReadsOfParts(const Graph& graph, const Schedule& schedule);

// More parts of one operator than any search makes; what comes from a file is held to it.
inline constexpr size_t kMaxPartsPerOp = 256;

// Ids and regions are in range, every part stands in its lane's order once, and the parts of every operator that is no view
// tile its output; where that is private, each strip computes what it reads itself. A strip has one lane and one part of an operator.
Status CheckParts(const Graph& graph, size_t lane_count, const Schedule& schedule);

// Parts in an order that lanes can follow: every part after those that it reads and those before it on its lane.
// InvalidArgument names a part that waits for ever.
Result<std::vector<int>> ExecutionOrder(const Graph& graph, const Schedule& schedule,
                                        const std::vector<std::vector<PartRead>>& reads);

}  // namespace plait
