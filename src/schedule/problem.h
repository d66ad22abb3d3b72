// The scheduling problem in integer ticks: what the search sees. Graph, kernels and devices are gone; instance files
// (docs/formats.md, plait-instance v1) are the special case with one mode an operator and access to whole producers.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace plait {

using Tick = int64_t;  // 0.1 us
inline constexpr int64_t kPsPerTick = 100000;
inline constexpr Tick kForbidden = std::numeric_limits<Tick>::max();
inline constexpr int kMaxUnits = 64;
inline constexpr int kMaxLanes = 16;

// One way to cut an operator: `units` equal shares of one axis. Lane d gets the d-th interval of units, in the order of lanes, so equal
// splits of neighbours line up. A mode with units == 1 runs whole.
struct Mode {
  int axis = -1;            // output axis; -1: whole (or unknown, from an instance file)
  int units = 1;
  int min_units = 1;        // a part is 0 or at least this many units
  std::vector<Tick> cost;   // [lane * units + u - 1]: a part of u units; kForbidden: the lane cannot
  Tick Cost(int lane, int u) const { return cost[static_cast<size_t>(lane * units + u - 1)]; }
};

// Units of a producer's mode that units of a consumer's mode read: the consumer's interval [a, b) reads [first[a], last[b - 1]).
// Both are non-decreasing.
struct Access {
  std::vector<int16_t> first;
  std::vector<int16_t> last;
};

struct ProblemEdge {
  int producer = 0;                  // an earlier operator
  // [consumer mode * producer modes + producer mode] -> index into Problem::accesses; -1: reads everything.
  std::vector<int> access;           // empty: reads everything in every mode
};

struct ProblemOp {
  std::string name;
  std::vector<Mode> modes;           // not empty
  int64_t out_bytes = 0;
  std::vector<ProblemEdge> inputs;
  std::vector<double> memory_bound;  // [lane] share of the time bound by memory, 0 to 1; empty: 0 (contention only)
};

struct ProblemLane {
  std::string name;
  bool gpu = false;
};

struct Problem {
  std::string name;
  std::vector<ProblemLane> lanes;
  std::vector<Tick> entry, exit;                   // [lane]
  std::vector<std::vector<Tick>> sync;             // [from][to]
  std::vector<std::vector<int64_t>> ps_per_byte;   // [from][to]
  std::vector<ProblemOp> ops;                      // topological order
  std::vector<Access> accesses;
  std::vector<std::vector<double>> slow;           // [lane][other]: contention factors; empty: none
};

// Limits within which no sum of times or bytes can overflow a Tick, whatever the schedule.
inline constexpr Tick kMaxTick = Tick{1} << 38;          // 7 hours: any one latency, handoff, entry or exit
inline constexpr size_t kMaxProblemOps = size_t{1} << 21;
inline constexpr int64_t kMaxOutBytes = int64_t{1} << 40;
inline constexpr int64_t kMaxPsPerByte = int64_t{1} << 30;

// Everything that the evaluator and the search rely on: sizes, limits, topological order, one lane at least for every operator.
// InvalidArgument names the operator, lane and value.
Status ValidateProblem(const Problem& problem);

// A solution: how each operator is cut and in which order each lane works.
struct Assignment {
  struct Choice {
    int mode = 0;
    std::vector<int> units;          // [lane]; sums to the mode's units
  };
  std::vector<Choice> choices;       // [op]
  std::vector<std::vector<int>> order;  // [lane] -> ops with units there, in order
  Tick makespan = 0;                 // as evaluated
};

}  // namespace plait
