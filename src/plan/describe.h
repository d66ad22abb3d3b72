// Words for steps, shared by explanation and trace.
#pragma once

#include <string>

#include "backends/interface/steps.h"
#include "src/graph/graph.h"

namespace plait {

// "whole", or the cut axes: "rows 0:14 of 28", "channels 0:64 of 128"; axes without a better name by number.
std::string DescribePart(const Graph& graph, const Step& step);

// The operator's name; for bookkeeping steps their kind.
std::string StepName(const Graph& graph, const Step& step);

}  // namespace plait
