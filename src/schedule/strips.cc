#include "src/schedule/strips.h"

#include <algorithm>
#include <array>
#include <vector>

namespace plait {
namespace {

constexpr size_t kMaxLength = 12;      // operators of a strip: the halo grows with each
constexpr Tick kNever = kMaxTick;

// The least time within which the lanes can do all units together: each lane takes as many as it can in that time.
Tick Balanced(const std::vector<Tick>& cost, int lanes, int units) {
  Tick best = kNever;
  for (const Tick limit : cost) {
    if (limit >= best) continue;
    int sum = 0;
    for (int d = 0; d < lanes; ++d) {
      const Tick* row = &cost[static_cast<size_t>(d * units)];
      int most = 0;
      for (int u = 1; u <= units; ++u) {
        if (row[u - 1] <= limit) most = u;
      }
      sum += most;
    }
    if (sum >= units) best = limit;
  }
  return best;
}

// Cheapest way to run the first operators if the last of them is cut by rows or not; and where its last piece begins.
struct Reached {
  Tick cost = kNever;
  size_t from = 0;
  bool from_rows = false;
  bool is_strip = false;
};

class Proposer {
 public:
  Proposer(ProblemBuilder* builder, const PlanningProblem& planning)
      : builder_(builder), planning_(planning), problem_(planning.problem), lanes_(static_cast<int>(planning.problem.lanes.size())) {}

  Result<StripList> Run(Tick handoff, double least_gain) {
    PLAIT_ASSIGN_OR_RETURN(const Tick without, Least(handoff, false));
    if (without >= kNever) return StripList();
    const double limit = static_cast<double>(without) * (1 - least_gain);
    // Strips save handoffs and nothing else: where those are cheap, all of them together are not worth the look.
    PLAIT_ASSIGN_OR_RETURN(const Tick unhindered, Least(0, false));
    if (static_cast<double>(unhindered) > limit) return StripList();
    PLAIT_ASSIGN_OR_RETURN(const Tick with, Least(handoff, true));
    return static_cast<double>(with) > limit ? StripList() : Chosen();
  }

 private:
  // The least time, and how it is reached.
  Result<Tick> Least(Tick handoff, bool strips) {
    handoff_ = handoff;
    const size_t n = problem_.ops.size();
    reached_.assign(n + 1, {});
    reached_[0][0].cost = 0;
    for (size_t j = 1; j <= n; ++j) {
      AddSingle(j);
      for (size_t length = 2; strips && length <= std::min(j, kMaxLength); ++length) {
        if (!HasRows(j - length)) break;
        PLAIT_RETURN_IF_ERROR(AddStrip(j - length, j));
      }
    }
    return std::min(reached_[n][0].cost, reached_[n][1].cost);
  }

  StripList Chosen() const {
    const size_t n = problem_.ops.size();
    StripList strips;
    bool rows = reached_[n][1].cost < reached_[n][0].cost;
    for (size_t j = n; j > 0;) {
      const Reached& at = reached_[j][rows];
      if (at.is_strip) strips.push_back(OpsOf(at.from, j));
      rows = at.from_rows;
      j = at.from;
    }
    std::reverse(strips.begin(), strips.end());
    return strips;
  }

  bool IsRows(size_t op, size_t mode) const {
    const auto& cut = planning_.cuts[op][mode];
    return cut && cut->role == AxisRole::kRows;
  }
  bool HasRows(size_t op) const {
    for (size_t mode = 0; mode < planning_.cuts[op].size(); ++mode) {
      if (IsRows(op, mode)) return true;
    }
    return false;
  }
  std::vector<OpId> OpsOf(size_t first, size_t end) const {
    std::vector<OpId> ops;
    for (size_t k = first; k < end; ++k) ops.push_back(planning_.ops[k].front());
    return ops;
  }

  void Keep(size_t j, bool rows, Tick cost, size_t from, bool from_rows, bool is_strip) {
    if (cost < reached_[j][rows].cost) reached_[j][rows] = {cost, from, from_rows, is_strip};
  }

  // The next operator by itself.
  void AddSingle(size_t j) {
    const ProblemOp& op = problem_.ops[j - 1];
    for (size_t m = 0; m < op.modes.size(); ++m) {
      const Mode& mode = op.modes[m];
      const Tick cost = mode.units == 1 ? *std::min_element(mode.cost.begin(), mode.cost.end()) : Balanced(mode.cost, lanes_, mode.units);
      if (cost >= kNever) continue;
      const bool rows = IsRows(j - 1, m);
      for (const bool before : {false, true}) {
        if (reached_[j - 1][before].cost >= kNever) continue;
        const bool aligned = rows && before && IsAligned(j - 1, m);
        Keep(j, rows, reached_[j - 1][before].cost + cost + (aligned ? 0 : handoff_), j - 1, before, false);
      }
    }
  }

  // Whether the operator, cut by rows, reads of its predecessor, cut by rows, just the same rows.
  bool IsAligned(size_t op, size_t mode) const {
    for (const ProblemEdge& edge : problem_.ops[op].inputs) {
      if (static_cast<size_t>(edge.producer) + 1 != op) continue;
      const ProblemOp& producer = problem_.ops[op - 1];
      for (size_t k = 0; k < producer.modes.size(); ++k) {
        if (!IsRows(op - 1, k) || edge.access.empty()) continue;
        const int index = edge.access[mode * producer.modes.size() + k];
        if (index < 0 || producer.modes[k].units != problem_.ops[op].modes[mode].units) return false;
        const Access& access = problem_.accesses[static_cast<size_t>(index)];
        for (size_t u = 0; u < access.first.size(); ++u) {
          if (access.first[u] != static_cast<int16_t>(u) || access.last[u] != static_cast<int16_t>(u + 1)) return false;
        }
        return true;
      }
    }
    return false;
  }

  Status AddStrip(size_t first, size_t end) {
    const Tick before = std::min(reached_[first][0].cost, reached_[first][1].cost);
    if (before >= kNever) return Status();
    PLAIT_ASSIGN_OR_RETURN(const std::vector<Tick> cost, builder_->StripCosts(OpsOf(first, end)));
    if (cost.empty()) return Status();
    const Tick balanced = Balanced(cost, lanes_, static_cast<int>(cost.size()) / lanes_);
    if (balanced < kNever) Keep(end, true, before + balanced + handoff_, first, reached_[first][1].cost < reached_[first][0].cost, true);
    return Status();
  }

  ProblemBuilder* builder_;
  const PlanningProblem& planning_;
  const Problem& problem_;
  int lanes_;
  Tick handoff_ = 0;
  std::vector<std::array<Reached, 2>> reached_;  // [operators done][last one cut by rows]
};

}  // namespace

Result<StripList> ProposeStrips(ProblemBuilder* builder, const PlanningProblem& planning, Tick handoff, double least_gain) {
  return Proposer(builder, planning).Run(handoff, least_gain);
}

}  // namespace plait
