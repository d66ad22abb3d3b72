#include "src/calibrate/tune.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "src/base/clock.h"
#include "src/calibrate/corrected_latency.h"
#include "src/calibrate/handoff_gaps.h"
#include "src/calibrate/measuring.h"
#include "src/calibrate/statistics.h"
#include "src/graph/operators.h"

namespace plait {
namespace {

constexpr int kTimedRuns = 9;            // inferences with a clock on every step, from which costs are corrected
constexpr double kSecondsPerRound = 4;   // slow networks get fewer runs
constexpr int kLeastRuns = 3, kLeastGuardRuns = 11;
constexpr double kSecondsOfGuard = 10;
constexpr size_t kFinalPlans = 3, kFinalSingles = 2;
constexpr double kFarBehind = 1.2;       // no finalist, since noise does not explain it
constexpr double kWorthwhile = 0.98;     // a plan has to be faster than a single lane by this factor
constexpr double kFillsCachesUs = 30e3;  // a network slower than this does not care what ran before it

// Added to handoffs by round: a plan of many handoffs suffers more from whatever disturbs a lane than predictions say, since all lanes wait for the
// disturbed one. What is best is seen when the plans run.
constexpr std::array<double, 5> kCautionUs = {0, 0, 40, 0, 120};

struct Contender {
  std::string name;
  Schedule schedule;
  std::shared_ptr<const Plan> plan;
  std::unique_ptr<Session> session;
  std::vector<double> us;                // of the current round
  double score = 0;                      // median over the best single lane's of the same round; of a single lane, summed over rounds
};

bool SameWork(const Schedule& a, const Schedule& b) {
  if (a.parts.size() != b.parts.size() || a.lanes.size() != b.lanes.size()) return false;
  for (size_t lane = 0; lane < a.lanes.size(); ++lane) {
    if (a.lanes[lane].size() != b.lanes[lane].size()) return false;
    for (size_t i = 0; i < a.lanes[lane].size(); ++i) {
      const Part& x = a.parts[static_cast<size_t>(a.lanes[lane][i])];
      const Part& y = b.parts[static_cast<size_t>(b.lanes[lane][i])];
      if (x.op != y.op || !(x.region == y.region)) return false;
    }
  }
  return true;
}

class Tuner {
 public:
  Tuner(std::shared_ptr<const Graph> graph, const LanesToMeasure& lanes, const SocProfile& profile, const TuneOptions& options)
      : graph_(std::move(graph)), lanes_(lanes), profile_(profile), options_(options), measured_(profile, *graph_), corrected_(measured_, *graph_) {}

  Result<TuneResult> Run() {
    start_ns_ = NowNs();
    lanes_.planning = WithProfile(lanes_.planning);
    costs_ = CostsFrom(profile_, &corrected_);
    PLAIT_RETURN_IF_ERROR(OpenSingles());
    for (int round = 0; round < options_.max_rounds; ++round) {
      if (round > 0 && ElapsedS() > options_.max_seconds) break;
      Show(StrCat("tuning ", graph_->name, ": round ", round + 1, " of ", options_.max_rounds), round);
      PLAIT_RETURN_IF_ERROR(TryNextPlan(kCautionUs[static_cast<size_t>(round) % kCautionUs.size()]));
    }
    return Decide();
  }

 private:
  double ElapsedS() const { return static_cast<double>(NowNs() - start_ns_) / 1e9; }

  void Show(const std::string& what, int round) const {
    if (!options_.progress) return;
    const double rounds = options_.max_rounds + 1.0;
    options_.progress(what, round / rounds, round == 0 ? -1 : ElapsedS() / round * (rounds - round));
  }

  std::vector<PlanningLane> WithProfile(std::vector<PlanningLane> lanes) const {
    ApplyProfile(profile_, &lanes);
    return lanes;
  }

  Result<std::unique_ptr<Contender>> Open(const std::string& name, Schedule schedule) const {
    PLAIT_ASSIGN_OR_RETURN(Plan plan, Lower(*graph_, lanes_.planning, schedule));
    plan.soc = profile_.soc;
    auto contender = std::make_unique<Contender>();
    contender->name = name;
    contender->schedule = std::move(schedule);
    contender->plan = std::make_shared<Plan>(std::move(plan));
    PLAIT_ASSIGN_OR_RETURN(contender->session, OpenForMeasuring(graph_, contender->plan, lanes_, options_.bind, /*timings=*/false));
    return contender;
  }

  Status OpenSingles() {
    for (LaneId lane = 0; lane < static_cast<LaneId>(lanes_.lanes.size()); ++lane) {
      Result<Schedule> schedule = SingleLaneSchedule(*graph_, lanes_.planning, lane);
      if (!schedule.ok()) continue;  // it lacks an operator
      for (Part& part : schedule->parts) {
        part.predicted_us = measured_.PartLatency(*graph_, part.op, lanes_.planning[static_cast<size_t>(lane)].spec.name, part.region).us;
        part.predicted_start_us = schedule->predicted_us;
        schedule->predicted_us += part.predicted_us;
      }
      PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<Contender> single, Open(lanes_.lanes[static_cast<size_t>(lane)]->name(), std::move(schedule).value()));
      singles_.push_back(std::move(single));
    }
    return Status();
  }

  // Searches, runs the plan found beside the single lanes if it is new, and learns. The search sees handoffs that take `caution_us` longer.
  Status TryNextPlan(double caution_us) {
    SearchOptions search = options_.search;
    search.caution_us += caution_us;
    const int64_t search_ns = NowNs();
    PLAIT_ASSIGN_OR_RETURN(Schedule schedule, PlanSchedule(*graph_, lanes_.planning, costs_, search));
    result_.planning_us = std::max(result_.planning_us, static_cast<double>(NowNs() - search_ns) / 1e3);
    for (const auto* known : {&singles_, &plans_}) {
      for (const std::unique_ptr<Contender>& contender : *known) {
        if (SameWork(contender->schedule, schedule)) return Status();
      }
    }
    const double predicted_us = schedule.predicted_us;
    PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<Contender> plan, Open("plan", std::move(schedule)));
    std::vector<Contender*> contenders = {plan.get()};
    for (const std::unique_ptr<Contender>& single : singles_) contenders.push_back(single.get());
    PLAIT_RETURN_IF_ERROR(RunInTurns(contenders, options_.runs_per_round, kLeastRuns, kSecondsPerRound));
    const Contender* single = Fastest(Pointers(singles_));
    const double single_us = single == nullptr ? 0 : MedianOf(single->us);
    const double plan_us = MedianOf(plan->us);
    plan->score = single == nullptr ? plan_us : plan_us / single_us;
    for (const std::unique_ptr<Contender>& other : singles_) other->score += MedianOf(other->us) / single_us;
    result_.rounds.push_back({predicted_us, plan_us, single_us});
    PLAIT_RETURN_IF_ERROR(LearnFrom(*plan));
    plans_.push_back(std::move(plan));
    return Status();
  }

  Status RunInTurns(const std::vector<Contender*>& contenders, int runs, int least_runs, double seconds) {
    for (Contender* contender : contenders) contender->us.clear();
    const int64_t begin_ns = NowNs();
    for (int run = 0; run < runs; ++run) {
      if (run >= least_runs && static_cast<double>(NowNs() - begin_ns) / 1e9 > seconds) break;
      PLAIT_RETURN_IF_ERROR(RunOnce(contenders, run));
    }
    return Status();
  }

  // Each contender in turn, starting with another one every time; before each timed inference one that wakes the lanes and warms the caches.
  Status RunOnce(const std::vector<Contender*>& contenders, int run) {
    for (size_t k = 0; k < contenders.size(); ++k) {
      PLAIT_RETURN_IF_ERROR(StopIfAsked(options_.stop));
      Contender& contender = *contenders[(k + static_cast<size_t>(run)) % contenders.size()];
      if (contender.us.empty() || contender.us.back() < kFillsCachesUs) PLAIT_RETURN_IF_ERROR(contender.session->Run().Annotated(contender.name));
      PLAIT_ASSIGN_OR_RETURN(const double us, TimedRun(contender.session.get()));
      contender.us.push_back(us);
    }
    return Status();
  }

  // Corrects the costs by what the plan's parts and handoffs took inside it.
  Status LearnFrom(const Contender& plan) {
    PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> timed, OpenForMeasuring(graph_, plan.plan, lanes_, options_.bind, /*timings=*/true));
    std::map<std::tuple<OpId, LaneId, int, int64_t>, std::vector<double>> parts;
    HandoffGaps gaps(lanes_.lanes.size());
    PLAIT_RETURN_IF_ERROR(timed->Run());
    std::vector<double> timed_us;
    for (int run = 0; run < kTimedRuns; ++run) {
      PLAIT_RETURN_IF_ERROR(StopIfAsked(options_.stop));
      PLAIT_ASSIGN_OR_RETURN(const double us, TimedRun(timed.get()));
      timed_us.push_back(us);
      for (const StepTime& time : StepTimesOf(*graph_, plan.plan->program, timed->timings())) {
        parts[{time.op, time.lane, time.cut.axis, time.cut.extent}].push_back(time.us);
      }
      gaps.Add(plan.plan->program, timed->timings());
    }
    // Clocks on its steps slow a GPU lane down, not the steps of a CPU lane.
    const double without_clocks = std::clamp(QuietOf(plan.us) / QuietOf(timed_us), 0.5, 1.0);
    const auto scale = [&](LaneId lane) { return lanes_.planning[static_cast<size_t>(lane)].spec.kind == LaneKind::kGpu ? without_clocks : 1.0; };
    // Equal operators share a cost: their median.
    std::map<std::tuple<std::string, LaneId, int, int64_t>, std::pair<OpId, std::vector<double>>> by_signature;
    for (const auto& [key, samples] : parts) {
      const auto& [op, lane, axis, extent] = key;
      auto& entry = by_signature[{OpSignature(*graph_, graph_->op(op)), lane, axis, extent}];
      entry.first = op;
      entry.second.push_back(QuietOf(samples) * scale(lane));
    }
    for (const auto& [key, entry] : by_signature) {
      const auto& [signature, lane, axis, extent] = key;
      corrected_.Learn(entry.first, lanes_.lanes[static_cast<size_t>(lane)]->name(), {axis, extent}, MedianOf(entry.second));
    }
    corrected_.Settle();
    gaps.Correct(lanes_.planning, &costs_);
    return Status();
  }

  // Runs the best plans and the best single lanes in turns until it is clear whether a plan wins, and keeps the fastest.
  Result<TuneResult> Decide() {
    Show("comparing the best plans of " + graph_->name + " with the best single lanes", options_.max_rounds);
    if (singles_.empty() && plans_.empty()) return Unsupported("no lane can run ", graph_->name, " alone and no plan was found");
    if (plans_.empty() && singles_.front()->us.empty()) {
      PLAIT_RETURN_IF_ERROR(RunInTurns(Pointers(singles_), options_.runs_per_round, kLeastRuns, kSecondsPerRound));
      for (const auto& single : singles_) single->score = MedianOf(single->us);
    }
    const std::vector<Contender*> plans = Finalists(plans_, kFinalPlans), singles = Finalists(singles_, kFinalSingles);
    std::vector<Contender*> finalists = plans;
    finalists.insert(finalists.end(), singles.begin(), singles.end());
    if (finalists.size() > 1) PLAIT_RETURN_IF_ERROR(RunFinal(plans, singles, finalists));
    const Contender* single = Fastest(singles);
    const Contender* plan = Fastest(plans);
    const Contender* chosen = single == nullptr || (plan != nullptr && IsFaster(*plan, *single)) ? plan : single;
    result_.plan = *chosen->plan;
    result_.measured_us = MedianOf(chosen->us);
    result_.best_single = single == nullptr ? "" : single->name;
    result_.best_single_us = single == nullptr ? 0 : MedianOf(single->us);
    result_.measured = static_cast<int>(corrected_.measured());
    result_.avoided = std::max(0, SearchSpace() - result_.measured);
    return std::move(result_);
  }

  // Until every plan that is still ahead of a single lane is so beyond noise, or the runs or the time are used up.
  Status RunFinal(const std::vector<Contender*>& plans, const std::vector<Contender*>& singles, const std::vector<Contender*>& finalists) {
    for (Contender* contender : finalists) contender->us.clear();
    const int64_t begin_ns = NowNs();
    for (int runs = 0; runs < options_.runs_of_guard; ++runs) {
      const double seconds = static_cast<double>(NowNs() - begin_ns) / 1e9;
      if (runs >= kLeastGuardRuns && (seconds > kSecondsOfGuard || IsDecided(plans, singles))) break;
      PLAIT_RETURN_IF_ERROR(RunOnce(finalists, runs));
    }
    return Status();
  }

  static bool IsDecided(const std::vector<Contender*>& plans, const std::vector<Contender*>& singles) {
    const Contender* single = Fastest(singles);
    const Contender* plan = Fastest(plans);
    if (single == nullptr || plan == nullptr) return plans.size() + singles.size() < 2;
    const MedianBounds bounds = MedianInterval(Differences(*plan, *single));
    return bounds.high < 0 || bounds.low > 0;
  }

  // Faster in the median of interleaved runs by more than what a plan of several lanes should cost in power and fragility.
  static bool IsFaster(const Contender& plan, const Contender& single) {
    return MedianOf(Differences(plan, single)) < 0 && MedianOf(plan.us) < kWorthwhile * MedianOf(single.us);
  }

  static std::vector<double> Differences(const Contender& plan, const Contender& single) {
    std::vector<double> differences;
    for (size_t i = 0; i < std::min(plan.us.size(), single.us.size()); ++i) differences.push_back(plan.us[i] - single.us[i]);
    return differences;
  }

  static Contender* Fastest(const std::vector<Contender*>& all) {
    const auto best = std::min_element(all.begin(), all.end(), [](const Contender* a, const Contender* b) { return MedianOf(a->us) < MedianOf(b->us); });
    return best == all.end() ? nullptr : *best;
  }

  // The best by score, at most `count`, none of them far behind the first.
  static std::vector<Contender*> Finalists(const std::vector<std::unique_ptr<Contender>>& all, size_t count) {
    std::vector<Contender*> sorted = Pointers(all);
    std::stable_sort(sorted.begin(), sorted.end(), [](const Contender* a, const Contender* b) { return a->score < b->score; });
    while (!sorted.empty() && (sorted.size() > count || sorted.back()->score > kFarBehind * sorted.front()->score)) sorted.pop_back();
    return sorted;
  }

  static std::vector<Contender*> Pointers(const std::vector<std::unique_ptr<Contender>>& contenders) {
    std::vector<Contender*> out;
    for (const auto& contender : contenders) out.push_back(contender.get());
    return out;
  }

  // Distinct (signature, lane, cut) that the search may choose.
  int SearchSpace() const {
    std::set<std::string> seen;
    int count = 0;
    for (OpId op = 0; op < graph_->op_count(); ++op) {
      if (IsView(graph_->op(op).kind) || !seen.insert(OpSignature(*graph_, graph_->op(op))).second) continue;
      int options = 1;
      for (const CutAxis& cut : SharedCuts(*graph_, op, lanes_.planning)) options += cut.units - 1;
      for (const PlanningLane& lane : lanes_.planning) count += lane.rules->Supports(*graph_, op).supported ? options : 0;
    }
    return count;
  }

  const std::shared_ptr<const Graph> graph_;
  LanesToMeasure lanes_;
  const SocProfile& profile_;
  const TuneOptions& options_;
  const MeasuredLatency measured_;
  CorrectedLatency corrected_;
  PlanningCosts costs_;
  std::vector<std::unique_ptr<Contender>> singles_, plans_;
  int64_t start_ns_ = 0;
  TuneResult result_;
};

}  // namespace

Result<TuneResult> TunePlan(const std::shared_ptr<const Graph>& graph, const LanesToMeasure& lanes, const SocProfile& profile, const TuneOptions& options) {
  if (lanes.lanes.empty() || lanes.lanes.size() != lanes.planning.size() || lanes.lanes.size() != profile.lanes.size()) {
    return InvalidArgument("tuning has ", lanes.lanes.size(), " lanes, ", lanes.planning.size(), " planning lanes and a profile of ", profile.lanes.size());
  }
  return Tuner(graph, lanes, profile, options).Run();
}

}  // namespace plait
