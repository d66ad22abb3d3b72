#include "src/schedule/bounds.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "src/schedule/net.h"
#include "src/schedule/stage_labels.h"

namespace plait {
namespace {

// Prices are shares of kPriceOne, so that sums stay exact in integers.
constexpr int64_t kPriceOne = 1 << 16;

class Bounder {
 public:
  explicit Bounder(const Net& net) : net_(net), alike_(static_cast<size_t>(net.n)) {
    times_.shortest.resize(static_cast<size_t>(net.n));
    times_.after_input.resize(static_cast<size_t>(net.n));
    std::map<std::vector<std::pair<int64_t, int>>, int> first;
    for (int o = 0; o < net.n; ++o) {
      std::vector<std::pair<int64_t, int>> modes;
      for (int m = 0; m < net.ModeCount(o); ++m) modes.emplace_back(net.Mode(o, m).cost, net.Mode(o, m).min_units);
      const int same = first.try_emplace(std::move(modes), o).first->second;
      alike_[static_cast<size_t>(o)] = same;
      times_.shortest[static_cast<size_t>(o)] = same == o ? Shortest(o, -1) : times_.shortest[static_cast<size_t>(same)];
      times_.after_input[static_cast<size_t>(o)] = same == o ? ShortestAfterInput(o) : times_.after_input[static_cast<size_t>(same)];
    }
  }

  Tick Run(Tick known) {
    if (net_.n == 0) return 0;
    const Tick path = LongestPath();
    const Tick work = MostWork(WorkOf(0, net_.n)) + *std::min_element(net_.entry.begin(), net_.entry.end());
    // By region an operator may start before its producers have ended, so stages would overlap.
    if (std::any_of(net_.by_region.begin(), net_.by_region.end(), [](uint8_t r) { return r != 0; })) return std::max(path, work);
    const std::vector<int> cuts = CutOperators();
    std::vector<Stage> stages(cuts.size() + 1);
    int before = -1;
    for (size_t k = 0; k < stages.size(); ++k) {
      const int cut = k < cuts.size() ? cuts[k] : net_.n;
      stages[k].begin = before + 1;
      stages[k].end = cut;
      stages[k].work = WorkOf(before + 1, cut);
      stages[k].least = std::max(MostWork(stages[k].work), StagePath(before, cut));
      before = cut;
    }
    return std::max({path, work, StageLabelBound(net_, cuts, stages, times_, known)});
  }

 private:
  // The last part of the inputs ends on some lane; parts on the other lanes wait for its handoff.
  Tick ShortestAfterInput(int o) const {
    Tick best = kInfinite;
    for (int e = 0; e < net_.lanes; ++e) best = std::min(best, Shortest(o, e));
    return best;
  }

  // The shortest time in which the operator can be done once all it reads has been made, on lane `from` last; -1: is everywhere.
  Tick Shortest(int o, int from) const {
    Tick best = kInfinite;
    for (int mode = 0; mode < net_.ModeCount(o); ++mode) {
      const NetMode& m = net_.Mode(o, mode);
      // The U-th smallest of the lanes' least latencies of at least u units.
      std::vector<Tick> times;
      for (int d = 0; d < net_.lanes; ++d) {
        const Tick wait = from < 0 ? 0 : net_.sync[static_cast<size_t>(from * net_.lanes + d)];
        for (int u = 1; u <= m.units; ++u) times.push_back(net_.Floor(m, d, u) + wait);
      }
      std::nth_element(times.begin(), times.begin() + (m.units - 1), times.end());
      best = std::min(best, times[static_cast<size_t>(m.units - 1)]);
    }
    return best;
  }

  Tick LongestPath() const {
    const Tick least_entry = *std::min_element(net_.entry.begin(), net_.entry.end());
    const Tick least_exit = *std::min_element(net_.exit.begin(), net_.exit.end());
    std::vector<Tick> finish(static_cast<size_t>(net_.n), 0);
    Tick most = 0;
    for (int o = 0; o < net_.n; ++o) {
      // With access by region a consumer's part need not wait for the whole producer: only its shortest part is certain.
      Tick start = net_.IsSource(o) ? least_entry : 0;
      bool waits = false;
      for (int e = net_.in_begin[static_cast<size_t>(o)]; e < net_.in_begin[static_cast<size_t>(o) + 1]; ++e) {
        if (net_.in_access[static_cast<size_t>(e)] >= 0) continue;
        start = std::max(start, finish[static_cast<size_t>(net_.in_op[static_cast<size_t>(e)])]);
        waits = true;
      }
      finish[static_cast<size_t>(o)] = start + (waits ? times_.after_input : times_.shortest)[static_cast<size_t>(o)];
      most = std::max(most, finish[static_cast<size_t>(o)] + (net_.IsSink(o) ? least_exit : 0));
    }
    return most;
  }

  // Operators whose number separates the graph: comparable with every other operator. An operator o is one if every earlier operator
  // reaches it and it reaches every later one.
  std::vector<int> CutOperators() const {
    // Every earlier operator leads to one that no operator before o reads; o comes after all of them iff these are all among its inputs.
    // The same from the other end.
    std::vector<int> cuts;
    std::vector<int> seen_consumers(static_cast<size_t>(net_.n), 0);
    std::vector<char> below(static_cast<size_t>(net_.n), 0), above(static_cast<size_t>(net_.n), 0);
    int ends = 0;  // operators before o that none before o reads
    for (int o = 0; o < net_.n; ++o) {
      int joined = 0;
      for (int e = net_.in_begin[static_cast<size_t>(o)]; e < net_.in_begin[static_cast<size_t>(o) + 1]; ++e) {
        joined += seen_consumers[static_cast<size_t>(net_.in_op[static_cast<size_t>(e)])]++ == 0;
      }
      above[static_cast<size_t>(o)] = joined == ends;
      ends += 1 - joined;
    }
    std::vector<int> seen_producers(static_cast<size_t>(net_.n), 0);
    int begins = 0;  // operators after o that read none after o
    for (int o = net_.n - 1; o >= 0; --o) {
      int joined = 0;
      for (int k = net_.out_begin[static_cast<size_t>(o)]; k < net_.out_begin[static_cast<size_t>(o) + 1]; ++k) {
        joined += seen_producers[static_cast<size_t>(net_.out_op[static_cast<size_t>(k)])]++ == 0;
      }
      below[static_cast<size_t>(o)] = joined == begins;
      begins += 1 - joined;
    }
    for (int o = 0; o < net_.n; ++o) {
      if (above[static_cast<size_t>(o)] && below[static_cast<size_t>(o)]) cuts.push_back(o);
    }
    return cuts;
  }

  // The longest path strictly between two cut operators.
  Tick StagePath(int before, int after) const {
    std::vector<Tick> finish(static_cast<size_t>(after - before - 1), 0);
    Tick most = 0;
    for (int o = before + 1; o < after; ++o) {
      Tick start = 0;
      for (int e = net_.in_begin[static_cast<size_t>(o)]; e < net_.in_begin[static_cast<size_t>(o) + 1]; ++e) {
        const int p = net_.in_op[static_cast<size_t>(e)];
        if (p > before && net_.in_access[static_cast<size_t>(e)] < 0) start = std::max(start, finish[static_cast<size_t>(p - before - 1)]);
      }
      finish[static_cast<size_t>(o - before - 1)] = start + (net_.IsSource(o) ? times_.shortest : times_.after_input)[static_cast<size_t>(o)];
      most = std::max(most, finish[static_cast<size_t>(o - before - 1)]);
    }
    return most;
  }

  // Work over capacity of the operators [begin, end): for any prices of the lanes' time that sum to one, the least priced work is a bound; the prices
  // are raised where the cheapest splits put most work.
  std::vector<PricedWork> WorkOf(int begin, int end) const {
    std::vector<PricedWork> out;
    if (begin >= end) return out;
    const size_t D = static_cast<size_t>(net_.lanes);
    std::vector<int64_t> price(D, kPriceOne / static_cast<int64_t>(D));
    price[0] += kPriceOne - price[0] * static_cast<int64_t>(D);
    std::vector<Tick> load(D), own(D);
    std::map<int, int64_t> counts;  // operators with the same tables
    for (int o = begin; o < end; ++o) ++counts[alike_[static_cast<size_t>(o)]];
    for (int round = 0; round < kRounds; ++round) {
      std::fill(load.begin(), load.end(), 0);
      Tick whole = 0, rest = 0;  // ticks, and the sum of what is left of each in shares of a tick
      for (const auto& [o, count] : counts) {
        const Tick sum = CheapestSplit(o, price, &own);
        whole += sum / kPriceOne * count;
        rest += sum % kPriceOne * count;
        for (size_t d = 0; d < D; ++d) load[d] += own[d] * count;
      }
      PricedWork& priced = out.emplace_back();
      priced.work = whole + rest / kPriceOne;
      for (int64_t p : price) priced.price.push_back(static_cast<double>(p) / static_cast<double>(kPriceOne));
      if (D == 1) break;
      Reprice(load, round, &price);
    }
    return out;
  }
  static Tick MostWork(const std::vector<PricedWork>& work) {
    Tick most = 0;
    for (const PricedWork& w : work) most = std::max(most, w.work);
    return most;
  }

  // Moves a share of the price from lanes with little work to lanes with much.
  static void Reprice(const std::vector<Tick>& load, int round, std::vector<int64_t>* price) {
    const size_t D = load.size();
    size_t most = 0, least = 0;
    for (size_t d = 1; d < D; ++d) {
      if (load[d] > load[most]) most = d;
      if ((*price)[d] > 0 && (load[d] < load[least] || (*price)[least] == 0)) least = d;
    }
    if (most == least) return;
    const int64_t step = std::min((*price)[least], std::max<int64_t>(1, kPriceOne / (8 + 2 * round)));
    (*price)[most] += step;
    (*price)[least] -= step;
  }

  // The least priced work of a split of the operator; its work on each lane.
  Tick CheapestSplit(int o, const std::vector<int64_t>& price, std::vector<Tick>* load) const {
    Tick best = kInfinite;
    std::vector<int> best_units(static_cast<size_t>(net_.lanes), 0);
    int best_mode = 0;
    for (int mode = 0; mode < net_.ModeCount(o); ++mode) {
      const NetMode& m = net_.Mode(o, mode);
      const size_t U = static_cast<size_t>(m.units);
      // least[d][u]: u units on the lanes before d + 1.
      std::vector<std::vector<Tick>> least(static_cast<size_t>(net_.lanes), std::vector<Tick>(U + 1, kInfinite));
      std::vector<std::vector<int>> here(static_cast<size_t>(net_.lanes), std::vector<int>(U + 1, 0));
      for (int d = 0; d < net_.lanes; ++d) {
        for (size_t u = 0; u <= U; ++u) {
          for (size_t own = 0; own <= u; ++own) {
            const Tick cost = net_.Cost(m, d, static_cast<int>(own));
            const Tick rest = d == 0 ? (u == own ? 0 : kInfinite) : least[static_cast<size_t>(d) - 1][u - own];
            if (cost >= kInfinite || rest >= kInfinite || (own > 0 && static_cast<int>(own) < m.min_units)) continue;
            const Tick sum = rest + cost * price[static_cast<size_t>(d)];
            if (sum >= least[static_cast<size_t>(d)][u]) continue;
            least[static_cast<size_t>(d)][u] = sum;
            here[static_cast<size_t>(d)][u] = static_cast<int>(own);
          }
        }
      }
      const Tick total = least.back()[U];
      if (total >= best) continue;
      best = total;
      best_mode = mode;
      size_t u = U;
      for (int d = net_.lanes - 1; d >= 0; --d) {
        best_units[static_cast<size_t>(d)] = here[static_cast<size_t>(d)][u];
        u -= static_cast<size_t>(best_units[static_cast<size_t>(d)]);
      }
    }
    for (int d = 0; d < net_.lanes; ++d) {
      (*load)[static_cast<size_t>(d)] = net_.Cost(net_.Mode(o, best_mode), d, best_units[static_cast<size_t>(d)]);
    }
    return best;
  }

  static constexpr int kRounds = 60;

  const Net& net_;
  LeastTimes times_;
  std::vector<int> alike_;  // [op] first operator with the same tables
};

}  // namespace

Tick LowerBound(const Problem& problem, Tick known) {
  const Net net(problem);
  return std::min(known, Bounder(net).Run(known));
}

}  // namespace plait
