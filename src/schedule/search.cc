#include "src/schedule/search.h"

#include <algorithm>

#include "src/schedule/baselines.h"
#include "src/schedule/engine.h"
#include "src/schedule/net.h"
#include "src/schedule/order_dp.h"
#include "src/schedule/timeline.h"

namespace plait {
namespace {

template <int kD>
class Search {
 public:
  Search(const Net& net, const SearchOptions& options, int64_t budget) : net_(net), options_(options), budget_(budget), engine_(net), random_(options.seed) {}

  void Run(const std::vector<Baseline>& starts) {
    const Baseline* first = &starts[0];
    for (const Baseline& b : starts) {
      if (b.plan.makespan < first->plan.makespan) first = &b;
    }
    best_ = first->plan;
    OrderDpOptions dp;
    dp.passes = getenv("DPP") ? atoi(getenv("DPP")) : 4;
    dp.width = getenv("DP") ? atoi(getenv("DP")) : 16;
    for (const Baseline& b : starts) {
      if (b.name != "heft" && b.name != "fastest") continue;
      const SequencePlan solved = SolveAlongOrder(net_, b.plan, dp);
      if (solved.makespan < best_.makespan) best_ = solved;
    }
    if (getenv("DPONLY")) return;
    Anneal(0.1);
  }

  void Anneal(double heat) {
    SequencePlan plan = best_;
    plan.sequence = SortByStart(net_, plan);
    engine_.Load(plan);
    const int window = std::min(net_.n, kWindow);
    const int64_t moves_per_sweep = int64_t{2} * kMovesPerOp * net_.n;
    const int sweeps = static_cast<int>(std::max<int64_t>(2, budget_ / std::max<int64_t>(1, moves_per_sweep)));
    Tick mean = 0;
    for (int o = 0; o < net_.n; ++o) mean += LeastCost(o);
    mean /= std::max(1, net_.n);
    for (int s = 0; s < sweeps; ++s) {
      const double left = 1.0 - static_cast<double>(s) / (sweeps - 1);
      const Tick noise = static_cast<Tick>(heat * static_cast<double>(mean) * left * left);
      for (int i = 0; i < net_.n; i += std::max(1, window / 2)) {
        const int j = std::min(i + window, net_.n);
        Window(i, j, kMovesPerOp * (j - i), noise);
        if (j == net_.n) break;
      }
      engine_.Refresh();
      if (engine_.plan().makespan < best_.makespan) best_ = engine_.plan();
      if (options_.stop && options_.stop()) break;
      SequencePlan p = engine_.plan();
      p.sequence = SortByStart(net_, p);
      engine_.Load(p);
    }
  }

  void Window(int i, int j, int moves, Tick noise) {
    const uint32_t all = (1u << net_.lanes) - 1;
    Tick value = engine_.WindowValue(i, j);
    for (int k = 0; k < moves; ++k) {
      int x = i + static_cast<int>(random_.Below(static_cast<uint32_t>(j - i)));
      for (int t = 0; t < 3 && engine_.PathThrough(engine_.At(x)) < value; ++t) x = i + static_cast<int>(random_.Below(static_cast<uint32_t>(j - i)));
      const int v = engine_.At(x);
      const Tick without = engine_.Remove(x, i, j);
      int lo, hi;
      engine_.Range(v, i, j, &lo, &hi);
      uint32_t mask = all;
      if (random_.Below(2) == 0) mask = 1 + random_.Below(all);
      auto place = engine_.BestPlacement(v, lo, hi, mask, false, noise, &random_);
      if (place.value >= kInfinite) place = engine_.BestPlacement(v, lo, hi, all, false, noise, &random_);
      engine_.Insert(v, place, i, j);
      value = std::max(without, place.value);
      ++evaluations_;
    }
  }

  Tick LeastCost(int o) const {
    Tick best = kInfinite;
    for (int d = 0; d < net_.lanes; ++d) best = std::min(best, net_.Cost(net_.Mode(o, 0), d, net_.Mode(o, 0).units));
    return best;
  }

  const SequencePlan& best() const { return best_; }
  int64_t evaluations() const { return evaluations_; }
  int64_t placements() const { return engine_.placements(); }

 private:
  static constexpr int kWindow = 32;
  static constexpr int kMovesPerOp = 2;

  const Net& net_;
  const SearchOptions& options_;
  int64_t budget_;
  Engine<kD> engine_;
  Random random_;
  SequencePlan best_;
  int64_t evaluations_ = 0;
};

}  // namespace

Result<Solution> Solve(const Problem& problem, const SearchOptions& options) {
  PLAIT_RETURN_IF_ERROR(ValidateProblem(problem));
  const Net net(problem);
  Solution out;
  if (net.n == 0) {
    out.assignment.order.resize(problem.lanes.size());
    return out;
  }
  const std::vector<Baseline> baselines = Baselines(net);
  for (const Baseline& b : baselines) {
    if (b.plan.makespan < kInfinite) out.baselines.push_back({b.name, b.plan.makespan});
  }
  SequencePlan best = WithLanes(net.lanes, [&](auto lanes) {
    Search<lanes()> search(net, options, options.evaluations > 0 ? options.evaluations : 20000);
    search.Run(baselines);
    out.evaluations = search.evaluations();
    out.placements = search.placements();
    return search.best();
  });
  out.strategy = "search";
  for (const Baseline& b : baselines) {
    if (b.plan.makespan <= best.makespan) {
      best = b.plan;
      out.strategy = b.name;
    }
  }
  out.assignment = ToAssignment(net, best);
  PLAIT_ASSIGN_OR_RETURN(const Timeline timeline, Evaluate(problem, out.assignment));
  if (timeline.makespan != best.makespan) return Internal("the search claims ", best.makespan, " ticks for a schedule of ", timeline.makespan);
  return out;
}

}  // namespace plait
