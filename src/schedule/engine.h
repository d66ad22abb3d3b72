// Timelines of plans whose lanes follow one sequence of operators: built front to back at the best place for each operator, or loaded
// whole. For each position it knows how long every lane is busy before it (heads) and the longest path from there to the end (tails).
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "src/schedule/net.h"
#include "src/schedule/random.h"

namespace plait {

// kD: number of lanes known at compile time, or 0.
template <int kD>
class Engine {
 public:
  static constexpr int kWidth = kD > 0 ? kD : kMaxLanes;

  struct Placement {
    int position = 0;
    int mode = 0;
    uint8_t units[kWidth] = {};
    Tick value = kInfinite;  // longest path through the operator
  };

  explicit Engine(const Net& net) : net_(net) {
    const size_t cells = static_cast<size_t>(net.n) * Width(), rows = (static_cast<size_t>(net.n) + 1) * Width();
    position_.resize(static_cast<size_t>(net.n));
    current_.resize(static_cast<size_t>(net.n));
    end_.resize(cells);
    release_.resize(cells);
    span_.resize(cells);
    avail_.resize(rows);
    lane_span_.resize(rows);
  }

  int lanes() const { return kD > 0 ? kD : net_.lanes; }
  int At(int position) const { return plan_.sequence[static_cast<size_t>(position)]; }
  const SequencePlan& plan() const { return plan_; }

  void Load(const SequencePlan& plan) {
    plan_ = plan;
    for (int p = 0; p < net_.n; ++p) {
      position_[static_cast<size_t>(At(p))] = p;
      SetMode(At(p), plan.mode[static_cast<size_t>(At(p))]);
    }
    Refresh();
  }

  // Builds a timeline front to back: nothing follows an appended operator yet, so the best placement is the one that ends first.
  void StartAppending(const std::vector<int>& sequence) {
    plan_.sequence = sequence;
    plan_.mode.assign(static_cast<size_t>(net_.n), 0);
    plan_.units.assign(static_cast<size_t>(net_.n) * Width(), 0);
    for (int p = 0; p < net_.n; ++p) {
      position_[static_cast<size_t>(At(p))] = p;
      SetMode(At(p), 0);
    }
    std::fill(avail_.begin(), avail_.end(), 0);
    std::fill(lane_span_.begin(), lane_span_.end(), 0);
    std::fill(release_.begin(), release_.end(), 0);
    std::fill(span_.begin(), span_.end(), 0);
  }
  void Append(int position, const Placement& place) {
    Assign(At(position), place.mode, place.units);
    Head(At(position), position);
  }
  // The split of `v` that would end first on idle lanes with all inputs there; only after StartAppending.
  Placement BestAlone(int v, Random* random) { return BestPlacement(v, 0, 0, ~0u, false, 0, random); }

  Tick FirstStart(int v) const {
    Tick first = kInfinite;
    for (int d = 0; d < lanes(); ++d) {
      const int u = plan_.units[Cell(v) + static_cast<size_t>(d)];
      if (u > 0) first = std::min(first, end_[Cell(v) + static_cast<size_t>(d)] - net_.Cost(*current_[static_cast<size_t>(v)], d, u));
    }
    return first;
  }

  // All heads and tails; the makespan.
  void Refresh() {
    std::fill_n(avail_.begin(), lanes(), 0);
    ComputeHeads(0, net_.n);
    std::fill_n(lane_span_.begin() + static_cast<std::ptrdiff_t>(Cell(net_.n)), lanes(), 0);
    ComputeTails(0, net_.n);
    plan_.makespan = 0;
    for (int d = 0; d < lanes(); ++d) plan_.makespan = std::max(plan_.makespan, lane_span_[static_cast<size_t>(d)]);
    plan_.makespan = WindowValue(0, net_.n);
  }

  void ComputeHeads(int from, int to) {
    for (int p = from; p < to; ++p) Head(At(p), p);
  }
  void ComputeTails(int from, int to) {
    for (int p = to - 1; p >= from; --p) Tail(At(p), p);
  }

  // The longest path through the operator; heads and tails must be fresh.
  Tick PathThrough(int v) const {
    const NetMode& m = *current_[static_cast<size_t>(v)];
    Tick most = 0;
    for (int d = 0; d < lanes(); ++d) {
      const int u = plan_.units[Cell(v) + static_cast<size_t>(d)];
      if (u > 0) most = std::max(most, end_[Cell(v) + static_cast<size_t>(d)] - net_.Cost(m, d, u) + span_[Cell(v) + static_cast<size_t>(d)]);
    }
    return most;
  }
  Tick WindowValue(int i, int j) const {
    Tick most = 0;
    for (int p = i; p < j; ++p) most = std::max(most, PathThrough(At(p)));
    return most;
  }

  void Assign(int v, int mode, const uint8_t* units) {
    SetMode(v, mode);
    std::copy_n(units, lanes(), &plan_.units[Cell(v)]);
  }

  // The best placement of a `v` that is not placed between positions lo and hi on the lanes in `mask`, each candidate's value raised by a random
  // amount up to `noise`; on single lanes only if `whole`.
  Placement BestPlacement(int v, int lo, int hi, uint32_t mask, bool whole, Tick noise, Random* random) {
    return net_.by_region[static_cast<size_t>(v)] ? BestByRegion(v, lo, hi, mask, whole, noise, random) : BestPlain(v, lo, hi, mask, whole, noise, random);
  }

 private:
  size_t Width() const { return static_cast<size_t>(lanes()); }
  size_t Cell(int row) const { return static_cast<size_t>(row) * Width(); }

  void SetMode(int v, int mode) {
    plan_.mode[static_cast<size_t>(v)] = static_cast<uint8_t>(mode);
    current_[static_cast<size_t>(v)] = &net_.Mode(v, mode);
  }

  // When all that `v`, cut into `units` of `mode`, reads can be read on each lane (exact for lanes with units; for access by region).
  void Ready(int v, int mode, const uint8_t* units, Tick* ready) const {
    const int D = lanes();
    const int first = net_.in_begin[static_cast<size_t>(v)], last = net_.in_begin[static_cast<size_t>(v) + 1];
    if (first == last) {
      std::copy_n(net_.entry.begin(), D, ready);
      return;
    }
    std::fill_n(ready, D, 0);
    for (int edge = first; edge < last; ++edge) {
      const int p = net_.in_op[static_cast<size_t>(edge)];
      const Access* access = AccessOf(edge, mode, p, plan_.mode[static_cast<size_t>(p)]);
      if (access == nullptr) {
        const Tick* release = &release_[Cell(p)];
        for (int d = 0; d < D; ++d) ready[d] = std::max(ready[d], release[d]);
      } else {
        ReadyByRegion(p, *access, units, ready);
      }
    }
  }

  const Access* AccessOf(int edge, int mode, int producer, int producer_mode) const {
    const int table = net_.in_access[static_cast<size_t>(edge)];
    if (table < 0) return nullptr;
    const int index = net_.edge_access[static_cast<size_t>(table + mode * net_.ModeCount(producer) + producer_mode)];
    return index < 0 ? nullptr : &net_.problem->accesses[static_cast<size_t>(index)];
  }

  void ReadyByRegion(int p, const Access& access, const uint8_t* units, Tick* ready) const {
    const int D = lanes();
    const NetMode& m = *current_[static_cast<size_t>(p)];
    int at = 0;
    for (int d = 0; d < D; ++d) {
      if (units[d] == 0) continue;
      const int first = access.first[static_cast<size_t>(at)], last = access.last[static_cast<size_t>(at + units[d] - 1)];
      at += units[d];
      int begin = 0;
      for (int e = 0; e < D; ++e) {
        const int made = plan_.units[Cell(p) + static_cast<size_t>(e)];
        const int overlap = std::min(last, begin + made) - std::max(first, begin);
        begin += made;
        if (overlap <= 0) continue;
        ready[d] = std::max(ready[d], end_[Cell(p) + static_cast<size_t>(e)] + (e == d ? 0 : net_.Handoff(m, overlap, e, d)));
      }
    }
  }

  // What follows parts of `v`: demand[f] = longest path from the start of a consumer on lane f (0: none) that reads all of v, and for
  // consumers that read by region the exact tail of each part.
  void Demand(int v, Tick* demand) const {
    std::fill_n(demand, lanes(), 0);
    for (int e = net_.out_begin[static_cast<size_t>(v)]; e < net_.out_begin[static_cast<size_t>(v) + 1]; ++e) {
      const int c = net_.out_op[static_cast<size_t>(e)];
      const Tick* span = &span_[Cell(c)];
      for (int f = 0; f < lanes(); ++f) demand[f] = std::max(demand[f], span[f]);
    }
  }
  Tick TailOf(const NetMode& m, int lane, int u, const Tick* demand) const {
    Tick most = demand[lane];
    for (int f = 0; f < lanes(); ++f) {
      if (f != lane && demand[f] > 0) most = std::max(most, demand[f] + net_.Handoff(m, u, lane, f));
    }
    return most;
  }

  // Tails of all parts of `v` cut into `units` of `mode`, lanes' next parts aside.
  void Tails(int v, int mode, const uint8_t* units, Tick* tail) const {
    const int D = lanes();
    const NetMode& m = net_.Mode(v, mode);
    Tick demand[kWidth];
    if (net_.IsSink(v)) {
      std::copy_n(net_.exit.begin(), D, tail);
      return;
    }
    if (!net_.by_region[static_cast<size_t>(v)]) {
      Demand(v, demand);
      for (int d = 0; d < D; ++d) tail[d] = units[d] > 0 ? TailOf(m, d, units[d], demand) : 0;
      return;
    }
    std::fill_n(demand, D, 0);
    std::fill_n(tail, D, 0);
    for (int k = net_.out_begin[static_cast<size_t>(v)]; k < net_.out_begin[static_cast<size_t>(v) + 1]; ++k) {
      const int c = net_.out_op[static_cast<size_t>(k)];
      const Access* access = AccessOf(net_.out_edge[static_cast<size_t>(k)], plan_.mode[static_cast<size_t>(c)], v, mode);
      if (access == nullptr) {
        for (int f = 0; f < D; ++f) demand[f] = std::max(demand[f], span_[Cell(c) + static_cast<size_t>(f)]);
      } else {
        TailsByRegion(c, m, *access, units, tail);
      }
    }
    for (int d = 0; d < D; ++d) {
      if (units[d] > 0) tail[d] = std::max(tail[d], TailOf(m, d, units[d], demand));
    }
  }

  void TailsByRegion(int c, const NetMode& m, const Access& access, const uint8_t* units, Tick* tail) const {
    const int D = lanes();
    int at = 0;
    for (int f = 0; f < D; ++f) {
      const int read = plan_.units[Cell(c) + static_cast<size_t>(f)];
      if (read == 0) continue;
      const int first = access.first[static_cast<size_t>(at)], last = access.last[static_cast<size_t>(at + read - 1)];
      at += read;
      const Tick span = span_[Cell(c) + static_cast<size_t>(f)];
      int begin = 0;
      for (int d = 0; d < D; ++d) {
        const int overlap = std::min(last, begin + units[d]) - std::max(first, begin);
        begin += units[d];
        if (overlap > 0) tail[d] = std::max(tail[d], span + (d == f ? 0 : net_.Handoff(m, overlap, d, f)));
      }
    }
  }

  void Head(int v, int p) {
    const int D = lanes();
    Tick ready[kWidth];
    const uint8_t* units = &plan_.units[Cell(v)];
    if (!net_.by_region[static_cast<size_t>(v)]) {
      PlainReady(v, ready);
    } else {
      Ready(v, plan_.mode[static_cast<size_t>(v)], units, ready);
    }
    const NetMode& m = *current_[static_cast<size_t>(v)];
    const Tick* avail = &avail_[Cell(p)];
    Tick* next = &avail_[Cell(p + 1)];
    Tick* release = &release_[Cell(v)];
    for (int d = 0; d < D; ++d) {
      next[d] = avail[d];
      release[d] = 0;
    }
    for (int e = 0; e < D; ++e) {
      const int u = units[e];
      if (u == 0) continue;
      const Tick end = std::max(ready[e], avail[e]) + net_.Cost(m, e, u);
      end_[Cell(v) + static_cast<size_t>(e)] = next[e] = end;
      for (int d = 0; d < D; ++d) release[d] = std::max(release[d], d == e ? end : end + net_.Handoff(m, u, e, d));
    }
  }

  void PlainReady(int v, Tick* ready) const {
    const int D = lanes();
    const int first = net_.in_begin[static_cast<size_t>(v)], last = net_.in_begin[static_cast<size_t>(v) + 1];
    if (first == last) {
      std::copy_n(net_.entry.begin(), D, ready);
      return;
    }
    std::copy_n(&release_[Cell(net_.in_op[static_cast<size_t>(first)])], D, ready);
    for (int edge = first + 1; edge < last; ++edge) {
      const Tick* release = &release_[Cell(net_.in_op[static_cast<size_t>(edge)])];
      for (int d = 0; d < D; ++d) ready[d] = std::max(ready[d], release[d]);
    }
  }

  void Tail(int v, int p) {
    const int D = lanes();
    Tick tail[kWidth];
    const uint8_t* units = &plan_.units[Cell(v)];
    Tails(v, plan_.mode[static_cast<size_t>(v)], units, tail);
    const NetMode& m = *current_[static_cast<size_t>(v)];
    const Tick* after = &lane_span_[Cell(p + 1)];
    Tick* before = &lane_span_[Cell(p)];
    Tick* span = &span_[Cell(v)];
    for (int d = 0; d < D; ++d) {
      const int u = units[d];
      span[d] = u == 0 ? 0 : std::max(tail[d], after[d]) + net_.Cost(m, d, u);
      before[d] = u == 0 ? after[d] : span[d];
    }
  }

  static void Keep(const Placement& candidate, Tick key, Placement* best, Tick* best_key) {
    if (key >= *best_key) return;
    *best = candidate;
    *best_key = key;
  }

  Placement BestPlain(int v, int lo, int hi, uint32_t mask, bool whole, Tick noise, Random* random) const;
  Placement BestByRegion(int v, int lo, int hi, uint32_t mask, bool whole, Tick noise, Random* random) const;

  const Net& net_;
  SequencePlan plan_;
  std::vector<int> position_;              // [op]
  std::vector<const NetMode*> current_;    // [op]
  std::vector<Tick> end_, release_, span_; // [op][lane]; span: from a part's start to the end of everything
  std::vector<Tick> avail_, lane_span_;    // [position][lane]: before and from that position on
};

// Calls `body` with the number of lanes as a compile-time constant (0: any) and returns its result.
template <typename Body>
auto WithLanes(int lanes, Body body) {
  switch (lanes) {
    case 2: return body(std::integral_constant<int, 2>());
    case 3: return body(std::integral_constant<int, 3>());
    case 4: return body(std::integral_constant<int, 4>());
    default: return body(std::integral_constant<int, 0>());
  }
}

template <int kD>
typename Engine<kD>::Placement Engine<kD>::BestPlain(int v, int lo, int hi, uint32_t mask, bool whole, Tick noise, Random* random) const {
  const int D = lanes();
  Tick ready[kWidth], demand[kWidth];
  PlainReady(v, ready);
  Demand(v, demand);
  const bool sink = net_.IsSink(v);
  Placement best;
  Tick best_key = kInfinite;
  for (int mode = 0; mode < net_.ModeCount(v); ++mode) {
    const NetMode& m = net_.Mode(v, mode);
    const int U = m.units;
    Tick tail[kWidth][kMaxUnits + 1];
    for (int d = 0; d < D; ++d) {
      for (int u = 1; u <= U; ++u) tail[d][u] = sink ? net_.exit[static_cast<size_t>(d)] : TailOf(m, d, u, demand);
    }
    for (int p = lo; p <= hi; ++p) {
      const Tick* avail = &avail_[Cell(p)];
      const Tick* after = &lane_span_[Cell(p)];
      Placement candidate;
      candidate.position = p;
      candidate.mode = mode;
      const auto value = [&](int d, int u) {
        const Tick cost = net_.Cost(m, d, u);
        return cost >= kInfinite ? kInfinite : std::max(ready[d], avail[d]) + cost + std::max(tail[d][u], after[d]);
      };
      for (int d = 0; d < D; ++d) {
        if (!(mask >> d & 1)) continue;
        candidate.value = value(d, U);
        if (candidate.value >= kInfinite) continue;
        std::fill_n(candidate.units, D, uint8_t{0});
        candidate.units[d] = static_cast<uint8_t>(U);
        Keep(candidate, candidate.value + random->UpTo(noise), &best, &best_key);
      }
      if (whole || U == 1) continue;
      // The split whose last path is shortest: unit by unit to the lane that then ends first.
      Tick next[kWidth];
      std::fill_n(candidate.units, D, uint8_t{0});
      for (int d = 0; d < D; ++d) next[d] = (mask >> d & 1) ? value(d, m.min_units) : kInfinite;
      int left = U;
      candidate.value = 0;
      while (left > 0) {
        int to = 0;
        for (int d = 1; d < D; ++d) {
          if (next[d] < next[to]) to = d;
        }
        if (next[to] >= kInfinite) break;
        const int step = candidate.units[to] == 0 ? std::min(m.min_units, left) : 1;
        candidate.units[to] = static_cast<uint8_t>(candidate.units[to] + step);
        left -= step;
        next[to] = candidate.units[to] < U ? value(to, candidate.units[to] + 1) : kInfinite;
      }
      if (left > 0) continue;
      bool legal = true;
      for (int d = 0; d < D; ++d) {
        const int u = candidate.units[d];
        legal &= u == 0 || u >= m.min_units;
        if (u > 0) candidate.value = std::max(candidate.value, value(d, u));
      }
      if (legal && candidate.value < kInfinite) Keep(candidate, candidate.value + random->UpTo(noise), &best, &best_key);
    }
  }
  return best;
}

template <int kD>
typename Engine<kD>::Placement Engine<kD>::BestByRegion(int v, int lo, int hi, uint32_t mask, bool whole, Tick noise, Random* random) const {
  const int D = lanes();
  Placement best;
  Tick best_key = kInfinite;
  Tick ready[kWidth], tail[kWidth];
  const auto consider = [&](int mode, const uint8_t* units) {
    const NetMode& m = net_.Mode(v, mode);
    Ready(v, mode, units, ready);
    Tails(v, mode, units, tail);
    Placement candidate;
    candidate.mode = mode;
    std::copy_n(units, D, candidate.units);
    for (int p = lo; p <= hi; ++p) {
      const Tick* avail = &avail_[Cell(p)];
      const Tick* after = &lane_span_[Cell(p)];
      candidate.position = p;
      candidate.value = 0;
      for (int d = 0; d < D; ++d) {
        if (units[d] > 0) candidate.value = std::max(candidate.value, std::max(ready[d], avail[d]) + net_.Cost(m, d, units[d]) + std::max(tail[d], after[d]));
      }
      Keep(candidate, candidate.value + random->UpTo(noise), &best, &best_key);
    }
  };
  const auto legal = [&](const NetMode& m, const uint8_t* units) {
    for (int d = 0; d < D; ++d) {
      if (units[d] > 0 && (units[d] < m.min_units || !(mask >> d & 1) || net_.Cost(m, d, units[d]) >= kInfinite)) return false;
    }
    return true;
  };
  uint8_t units[kWidth];
  for (int mode = 0; mode < net_.ModeCount(v); ++mode) {
    const NetMode& m = net_.Mode(v, mode);
    for (int d = 0; d < D; ++d) {
      std::fill_n(units, D, uint8_t{0});
      units[d] = static_cast<uint8_t>(m.units);
      if (legal(m, units)) consider(mode, units);
    }
    if (whole || m.units == 1) continue;
    for (int a = 0; a < D; ++a) {
      for (int b = a + 1; b < D; ++b) {
        for (int u = m.min_units; u + m.min_units <= m.units; ++u) {
          std::fill_n(units, D, uint8_t{0});
          units[a] = static_cast<uint8_t>(u);
          units[b] = static_cast<uint8_t>(m.units - u);
          if (legal(m, units)) consider(mode, units);
        }
      }
    }
  }
  return best;
}

}  // namespace plait
