// A plan: a schedule lowered to steps and a memory map, with what it was made for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/interface/steps.h"
#include "src/schedule/schedule.h"

namespace plait {

struct Plan {
  uint64_t graph_hash = 0;          // StructureHash() of the graph that the steps refer to (after Optimize and PlaceCopies); plans do not depend on weights
  std::string soc;                  // the SoC profile's description
  std::string plait_version;
  Schedule schedule;
  StepProgram program;
};

// Schedule to steps: views with storage, waits by region and without redundant ones, segments with Acquire, Publish and Submit for GPU lanes, then the memory plan.
// The result passes VerifyProgram. `graph` is PlaceCopies' result. Deterministic.
Result<Plan> Lower(const Graph& graph, const std::vector<PlanningLane>& lanes, const Schedule& schedule);

// Gives every buffer its offset: buffers share bytes only if happens-before separates their lives. Part of Lower.
Status PlanMemory(const Graph& graph, StepProgram* program);

// Proves over happens-before (lane order and waits): no step reads a byte before it is written and, across domains, published and acquired;
// no two unordered steps touch one byte of which one writes; every graph output is written and visible to the host at the end; no buffer is
// reused early; no wait can deadlock. Corrupt names the first violated rule, lane, step and operator. Trusts nothing in the program.
Status VerifyProgram(const Graph& graph, const StepProgram& program);

// Plan files (docs/formats.md): JSON, checksummed, written atomically, verified on load against `graph`.
Status SavePlan(const Plan& plan, const std::string& path);
Result<Plan> LoadPlan(const Graph& graph, const std::string& path);

// Counts for reports and tests.
struct ProgramStats {
  int compute_steps = 0, acquires = 0, publishes = 0, segments = 0, waits = 0, handoffs = 0 /* waits that cross lanes */;
  std::vector<int> steps_per_lane;
};
ProgramStats StatsOf(const StepProgram& program);

}  // namespace plait
