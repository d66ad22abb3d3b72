// A Problem flattened for the search: contiguous tables, edges in both directions, handoffs without divisions.
#pragma once

#include <cstdint>
#include <vector>

#include "src/schedule/problem.h"

namespace plait {

// Larger than any time that a valid problem can reach, small enough to be added to one.
inline constexpr Tick kInfinite = Tick{1} << 61;

struct NetMode {
  int units = 1;
  int min_units = 1;
  int64_t cost = 0;     // into Net::costs: [lane * (units + 1) + u]; 0 for u == 0, kInfinite where the lane cannot
  int64_t handoff = 0;  // into Net::handoffs: [byte class * (units + 1) + u]
};

struct Net {
  explicit Net(const Problem& problem);  // valid (ValidateProblem); outlives the Net

  const Problem* problem;
  int n, lanes;
  std::vector<Tick> entry, exit;      // [lane]
  std::vector<Tick> sync;             // [from * lanes + to]
  std::vector<int> byte_class;        // [from * lanes + to]: equal ps_per_byte share a class
  std::vector<int> mode_begin;        // [op], n + 1 entries, into modes
  std::vector<NetMode> modes;
  std::vector<Tick> costs, floors, handoffs;  // floors: least cost of at least that many units
  std::vector<int> in_begin, in_op;   // producers of op: in_op[in_begin[op] .. in_begin[op + 1])
  std::vector<int> in_to;             // [edge]: the consumer
  std::vector<int> in_access;         // [edge]: into edge_access: [consumer mode * producer modes + producer mode]; -1: reads everything
  std::vector<int> edge_access;       // index into problem->accesses or -1
  std::vector<int> out_begin, out_op, out_edge;  // consumers, and the edge's place among the inputs
  std::vector<uint8_t> by_region;     // [op]: 1 if some edge to or from it has an access table
  bool any_region = false;            // whether that is so anywhere

  const NetMode& Mode(int op, int mode) const { return modes[static_cast<size_t>(mode_begin[static_cast<size_t>(op)] + mode)]; }
  int ModeCount(int op) const { return mode_begin[static_cast<size_t>(op) + 1] - mode_begin[static_cast<size_t>(op)]; }
  Tick Cost(const NetMode& m, int lane, int u) const { return costs[static_cast<size_t>(m.cost + lane * (m.units + 1) + u)]; }
  Tick Floor(const NetMode& m, int lane, int u) const { return floors[static_cast<size_t>(m.cost + lane * (m.units + 1) + u)]; }
  // From the end of a part of `u` read units on `from` to their being readable on `to`; from != to.
  Tick Handoff(const NetMode& m, int u, int from, int to) const {
    const size_t pair = static_cast<size_t>(from * lanes + to);
    return sync[pair] + handoffs[static_cast<size_t>(m.handoff + byte_class[pair] * (m.units + 1) + u)];
  }
  bool IsSource(int op) const { return in_begin[static_cast<size_t>(op)] == in_begin[static_cast<size_t>(op) + 1]; }
  bool IsSink(int op) const { return out_begin[static_cast<size_t>(op)] == out_begin[static_cast<size_t>(op) + 1]; }
};

// A solution as the search sees it: one topological order of operators; every lane follows it.
struct SequencePlan {
  std::vector<int> sequence;
  std::vector<uint8_t> mode;    // [op]
  std::vector<uint8_t> units;   // [op * lanes + lane]
  Tick makespan = kInfinite;
};

Assignment ToAssignment(const Net& net, const SequencePlan& plan);

}  // namespace plait
