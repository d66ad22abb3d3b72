#include "src/schedule/problem.h"

#include <algorithm>

namespace plait {
namespace {

Status CheckLaneVector(const std::vector<Tick>& v, size_t lanes, const char* what) {
  if (v.size() != lanes) return InvalidArgument(what, " has ", v.size(), " entries for ", lanes, " lanes");
  for (size_t d = 0; d < lanes; ++d) {
    if (v[d] < 0 || v[d] > kMaxTick) return InvalidArgument(what, "[", d, "] is ", v[d], " ticks, outside 0..", kMaxTick);
  }
  return Status();
}

template <typename T>
Status CheckLaneMatrix(const std::vector<std::vector<T>>& m, size_t lanes, T most, const char* what) {
  if (m.size() != lanes) return InvalidArgument(what, " has ", m.size(), " rows for ", lanes, " lanes");
  for (size_t a = 0; a < lanes; ++a) {
    if (m[a].size() != lanes) return InvalidArgument(what, "[", a, "] has ", m[a].size(), " entries for ", lanes, " lanes");
    for (size_t b = 0; b < lanes; ++b) {
      if (a == b && m[a][b] != 0) return InvalidArgument(what, "[", a, "][", a, "] is ", m[a][b], ", not 0");
      if (!(m[a][b] >= 0 && m[a][b] <= most)) return InvalidArgument(what, "[", a, "][", b, "] is ", m[a][b], ", outside 0..", most);
    }
  }
  return Status();
}

Status CheckMode(const Mode& mode, size_t lanes) {
  if (mode.units < 1 || mode.units > kMaxUnits) return InvalidArgument("has ", mode.units, " units, outside 1..", kMaxUnits);
  if (mode.min_units < 1 || mode.min_units > mode.units) return InvalidArgument("min_units is ", mode.min_units, " of ", mode.units);
  if (mode.cost.size() != lanes * static_cast<size_t>(mode.units)) {
    return InvalidArgument("has ", mode.cost.size(), " costs, not ", lanes, " lanes x ", mode.units, " units");
  }
  for (size_t i = 0; i < mode.cost.size(); ++i) {
    const Tick t = mode.cost[i];
    if (t != kForbidden && (t <= 0 || t > kMaxTick)) {
      return InvalidArgument("latency of ", i % static_cast<size_t>(mode.units) + 1, " units on lane ", i / static_cast<size_t>(mode.units), " is ", t,
                             " ticks, outside 1..", kMaxTick);
    }
  }
  return Status();
}

// Some lane has to be able to run the operator whole; otherwise a split might not exist either.
bool SomeLaneRunsWhole(const ProblemOp& op, int lanes) {
  for (const Mode& mode : op.modes) {
    for (int d = 0; d < lanes; ++d) {
      if (mode.Cost(d, mode.units) != kForbidden) return true;
    }
  }
  return false;
}

Status CheckEdges(const Problem& problem, size_t o) {
  const ProblemOp& op = problem.ops[o];
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const ProblemEdge& edge = op.inputs[i];
    if (edge.producer < 0 || static_cast<size_t>(edge.producer) >= o) {
      return InvalidArgument("input ", edge.producer, " is not an earlier operator: operators have to stand in topological order, without cycles");
    }
    for (size_t j = 0; j < i; ++j) {
      if (op.inputs[j].producer == edge.producer) return InvalidArgument("input ", edge.producer, " is listed twice");
    }
    if (edge.access.empty()) continue;
    const ProblemOp& producer = problem.ops[static_cast<size_t>(edge.producer)];
    if (edge.access.size() != op.modes.size() * producer.modes.size()) return InvalidArgument("input ", edge.producer, " has a table of accesses of wrong size");
    for (size_t k = 0; k < edge.access.size(); ++k) {
      const int index = edge.access[k];
      if (index < 0) continue;
      if (static_cast<size_t>(index) >= problem.accesses.size()) return InvalidArgument("input ", edge.producer, " names access ", index, " of ", problem.accesses.size());
      const Access& access = problem.accesses[static_cast<size_t>(index)];
      const size_t units = static_cast<size_t>(op.modes[k / producer.modes.size()].units);
      const int most = producer.modes[k % producer.modes.size()].units;
      bool good = access.first.size() == units && access.last.size() == units;
      for (size_t u = 0; good && u < units; ++u) {
        good = access.first[u] >= 0 && access.first[u] <= access.last[u] && access.last[u] <= most &&
               (u == 0 || (access.first[u] >= access.first[u - 1] && access.last[u] >= access.last[u - 1]));
      }
      if (!good) return InvalidArgument("input ", edge.producer, ": access ", index, " does not fit the modes' units");
    }
  }
  return Status();
}

}  // namespace

Status ValidateProblem(const Problem& problem) {
  const size_t lanes = problem.lanes.size();
  if (lanes < 1 || lanes > static_cast<size_t>(kMaxLanes)) return InvalidArgument("there are ", lanes, " lanes, outside 1..", kMaxLanes);
  for (size_t a = 0; a < lanes; ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (problem.lanes[a].name == problem.lanes[b].name) return InvalidArgument("two lanes are called \"", problem.lanes[a].name, "\"");
    }
  }
  PLAIT_RETURN_IF_ERROR(CheckLaneVector(problem.entry, lanes, "entry"));
  PLAIT_RETURN_IF_ERROR(CheckLaneVector(problem.exit, lanes, "exit"));
  PLAIT_RETURN_IF_ERROR(CheckLaneMatrix(problem.sync, lanes, kMaxTick, "sync"));
  PLAIT_RETURN_IF_ERROR(CheckLaneMatrix(problem.ps_per_byte, lanes, kMaxPsPerByte, "ps_per_byte"));
  if (!problem.slow.empty()) PLAIT_RETURN_IF_ERROR(CheckLaneMatrix(problem.slow, lanes, 1e6, "slow"));
  if (problem.ops.size() > kMaxProblemOps) return InvalidArgument("there are ", problem.ops.size(), " operators, more than ", kMaxProblemOps);
  int64_t slowest_ps = 0;
  for (const auto& row : problem.ps_per_byte) slowest_ps = std::max(slowest_ps, *std::max_element(row.begin(), row.end()));
  for (size_t o = 0; o < problem.ops.size(); ++o) {
    const ProblemOp& op = problem.ops[o];
    const std::string where = StrCat("operator ", o, op.name.empty() ? "" : " (", op.name, op.name.empty() ? "" : ")");
    if (op.modes.empty()) return InvalidArgument(where, " has no mode");
    if (op.out_bytes < 0 || op.out_bytes > kMaxOutBytes) return InvalidArgument(where, ": out_bytes is ", op.out_bytes, ", outside 0..", kMaxOutBytes);
    if (op.out_bytes / kPsPerTick * slowest_ps > kMaxTick) return InvalidArgument(where, ": handing over ", op.out_bytes, " bytes takes more than ", kMaxTick, " ticks");
    for (size_t m = 0; m < op.modes.size(); ++m) PLAIT_RETURN_IF_ERROR(CheckMode(op.modes[m], lanes).Annotated(StrCat(where, ", mode ", m)));
    if (!SomeLaneRunsWhole(op, static_cast<int>(lanes))) return InvalidArgument(where, ": no lane can run it");
    if (!op.memory_bound.empty() && op.memory_bound.size() != lanes) return InvalidArgument(where, ": memory_bound has ", op.memory_bound.size(), " entries");
    PLAIT_RETURN_IF_ERROR(CheckEdges(problem, o).Annotated(where));
  }
  return Status();
}

}  // namespace plait
