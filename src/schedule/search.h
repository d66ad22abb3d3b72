// The search for a good assignment of a Problem. Pure and deterministic for a seed and a number of evaluations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/schedule/problem.h"
#include "src/schedule/schedule.h"

namespace plait {

struct Solution {
  Assignment assignment;
  std::string strategy;          // the baseline's name if the search could not improve on it, else "search"
  bool optimal = false;          // proven: no assignment is faster
  int64_t evaluations = 0;       // splits of an operator that were optimised
  struct Reference {
    std::string name;
    Tick makespan = 0;
  };
  std::vector<Reference> baselines;  // those that apply
};

// InvalidArgument if the problem is not valid. The result is never slower than any baseline.
Result<Solution> Solve(const Problem& problem, const SearchOptions& options);

}  // namespace plait
