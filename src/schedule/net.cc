#include "src/schedule/net.h"

#include <algorithm>
#include <map>
#include <utility>

namespace plait {

Net::Net(const Problem& p) : problem(&p), n(static_cast<int>(p.ops.size())), lanes(static_cast<int>(p.lanes.size())), entry(p.entry), exit(p.exit) {
  std::vector<int64_t> class_ps;
  for (const auto& row : p.sync) sync.insert(sync.end(), row.begin(), row.end());
  for (const auto& row : p.ps_per_byte) {
    for (int64_t ps : row) {
      const auto it = std::find(class_ps.begin(), class_ps.end(), ps);
      byte_class.push_back(static_cast<int>(it - class_ps.begin()));
      if (it == class_ps.end()) class_ps.push_back(ps);
    }
  }
  std::map<std::pair<int64_t, int>, int64_t> handoff_tables;  // (out_bytes, units)
  std::map<std::vector<Tick>, int64_t> cost_tables;
  std::vector<int> consumers(static_cast<size_t>(n), 0);
  by_region.assign(static_cast<size_t>(n), 0);
  mode_begin.push_back(0);
  in_begin.push_back(0);
  for (int o = 0; o < n; ++o) {
    const ProblemOp& op = p.ops[static_cast<size_t>(o)];
    for (const plait::Mode& mode : op.modes) {
      NetMode m;
      m.units = mode.units;
      m.min_units = mode.min_units;
      const auto [cost_at, new_costs] = cost_tables.try_emplace(mode.cost, static_cast<int64_t>(costs.size()));
      m.cost = cost_at->second;
      for (int d = 0; d < lanes && new_costs; ++d) {
        costs.push_back(0);
        for (int u = 1; u <= mode.units; ++u) costs.push_back(mode.Cost(d, u) == kForbidden ? kInfinite : mode.Cost(d, u));
        floors.resize(costs.size());
        for (int u = mode.units; u >= 0; --u) {
          const size_t at = costs.size() - static_cast<size_t>(mode.units - u) - 1;
          floors[at] = u == mode.units ? costs[at] : std::min(costs[at], floors[at + 1]);
        }
      }
      const auto [handoff_at, new_handoffs] = handoff_tables.try_emplace({op.out_bytes, mode.units}, static_cast<int64_t>(handoffs.size()));
      m.handoff = handoff_at->second;
      for (size_t c = 0; c < class_ps.size() && new_handoffs; ++c) {
        const int64_t whole = mode.units * kPsPerTick;
        for (int u = 0; u <= mode.units; ++u) {
          const int64_t bytes = op.out_bytes * u;
          handoffs.push_back((bytes / whole) * class_ps[c] + (bytes % whole) * class_ps[c] / whole);
        }
      }
      modes.push_back(m);
    }
    mode_begin.push_back(static_cast<int>(modes.size()));
    for (const ProblemEdge& edge : op.inputs) {
      in_op.push_back(edge.producer);
      in_to.push_back(o);
      ++consumers[static_cast<size_t>(edge.producer)];
      const bool whole = std::all_of(edge.access.begin(), edge.access.end(), [](int a) { return a < 0; });
      in_access.push_back(whole ? -1 : static_cast<int>(edge_access.size()));
      if (whole) continue;
      any_region = true;
      by_region[static_cast<size_t>(o)] = by_region[static_cast<size_t>(edge.producer)] = 1;
      edge_access.insert(edge_access.end(), edge.access.begin(), edge.access.end());
    }
    in_begin.push_back(static_cast<int>(in_op.size()));
  }
  out_begin.assign(static_cast<size_t>(n) + 1, 0);
  for (int o = 0; o < n; ++o) out_begin[static_cast<size_t>(o) + 1] = out_begin[static_cast<size_t>(o)] + consumers[static_cast<size_t>(o)];
  out_op.resize(in_op.size());
  out_edge.resize(in_op.size());
  std::vector<int> fill(out_begin.begin(), out_begin.end() - 1);
  for (int o = 0; o < n; ++o) {
    for (int e = in_begin[static_cast<size_t>(o)]; e < in_begin[static_cast<size_t>(o) + 1]; ++e) {
      const size_t at = static_cast<size_t>(fill[static_cast<size_t>(in_op[static_cast<size_t>(e)])]++);
      out_op[at] = o;
      out_edge[at] = e;
    }
  }
}

Assignment ToAssignment(const Net& net, const SequencePlan& plan) {
  const size_t lanes = static_cast<size_t>(net.lanes);
  Assignment out;
  out.makespan = plan.makespan;
  out.choices.resize(static_cast<size_t>(net.n));
  out.order.resize(lanes);
  for (size_t o = 0; o < out.choices.size(); ++o) {
    out.choices[o].mode = plan.mode[o];
    out.choices[o].units.assign(plan.units.begin() + static_cast<std::ptrdiff_t>(o * lanes), plan.units.begin() + static_cast<std::ptrdiff_t>((o + 1) * lanes));
  }
  for (int o : plan.sequence) {
    for (size_t d = 0; d < lanes; ++d) {
      if (plan.units[static_cast<size_t>(o) * lanes + d] > 0) out.order[d].push_back(o);
    }
  }
  return out;
}

}  // namespace plait
