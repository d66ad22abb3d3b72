#include "src/schedule/search.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "src/schedule/baselines.h"
#include "src/schedule/chain.h"
#include "src/schedule/net.h"
#include "src/schedule/order_search.h"
#include "src/schedule/random.h"
#include "src/schedule/timeline.h"

namespace plait {
namespace {

// How much is tried. Found on the public instances: narrow windows and few labels serve wide graphs, where orders matter most; more
// labels serve chains, where splits do.
struct Tuning {
  int start_width;       // labels a boundary while the first orders are solved
  int width;             // and while orders change
  int tries;             // new orders a window
  int64_t evaluations;
  int64_t exact_evaluations;  // splits looked at where there is only one order
};
constexpr int kWindow = 10;
constexpr int kMaxRestartOps = 40;       // beyond it other starts do not pay
constexpr int kMaxSearchedOps = 100000;  // beyond it only the simple strategies are tried
constexpr int64_t kMaxRowTicks = 4 << 20;  // orders that keep so much alive that their labels would not fit are left out
constexpr int64_t kMaxBase = 2000000;      // evaluations at default effort however large the graph

Tuning TuningFor(const Net& net, const SearchOptions& options) {
  const int64_t n = net.n;
  // Access by region gives operators several modes and long chains without handoffs: worth more trials.
  const bool by_region = std::any_of(net.in_access.begin(), net.in_access.end(), [](int a) { return a >= 0; });
  const int64_t base = std::min(kMaxBase, std::max<int64_t>(60000, 900 * n) * (by_region ? 3 : 1));
  Tuning t{8, 4, 6, base, std::min(kMaxBase, std::max<int64_t>(100000, 1500 * n))};
  if (n > 300) t.start_width = 4;
  if (n > 180) t.width = 2;
  if (options.effort == Effort::kFast) t = {n > 180 ? 2 : 4, n > 180 ? 2 : 3, 4, base / 6, t.exact_evaluations / 6};
  if (options.effort == Effort::kHigh) t = {16, 8, 10, std::clamp<int64_t>(40 * base, 4000000, 11000000), 20000000};
  if (options.evaluations > 0) {
    t.evaluations = options.evaluations;
    t.exact_evaluations = options.evaluations / 2;
  }
  return t;
}

// Labels a boundary, at most `width`, for which all rows of one direction along the sequence fit; 0: not even two.
int FittingWidth(const Net& net, const std::vector<int>& sequence, int width) {
  std::vector<int> place(static_cast<size_t>(net.n), 0);
  for (int p = 0; p < net.n; ++p) place[static_cast<size_t>(sequence[static_cast<size_t>(p)])] = p;
  int64_t alive = net.n;
  for (int o = 0; o < net.n; ++o) {
    int last = place[static_cast<size_t>(o)];
    for (int k = net.out_begin[static_cast<size_t>(o)]; k < net.out_begin[static_cast<size_t>(o) + 1]; ++k) {
      last = std::max(last, place[static_cast<size_t>(net.out_op[static_cast<size_t>(k)])]);
    }
    alive += last - place[static_cast<size_t>(o)];
  }
  const int64_t fitting = std::min<int64_t>(width, kMaxRowTicks / (alive * net.lanes));
  return fitting < 2 ? 0 : static_cast<int>(fitting);
}

template <int kD>
class Solver {
 public:
  Solver(const Net& net, const SearchOptions& options, const std::vector<Baseline>& baselines)
      : net_(net), options_(options), baselines_(baselines), tuning_(TuningFor(net, options)), unique_(HasUniqueOrder(net)), random_(options.seed) {}

  SequencePlan Run() {
    Start();
    if (best_.makespan >= kInfinite) return std::move(best_);
    if (unique_ && SolveExactly()) return std::move(best_);
    int idle = 0;
    for (int round = 0; !Spent() && idle < kMaxIdleRounds; ++round) {
      const Tick before = best_.makespan;
      if (round % 2 == 1 && net_.n <= kMaxRestartOps) {
        Improve(RandomStart(), tuning_.start_width);
      } else {
        SequencePlan plan = best_;
        plan.sequence = Relinearized(round == 0 ? 0 : 1 + round % 4);
        Improve(std::move(plan), round % 4 == 2 ? tuning_.start_width : tuning_.width);
      }
      Report("round " + std::to_string(round + 1));
      idle = best_.makespan < before ? 0 : idle + 1;
    }
    if (unique_) SolveExactly();  // with a better incumbent fewer labels are left
    return std::move(best_);
  }

  int64_t evaluations() const { return evaluations_; }
  bool optimal() const { return optimal_; }

 private:
  static constexpr int kMaxIdleRounds = 60;
  static constexpr int kLabelsPerEvaluation = 2;  // a split that is only looked at costs less than one that is optimised

  bool Spent() const { return evaluations_ >= tuning_.evaluations || (options_.stop && options_.stop()); }
  void Report(const std::string& phase) const {
    if (options_.progress) options_.progress(phase, static_cast<double>(best_.makespan) / 10.0);
  }

  // Where there is only one order, the optimum is often within reach.
  bool SolveExactly() {
    ChainSolution exact = SolveChain(net_, best_, tuning_.exact_evaluations);
    evaluations_ += exact.evaluations / kLabelsPerEvaluation;
    best_ = std::move(exact.plan);
    optimal_ = exact.optimal;
    Report("exact");
    return optimal_;
  }

  // Splits along the given order of the operators and along HEFT's.
  void Start() {
    for (const Baseline& b : baselines_) {
      if (b.name != "heft" && (b.name != "fastest" || unique_)) continue;
      if (Spent() && best_.makespan < kInfinite) break;
      const int width = FittingWidth(net_, b.plan.sequence, tuning_.start_width);
      if (width == 0) continue;
      OrderSearch<kD> search(net_, b.plan, width);
      search.Passes(2);
      Take(search);
      Report("order of " + b.name);
    }
  }

  void Improve(SequencePlan plan, int width) {
    int fitting = FittingWidth(net_, plan.sequence, width);
    if (fitting == 0) {
      plan = best_;
      fitting = FittingWidth(net_, plan.sequence, width);
    }
    OrderSearch<kD> search(net_, std::move(plan), fitting);
    search.Passes(2);
    for (int sweep = 0; sweep < 2 && evaluations_ + search.evaluations() < tuning_.evaluations; ++sweep) {
      search.Sweep(sweep % 2 == 0, kWindow, tuning_.tries, tuning_.evaluations - evaluations_, &random_);
    }
    Take(search);
  }

  void Take(const OrderSearch<kD>& search) {
    evaluations_ += search.evaluations();
    if (search.plan().makespan < best_.makespan) best_ = search.plan();
  }

  // The best schedule's operators in another order that all its lanes follow, too: by start time, disturbed by up to `disorder` halves of
  // a mean latency.
  std::vector<int> Relinearized(int disorder) {
    std::vector<Tick> key = StartTimes(net_, best_);
    const Tick noise = best_.makespan * net_.lanes / net_.n * disorder / 2;
    for (Tick& t : key) t += random_.UpTo(noise);
    return SortByKey(net_, &best_, key);
  }

  // One of the simple strategies in a random order.
  SequencePlan RandomStart() {
    SequencePlan plan;
    do {
      plan = baselines_[random_.Below(static_cast<uint32_t>(baselines_.size()))].plan;
    } while (plan.makespan >= kInfinite);
    std::vector<Tick> key(static_cast<size_t>(net_.n));
    for (Tick& t : key) t = random_.UpTo(1 << 20);
    plan.sequence = SortByKey(net_, nullptr, key);
    plan.makespan = MakespanOf(net_, plan);
    return plan;
  }

  const Net& net_;
  const SearchOptions& options_;
  const std::vector<Baseline>& baselines_;
  Tuning tuning_;
  bool unique_;  // the operators have one topological order only
  Random random_;
  SequencePlan best_;
  bool optimal_ = false;
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
  SequencePlan best;
  out.strategy = "search";
  if (net.n <= kMaxSearchedOps) {
    best = WithLanes(net.lanes, [&](auto lanes) {
      Solver<lanes()> solver(net, options, baselines);
      SequencePlan plan = solver.Run();
      out.evaluations = solver.evaluations();
      out.optimal = solver.optimal();
      return plan;
    });
  }
  // The exact evaluator has the last word, so that what is claimed and what the guard compares are true makespans.
  Tick makespan = kInfinite;
  if (best.makespan < kInfinite) {
    out.assignment = ToAssignment(net, best);
    PLAIT_ASSIGN_OR_RETURN(const Timeline timeline, Evaluate(problem, out.assignment));
    makespan = timeline.makespan;
  }
  for (const Baseline& b : baselines) {
    if (b.plan.makespan > makespan || b.plan.makespan >= kInfinite) continue;
    Assignment assignment = ToAssignment(net, b.plan);
    PLAIT_ASSIGN_OR_RETURN(const Timeline timeline, Evaluate(problem, assignment));
    if (timeline.makespan > makespan) continue;
    makespan = timeline.makespan;
    out.assignment = std::move(assignment);
    out.strategy = b.name;
  }
  out.assignment.makespan = makespan;
  return out;
}

}  // namespace plait
