// An inference as a trace that Perfetto (ui.perfetto.dev) and Chrome (chrome://tracing) open.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/interface/lane.h"
#include "src/plan/plan.h"

namespace plait {

// Chrome's trace-event JSON: a row for each lane, a slice for each step that took time, an arrow for each wait.
// `timings`: [lane][step] of one inference, as Session::timings() or PredictedTimings() give them; lanes without
// timings have empty rows. Times start at 0.
std::string TraceJson(const Graph& graph, const StepProgram& program, std::span<const std::span<const StepTiming>> timings);

}  // namespace plait
