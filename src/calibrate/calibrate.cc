#include "src/calibrate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "src/base/clock.h"
#include "src/calibrate/measuring.h"
#include "src/calibrate/statistics.h"
#include "src/graph/operators.h"

namespace plait {
namespace {

// A network run on one lane, every operator that is cut there as two parts of which the first is measured: its weights come from as far away
// as they will in a plan, which those of the second do not.
struct Variant {
  LaneId lane = 0;
  int axis_index = -1;  // into the operator's SharedCuts; -1: all whole
  int quarter = 0;
};

struct MeasuredProgram {
  Variant variant;
  std::shared_ptr<const Plan> plan;
  std::unique_ptr<Session> session;
  std::unique_ptr<Session> plain;  // of whole programs: the same without a clock on every step
  double run_us = 0;               // of the last inference
};

using Key = std::tuple<std::string, int, int64_t>;  // signature, axis, extent

class ModelCalibration {
 public:
  ModelCalibration(std::shared_ptr<const Graph> graph, const LanesToMeasure& lanes, const CalibrationOptions& options, SocProfile* profile)
      : graph_(std::move(graph)), lanes_(lanes), options_(options), profile_(profile),
        samples_(lanes.lanes.size()), plain_us_(lanes.lanes.size()), timed_us_(lanes.lanes.size()) {}

  Result<CalibrationReport> Run() {
    const int64_t start_ns = NowNs();
    PLAIT_RETURN_IF_ERROR(CheckLanes());
    FindOperators();
    PLAIT_RETURN_IF_ERROR(OpenPrograms());
    const Status status = Measure(start_ns);
    Keep();
    report_.seconds = static_cast<double>(NowNs() - start_ns) / 1e9;
    if (!status.ok()) return status;
    return report_;
  }

 private:
  Status CheckLanes() const {
    if (lanes_.lanes.size() != lanes_.planning.size() || lanes_.lanes.size() != profile_->lanes.size()) {
      return InvalidArgument("calibration has ", lanes_.lanes.size(), " lanes, ", lanes_.planning.size(), " planning lanes and a profile of ",
                             profile_->lanes.size());
    }
    for (size_t l = 0; l < lanes_.lanes.size(); ++l) {
      if (lanes_.lanes[l]->name() != profile_->lanes[l].name) {
        return InvalidArgument("lane ", l, " is ", lanes_.lanes[l]->name(), ", the profile's is ", profile_->lanes[l].name);
      }
    }
    return Status();
  }

  bool IsKnown(LaneId lane, const Key& key) const {
    const auto& all = profile_->lanes[static_cast<size_t>(lane)].measurements;
    const auto found = all.find(std::get<0>(key));
    return found != all.end() && std::any_of(found->second.begin(), found->second.end(), [&](const Measurement& m) {
             return m.axis == std::get<1>(key) && m.extent == std::get<2>(key);
           });
  }

  void FindOperators() {
    signatures_.resize(graph_->ops.size());
    cuts_.resize(graph_->ops.size());
    for (OpId op = 0; op < graph_->op_count(); ++op) {
      if (IsView(graph_->op(op).kind)) continue;
      signatures_[static_cast<size_t>(op)] = OpSignature(*graph_, graph_->op(op));
      cuts_[static_cast<size_t>(op)] = SharedCuts(*graph_, op, lanes_.planning);
    }
  }

  bool CanRun(LaneId lane, OpId op) const { return lanes_.planning[static_cast<size_t>(lane)].rules->Supports(*graph_, op).supported; }

  // The extent that `variant` measures of `op`, if any: the first part's, or 0 for whole.
  std::optional<CutOf> CutIn(const Variant& variant, OpId op) const {
    if (variant.axis_index < 0) return CutOf{};
    const std::vector<CutAxis>& cuts = cuts_[static_cast<size_t>(op)];
    if (static_cast<size_t>(variant.axis_index) >= cuts.size()) return std::nullopt;
    const CutAxis& cut = cuts[static_cast<size_t>(variant.axis_index)];
    const std::optional<int> units = UnitsOfQuarter(cut, variant.quarter);
    if (!units) return std::nullopt;
    return CutOf{cut.axis, *units * cut.unit};
  }

  // What the variant would teach; empty: everything is known.
  std::set<Key> NewIn(const Variant& variant) {
    std::set<Key> keys;
    for (OpId op = 0; op < graph_->op_count(); ++op) {
      if (IsView(graph_->op(op).kind) || !CanRun(variant.lane, op)) continue;
      const std::optional<CutOf> cut = CutIn(variant, op);
      if (!cut) continue;
      Key key{signatures_[static_cast<size_t>(op)], cut->axis, cut->extent};
      if (IsKnown(variant.lane, key)) {
        known_.insert({variant.lane, key});
      } else if (!wanted_.contains({variant.lane, key})) {
        keys.insert(std::move(key));
      }
    }
    return keys;
  }

  Result<Schedule> ScheduleFor(const Variant& variant) const {
    Schedule schedule;
    schedule.strategy = "calibration";
    schedule.lanes.resize(lanes_.lanes.size());
    for (OpId op = 0; op < graph_->op_count(); ++op) {
      if (IsView(graph_->op(op).kind)) continue;
      LaneId lane = variant.lane;
      for (LaneId other = 0; !CanRun(lane, op) && other < static_cast<LaneId>(lanes_.lanes.size()); ++other) {
        if (CanRun(other, op)) lane = other;
      }
      if (!CanRun(lane, op)) {
        return Unsupported("no lane can run operator ", graph_->op(op).name, " (", Name(graph_->op(op).kind), "): ",
                           lanes_.planning[static_cast<size_t>(lane)].rules->Supports(*graph_, op).reason);
      }
      for (Region& region : RegionsFor(variant, lane, op)) {
        schedule.lanes[static_cast<size_t>(lane)].push_back(static_cast<int>(schedule.parts.size()));
        Part part;
        part.op = op;
        part.lane = lane;
        part.region = std::move(region);
        schedule.parts.push_back(std::move(part));
      }
    }
    return schedule;
  }

  std::vector<Region> RegionsFor(const Variant& variant, LaneId lane, OpId op) const {
    const Dims& shape = graph_->output(graph_->op(op)).shape;
    const std::optional<CutOf> extent = CutIn(variant, op);
    if (lane != variant.lane || !extent || extent->axis < 0) return {Region::Whole(shape)};
    const Key key{signatures_[static_cast<size_t>(op)], extent->axis, extent->extent};
    if (IsKnown(lane, key)) return {Region::Whole(shape)};
    const CutAxis& cut = cuts_[static_cast<size_t>(op)][static_cast<size_t>(variant.axis_index)];
    const int units = *UnitsOfQuarter(cut, variant.quarter);
    return {UnitRegion(shape, cut, 0, units), UnitRegion(shape, cut, units, cut.units - units)};
  }

  Status OpenPrograms() {
    size_t most_axes = 0;
    for (const std::vector<CutAxis>& cuts : cuts_) most_axes = std::max(most_axes, cuts.size());
    std::vector<Variant> variants;
    const LaneId lane_count = static_cast<LaneId>(lanes_.lanes.size());
    for (LaneId lane = 0; lane < lane_count; ++lane) variants.push_back({lane, -1, 0});
    // Halves first: if time runs out, they say most.
    for (int axis = 0; axis < static_cast<int>(most_axes) && lane_count > 1; ++axis) {
      for (int quarter : {2, 1, 3}) {
        for (LaneId lane = 0; lane < lane_count; ++lane) variants.push_back({lane, axis, quarter});
      }
    }
    for (const Variant& variant : variants) {
      const std::set<Key> keys = NewIn(variant);
      // The whole program is wanted beside the others, too: it says what the clocks cost.
      if (keys.empty() && variant.axis_index >= 0) continue;
      for (const Key& key : keys) wanted_.insert({variant.lane, key});
      if (!keys.empty()) lanes_with_news_.insert(variant.lane);
      PLAIT_ASSIGN_OR_RETURN(const Schedule schedule, ScheduleFor(variant));
      PLAIT_ASSIGN_OR_RETURN(Plan plan, Lower(*graph_, lanes_.planning, schedule));
      MeasuredProgram program;
      program.variant = variant;
      program.plan = std::make_shared<Plan>(std::move(plan));
      programs_.push_back(std::move(program));
    }
    std::erase_if(programs_, [&](const MeasuredProgram& program) { return !lanes_with_news_.contains(program.variant.lane); });
    report_.known = static_cast<int>(known_.size());
    return Status();
  }

  Status Measure(int64_t start_ns) {
    const double budget_s = options_.seconds_per_lane * static_cast<double>(lanes_.lanes.size());
    const auto elapsed_s = [&] { return static_cast<double>(NowNs() - start_ns) / 1e9; };
    size_t done = 0;
    for (int round = 0; round < options_.max_rounds && !programs_.empty(); ++round) {
      for (MeasuredProgram& program : programs_) {
        PLAIT_RETURN_IF_ERROR(StopIfAsked(options_.stop));
        // The first look at whole operators comes whatever the budget says: without it there is nothing to plan with.
        const bool is_needed = round == 0 && program.variant.axis_index < 0;
        if (elapsed_s() > budget_s && !is_needed) return Status();
        PLAIT_RETURN_IF_ERROR(Visit(&program));
        ++done;
        Show(program.variant, done, elapsed_s(), budget_s);
      }
      report_.rounds = round + 1;
      if (round + 1 >= options_.min_rounds && IsGoodEnough()) break;
    }
    return Status();
  }

  void Show(const Variant& variant, size_t done, double elapsed_s, double budget_s) const {
    if (!options_.progress) return;
    const double all = static_cast<double>(programs_.size()) * options_.max_rounds;
    const double left_s = std::min(elapsed_s / static_cast<double>(done) * (all - static_cast<double>(done)), std::max(budget_s - elapsed_s, 0.0));
    options_.progress("measuring " + graph_->name + " on " + lanes_.lanes[static_cast<size_t>(variant.lane)]->name(),
                      elapsed_s / std::max(elapsed_s + left_s, 1e-9), left_s);
  }

  Status Visit(MeasuredProgram* program) {
    const size_t lane = static_cast<size_t>(program->variant.lane);
    const bool is_whole = program->variant.axis_index < 0;
    if (program->session == nullptr) {
      PLAIT_ASSIGN_OR_RETURN(program->session, OpenForMeasuring(graph_, program->plan, lanes_, options_.bind, /*timings=*/true));
      PLAIT_RETURN_IF_ERROR(program->session->Run());  // first touches of everything
      if (is_whole) {
        PLAIT_ASSIGN_OR_RETURN(program->plain, OpenForMeasuring(graph_, program->plan, lanes_, options_.bind, /*timings=*/false));
        PLAIT_RETURN_IF_ERROR(program->plain->Run());
      }
    }
    if (is_whole) {
      PLAIT_ASSIGN_OR_RETURN(const double plain_us, RunWarm(program->plain.get(), program->run_us));
      plain_us_[lane].push_back(plain_us);
    }
    PLAIT_ASSIGN_OR_RETURN(program->run_us, RunWarm(program->session.get(), program->run_us));
    if (is_whole) timed_us_[lane].push_back(program->run_us);
    for (const StepTime& time : StepTimesOf(*graph_, program->plan->program, program->session->timings())) {
      if (time.lane != program->variant.lane || !time.is_first) continue;
      Key key{signatures_[static_cast<size_t>(time.op)], time.cut.axis, time.cut.extent};
      // Whole operators are timed by the whole program alone; in the others they stand behind parts.
      if (time.cut.axis < 0 && program->variant.axis_index >= 0) continue;
      samples_[static_cast<size_t>(time.lane)][std::move(key)].push_back(time.us);
    }
    return Status();
  }

  // What ran in between has the caches; a network that fills them itself does not care.
  static Result<double> RunWarm(Session* session, double last_us) {
    constexpr double kFillsCachesUs = 30e3;
    if (last_us < kFillsCachesUs) PLAIT_RETURN_IF_ERROR(session->Run());
    return TimedRun(session);
  }

  // A clock on every step is not free, least of all on devices whose driver makes an event for it.
  double WithoutClocks(size_t lane) const {
    const double timed = QuietOf(timed_us_[lane]);
    return timed > 0 ? std::clamp(QuietOf(plain_us_[lane]) / timed, 0.5, 1.0) : 1.0;
  }

  // The least and the kept times of the operators agree within 2 %, weighted by time.
  bool IsGoodEnough() const {
    double sum = 0, error = 0;
    for (const auto& lane : samples_) {
      for (const auto& [key, samples] : lane) {
        sum += QuietOf(samples);
        error += QuietOf(samples) - QuantileOf(samples, 0);
      }
    }
    return error <= 0.02 * sum;
  }

  void Keep() {
    for (size_t l = 0; l < samples_.size(); ++l) {
      for (const auto& [key, samples] : samples_[l]) {
        const auto& [signature, axis, extent] = key;
        if (IsKnown(static_cast<LaneId>(l), key)) continue;
        profile_->lanes[l].measurements[signature].push_back(
            {axis, extent, QuietOf(samples) * WithoutClocks(l), SpreadOf(samples), static_cast<int>(samples.size())});
        ++report_.measured;
      }
    }
  }

  const std::shared_ptr<const Graph> graph_;
  const LanesToMeasure& lanes_;
  const CalibrationOptions& options_;
  SocProfile* const profile_;
  std::vector<std::string> signatures_;          // [op]; empty for views
  std::vector<std::vector<CutAxis>> cuts_;       // [op]
  std::set<std::pair<LaneId, Key>> wanted_, known_;
  std::set<LaneId> lanes_with_news_;
  std::vector<MeasuredProgram> programs_;
  std::vector<std::map<Key, std::vector<double>>> samples_;  // [lane]
  std::vector<std::vector<double>> plain_us_, timed_us_;     // [lane], of whole programs
  CalibrationReport report_;
};

}  // namespace

Result<CalibrationReport> CalibrateModel(const std::shared_ptr<const Graph>& graph, const LanesToMeasure& lanes, const CalibrationOptions& options,
                                         SocProfile* profile) {
  return ModelCalibration(graph, lanes, options, profile).Run();
}

}  // namespace plait
