#include "src/schedule/baselines.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "src/schedule/engine.h"

namespace plait {
namespace {

SequencePlan EmptyPlan(const Net& net) {
  SequencePlan plan;
  plan.sequence.resize(static_cast<size_t>(net.n));
  for (int o = 0; o < net.n; ++o) plan.sequence[static_cast<size_t>(o)] = o;
  plan.mode.assign(static_cast<size_t>(net.n), 0);
  plan.units.assign(static_cast<size_t>(net.n * net.lanes), 0);
  return plan;
}

// The fastest mode in which `lane` runs the operator whole; -1 if none.
int WholeMode(const Net& net, int op, int lane, Tick* cost) {
  int best = -1;
  *cost = kInfinite;
  for (int m = 0; m < net.ModeCount(op); ++m) {
    const Tick c = net.Cost(net.Mode(op, m), lane, net.Mode(op, m).units);
    if (c < *cost) {
      *cost = c;
      best = m;
    }
  }
  return best;
}

void PutWhole(const Net& net, int op, int lane, int mode, SequencePlan* plan) {
  plan->mode[static_cast<size_t>(op)] = static_cast<uint8_t>(mode);
  plan->units[static_cast<size_t>(op * net.lanes + lane)] = static_cast<uint8_t>(net.Mode(op, mode).units);
}

SequencePlan LaneAlone(const Net& net, int lane) {
  SequencePlan plan = EmptyPlan(net);
  for (int o = 0; o < net.n; ++o) {
    Tick cost;
    const int mode = WholeMode(net, o, lane, &cost);
    if (mode < 0) return plan;
    PutWhole(net, o, lane, mode, &plan);
  }
  plan.makespan = 0;
  return plan;
}

SequencePlan Fastest(const Net& net) {
  SequencePlan plan = EmptyPlan(net);
  for (int o = 0; o < net.n; ++o) {
    int best_lane = 0, best_mode = 0;
    Tick best = kInfinite;
    for (int d = 0; d < net.lanes; ++d) {
      Tick cost;
      const int mode = WholeMode(net, o, d, &cost);
      if (cost < best) {
        best = cost;
        best_lane = d;
        best_mode = mode;
      }
    }
    PutWhole(net, o, best_lane, best_mode, &plan);
  }
  plan.makespan = 0;
  return plan;
}

// Upward ranks: the mean cost of the longest way to the end, handoffs included.
std::vector<Tick> Ranks(const Net& net) {
  std::vector<Tick> rank(static_cast<size_t>(net.n), 0);
  for (int o = net.n - 1; o >= 0; --o) {
    Tick cost = 0, hand = 0;
    int able = 0;
    for (int d = 0; d < net.lanes; ++d) {
      Tick c;
      if (WholeMode(net, o, d, &c) < 0) continue;
      cost += c;
      ++able;
    }
    const NetMode& m = net.Mode(o, 0);
    for (int e = 0; e < net.lanes; ++e) {
      for (int d = 0; d < net.lanes; ++d) hand += e == d ? 0 : net.Handoff(m, m.units, e, d);
    }
    hand /= net.lanes * net.lanes;
    Tick after = 0;
    for (int k = net.out_begin[static_cast<size_t>(o)]; k < net.out_begin[static_cast<size_t>(o) + 1]; ++k) {
      after = std::max(after, hand + rank[static_cast<size_t>(net.out_op[static_cast<size_t>(k)])]);
    }
    rank[static_cast<size_t>(o)] = cost / std::max(1, able) + after;
  }
  return rank;
}

std::vector<int> ByRank(const Net& net) {
  const std::vector<Tick> rank = Ranks(net);
  std::vector<int> order(static_cast<size_t>(net.n));
  for (int o = 0; o < net.n; ++o) order[static_cast<size_t>(o)] = o;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return rank[static_cast<size_t>(a)] > rank[static_cast<size_t>(b)]; });
  return order;
}

struct Slot {
  Tick start, end;
};

// Where a part of `cost` that is ready at `ready` fits first among busy slots in order of time; the index before which it goes.
std::pair<Tick, size_t> FirstGap(const std::vector<Slot>& busy, Tick ready, Tick cost) {
  // Slots that end before `ready` cannot matter, but a gap may begin in the middle of them: look from the first that ends later.
  const auto at = std::partition_point(busy.begin(), busy.end(), [&](const Slot& s) { return s.end <= ready; });
  size_t i = static_cast<size_t>(at - busy.begin());
  Tick from = std::max(ready, i == 0 ? 0 : busy[i - 1].end);
  for (; i < busy.size(); ++i) {
    if (busy[i].start - from >= cost) break;
    from = std::max(from, busy[i].end);
  }
  return {from, i};
}

SequencePlan HeftWhole(const Net& net) {
  SequencePlan plan = EmptyPlan(net);
  const int D = net.lanes;
  std::vector<std::vector<Slot>> busy(static_cast<size_t>(D));
  std::vector<Tick> start(static_cast<size_t>(net.n)), end(static_cast<size_t>(net.n));
  std::vector<int> lane(static_cast<size_t>(net.n));
  for (int o : ByRank(net)) {
    Tick best = kInfinite, best_start = 0;
    int best_lane = 0, best_mode = 0;
    size_t best_slot = 0;
    for (int d = 0; d < D; ++d) {
      Tick cost;
      const int mode = WholeMode(net, o, d, &cost);
      if (mode < 0) continue;
      Tick ready = net.IsSource(o) ? net.entry[static_cast<size_t>(d)] : 0;
      for (int k = net.in_begin[static_cast<size_t>(o)]; k < net.in_begin[static_cast<size_t>(o) + 1]; ++k) {
        const size_t p = static_cast<size_t>(net.in_op[static_cast<size_t>(k)]);
        const NetMode& m = net.Mode(static_cast<int>(p), plan.mode[p]);
        ready = std::max(ready, end[p] + (lane[p] == d ? 0 : net.Handoff(m, m.units, lane[p], d)));
      }
      const auto [at, slot] = FirstGap(busy[static_cast<size_t>(d)], ready, cost);
      const Tick finish = at + cost + (net.IsSink(o) ? net.exit[static_cast<size_t>(d)] : 0);
      if (finish >= best) continue;
      best = finish;
      best_start = at;
      best_lane = d;
      best_mode = mode;
      best_slot = slot;
    }
    Tick cost;
    WholeMode(net, o, best_lane, &cost);
    auto& slots = busy[static_cast<size_t>(best_lane)];
    slots.insert(slots.begin() + static_cast<std::ptrdiff_t>(best_slot), {best_start, best_start + cost});
    start[static_cast<size_t>(o)] = best_start;
    end[static_cast<size_t>(o)] = best_start + cost;
    lane[static_cast<size_t>(o)] = best_lane;
    PutWhole(net, o, best_lane, best_mode, &plan);
  }
  std::stable_sort(plan.sequence.begin(), plan.sequence.end(), [&](int a, int b) { return start[static_cast<size_t>(a)] < start[static_cast<size_t>(b)]; });
  plan.makespan = 0;
  return plan;
}

template <int kD>
SequencePlan Appended(const Net& net, const std::vector<int>& order) {
  Engine<kD> engine(net);
  engine.StartAppending(order);
  Random random(1);
  for (int p = 0; p < net.n; ++p) engine.Append(p, engine.BestPlacement(order[static_cast<size_t>(p)], p, p, ~0u, false, 0, &random));
  SequencePlan plan = engine.plan();
  plan.makespan = 0;
  return plan;
}

// Every operator split as if nothing else were running.
template <int kD>
SequencePlan EverySplit(const Net& net) {
  SequencePlan plan = EmptyPlan(net);
  Engine<kD> engine(net);
  Random random(1);
  engine.StartAppending(plan.sequence);
  for (int o = 0; o < net.n; ++o) {
    const auto place = engine.BestAlone(o, &random);
    plan.mode[static_cast<size_t>(o)] = static_cast<uint8_t>(place.mode);
    std::copy_n(place.units, net.lanes, plan.units.begin() + o * net.lanes);
  }
  plan.makespan = 0;
  return plan;
}

template <int kD>
Tick Makespan(const Net& net, const SequencePlan& plan) {
  Engine<kD> engine(net);
  engine.Load(plan);
  return engine.plan().makespan;
}

}  // namespace

Tick MakespanOf(const Net& net, const SequencePlan& plan) {
  return WithLanes(net.lanes, [&](auto lanes) { return Makespan<lanes()>(net, plan); });
}

std::vector<Baseline> Baselines(const Net& net) {
  std::vector<Baseline> out;
  for (int d = 0; d < net.lanes; ++d) out.push_back({"lane:" + net.problem->lanes[static_cast<size_t>(d)].name, LaneAlone(net, d)});
  out.push_back({"fastest", Fastest(net)});
  out.push_back({"heft", HeftWhole(net)});
  WithLanes(net.lanes, [&](auto lanes) {
    out.push_back({"heft-split", Appended<lanes()>(net, ByRank(net))});
    out.push_back({"split", EverySplit<lanes()>(net)});
    return 0;
  });
  for (Baseline& b : out) {
    if (b.plan.makespan < kInfinite) b.plan.makespan = MakespanOf(net, b.plan);
  }
  return out;
}

std::vector<Tick> StartTimes(const Net& net, const SequencePlan& plan) {
  return WithLanes(net.lanes, [&](auto lanes) {
    Engine<lanes()> engine(net);
    engine.Load(plan);
    std::vector<Tick> start(static_cast<size_t>(net.n), 0);
    for (int o = 0; o < net.n; ++o) start[static_cast<size_t>(o)] = engine.FirstStart(o);
    return start;
  });
}

std::vector<int> SortByKey(const Net& net, const SequencePlan* plan, const std::vector<Tick>& key) {
  const int D = net.lanes;
  std::vector<std::vector<int>> after(static_cast<size_t>(net.n));  // the next operators on the lanes
  std::vector<int> waits(static_cast<size_t>(net.n), 0);
  std::vector<int> last(static_cast<size_t>(D), -1);
  for (int i = 0; plan != nullptr && i < net.n; ++i) {
    const int o = plan->sequence[static_cast<size_t>(i)];
    for (int d = 0; d < D; ++d) {
      if (plan->units[static_cast<size_t>(o) * static_cast<size_t>(D) + static_cast<size_t>(d)] == 0) continue;
      int& before = last[static_cast<size_t>(d)];
      if (before >= 0) {
        after[static_cast<size_t>(before)].push_back(o);
        ++waits[static_cast<size_t>(o)];
      }
      before = o;
    }
  }
  using Entry = std::pair<Tick, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  for (int o = 0; o < net.n; ++o) {
    waits[static_cast<size_t>(o)] += net.in_begin[static_cast<size_t>(o) + 1] - net.in_begin[static_cast<size_t>(o)];
    if (waits[static_cast<size_t>(o)] == 0) ready.push({key[static_cast<size_t>(o)], o});
  }
  const auto done = [&](int o) {
    if (--waits[static_cast<size_t>(o)] == 0) ready.push({key[static_cast<size_t>(o)], o});
  };
  std::vector<int> out;
  out.reserve(static_cast<size_t>(net.n));
  while (!ready.empty()) {
    const int o = ready.top().second;
    ready.pop();
    out.push_back(o);
    for (int next : after[static_cast<size_t>(o)]) done(next);
    for (int k = net.out_begin[static_cast<size_t>(o)]; k < net.out_begin[static_cast<size_t>(o) + 1]; ++k) done(net.out_op[static_cast<size_t>(k)]);
  }
  return out;
}

}  // namespace plait
