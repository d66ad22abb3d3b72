#include "src/calibrate/measuring.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "src/base/clock.h"
#include "src/graph/operators.h"

namespace plait {
namespace {

// As many as BuildPlanningProblem uses by default: what is measured is what will be asked.
constexpr int kMaxUnits = 16;

}  // namespace

std::vector<CutAxis> SharedCuts(const Graph& graph, OpId op, const std::vector<PlanningLane>& lanes) {
  std::vector<CutAxis> cuts;
  for (const SplitAxis& axis : SplitAxes(graph, graph.op(op))) {
    CutRule rule{1, 1};
    for (const PlanningLane& lane : lanes) {
      if (lane.rules->Supports(graph, op).supported) rule = Combine(rule, lane.rules->Cut(graph, op, axis));
    }
    const std::optional<CutAxis> cut = MakeCutAxis(graph.output(graph.op(op)).shape, axis, rule, kMaxUnits);
    if (cut) cuts.push_back(*cut);
  }
  return cuts;
}

std::optional<int> UnitsOfQuarter(const CutAxis& cut, int quarter) {
  if (cut.units < 2 * cut.min_units) return std::nullopt;
  const int units = (cut.units * quarter + 2) / 4;
  return std::clamp(units, cut.min_units, cut.units - cut.min_units);
}

std::vector<StepTime> StepTimesOf(const Graph& graph, const StepProgram& program, const std::vector<std::span<const StepTiming>>& timings) {
  std::vector<StepTime> times;
  for (size_t lane = 0; lane < program.steps.size() && lane < timings.size(); ++lane) {
    const std::vector<Step>& steps = program.steps[lane];
    if (timings[lane].size() != steps.size()) continue;
    int64_t before_ns = 0;  // 0: the step before gives no begin
    bool has_waited = true;
    for (size_t i = 0; i < steps.size(); ++i) {
      const StepTiming& timing = timings[lane][i];
      has_waited |= !steps[i].waits.empty();
      if (steps[i].kind != StepKind::kCompute) {
        has_waited |= program.lanes[lane].kind == LaneKind::kGpu;  // a segment of its own begins
        continue;
      }
      const int64_t begin_ns = has_waited || before_ns == 0 ? timing.start_ns : before_ns;
      const bool is_usable = timing.start_ns > 0 && timing.end_ns > timing.start_ns && timing.end_ns > begin_ns;
      const std::optional<CutOf> cut = FindCut(graph, graph.op(steps[i].op), steps[i].region);
      if (is_usable && cut) {
        const bool is_first = cut->axis < 0 || steps[i].region.begin[cut->axis] == 0;
        times.push_back({static_cast<LaneId>(lane), steps[i].op, *cut, is_first, static_cast<double>(timing.end_ns - begin_ns) / 1e3});
      }
      before_ns = is_usable ? timing.end_ns : 0;
      has_waited = false;
    }
  }
  return times;
}

void FillWithNoise(const Graph& graph, Session* session) {
  std::minstd_rand random(1);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::span<std::byte> bytes = session->input(static_cast<int>(i));
    if (graph.tensor(graph.inputs[i]).dtype != DType::kF32) continue;  // zeros, as the arena came
    for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
      const float value = static_cast<float>(random() % 2048) / 1024.0f - 1.0f;
      std::memcpy(bytes.data() + at, &value, sizeof(value));
    }
  }
}

Result<std::unique_ptr<Session>> OpenForMeasuring(const std::shared_ptr<const Graph>& graph, std::shared_ptr<const Plan> plan,
                                                  const LanesToMeasure& lanes, BindOptions bind, bool timings) {
  SessionOptions options;
  options.bind = bind;
  options.bind.timings = timings;
  PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(graph, std::move(plan), lanes.lanes, options));
  FillWithNoise(*graph, session.get());
  return session;
}

Result<double> TimedRun(Session* session) {
  const int64_t start_ns = NowNs();
  PLAIT_RETURN_IF_ERROR(session->Run());
  return static_cast<double>(NowNs() - start_ns) / 1e3;
}

}  // namespace plait
