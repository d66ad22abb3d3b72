// A lower bound that follows handoffs from stage to stage.
//
// Operators that are comparable with all others (cuts) part the graph into stages. Before a cut, all that a schedule can have going for it is how soon each lane
// can read the cut's inputs. A label is such a row of times; at every point each schedule is no sooner, on all lanes, than some label. Through a cut, labels are led by
// all its splits. Through the operators between two cuts, work over capacity and longest path are counted from the label's own times, and to the times at
// which each lane can have read what all others made. Labels that are close are joined, so that their number stays small.
#pragma once

#include <vector>

#include "src/schedule/net.h"

namespace plait {

// Least priced work: any prices of the lanes' time (they sum to one) give a bound.
struct PricedWork {
  std::vector<double> price;  // [lane]
  Tick work = 0;
};

// The operators between two cuts.
struct Stage {
  int begin = 0, end = 0;         // operators
  std::vector<PricedWork> work;   // empty: no operators
  Tick least = 0;                 // from when everything can be read everywhere to its end, at least
};

// Times of operators, whatever their splits.
struct LeastTimes {
  std::vector<Tick> shortest;     // [op] if all that it reads is everywhere
  std::vector<Tick> after_input;  // [op] after the last end of what it reads
};

// `stages[k]` lies before `cuts[k]`, the last one behind all cuts. No operator reads by region. `known`: the makespan of a schedule that exists; the bound is no
// larger, and labels that cannot be faster are not followed.
Tick StageLabelBound(const Net& net, const std::vector<int>& cuts, const std::vector<Stage>& stages, const LeastTimes& times, Tick known);

}  // namespace plait
