// What the XNNPACK backend tells the planner.
#pragma once

#include <string>

#include "backends/interface/backend.h"
#include "backends/xnnpack/tiles.h"

namespace plait::xnn {

class XnnRules final : public KernelRules {
 public:
  explicit XnnRules(const Tiles& tiles) : tiles_(tiles) {}
  std::string_view name() const override { return "xnnpack"; }
  KernelSupport Supports(const Graph& graph, OpId op) const override;
  CutRule Cut(const Graph& graph, OpId op, SplitAxis axis) const override;
  bool Strided(const Graph& graph, OpId op, int operand) const override;

 private:
  Tiles tiles_;
};

}  // namespace plait::xnn
