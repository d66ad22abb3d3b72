// Handoffs and fixed costs, from chains of tiny operators.
//
// Everything is a difference of chains of two lengths, so that waking the lanes and the caller cancels: what one more step takes on a lane,
// and what one more turn takes when two lanes hand a tensor to and fro.
#include <algorithm>
#include <utility>

#include "src/calibrate/calibrate.h"
#include "src/calibrate/measuring.h"
#include "src/calibrate/statistics.h"
#include "src/graph/builder.h"

namespace plait {
namespace {

constexpr int kShort = 8, kLong = 24;      // operators in a chain
constexpr int kRounds = 40;
constexpr int64_t kSmallBytes = 8 << 10, kLargeBytes = 1 << 20;

// Chains of an operator that every backend has: relu.
struct Chain {
  int length = 0;
  std::function<LaneId(int)> lane_of;      // by position
};

class HandoffCalibration {
 public:
  HandoffCalibration(const LanesToMeasure& lanes, const CalibrationOptions& options, SocProfile* profile)
      : lanes_(lanes), options_(options), profile_(profile) {}

  Status Run() {
    const size_t n = lanes_.lanes.size();
    const double total = static_cast<double>(n + n * (n - 1) / 2);
    double done = 0;
    for (size_t a = 0; a < n; ++a) {
      PLAIT_RETURN_IF_ERROR(Show("measuring steps on " + lanes_.lanes[a]->name(), done++ / total));
      if (!CanRun(a)) continue;
      PLAIT_ASSIGN_OR_RETURN(const double step_us, StepUs(a));
      profile_->lanes[a].dispatch_us = std::max(step_us, 1e-3);
    }
    for (size_t a = 0; a < n; ++a) {
      if (lanes_.planning[a].spec.kind == LaneKind::kGpu && CanRun(a)) PLAIT_RETURN_IF_ERROR(MeasureHost(a));
    }
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = a + 1; b < n; ++b) {
        PLAIT_RETURN_IF_ERROR(Show("measuring handoffs between " + lanes_.lanes[a]->name() + " and " + lanes_.lanes[b]->name(), done++ / total));
        if (CanRun(a) && CanRun(b)) PLAIT_RETURN_IF_ERROR(MeasurePair(a, b));
      }
    }
    return Status();
  }

 private:
  Status Show(const std::string& what, double done) const {
    if (options_.progress) options_.progress(what, done, -1);
    return StopIfAsked(options_.stop);
  }

  // One graph with a chain for each entry, all reading one input of `bytes`.
  static Result<Graph> MakeGraph(const std::vector<Chain>& chains, int64_t bytes) {
    GraphBuilder builder("handoffs");
    const TensorId input = builder.Input("x", {1, bytes / 4 / 1024, 16, 64});
    UnaryAttrs relu;
    relu.kind = UnaryKind::kClamp;
    relu.clamp = kRelu;
    for (size_t c = 0; c < chains.size(); ++c) {
      TensorId t = input;
      for (int i = 0; i < chains[c].length; ++i) {
        t = builder.Add("chain" + std::to_string(c) + "_" + std::to_string(i), OpKind::kUnary, {t}, relu);
      }
      builder.Output(t);
    }
    return builder.Build();
  }

  bool CanRun(size_t lane) const {
    const Result<Graph> graph = MakeGraph({{1, {}}}, kSmallBytes);
    return graph.ok() && lanes_.planning[lane].rules->Supports(*graph, 0).supported;
  }

  struct Runner {
    std::unique_ptr<Session> session;
    std::vector<double> us;
  };

  Result<Runner> Open(const std::vector<Chain>& chains, int64_t bytes) const {
    PLAIT_ASSIGN_OR_RETURN(Graph made, MakeGraph(chains, bytes));
    const auto graph = std::make_shared<const Graph>(std::move(made));
    Schedule schedule;
    schedule.strategy = "calibration";
    schedule.lanes.resize(lanes_.lanes.size());
    OpId op = 0;
    for (const Chain& chain : chains) {
      for (int i = 0; i < chain.length; ++i, ++op) {
        Part part;
        part.op = op;
        part.lane = chain.lane_of(i);
        part.region = Region::Whole(graph->output(graph->op(op)).shape);
        schedule.lanes[static_cast<size_t>(part.lane)].push_back(static_cast<int>(op));
        schedule.parts.push_back(std::move(part));
      }
    }
    PLAIT_ASSIGN_OR_RETURN(Plan plan, Lower(*graph, lanes_.planning, schedule));
    Runner runner;
    PLAIT_ASSIGN_OR_RETURN(runner.session,
                           OpenForMeasuring(graph, std::make_shared<Plan>(std::move(plan)), lanes_, options_.bind, /*timings=*/false));
    return runner;
  }

  // Medians of inferences that take turns.
  Status RunAll(std::vector<Runner>* runners) const {
    for (int round = 0; round < kRounds; ++round) {
      PLAIT_RETURN_IF_ERROR(StopIfAsked(options_.stop));
      for (Runner& runner : *runners) {
        PLAIT_ASSIGN_OR_RETURN(const double us, TimedRun(runner.session.get()));
        if (round > 1) runner.us.push_back(us);
      }
    }
    return Status();
  }

  // What one more operator of a chain takes, for each of `lanes_of` and in each round, of which every one runs all chains.
  Result<std::vector<std::vector<double>>> StepRounds(int64_t bytes, const std::vector<std::function<LaneId(int)>>& lanes_of) const {
    std::vector<Runner> runners;
    for (const auto& lane_of : lanes_of) {
      for (int length : {kShort, kLong}) {
        PLAIT_ASSIGN_OR_RETURN(Runner runner, Open({{length, lane_of}}, bytes));
        runners.push_back(std::move(runner));
      }
    }
    PLAIT_RETURN_IF_ERROR(RunAll(&runners));
    std::vector<std::vector<double>> steps(lanes_of.size());
    for (size_t i = 0; i < lanes_of.size(); ++i) {
      for (size_t round = 0; round < runners[2 * i].us.size(); ++round) {
        steps[i].push_back((runners[2 * i + 1].us[round] - runners[2 * i].us[round]) / (kLong - kShort));
      }
    }
    return steps;
  }

  Result<double> StepUs(size_t lane) const {
    PLAIT_ASSIGN_OR_RETURN(const auto steps, StepRounds(kSmallBytes, {[lane](int) { return static_cast<LaneId>(lane); }}));
    return std::max(0.0, MedianOf(steps[0]));
  }

  // The half of what a turn there and back takes beyond its two operators.
  Result<double> TurnUs(size_t a, size_t b, int64_t bytes) const {
    const auto on_a = [a](int) { return static_cast<LaneId>(a); };
    const auto on_b = [b](int) { return static_cast<LaneId>(b); };
    const auto in_turns = [a, b](int i) { return static_cast<LaneId>(i % 2 == 0 ? a : b); };
    PLAIT_ASSIGN_OR_RETURN(const auto steps, StepRounds(bytes, {on_a, on_b, in_turns}));
    std::vector<double> turns;
    for (size_t round = 0; round < steps[0].size(); ++round) turns.push_back(steps[2][round] - (steps[0][round] + steps[1][round]) / 2);
    return std::max(0.0, MedianOf(turns));
  }

  Status MeasurePair(size_t a, size_t b) {
    PLAIT_ASSIGN_OR_RETURN(const double small_us, TurnUs(a, b, kSmallBytes));
    double us_per_byte = 0;
    if (!lanes_.lanes[a]->coherent() || !lanes_.lanes[b]->coherent()) {
      PLAIT_ASSIGN_OR_RETURN(const double large_us, TurnUs(a, b, kLargeBytes));
      us_per_byte = std::max(0.0, (large_us - small_us) / static_cast<double>(kLargeBytes - kSmallBytes));
    }
    // Planning adds what a segment costs the host to every handoff to a GPU lane; a turn there and back, of which this is half, holds it already.
    const double segments = (profile_->lanes[a].host_segment_us + profile_->lanes[b].host_segment_us) / 2;
    const HandoffProfile handoff{std::max(0.0, small_us - segments - us_per_byte * kSmallBytes), us_per_byte};
    profile_->handoffs[a][b] = profile_->handoffs[b][a] = handoff;
    return Status();
  }

  // What a segment and each of its steps take the GPU lane's host thread: the time that it spends on submitting segments of one step and of more.
  Status MeasureHost(size_t gpu) {
    const auto on_gpu = [gpu](int) { return static_cast<LaneId>(gpu); };
    PLAIT_ASSIGN_OR_RETURN(const Runner one, Open({{1, on_gpu}}, kSmallBytes));
    PLAIT_ASSIGN_OR_RETURN(const Runner many, Open({{1 + kShort, on_gpu}}, kSmallBytes));
    std::vector<double> one_us, step_us;
    for (int round = 0; round < kRounds; ++round) {
      PLAIT_RETURN_IF_ERROR(StopIfAsked(options_.stop));
      PLAIT_RETURN_IF_ERROR(one.session->Run());
      PLAIT_RETURN_IF_ERROR(many.session->Run());
      one_us.push_back(one.session->submission_us(static_cast<LaneId>(gpu)));
      step_us.push_back((many.session->submission_us(static_cast<LaneId>(gpu)) - one_us.back()) / kShort);
    }
    LaneProfile& lane = profile_->lanes[gpu];
    lane.host_step_us = std::max(0.0, MedianOf(step_us));
    lane.host_segment_us = std::max(0.0, MedianOf(one_us) - lane.host_step_us);
    return Status();
  }

  const LanesToMeasure& lanes_;
  const CalibrationOptions& options_;
  SocProfile* const profile_;
};

}  // namespace

Status CalibrateHandoffs(const LanesToMeasure& lanes, const CalibrationOptions& options, SocProfile* profile) {
  if (lanes.lanes.size() != lanes.planning.size() || lanes.lanes.size() != profile->lanes.size() ||
      profile->handoffs.size() != profile->lanes.size()) {
    return InvalidArgument("calibration has ", lanes.lanes.size(), " lanes, ", lanes.planning.size(), " planning lanes and a profile of ",
                           profile->lanes.size());
  }
  return HandoffCalibration(lanes, options, profile).Run();
}

}  // namespace plait
