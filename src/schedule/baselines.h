// Simple strategies: where the search starts, and what it must never be worse than.
#pragma once

#include <string>
#include <vector>

#include "src/schedule/net.h"

namespace plait {

struct Baseline {
  std::string name;   // "lane:cpu0", "fastest", "heft", "heft-split", "split"
  SequencePlan plan;  // its makespan is kInfinite where the strategy cannot be applied (a lane lacks an operator)
};

// Each lane alone, the fastest lane per operator, HEFT with whole operators (inserting into gaps) and with splits, and every operator
// split so that its parts end together.
std::vector<Baseline> Baselines(const Net& net);

// Earliest timeline of a plan; its makespan.
Tick MakespanOf(const Net& net, const SequencePlan& plan);

// When each operator's first part starts.
std::vector<Tick> StartTimes(const Net& net, const SequencePlan& plan);

// The operators in an order that keeps the graph's and, if `plan` is given, every lane's; where both leave a choice, by `key` [op].
std::vector<int> SortByKey(const Net& net, const SequencePlan* plan, const std::vector<Tick>& key);

}  // namespace plait
