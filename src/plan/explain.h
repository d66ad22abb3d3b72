// A plan in words, for people and for programs.
#pragma once

#include <string>

#include "src/plan/plan.h"

namespace plait {

// Predicted latency with bound and gap, utilisation of each lane, the critical path as a list, the handoffs for which
// lanes stand idle, and each lane's steps as a table. Plain text that ends with a line break. `plan` has passed
// VerifyProgram against `graph`.
std::string ExplainPlan(const Graph& graph, const Plan& plan);

// The same for programs: a JSON object (docs/formats.md).
std::string ExplainPlanJson(const Graph& graph, const Plan& plan);

}  // namespace plait
