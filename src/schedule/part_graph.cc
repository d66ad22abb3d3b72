#include "src/schedule/part_graph.h"

#include <algorithm>
#include <set>
#include <string>

#include "src/partition/cuts.h"
#include "src/partition/dependencies.h"

namespace plait {
namespace {

std::vector<std::vector<int>> PartsOfOps(const Graph& graph, const Schedule& schedule) {
  std::vector<std::vector<int>> parts(graph.ops.size());
  for (size_t p = 0; p < schedule.parts.size(); ++p) {
    parts[static_cast<size_t>(schedule.parts[p].op)].push_back(static_cast<int>(p));
  }
  return parts;
}

// Every strip has one lane and at most one part of an operator.
Status CheckStrips(const Graph& graph, const Schedule& schedule) {
  std::map<int, LaneId> lane_of;
  std::set<std::pair<int, OpId>> known;
  for (const Part& part : schedule.parts) {
    if (part.strip < 0) continue;
    const std::string& name = graph.op(part.op).name;
    const auto [at, is_new] = lane_of.emplace(part.strip, part.lane);
    if (!is_new && at->second != part.lane) {
      return InvalidArgument("strip ", part.strip, " has parts on lanes ", at->second, " and ", part.lane, " (operator '", name,
                             "'); a strip has one lane");
    }
    if (!known.emplace(part.strip, part.op).second) {
      return InvalidArgument("strip ", part.strip, " has two parts of operator '", name, "'; it has at most one of each");
    }
  }
  return Status();
}

// What TilesExactly asks of each region.
bool IsInside(const Region& region, const Dims& shape) {
  if (region.begin.rank() != shape.rank() || region.size.rank() != shape.rank()) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t begin = region.begin[i], size = region.size[i];
    if (begin < 0 || size < 1 || size > shape[i] || begin > shape[i] - size) return false;
  }
  return true;
}

// What each part reads of private results, its own strip computes.
Status CheckPrivate(const Graph& graph, const Schedule& schedule, const PrivateResults& results) {
  const std::vector<OpId> producers = graph.Producers();
  for (const Part& part : schedule.parts) {
    const Operator& op = graph.op(part.op);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const OpId producer = op.inputs[i] == kNoTensor ? kNoOp : producers[static_cast<size_t>(op.inputs[i])];
      if (producer == kNoOp || !results.Contains(producer)) continue;
      const Region needed = InputRegion(graph, op, static_cast<int>(i), part.region);
      const Region& has = schedule.parts[static_cast<size_t>(results.PartIn(part.strip, producer))].region;
      if (needed.IsEmpty() || Contains(has, needed)) continue;
      return InvalidArgument("strip ", part.strip, ": its part of operator '", op.name, "' reads ", ToString(needed), " of operator '",
                             graph.op(producer).name, "', of which it computes ", ToString(has));
    }
  }
  return Status();
}

}  // namespace

PrivateResults::PrivateResults(const Graph& graph, const Schedule& schedule) : is_private_(graph.ops.size(), false) {
  std::vector<bool> may(graph.ops.size(), false);
  for (size_t p = 0; p < schedule.parts.size(); ++p) {
    const Part& part = schedule.parts[p];
    if (part.strip < 0) continue;
    part_of_.emplace(std::pair(part.strip, part.op), static_cast<int>(p));
    may[static_cast<size_t>(part.op)] = true;
  }
  if (part_of_.empty()) return;
  const std::vector<OpId> producers = graph.Producers();
  std::vector<bool> is_read(graph.ops.size(), false);
  auto share = [&](TensorId tensor) {
    const OpId producer = tensor == kNoTensor ? kNoOp : producers[static_cast<size_t>(tensor)];
    if (producer != kNoOp) may[static_cast<size_t>(producer)] = false;
  };
  for (TensorId output : graph.outputs) share(output);
  for (const Operator& op : graph.ops) {
    if (!IsView(op.kind)) continue;
    for (TensorId input : op.inputs) share(input);
  }
  for (const Part& part : schedule.parts) {
    if (part.strip < 0) may[static_cast<size_t>(part.op)] = false;
    for (TensorId input : graph.op(part.op).inputs) {
      const OpId producer = input == kNoTensor ? kNoOp : producers[static_cast<size_t>(input)];
      if (producer == kNoOp) continue;
      is_read[static_cast<size_t>(producer)] = true;
      if (part.strip < 0 || PartIn(part.strip, producer) < 0) may[static_cast<size_t>(producer)] = false;
    }
  }
  for (size_t o = 0; o < may.size(); ++o) is_private_[o] = may[o] && is_read[o];
}

int PrivateResults::PartIn(int strip, OpId op) const {
  const auto at = part_of_.find({strip, op});
  return at == part_of_.end() ? -1 : at->second;
}

std::vector<std::vector<PartRead>> ReadsOfParts(const Graph& graph, const Schedule& schedule) {
  const std::vector<OpId> producers = graph.Producers();
  const std::vector<std::vector<int>> parts_of = PartsOfOps(graph, schedule);
  const PrivateResults results(graph, schedule);
  std::vector<std::vector<PartRead>> all(schedule.parts.size());
  for (size_t p = 0; p < schedule.parts.size(); ++p) {
    const Part& part = schedule.parts[p];
    const Operator& op = graph.op(part.op);
    std::vector<PartRead>& reads = all[p];
    auto add = [&](int producer, TensorId tensor, const Region& region) {
      const bool known = std::any_of(reads.begin(), reads.end(), [&](const PartRead& r) {
        return r.producer == producer && r.tensor == tensor && Contains(r.region, region);
      });
      if (!known) reads.push_back({producer, tensor, region});
    };
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const TensorId t = op.inputs[i];
      if (t == kNoTensor || graph.tensor(t).is_constant()) continue;
      for (const Source& source : TraceRegion(graph, producers, t,
                                              InputRegion(graph, op, static_cast<int>(i), part.region))) {
        if (graph.tensor(source.tensor).is_constant()) continue;
        const OpId producer = producers[static_cast<size_t>(source.tensor)];
        if (producer == kNoOp) {
          add(-1, source.tensor, source.region);
          continue;
        }
        if (results.Contains(producer)) {
          add(results.PartIn(part.strip, producer), source.tensor, source.region);
          continue;
        }
        for (int q : parts_of[static_cast<size_t>(producer)]) {
          const Region common = Intersect(source.region, schedule.parts[static_cast<size_t>(q)].region);
          if (schedule.by_operator) {
            add(q, source.tensor, schedule.parts[static_cast<size_t>(q)].region);
          } else if (!common.IsEmpty()) {
            add(q, source.tensor, common);
          }
        }
      }
    }
  }
  return all;
}

Status CheckParts(const Graph& graph, size_t lane_count, const Schedule& schedule) {
  if (schedule.lanes.size() != lane_count) {
    return InvalidArgument("the schedule has orders for ", schedule.lanes.size(), " lanes, but there are ", lane_count);
  }
  std::vector<std::vector<Region>> regions(graph.ops.size());
  for (size_t p = 0; p < schedule.parts.size(); ++p) {
    const Part& part = schedule.parts[p];
    if (part.op < 0 || part.op >= graph.op_count()) {
      return InvalidArgument("part ", p, " is of operator ", part.op, " of ", graph.op_count());
    }
    const Operator& op = graph.op(part.op);
    if (IsView(op.kind)) {
      return InvalidArgument("operator '", op.name, "' (", Name(op.kind), ") is a view and cannot have parts");
    }
    if (part.lane < 0 || static_cast<size_t>(part.lane) >= lane_count) {
      return InvalidArgument("a part of operator '", op.name, "' is on lane ", part.lane, " of ", lane_count);
    }
    std::vector<Region>& of_op = regions[static_cast<size_t>(part.op)];
    if (of_op.size() == kMaxPartsPerOp) {
      return InvalidArgument("operator '", op.name, "' has more than ", kMaxPartsPerOp, " parts");
    }
    of_op.push_back(part.region);
  }
  PLAIT_RETURN_IF_ERROR(CheckStrips(graph, schedule));
  const PrivateResults results(graph, schedule);
  for (OpId o = 0; o < graph.op_count(); ++o) {
    const Operator& op = graph.op(o);
    if (results.Contains(o)) {
      for (const Region& region : regions[static_cast<size_t>(o)]) {
        if (IsInside(region, graph.output(op).shape)) continue;
        return InvalidArgument("a part ", ToString(region), " of operator '", op.name, "' does not lie inside its output ",
                               ToString(graph.output(op).shape));
      }
      continue;
    }
    if (!IsView(op.kind) && !TilesExactly(graph.output(op).shape, regions[static_cast<size_t>(o)])) {
      return InvalidArgument("the ", regions[static_cast<size_t>(o)].size(), " parts of operator '", op.name,
                             "' do not tile its output ",
                             ToString(graph.output(op).shape), ": they overlap, leave something out or reach beyond it");
    }
  }
  PLAIT_RETURN_IF_ERROR(CheckPrivate(graph, schedule, results));
  std::vector<bool> placed(schedule.parts.size(), false);
  for (size_t lane = 0; lane < lane_count; ++lane) {
    for (int p : schedule.lanes[lane]) {
      if (p < 0 || static_cast<size_t>(p) >= schedule.parts.size()) {
        return InvalidArgument("the order of lane ", lane, " names part ", p, " of ", schedule.parts.size());
      }
      const Part& part = schedule.parts[static_cast<size_t>(p)];
      if (static_cast<size_t>(part.lane) != lane) {
        return InvalidArgument("the order of lane ", lane, " names a part of operator '", graph.op(part.op).name,
                               "' that is on lane ", part.lane);
      }
      if (placed[static_cast<size_t>(p)]) return InvalidArgument("the order of lane ", lane, " names part ", p, " twice");
      placed[static_cast<size_t>(p)] = true;
    }
  }
  const auto missing = std::find(placed.begin(), placed.end(), false);
  if (missing != placed.end()) {
    const Part& part = schedule.parts[static_cast<size_t>(missing - placed.begin())];
    return InvalidArgument("a part of operator '", graph.op(part.op).name, "' is missing in the order of lane ", part.lane);
  }
  return Status();
}

Result<std::vector<int>> ExecutionOrder(const Graph& graph, const Schedule& schedule,
                                        const std::vector<std::vector<PartRead>>& reads) {
  const size_t n = schedule.parts.size();
  std::vector<int> open(n, 0);
  std::vector<std::vector<int>> readers(n);
  auto after = [&](int first, int second) {
    readers[static_cast<size_t>(first)].push_back(second);
    ++open[static_cast<size_t>(second)];
  };
  for (size_t p = 0; p < n; ++p) {
    for (const PartRead& read : reads[p]) {
      if (read.producer >= 0) after(read.producer, static_cast<int>(p));
    }
  }
  for (const std::vector<int>& lane : schedule.lanes) {
    for (size_t i = 1; i < lane.size(); ++i) after(lane[i - 1], lane[i]);
  }
  std::vector<int> order;
  order.reserve(n);
  for (size_t p = 0; p < n; ++p) {
    if (open[p] == 0) order.push_back(static_cast<int>(p));
  }
  for (size_t done = 0; done < order.size(); ++done) {
    for (int next : readers[static_cast<size_t>(order[done])]) {
      if (--open[static_cast<size_t>(next)] == 0) order.push_back(next);
    }
  }
  if (order.size() == n) return order;
  for (const std::vector<int>& lane : schedule.lanes) {
    for (int p : lane) {
      if (open[static_cast<size_t>(p)] == 0) continue;
      const Part& part = schedule.parts[static_cast<size_t>(p)];
      return InvalidArgument("the order of lane ", part.lane, " contradicts the graph: its part of operator '",
                             graph.op(part.op).name,
                             "' waits for something that comes later");
    }
  }
  return Internal("parts without an order");
}

}  // namespace plait
