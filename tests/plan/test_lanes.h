// Lanes and kernel rules for tests of planning: no device, no kernel behind them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/plan/plan.h"
#include "src/partition/storage.h"
#include "src/schedule/schedule.h"

namespace plait {

class TestRules final : public KernelRules {
 public:
  explicit TestRules(int64_t channel_alignment = 16) : channel_alignment_(channel_alignment) {}
  void Ban(OpKind kind) { banned_.insert(kind); }
  void MakeDense(OpKind kind) { dense_.insert(kind); }

  std::string_view name() const override { return "test"; }
  KernelSupport Supports(const Graph& graph, OpId op) const override {
    const OpKind kind = graph.op(op).kind;
    if (banned_.count(kind) != 0) return {false, "", "banned in this test"};
    return {true, StrCat("test.", Name(kind)), ""};
  }
  CutRule Cut(const Graph& graph, OpId op, SplitAxis axis) const override {
    if (axis.role == AxisRole::kColumns) return {0, 1};
    if (axis.role != AxisRole::kChannels) return {1, 1};
    if (graph.op(op).kind == OpKind::kSoftmax || graph.op(op).kind == OpKind::kBinary) return {0, 1};
    return {channel_alignment_, channel_alignment_};
  }
  bool Strided(const Graph& graph, OpId op, int) const override { return dense_.count(graph.op(op).kind) == 0; }

 private:
  int64_t channel_alignment_;
  std::set<OpKind> banned_, dense_;
};

inline const TestRules& SharedRules() {
  static const TestRules rules;
  return rules;
}

inline PlanningLane CpuLane(const std::string& name, const KernelRules& rules = SharedRules()) {
  PlanningLane lane;
  lane.spec.name = name;
  lane.rules = &rules;
  return lane;
}
inline PlanningLane GpuLane(const std::string& name, DomainId domain, bool coherent,
                            const KernelRules& rules = SharedRules()) {
  PlanningLane lane = CpuLane(name, rules);
  lane.spec.kind = LaneKind::kGpu;
  lane.spec.domain = domain;
  lane.coherent = coherent;
  return lane;
}

enum class LaneSet { kTwoCpus, kCpuGpu, kTwoCpusGpu, kCpuTwoGpus };
inline std::vector<PlanningLane> Lanes(LaneSet set, bool coherent = true, const KernelRules& rules = SharedRules()) {
  switch (set) {
    case LaneSet::kTwoCpus: return {CpuLane("cpu0", rules), CpuLane("cpu1", rules)};
    case LaneSet::kCpuGpu: return {CpuLane("cpu0", rules), GpuLane("gpu0", 1, coherent, rules)};
    case LaneSet::kTwoCpusGpu: return {CpuLane("cpu0", rules), CpuLane("cpu1", rules), GpuLane("gpu0", 1, coherent, rules)};
    default: return {CpuLane("cpu0", rules), GpuLane("gpu0", 1, coherent, rules), GpuLane("gpu1", 2, coherent, rules)};
  }
}
inline constexpr LaneSet kAllLaneSets[] = {LaneSet::kTwoCpus, LaneSet::kCpuGpu, LaneSet::kTwoCpusGpu, LaneSet::kCpuTwoGpus};

// PlaceCopies for kernels of `rules`.
inline Result<Graph> Place(const Graph& graph, const KernelRules& rules = SharedRules()) {
  return PlaceCopies(graph, [&](const Graph& g, OpId op, int operand) { return rules.Strided(g, op, operand); });
}

}  // namespace plait
