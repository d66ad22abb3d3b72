#include "plait/strategy.h"

#include <algorithm>
#include <exception>

#include "src/api/c_objects.h"
#include "src/graph/operators.h"
#include "src/partition/dependencies.h"
#include "src/schedule/part_graph.h"

struct plait_problem {
  const plait::Graph& graph;
  const plait::LaneSet& set;
  const std::vector<plait::PlanningLane>& lanes;
  const plait::PlanningCosts& costs;
  std::vector<plait::OpId> ops;                 // of the graph; no views
  std::vector<std::vector<uint32_t>> producers;  // [op] -> ops
  std::vector<std::vector<int32_t>> cpus;        // [lane]
};

struct plait_schedule {
  const plait_problem& problem;
  plait::Schedule schedule;
  plait::Status first_mistake;
};

namespace plait::c_api {
namespace {

// What a strategy runs on, on this thread. Calls with anything else are refused.
struct Current {
  const plait_problem* problem = nullptr;
  plait_schedule* schedule = nullptr;
};
thread_local Current current;

Status Check(const plait_problem* problem) {
  if (problem == nullptr) return NullArgument("problem");
  return problem == current.problem ? Status() : InvalidArgument("problem is not that of a strategy that is running on this thread");
}

Status Check(const plait_problem* problem, size_t op, size_t lane) {
  PLAIT_RETURN_IF_ERROR(Check(problem));
  if (op >= problem->ops.size()) return NotFound("operator ", op, ": there are ", problem->ops.size());
  return lane < problem->lanes.size() ? Status() : NotFound("lane ", lane, ": there are ", problem->lanes.size());
}

// Elements [begin, begin + count) of the operator's output along `axis`; -1: all of it.
Result<Region> RegionOf(const plait_problem& problem, size_t op, int32_t axis, int64_t begin, int64_t count) {
  const Operator& o = problem.graph.op(problem.ops[op]);
  const Dims& shape = problem.graph.output(o).shape;
  Region region = Region::Whole(shape);
  if (axis == -1) return region;
  if (axis < 0 || axis >= shape.rank()) return NotFound("operator '", o.name, "': axis ", axis, " of ", shape.rank());
  if (begin < 0 || count < 1 || begin > shape[axis] || count > shape[axis] - begin) {
    return InvalidArgument("operator '", o.name, "': ", count, " elements at ", begin, " of axis ", axis, ", which has ", shape[axis]);
  }
  region.begin[axis] = begin;
  region.size[axis] = count;
  return region;
}

std::vector<std::vector<uint32_t>> ProducersOf(const Graph& graph, const std::vector<OpId>& ops) {
  std::vector<uint32_t> number(graph.ops.size(), 0);
  for (size_t i = 0; i < ops.size(); ++i) number[static_cast<size_t>(ops[i])] = static_cast<uint32_t>(i);
  const std::vector<OpId> makers = graph.Producers();
  std::vector<std::vector<uint32_t>> producers;
  for (const OpId op : ops) {
    std::vector<uint32_t>& of = producers.emplace_back();
    for (const Source& source : ReadsOf(graph, makers, op, Region::Whole(graph.output(graph.op(op)).shape))) {
      const OpId maker = makers[static_cast<size_t>(source.tensor)];
      if (maker != kNoOp) of.push_back(number[static_cast<size_t>(maker)]);
    }
    std::sort(of.begin(), of.end());
    of.erase(std::unique(of.begin(), of.end()), of.end());
  }
  return producers;
}

double PredictedUs(const plait_problem& problem, size_t op, size_t lane, const Region& region) {
  const Latency latency = problem.costs.latency->PartLatency(problem.graph, problem.ops[op], problem.lanes[lane].spec.name, region);
  return latency.known ? latency.us + problem.lanes[lane].host_step_us : 0;
}

Status Add(plait_schedule* schedule, size_t op, size_t lane, int32_t axis, int64_t begin, int64_t count) {
  const plait_problem& problem = schedule->problem;
  PLAIT_RETURN_IF_ERROR(Check(&problem, op, lane));
  if (schedule->schedule.parts.size() >= problem.ops.size() * kMaxPartsPerOp) return InvalidArgument("the schedule has more than ", kMaxPartsPerOp, " parts an operator");
  PLAIT_ASSIGN_OR_RETURN(const Region region, RegionOf(problem, op, axis, begin, count));
  Part part;
  part.op = problem.ops[op];
  part.lane = static_cast<LaneId>(lane);
  part.region = region;
  part.kernel = problem.lanes[lane].rules->Supports(problem.graph, part.op).kernel;
  part.predicted_us = PredictedUs(problem, op, lane, region);
  schedule->schedule.lanes[lane].push_back(static_cast<int>(schedule->schedule.parts.size()));
  schedule->schedule.parts.push_back(std::move(part));
  return Status();
}

// Calls the application; whatever it throws becomes a Status.
Status Call(plait_strategy_callback callback, void* user, const plait_problem& problem, plait_schedule* schedule, const std::string& name) {
  const Current outer = current;
  current = {&problem, schedule};
  Status status;
  try {
    const int32_t outcome = callback(user, &problem, schedule);
    if (outcome != 0) status = Status(PLAIT_CANCELLED, StrCat("strategy '", name, "' returned ", outcome));
  } catch (const std::exception& e) {
    status = Internal("strategy '", name, "' threw an exception: ", e.what());
  } catch (...) {
    status = Internal("strategy '", name, "' threw an exception");
  }
  current = outer;
  return status;
}

}  // namespace

Strategy CallbackStrategy(const LaneSet& lanes, const char* name, plait_strategy_callback callback, void* user) {
  return [&lanes, name = std::string(name), callback, user](const Graph& graph, const std::vector<PlanningLane>& planning, const PlanningCosts& costs,
                                                            const SearchOptions&) -> Result<Schedule> {
    plait_problem problem{graph, lanes, planning, costs, {}, {}, {}};
    for (OpId op = 0; op < graph.op_count(); ++op) {
      if (!IsView(graph.op(op).kind)) problem.ops.push_back(op);
    }
    problem.producers = ProducersOf(graph, problem.ops);
    for (const std::vector<int>& cpus : lanes.cpus) problem.cpus.emplace_back(cpus.begin(), cpus.end());
    plait_schedule schedule{problem, {}, {}};
    schedule.schedule.strategy = name;
    schedule.schedule.lanes.resize(planning.size());
    const Status status = Call(callback, user, problem, &schedule, name);
    if (!schedule.first_mistake.ok()) return schedule.first_mistake.Annotated("strategy '" + name + "'");
    if (!status.ok()) return status;
    return std::move(schedule.schedule);
  };
}

}  // namespace plait::c_api

using namespace plait;
using namespace plait::c_api;

plait_status plait_problem_operator_count(const plait_problem* problem, size_t* count) {
  return Guarded([&]() -> Status {
    if (count == nullptr) return NullArgument("count");
    PLAIT_RETURN_IF_ERROR(Check(problem));
    *count = problem->ops.size();
    return Status();
  });
}

plait_status plait_problem_lane_count(const plait_problem* problem, size_t* count) {
  return Guarded([&]() -> Status {
    if (count == nullptr) return NullArgument("count");
    PLAIT_RETURN_IF_ERROR(Check(problem));
    *count = problem->lanes.size();
    return Status();
  });
}

plait_status plait_problem_lane(const plait_problem* problem, size_t lane, plait_lane_info* info) {
  return Guarded([&]() -> Status {
    PLAIT_RETURN_IF_ERROR(Check(problem, 0, lane));
    return WriteInfo(DescribeLane(problem->set, lane, problem->cpus[lane]), info, "plait_lane_info");
  });
}

plait_status plait_problem_operator(const plait_problem* problem, size_t op, plait_operator_info* info) {
  return Guarded([&]() -> Status {
    PLAIT_RETURN_IF_ERROR(Check(problem, op, 0));
    const Graph& graph = problem->graph;
    const Operator& o = graph.op(problem->ops[op]);
    const Dims& shape = graph.output(o).shape;
    const Work work = WorkOf(graph, o);
    plait_operator_info filled = PLAIT_OPERATOR_INFO_INIT;
    filled.name = o.name.c_str();
    filled.kind = Name(o.kind).data();  // a literal
    filled.rank = shape.rank();
    for (int i = 0; i < shape.rank(); ++i) filled.dims[i] = shape[i];
    filled.macs = static_cast<uint64_t>(work.macs);
    filled.input_bytes = static_cast<uint64_t>(work.input_bytes);
    filled.weight_bytes = static_cast<uint64_t>(work.weight_bytes);
    filled.output_bytes = static_cast<uint64_t>(work.output_bytes);
    filled.producers = problem->producers[op].data();
    filled.producer_count = problem->producers[op].size();
    return WriteInfo(filled, info, "plait_operator_info");
  });
}

plait_status plait_problem_can_run(const plait_problem* problem, size_t op, size_t lane, int32_t* can) {
  return Guarded([&]() -> Status {
    if (can == nullptr) return NullArgument("can");
    PLAIT_RETURN_IF_ERROR(Check(problem, op, lane));
    *can = problem->lanes[lane].rules->Supports(problem->graph, problem->ops[op]).supported;
    return Status();
  });
}

plait_status plait_problem_cut(const plait_problem* problem, size_t op, size_t lane, int32_t axis, plait_cut* cut) {
  return Guarded([&]() -> Status {
    PLAIT_RETURN_IF_ERROR(Check(problem, op, lane));
    const Operator& o = problem->graph.op(problem->ops[op]);
    const Dims& shape = problem->graph.output(o).shape;
    if (axis < 0 || axis >= shape.rank()) return NotFound("operator '", o.name, "': axis ", axis, " of ", shape.rank());
    plait_cut filled = PLAIT_CUT_INIT;
    filled.extent = shape[axis];
    filled.minimum = shape[axis];
    for (const SplitAxis& split : SplitAxes(problem->graph, o)) {
      if (split.axis != axis) continue;
      const CutRule rule = problem->lanes[lane].rules->Cut(problem->graph, problem->ops[op], split);
      if (rule.alignment <= 0) continue;
      filled.alignment = rule.alignment;
      filled.minimum = rule.minimum;
    }
    return WriteInfo(filled, cut, "plait_cut");
  });
}

plait_status plait_problem_cost(const plait_problem* problem, size_t op, size_t lane, int32_t axis, int64_t begin, int64_t count, double* us) {
  return Guarded([&]() -> Status {
    if (us == nullptr) return NullArgument("us");
    PLAIT_RETURN_IF_ERROR(Check(problem, op, lane));
    PLAIT_ASSIGN_OR_RETURN(const Region region, RegionOf(*problem, op, axis, begin, count));
    const double predicted_us = PredictedUs(*problem, op, lane, region);
    if (predicted_us <= 0) {
      return NotFound("nothing is known of the cost of operator '", problem->graph.op(problem->ops[op]).name, "' on lane '", problem->lanes[lane].spec.name, "'");
    }
    *us = predicted_us;
    return Status();
  });
}

plait_status plait_problem_handoff(const plait_problem* problem, size_t from, size_t to, uint64_t bytes, double* us) {
  return Guarded([&]() -> Status {
    if (us == nullptr) return NullArgument("us");
    PLAIT_RETURN_IF_ERROR(Check(problem));
    if (std::max(from, to) >= problem->lanes.size()) return NotFound("lane ", std::max(from, to), ": there are ", problem->lanes.size());
    *us = from == to ? 0
                     : problem->costs.sync_us[from][to] + problem->costs.us_per_byte[from][to] * static_cast<double>(bytes) + problem->lanes[to].host_segment_us;
    return Status();
  });
}

plait_status plait_schedule_add(plait_schedule* schedule, size_t op, size_t lane, int32_t axis, int64_t begin, int64_t count) {
  return Guarded([&]() -> Status {
    if (schedule == nullptr) return NullArgument("schedule");
    if (schedule != current.schedule) return InvalidArgument("schedule is not that of a strategy that is running on this thread");
    const Status status = Add(schedule, op, lane, axis, begin, count);
    if (schedule->first_mistake.ok()) schedule->first_mistake = status;
    return status;
  });
}
