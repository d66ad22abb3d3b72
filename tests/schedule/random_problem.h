// Random scheduling problems, and evaluators of their own to check the search against.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "src/schedule/problem.h"
#include "src/schedule/random.h"

namespace plait {

struct RandomProblemOptions {
  int most_lanes = 6;
  int most_ops = 24;
  int most_units = 8;
  bool by_region = false;  // several modes an operator, smallest parts, and tables that say which units are read
};

// Which units of a producer cut in `made` are read by units of a consumer cut in `units`: the same share, a halo beside, and nothing outside a window (a slice).
inline Access RandomAccess(int made, int units, Random* random) {
  const auto below = [&](int bound) { return static_cast<int>(random->Below(static_cast<uint32_t>(bound))); };
  const int halo = below(3) == 0 ? 1 : 0;
  const int from = below(4) == 0 ? below(made + 1) : 0, to = below(4) == 0 ? from + below(made - from + 1) : made;
  Access access;
  for (int u = 0; u < units; ++u) {
    access.first.push_back(static_cast<int16_t>(std::clamp(u * made / units - halo, from, to)));
    access.last.push_back(static_cast<int16_t>(std::clamp(((u + 1) * made + units - 1) / units + halo, from, to)));
  }
  return access;
}

// Gives the operators other modes, and their edges access tables.
inline void ReadByRegion(Problem* p, Random* random, int most_units) {
  const auto below = [&](int bound) { return static_cast<int>(random->Below(static_cast<uint32_t>(bound))); };
  for (ProblemOp& op : p->ops) {
    for (int extra = below(3); extra > 0; --extra) {
      Mode mode;
      mode.axis = extra;
      mode.units = 1 + below(most_units);
      mode.min_units = 1 + below(std::min(3, mode.units));
      for (size_t d = 0; d < p->lanes.size(); ++d) {
        const bool null = op.modes[0].Cost(static_cast<int>(d), 1) == kForbidden;
        const int fixed = 1 + below(200), per_unit = 1 + below(300);
        for (int u = 1; u <= mode.units; ++u) mode.cost.push_back(null ? kForbidden : fixed + per_unit * u + below(60));
      }
      op.modes.push_back(std::move(mode));
    }
    for (ProblemEdge& edge : op.inputs) {
      if (below(3) == 0) continue;
      const auto& made = p->ops[static_cast<size_t>(edge.producer)].modes;
      for (const Mode& mode : op.modes) {
        for (const Mode& other : made) {
          const bool all = below(5) == 0;
          edge.access.push_back(all ? -1 : static_cast<int>(p->accesses.size()));
          if (!all) p->accesses.push_back(RandomAccess(other.units, mode.units, random));
        }
      }
    }
  }
}

// Chains, wide graphs and all between; tables with steps, dips and missing lanes; handoffs that differ by direction.
inline Problem RandomProblem(Random* random, const RandomProblemOptions& options) {
  const auto below = [&](int bound) { return static_cast<int>(random->Below(static_cast<uint32_t>(bound))); };
  Problem p;
  p.name = "random";
  const int lanes = 1 + below(options.most_lanes);
  const bool cheap = below(3) == 0;
  for (int d = 0; d < lanes; ++d) {
    p.lanes.push_back({"lane" + std::to_string(d), d == 0});
    p.entry.push_back(below(2) * below(300));
    p.exit.push_back(below(2) * below(300));
    p.sync.emplace_back();
    p.ps_per_byte.emplace_back();
    for (int e = 0; e < lanes; ++e) {
      p.sync.back().push_back(d == e ? 0 : below(cheap ? 30 : 600));
      p.ps_per_byte.back().push_back(d == e ? 0 : below(200));
    }
  }
  const int n = 1 + below(options.most_ops), shape = below(5);
  int cut = 0;  // shape 4: branches between operators that all others are comparable with
  for (int o = 0; o < n; ++o) {
    ProblemOp op;
    op.name = "op" + std::to_string(o);
    op.out_bytes = below(100000);
    Mode mode;
    mode.units = below(3) == 0 ? 1 : 1 + below(options.most_units);
    const int able = below(lanes);  // this lane at least
    for (int d = 0; d < lanes; ++d) {
      const bool null = d != able && below(6) == 0;
      const int fixed = 1 + below(200), per_unit = 1 + below(300);
      const bool noisy = below(3) == 0;
      for (int u = 1; u <= mode.units; ++u) {
        const Tick t = fixed + static_cast<Tick>(per_unit) * ((u + 1) / 2 * 2) + (noisy ? below(400) : 0);
        mode.cost.push_back(null ? kForbidden : t);
      }
    }
    op.modes.push_back(std::move(mode));
    std::vector<int> inputs;
    if (o > 0 && shape == 0) inputs.push_back(o - 1);
    if (o > 0 && shape == 4) {
      if (below(3) == 0) {
        for (int before = cut; before < o; ++before) inputs.push_back(before);
        cut = o;
      } else {
        inputs.push_back(below(2) == 0 ? cut : cut + below(o - cut));
      }
    } else if (o > 0 && shape != 0) {
      const int count = shape == 1 ? below(2) : below(4);
      for (int k = 0; k < count; ++k) inputs.push_back(shape == 3 ? std::max(0, o - 1 - below(5)) : below(o));
    }
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (int input : inputs) op.inputs.push_back({input, {}});
    p.ops.push_back(std::move(op));
  }
  if (options.by_region) ReadByRegion(&p, random, options.most_units);
  return p;
}

// A random legal choice for every operator, and every lane's order: that of one random order of operators, or, if `crossing`, shuffled by itself (it may
// then contradict the graph).
inline Assignment RandomAssignment(const Problem& p, Random* random, bool crossing) {
  const auto below = [&](int bound) { return static_cast<int>(random->Below(static_cast<uint32_t>(bound))); };
  const size_t lanes = p.lanes.size();
  Assignment a;
  a.order.resize(lanes);
  for (size_t o = 0; o < p.ops.size(); ++o) {
    Assignment::Choice choice;
    choice.mode = below(static_cast<int>(p.ops[o].modes.size()));
    const Mode& mode = p.ops[o].modes[static_cast<size_t>(choice.mode)];
    choice.units.assign(lanes, 0);
    std::vector<size_t> able;
    for (size_t d = 0; d < lanes; ++d) {
      if (mode.Cost(static_cast<int>(d), 1) != kForbidden) able.push_back(d);
    }
    const bool whole = below(2) == 0 || mode.min_units > 1;
    size_t lane = able[static_cast<size_t>(below(static_cast<int>(able.size())))];
    for (int u = 0; u < mode.units; ++u) {
      if (!whole) lane = able[static_cast<size_t>(below(static_cast<int>(able.size())))];
      ++choice.units[lane];
    }
    a.choices.push_back(std::move(choice));
    for (size_t d = 0; d < lanes; ++d) {
      if (a.choices[o].units[d] > 0) a.order[d].push_back(static_cast<int>(o));
    }
  }
  for (auto& order : a.order) {
    for (size_t i = 1; crossing && i < order.size(); ++i) {
      if (below(4) == 0) std::swap(order[i - 1], order[i]);
    }
  }
  return a;
}

// How many units that lane `from` made of the edge's producer are read by the part of `o` on lane `to`: counted one by one.
inline int UnitsRead(const Problem& p, const Assignment& a, const ProblemEdge& edge, size_t o, size_t to, size_t from) {
  const Assignment::Choice& mine = a.choices[o];
  const Assignment::Choice& made = a.choices[static_cast<size_t>(edge.producer)];
  const size_t modes = p.ops[static_cast<size_t>(edge.producer)].modes.size();
  const int table = edge.access.empty() ? -1 : edge.access[static_cast<size_t>(mine.mode) * modes + static_cast<size_t>(made.mode)];
  const auto first_unit = [](const std::vector<int>& units, size_t lane) {
    int at = 0;
    for (size_t d = 0; d < lane; ++d) at += units[d];
    return at;
  };
  const int begin = first_unit(made.units, from), own = first_unit(mine.units, to);
  int count = 0;
  for (int v = begin; v < begin + made.units[from]; ++v) {
    if (table < 0) {
      ++count;
      continue;
    }
    const Access& access = p.accesses[static_cast<size_t>(table)];
    count += v >= access.first[static_cast<size_t>(own)] && v < access.last[static_cast<size_t>(own + mine.units[to] - 1)];
  }
  return count;
}

// The makespan by its definition: start times are raised until every rule holds. -1: they would grow for ever.
inline Tick SlowMakespan(const Problem& p, const Assignment& a) {
  const size_t lanes = p.lanes.size(), n = p.ops.size();
  std::vector<std::vector<Tick>> start(n, std::vector<Tick>(lanes, 0));
  const auto mode = [&](size_t o) -> const Mode& { return p.ops[o].modes[static_cast<size_t>(a.choices[o].mode)]; };
  const auto end = [&](size_t o, size_t d) { return start[o][d] + mode(o).Cost(static_cast<int>(d), a.choices[o].units[d]); };
  for (size_t round = 0; round <= n * lanes + 1; ++round) {
    bool changed = false;
    const auto raise = [&](size_t o, size_t d, Tick t) {
      if (t <= start[o][d]) return;
      start[o][d] = t;
      changed = true;
    };
    for (size_t d = 0; d < lanes; ++d) {
      for (size_t i = 0; i < a.order[d].size(); ++i) {
        const size_t o = static_cast<size_t>(a.order[d][i]);
        if (i > 0) raise(o, d, end(static_cast<size_t>(a.order[d][i - 1]), d));
        if (p.ops[o].inputs.empty()) raise(o, d, p.entry[d]);
        for (const ProblemEdge& edge : p.ops[o].inputs) {
          const size_t q = static_cast<size_t>(edge.producer);
          for (size_t e = 0; e < lanes; ++e) {
            const int u = UnitsRead(p, a, edge, o, d, e);
            if (u == 0) continue;
            const Tick hand = e == d ? 0 : p.sync[e][d] + p.ops[q].out_bytes * u * p.ps_per_byte[e][d] / (mode(q).units * 100000);
            raise(o, d, end(q, e) + hand);
          }
        }
      }
    }
    if (changed) continue;
    std::vector<bool> read(n, false);
    for (const ProblemOp& op : p.ops) {
      for (const ProblemEdge& edge : op.inputs) read[static_cast<size_t>(edge.producer)] = true;
    }
    Tick makespan = 0;
    for (size_t d = 0; d < lanes; ++d) {
      for (int o : a.order[d]) makespan = std::max(makespan, end(static_cast<size_t>(o), d) + (read[static_cast<size_t>(o)] ? 0 : p.exit[d]));
    }
    return makespan;
  }
  return -1;
}

// The optimum, by trying everything: all splits, all orders of all lanes (which may cross), cut off where the time is up already.
class BruteForce {
 public:
  explicit BruteForce(const Problem& problem) : p_(problem), lanes_(problem.lanes.size()), choice_(problem.ops.size()), read_(problem.ops.size(), false) {
    for (const ProblemOp& op : p_.ops) {
      for (const ProblemEdge& edge : op.inputs) read_[static_cast<size_t>(edge.producer)] = true;
    }
  }
  Tick Run(Tick at_most) {
    best_ = at_most + 1;
    Choose(0);
    return best_;
  }

 private:
  void Choose(size_t o) {
    if (o == p_.ops.size()) {
      end_.assign(p_.ops.size() * lanes_, -1);
      available_.assign(lanes_, 0);
      Place(0);
      return;
    }
    choice_[o].assign(lanes_, 0);
    Split(o, 0, p_.ops[o].modes[0].units);
  }
  void Split(size_t o, size_t d, int left) {
    if (d + 1 == lanes_) {
      if (left > 0 && p_.ops[o].modes[0].Cost(static_cast<int>(d), left) == kForbidden) return;
      choice_[o][d] = left;
      const std::vector<int> mine = choice_[o];
      Choose(o + 1);
      choice_[o] = mine;
      return;
    }
    for (int u = 0; u <= left; ++u) {
      if (u > 0 && p_.ops[o].modes[0].Cost(static_cast<int>(d), u) == kForbidden) continue;
      choice_[o][d] = u;
      Split(o, d + 1, left - u);
    }
  }
  // Appends any part whose producers are complete; parts of one lane only in one order each.
  void Place(Tick so_far) {
    bool complete = true;
    for (size_t o = 0; o < p_.ops.size(); ++o) {
      for (size_t d = 0; d < lanes_; ++d) {
        if (choice_[o][d] == 0 || end_[o * lanes_ + d] >= 0) continue;
        complete = false;
        Tick start = std::max(available_[d], p_.ops[o].inputs.empty() ? p_.entry[d] : 0);
        bool ready = true;
        for (const ProblemEdge& edge : p_.ops[o].inputs) {
          const size_t q = static_cast<size_t>(edge.producer);
          for (size_t e = 0; e < lanes_; ++e) {
            const int u = choice_[q][e];
            if (u == 0) continue;
            const Tick end = end_[q * lanes_ + e];
            ready &= end >= 0;
            start = std::max(start, end + (e == d ? 0 : p_.sync[e][d] + p_.ops[q].out_bytes * u * p_.ps_per_byte[e][d] / (p_.ops[q].modes[0].units * 100000)));
          }
        }
        if (!ready) continue;
        const Tick end = start + p_.ops[o].modes[0].Cost(static_cast<int>(d), choice_[o][d]);
        const Tick now = std::max(so_far, end + (read_[o] ? 0 : p_.exit[d]));
        if (now >= best_) continue;
        const Tick before = available_[d];
        available_[d] = end_[o * lanes_ + d] = end;
        Place(now);
        available_[d] = before;
        end_[o * lanes_ + d] = -1;
      }
    }
    if (complete) best_ = std::min(best_, so_far);
  }

  const Problem& p_;
  size_t lanes_;
  std::vector<std::vector<int>> choice_;
  std::vector<bool> read_;
  std::vector<Tick> end_, available_;
  Tick best_ = 0;
};

}  // namespace plait
