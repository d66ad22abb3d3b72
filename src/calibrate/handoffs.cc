// Handoffs and fixed costs, from chains of tiny operators.
//
// Everything is a difference of chains of two lengths, so that waking the lanes and the caller cancels: what one more step takes on a lane,
// and what one more turn takes when two lanes hand a tensor to and fro.
#include <algorithm>
#include <array>
#include <map>
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
    step_us_.assign(n, 0);
    const double total = static_cast<double>(n + n * (n - 1) / 2);
    double done = 0;
    for (size_t a = 0; a < n; ++a) {
      PLAIT_RETURN_IF_ERROR(Show("measuring steps on " + lanes_.lanes[a]->name(), done++ / total));
      if (!CanRun(a)) continue;
      PLAIT_ASSIGN_OR_RETURN(step_us_[a], StepUs(kSmallBytes, [a](int) { return static_cast<LaneId>(a); }));
      profile_->lanes[a].dispatch_us = std::max(step_us_[a], 1e-3);
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

  // What one more operator of a chain takes.
  Result<double> StepUs(int64_t bytes, const std::function<LaneId(int)>& lane_of) const {
    std::vector<Runner> runners;
    for (int length : {kShort, kLong}) {
      PLAIT_ASSIGN_OR_RETURN(Runner runner, Open({{length, lane_of}}, bytes));
      runners.push_back(std::move(runner));
    }
    PLAIT_RETURN_IF_ERROR(RunAll(&runners));
    return std::max(0.0, (MedianOf(runners[1].us) - MedianOf(runners[0].us)) / (kLong - kShort));
  }

  // The half of what a turn there and back takes beyond its two operators.
  Result<double> TurnUs(size_t a, size_t b, int64_t bytes) const {
    std::array<double, 3> step{};
    for (int which = 0; which < 3; ++which) {
      const auto lane_of = [&](int i) { return static_cast<LaneId>(which == 2 ? (i % 2 == 0 ? a : b) : which == 1 ? b : a); };
      PLAIT_ASSIGN_OR_RETURN(step[static_cast<size_t>(which)], StepUs(bytes, lane_of));
    }
    return std::max(0.0, step[2] - (step[0] + step[1]) / 2);
  }

  Status MeasurePair(size_t a, size_t b) {
    PLAIT_ASSIGN_OR_RETURN(const double small_us, TurnUs(a, b, kSmallBytes));
    double us_per_byte = 0;
    if (!lanes_.lanes[a]->coherent() || !lanes_.lanes[b]->coherent()) {
      PLAIT_ASSIGN_OR_RETURN(const double large_us, TurnUs(a, b, kLargeBytes));
      us_per_byte = std::max(0.0, (large_us - small_us) / static_cast<double>(kLargeBytes - kSmallBytes));
    }
    // Planning adds what a segment costs the host to every handoff of a GPU lane; the turn holds it already.
    const double segments = profile_->lanes[a].host_segment_us + profile_->lanes[b].host_segment_us;
    const HandoffProfile handoff{std::max(0.0, small_us - segments - us_per_byte * kSmallBytes), us_per_byte};
    profile_->handoffs[a][b] = profile_->handoffs[b][a] = handoff;
    return Status();
  }

  // How much longer a CPU lane takes for its own steps when it submits and polls for the GPU lane: with one GPU step, and with more.
  Status MeasureHost(size_t gpu) {
    const LaneId host = lanes_.planning[gpu].spec.host;
    if (host < 0 || !CanRun(static_cast<size_t>(host))) return Status();
    const double host_step_us = std::max(step_us_[static_cast<size_t>(host)], 0.05);
    // Long enough to outlast the device.
    const int busy = static_cast<int>(std::clamp((400.0 + 3 * (kShort + 1) * step_us_[gpu]) / host_step_us, 50.0, 4000.0));
    const auto on_host = [host](int) { return host; };
    const auto on_gpu = [gpu](int) { return static_cast<LaneId>(gpu); };
    std::vector<Runner> runners;
    for (int gpu_steps : {0, 1, 1 + kShort}) {
      std::vector<Chain> chains = {{busy, on_host}};
      if (gpu_steps > 0) chains.push_back({gpu_steps, on_gpu});
      PLAIT_ASSIGN_OR_RETURN(Runner runner, Open(chains, kSmallBytes));
      runners.push_back(std::move(runner));
    }
    PLAIT_RETURN_IF_ERROR(RunAll(&runners));
    const double none = MedianOf(runners[0].us), one = MedianOf(runners[1].us), many = MedianOf(runners[2].us);
    LaneProfile& lane = profile_->lanes[gpu];
    lane.host_step_us = std::max(0.0, (many - one) / kShort);
    lane.host_segment_us = std::max(0.0, one - none - lane.host_step_us);
    return Status();
  }

  const LanesToMeasure& lanes_;
  const CalibrationOptions& options_;
  SocProfile* const profile_;
  std::vector<double> step_us_;   // [lane]
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
