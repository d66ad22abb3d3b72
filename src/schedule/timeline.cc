#include "src/schedule/timeline.h"

#include <algorithm>
#include <limits>

namespace plait {
namespace {

// Checks sums, lengths and orders, and knows who reads what; walks lanes in dependency order.
class Walker {
 public:
  Walker(const Problem& problem, const Assignment& assignment)
      : problem_(problem), assignment_(assignment), lanes_(problem.lanes.size()), has_consumer_(problem.ops.size(), false) {
    for (const ProblemOp& op : problem.ops) {
      for (const ProblemEdge& edge : op.inputs) has_consumer_[static_cast<size_t>(edge.producer)] = true;
    }
  }

  Status Check() const {
    if (assignment_.choices.size() != problem_.ops.size()) {
      return InvalidArgument("the assignment has ", assignment_.choices.size(), " operators, the problem ", problem_.ops.size());
    }
    if (assignment_.order.size() != lanes_) return InvalidArgument("the assignment has ", assignment_.order.size(), " lanes, the problem ", lanes_);
    for (size_t o = 0; o < problem_.ops.size(); ++o) PLAIT_RETURN_IF_ERROR(CheckChoice(o));
    for (size_t d = 0; d < lanes_; ++d) PLAIT_RETURN_IF_ERROR(CheckOrder(d));
    return Status();
  }

  bool has_consumer(size_t op) const { return has_consumer_[op]; }
  int units(size_t op, size_t lane) const { return assignment_.choices[op].units[lane]; }
  Tick Cost(size_t op, size_t lane) const {
    return problem_.ops[op].modes[static_cast<size_t>(assignment_.choices[op].mode)].Cost(static_cast<int>(lane), units(op, lane));
  }

  // Calls visit(producer, lane, handoff ticks) for every part that the part of `op` on `lane` reads.
  template <typename Visit>
  void ForReads(size_t op, size_t lane, Visit visit) const {
    const Assignment::Choice& choice = assignment_.choices[op];
    int begin = 0;
    for (size_t e = 0; e < lane; ++e) begin += choice.units[e];
    const int end = begin + choice.units[lane];
    for (const ProblemEdge& edge : problem_.ops[op].inputs) {
      const size_t p = static_cast<size_t>(edge.producer);
      const Assignment::Choice& made = assignment_.choices[p];
      const size_t modes = problem_.ops[p].modes.size();
      const int access = edge.access.empty() ? -1 : edge.access[static_cast<size_t>(choice.mode) * modes + static_cast<size_t>(made.mode)];
      int first = 0, last = problem_.ops[p].modes[static_cast<size_t>(made.mode)].units;
      if (access >= 0) {
        first = problem_.accesses[static_cast<size_t>(access)].first[static_cast<size_t>(begin)];
        last = problem_.accesses[static_cast<size_t>(access)].last[static_cast<size_t>(end - 1)];
      }
      int at = 0;
      for (size_t e = 0; e < lanes_; ++e) {
        const int overlap = std::min(last, at + made.units[e]) - std::max(first, at);
        at += made.units[e];
        if (overlap > 0) visit(p, e, HandoffTicks(problem_, edge.producer, made.mode, overlap, static_cast<int>(e), static_cast<int>(lane)));
      }
    }
  }

 private:
  std::string Where(size_t op) const { return StrCat("operator ", op, problem_.ops[op].name.empty() ? "" : " (" + problem_.ops[op].name + ")"); }

  Status CheckChoice(size_t o) const {
    const Assignment::Choice& choice = assignment_.choices[o];
    if (choice.mode < 0 || static_cast<size_t>(choice.mode) >= problem_.ops[o].modes.size()) return InvalidArgument(Where(o), ": there is no mode ", choice.mode);
    if (choice.units.size() != lanes_) return InvalidArgument(Where(o), " has units for ", choice.units.size(), " of ", lanes_, " lanes");
    const Mode& mode = problem_.ops[o].modes[static_cast<size_t>(choice.mode)];
    int64_t sum = 0;
    for (size_t d = 0; d < lanes_; ++d) {
      const int u = choice.units[d];
      if (u == 0) continue;
      const std::string& lane = problem_.lanes[d].name;
      if (u < 0 || u > mode.units) return InvalidArgument(Where(o), " on ", lane, ": ", u, " units are outside 1..", mode.units);
      if (u < mode.min_units) return InvalidArgument(Where(o), " on ", lane, ": ", u, " units are fewer than ", mode.min_units);
      if (mode.Cost(static_cast<int>(d), u) == kForbidden) return InvalidArgument(Where(o), " cannot run on ", lane);
      sum += u;
    }
    if (sum != mode.units) return InvalidArgument(Where(o), ": ", sum, " of ", mode.units, " units are scheduled");
    return Status();
  }

  Status CheckOrder(size_t d) const {
    std::vector<bool> seen(problem_.ops.size(), false);
    for (int o : assignment_.order[d]) {
      if (o < 0 || static_cast<size_t>(o) >= problem_.ops.size()) return InvalidArgument("lane ", problem_.lanes[d].name, ": there is no operator ", o);
      const size_t op = static_cast<size_t>(o);
      if (seen[op]) return InvalidArgument(Where(op), " stands twice on ", problem_.lanes[d].name);
      if (units(op, d) == 0) return InvalidArgument(Where(op), " stands on ", problem_.lanes[d].name, " without units there");
      seen[op] = true;
    }
    for (size_t o = 0; o < problem_.ops.size(); ++o) {
      if (units(o, d) > 0 && !seen[o]) return InvalidArgument(Where(o), " is missing from the order of ", problem_.lanes[d].name);
    }
    return Status();
  }

  const Problem& problem_;
  const Assignment& assignment_;
  size_t lanes_;
  std::vector<bool> has_consumer_;
};

}  // namespace

Tick HandoffTicks(const Problem& problem, int op, int mode, int units, int from, int to) {
  if (from == to) return 0;
  const size_t f = static_cast<size_t>(from), t = static_cast<size_t>(to);
  const ProblemOp& producer = problem.ops[static_cast<size_t>(op)];
  // bytes < 2^40, units <= 2^6, ps < 2^30: the product may need 76 bits.
  const int64_t ps = problem.ps_per_byte[f][t];
  const int64_t whole = producer.modes[static_cast<size_t>(mode)].units * kPsPerTick;
  const int64_t bytes = producer.out_bytes * units;
  return problem.sync[f][t] + (bytes / whole) * ps + (bytes % whole) * ps / whole;
}

Result<Timeline> Evaluate(const Problem& problem, const Assignment& assignment) {
  const Walker walker(problem, assignment);
  PLAIT_RETURN_IF_ERROR(walker.Check());
  const size_t lanes = problem.lanes.size(), n = problem.ops.size();
  Timeline out;
  out.start.assign(n * lanes, -1);
  out.end.assign(n * lanes, -1);
  std::vector<size_t> next(lanes, 0);
  std::vector<Tick> available(lanes, 0);
  // A lane stops at a part whose producers are not all placed; it is tried again when another lane has moved.
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t d = 0; d < lanes; ++d) {
      while (next[d] < assignment.order[d].size()) {
        const size_t o = static_cast<size_t>(assignment.order[d][next[d]]);
        Tick start = available[d];
        bool ready = true;
        if (problem.ops[o].inputs.empty()) start = std::max(start, problem.entry[d]);
        walker.ForReads(o, d, [&](size_t p, size_t e, Tick handoff) {
          const Tick end = out.end[p * lanes + e];
          ready &= end >= 0;
          start = std::max(start, end + handoff);
        });
        if (!ready) break;
        const Tick end = start + walker.Cost(o, d);
        out.start[o * lanes + d] = start;
        out.end[o * lanes + d] = available[d] = end;
        out.makespan = std::max(out.makespan, end + (walker.has_consumer(o) ? 0 : problem.exit[d]));
        ++next[d];
        progress = true;
      }
    }
  }
  for (size_t d = 0; d < lanes; ++d) {
    if (next[d] == assignment.order[d].size()) continue;
    const size_t o = static_cast<size_t>(assignment.order[d][next[d]]);
    return InvalidArgument("the orders of the lanes contradict the graph: on ", problem.lanes[d].name, " operator ", o, " (", problem.ops[o].name, ") waits for ever");
  }
  return out;
}

Result<ContendedTimeline> EvaluateContended(const Problem& problem, const Assignment& assignment) {
  const Walker walker(problem, assignment);
  PLAIT_RETURN_IF_ERROR(walker.Check());
  const size_t lanes = problem.lanes.size(), n = problem.ops.size();
  const auto memory_bound = [&](size_t op, size_t lane) { return problem.ops[op].memory_bound.empty() ? 0.0 : problem.ops[op].memory_bound[lane]; };
  constexpr double kIdle = -1;
  ContendedTimeline out;
  out.start_us.assign(n * lanes, -1);
  out.end_us.assign(n * lanes, -1);
  std::vector<size_t> next(lanes, 0), running(lanes, 0);
  std::vector<double> left(lanes, kIdle);  // ticks at full speed that the running part still needs
  double now = 0, makespan = 0;
  size_t unfinished = 0;
  for (const auto& order : assignment.order) unfinished += order.size();
  while (unfinished > 0) {
    double step = std::numeric_limits<double>::infinity();
    for (size_t d = 0; d < lanes; ++d) {
      if (left[d] != kIdle || next[d] >= assignment.order[d].size()) continue;
      const size_t o = static_cast<size_t>(assignment.order[d][next[d]]);
      bool ready = true;
      double start = problem.ops[o].inputs.empty() ? std::max(now, static_cast<double>(problem.entry[d])) : now;
      walker.ForReads(o, d, [&](size_t p, size_t e, Tick handoff) {
        const double end = out.end_us[p * lanes + e];
        ready &= end >= 0;
        start = std::max(start, end + static_cast<double>(handoff));
      });
      if (!ready) continue;
      if (start > now + 1e-9) {
        step = std::min(step, start - now);
        continue;
      }
      left[d] = static_cast<double>(walker.Cost(o, d));
      running[d] = o;
      out.start_us[o * lanes + d] = now;
      ++next[d];
    }
    std::vector<double> stretch(lanes, 1.0);
    for (size_t d = 0; d < lanes; ++d) {
      if (left[d] == kIdle) continue;
      for (size_t e = 0; e < lanes && !problem.slow.empty(); ++e) {
        if (e != d && left[e] != kIdle) stretch[d] += problem.slow[d][e] * memory_bound(running[d], d) * memory_bound(running[e], e);
      }
      step = std::min(step, left[d] * stretch[d]);
    }
    if (step == std::numeric_limits<double>::infinity()) return InvalidArgument("the orders of the lanes contradict the graph");
    now += step;
    for (size_t d = 0; d < lanes; ++d) {
      if (left[d] == kIdle) continue;
      left[d] -= step / stretch[d];
      if (left[d] > 1e-7) continue;
      const size_t o = running[d];
      left[d] = kIdle;
      --unfinished;
      out.end_us[o * lanes + d] = now;
      makespan = std::max(makespan, now + (walker.has_consumer(o) ? 0.0 : static_cast<double>(problem.exit[d])));
    }
  }
  for (double& t : out.start_us) t = t < 0 ? t : t / 10;
  for (double& t : out.end_us) t = t < 0 ? t : t / 10;
  out.makespan_us = makespan / 10;
  return out;
}

}  // namespace plait
