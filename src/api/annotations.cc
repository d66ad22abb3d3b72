#include <algorithm>
#include <set>
#include <string_view>

#include "src/api/c_objects.h"
#include "src/graph/operators.h"

namespace plait::c_api {
namespace {

// '*' fits any characters, '?' any one; all else itself.
bool Fits(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

// A lane's own rules less what annotations take away. Goes by names, so that it holds for any copy of the graph.
class RestrictedRules final : public KernelRules {
 public:
  explicit RestrictedRules(std::shared_ptr<const Lane> lane) : lane_(std::move(lane)) {}

  std::string_view name() const override { return lane_->rules().name(); }
  KernelSupport Supports(const Graph& graph, OpId op) const override {
    if (forbidden.contains(graph.op(op).name)) return {false, "", "annotations keep it off this lane"};
    return lane_->rules().Supports(graph, op);
  }
  CutRule Cut(const Graph& graph, OpId op, SplitAxis axis) const override {
    return whole.contains(graph.op(op).name) ? CutRule{0, 1} : lane_->rules().Cut(graph, op, axis);
  }
  bool Strided(const Graph& graph, OpId op, int operand) const override { return lane_->rules().Strided(graph, op, operand); }

  std::set<std::string, std::less<>> forbidden, whole;

 private:
  const std::shared_ptr<const Lane> lane_;
};

// [lane] whether `list` names it.
Result<std::vector<bool>> ParseLanes(const LaneSet& lanes, std::string_view list) {
  std::vector<bool> named(lanes.lanes.size(), false);
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    const std::string_view name = list.substr(at, end - at);
    size_t lane = 0;
    while (lane < lanes.lanes.size() && lanes.lanes[lane]->name() != name) ++lane;
    if (lane == lanes.lanes.size()) {
      std::string names;
      for (const auto& known : lanes.lanes) names += (names.empty() ? "" : ", ") + known->name();
      return NotFound("there is no lane '", name, "'; there are: ", names);
    }
    named[lane] = true;
    at = end + 1;
  }
  return named;
}

Status Apply(const plait_annotation& annotation, const Graph& graph, const LaneSet& lanes, const std::vector<std::shared_ptr<RestrictedRules>>& rules) {
  if (annotation.operators == nullptr) return NullArgument("plait_annotation::operators");
  if (annotation.reserved != 0) return InvalidArgument("plait_annotation::reserved is not 0");
  std::vector<bool> allowed(lanes.lanes.size(), true);
  if (annotation.pin != nullptr) {
    PLAIT_ASSIGN_OR_RETURN(allowed, ParseLanes(lanes, annotation.pin));
  }
  if (annotation.forbid != nullptr) {
    PLAIT_ASSIGN_OR_RETURN(const std::vector<bool> forbidden, ParseLanes(lanes, annotation.forbid));
    for (size_t lane = 0; lane < allowed.size(); ++lane) allowed[lane] = allowed[lane] && !forbidden[lane];
  }
  bool fits = false;
  for (const Operator& op : graph.ops) {
    if (IsView(op.kind) || !Fits(annotation.operators, op.name)) continue;
    fits = true;
    for (size_t lane = 0; lane < rules.size(); ++lane) {
      if (!allowed[lane]) rules[lane]->forbidden.insert(op.name);
      if (annotation.whole != 0) rules[lane]->whole.insert(op.name);
    }
  }
  if (fits) return Status();
  return NotFound("no operator that computes fits '", annotation.operators, "' (fused ones have their neighbour's name; plait_plan_explain() shows the names)");
}

}  // namespace

Result<std::vector<std::shared_ptr<const KernelRules>>> AnnotatedRules(const Graph& prepared, const LaneSet& lanes, const plait_annotation* annotations, size_t count) {
  std::vector<std::shared_ptr<RestrictedRules>> rules;
  for (const auto& lane : lanes.lanes) rules.push_back(std::make_shared<RestrictedRules>(lane));
  for (size_t i = 0; i < count; ++i) {
    PLAIT_RETURN_IF_ERROR(Apply(annotations[i], prepared, lanes, rules).Annotated(StrCat("annotation ", i)));
  }
  return std::vector<std::shared_ptr<const KernelRules>>(rules.begin(), rules.end());
}

std::string DescribeAnnotations(const plait_annotation* annotations, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    const auto add = [&text](const char* part) { text += part == nullptr ? "0" : StrCat(std::string_view(part).size(), ':', part); };
    add(annotations[i].operators);
    add(annotations[i].pin);
    add(annotations[i].forbid);
    text += annotations[i].whole != 0 ? 'w' : '-';
  }
  return text;
}

}  // namespace plait::c_api
