// From a graph and what its kernels cost to the search's Problem, and back from an Assignment to parts.
//
// How a GPU lane's host is charged: submitting and polling happen on the host lane between its own steps. The search prices them as a delay of the GPU
// lane instead (PlanningLane::host_step_us on every step, host_segment_us on every handoff to it), which is what a plan whose host lane is busy
// sees of them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/partition/cuts.h"
#include "src/schedule/problem.h"
#include "src/schedule/schedule.h"

namespace plait {

// Operators of strips: each ascending, disjoint, CanBeStrip, every one with a rows axis.
using StripList = std::vector<std::vector<OpId>>;

struct PlanningProblem {
  Problem problem;                                          // one operator for every strip and every other operator of the graph that is no view
  std::vector<std::vector<OpId>> ops;                       // [problem operator] -> graph operators; two or more: a strip
  std::vector<std::vector<std::optional<CutAxis>>> cuts;    // [problem operator][mode]: of the last of `ops`; nullopt: whole
};

// Makes problems of one graph with and without strips; remembers what latencies it asked for. Everything given outlives it. Not thread-safe.
class ProblemBuilder {
 public:
  static Result<ProblemBuilder> Create(const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, int max_units = 16);
  ProblemBuilder(ProblemBuilder&&) noexcept;
  ~ProblemBuilder();

  // Modes are the whole operator and every axis along which all lanes that can run it can cut it, in at most `max_units` units; of a strip, the whole and
  // its rows. Where lanes are not coherent, only cuts whose parts share no cache line are left. Unsupported names an operator that no lane can run or
  // has a known cost for.
  Result<PlanningProblem> Build(const StripList& strips);

  // What the operators would take as one strip: [lane * units + u - 1] for u units of the last one's rows; empty if they cannot be one.
  Result<std::vector<Tick>> StripCosts(const std::vector<OpId>& ops);

  // The parts of an assignment with their predicted times.
  Result<Schedule> ToSchedule(const PlanningProblem& planning, const Assignment& assignment);

 private:
  class Impl;
  explicit ProblemBuilder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace plait
