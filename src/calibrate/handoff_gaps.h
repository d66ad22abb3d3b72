// What handoffs took inside executed plans: from the end of the step that was waited for to the start of the step that waited. Private to the
// room.
#pragma once

#include <span>
#include <vector>

#include "backends/interface/lane.h"
#include "src/schedule/schedule.h"

namespace plait {

class HandoffGaps {
 public:
  explicit HandoffGaps(size_t lanes) : gaps_us_(lanes, std::vector<std::vector<double>>(lanes)) {}

  // Of one inference. Only waits that held their lane up count.
  void Add(const StepProgram& program, const std::vector<std::span<const StepTiming>>& timings);
  // Replaces sync_us between lanes for which there are enough gaps, less what planning adds to it by itself.
  void Correct(const std::vector<PlanningLane>& lanes, PlanningCosts* costs) const;

 private:
  std::vector<std::vector<std::vector<double>>> gaps_us_;  // [from][to]
};

}  // namespace plait
