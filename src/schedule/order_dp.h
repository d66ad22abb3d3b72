// Re-solves every split along a fixed order of operators, from both ends.
//
// A forward label is one way to run a prefix: when each lane is free and when each tensor that is still wanted can be read on each lane. A
// backward label is one way to run a suffix: the longest path that follows on each lane and for each wanted tensor. Joined, they give the
// exact makespan; with one operator between them, the best split of that operator follows by water-filling. A pass keeps for every position
// the labels that are best with some label of the other side; passes go to and fro, each guided by the labels of the one before.
#pragma once

#include "src/schedule/net.h"

namespace plait {

struct OrderDpOptions {
  int width = 16;       // labels kept a position
  int passes = 2;       // forward and backward passes together
  int64_t* evaluations = nullptr;  // joins priced are added here
};

// The best plan found with plan.sequence as it is; never slower than `plan`, whose makespan is right.
SequencePlan SolveAlongOrder(const Net& net, const SequencePlan& plan, const OrderDpOptions& options);

}  // namespace plait
