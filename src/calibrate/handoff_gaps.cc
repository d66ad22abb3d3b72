#include "src/calibrate/handoff_gaps.h"

#include <algorithm>

#include "src/calibrate/statistics.h"

namespace plait {
namespace {

constexpr size_t kEnoughGaps = 10;

// The last compute step of the lane among its first `count` steps that has a time; nullptr if there is none.
const StepTiming* LastTimed(const std::vector<Step>& steps, std::span<const StepTiming> timings, size_t count) {
  for (size_t i = std::min(count, timings.size()); i-- > 0;) {
    if (steps[i].kind == StepKind::kCompute && timings[i].end_ns > 0) return &timings[i];
  }
  return nullptr;
}

}  // namespace

void HandoffGaps::Add(const StepProgram& program, const std::vector<std::span<const StepTiming>>& timings) {
  for (size_t to = 0; to < program.steps.size() && to < timings.size(); ++to) {
    const std::vector<Step>& steps = program.steps[to];
    if (timings[to].size() != steps.size()) continue;
    std::vector<Wait> waits;
    for (size_t i = 0; i < steps.size(); ++i) {
      waits.insert(waits.end(), steps[i].waits.begin(), steps[i].waits.end());
      if (steps[i].kind != StepKind::kCompute) continue;
      // The lane that arrived last is the one that was waited for.
      int64_t arrival_ns = 0;
      size_t from = to;
      for (const Wait& wait : waits) {
        const size_t lane = static_cast<size_t>(wait.lane);
        if (lane >= timings.size() || lane == to) continue;
        const StepTiming* last = LastTimed(program.steps[lane], timings[lane], static_cast<size_t>(wait.steps));
        if (last != nullptr && last->end_ns > arrival_ns) {
          arrival_ns = last->end_ns;
          from = lane;
        }
      }
      waits.clear();
      const StepTiming* before = LastTimed(steps, timings[to], i);
      const bool has_waited = from != to && (before == nullptr || before->end_ns < arrival_ns);
      // Devices' clocks are off by a microsecond or two: a start before the arrival is one right behind it.
      if (has_waited && timings[to][i].start_ns > 0) {
        gaps_us_[from][to].push_back(static_cast<double>(std::max<int64_t>(0, timings[to][i].start_ns - arrival_ns)) / 1e3);
      }
    }
  }
}

void HandoffGaps::Correct(const std::vector<PlanningLane>& lanes, PlanningCosts* costs) const {
  for (size_t from = 0; from < gaps_us_.size(); ++from) {
    for (size_t to = 0; to < gaps_us_.size(); ++to) {
      if (gaps_us_[from][to].size() < kEnoughGaps) continue;
      // Planning adds what a segment costs the host to every handoff to a GPU lane.
      costs->sync_us[from][to] = std::max(0.0, MedianOf(gaps_us_[from][to]) - lanes[to].host_segment_us);
    }
  }
}

}  // namespace plait
