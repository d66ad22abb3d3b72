#include "src/plan/describe.h"

#include <algorithm>

#include "src/base/status.h"
#include "src/graph/operators.h"

namespace plait {
namespace {

std::string AxisName(const Graph& graph, const Operator& op, int axis) {
  for (const SplitAxis& split : SplitAxes(graph, op)) {
    if (split.axis != axis) continue;
    switch (split.role) {
      case AxisRole::kBatch: return "batch";
      case AxisRole::kRows: return "rows";
      case AxisRole::kColumns: return "columns";
      case AxisRole::kChannels: return "channels";
    }
  }
  return StrCat("axis ", axis);
}

}  // namespace

std::string DescribePart(const Graph& graph, const Step& step) {
  const Operator& op = graph.op(step.op);
  const Dims& shape = graph.output(op).shape;
  std::string out;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (step.region.size[axis] == shape[axis]) continue;
    const int64_t begin = step.region.begin[axis];
    out += StrCat(out.empty() ? "" : ", ", AxisName(graph, op, axis), ' ', begin, ':', begin + step.region.size[axis],
                  " of ", shape[axis]);
  }
  return out.empty() ? "whole" : out;
}

std::string StepName(const Graph& graph, const Step& step) {
  return step.op == kNoOp ? std::string(Name(step.kind)) : graph.op(step.op).name;
}

}  // namespace plait
