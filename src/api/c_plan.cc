#include <charconv>
#include <cmath>
#include <cstring>

#include "src/api/c_objects.h"
#include "src/plan/explain.h"

namespace plait::c_api {
namespace {

// The application's progress callback, and what it answered.
struct Watch {
  plait_progress_callback callback = nullptr;
  void* user = nullptr;
  bool is_stopped = false;

  void Show(const std::string& what, double done, double seconds_left) {
    if (callback == nullptr || is_stopped) return;
    try {
      is_stopped = callback(user, what.c_str(), done, seconds_left) != 0;
    } catch (...) {
      is_stopped = true;
    }
  }
};

void Install(Watch* watch, PlanRequest* request) {
  request->progress = [watch](const std::string& what, double done, double seconds_left) { watch->Show(what, done, seconds_left); };
  request->stop = [watch] { return watch->is_stopped; };
  request->search.stop = request->stop;
}

Status CheckSeconds(double seconds, bool may_be_zero, const char* field) {
  if (std::isfinite(seconds) && (seconds > 0 || (may_be_zero && seconds == 0)) && seconds <= 86400) return Status();
  return InvalidArgument(field, " is ", seconds, "; ", may_be_zero ? "0" : "more than 0", " to 86400 was expected");
}

// Parts' times where costs are known.
Schedule WithTimes(Schedule schedule, const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs) {
  for (Part& part : schedule.parts) {
    const Latency latency = costs.latency->PartLatency(graph, part.op, lanes[static_cast<size_t>(part.lane)].spec.name, part.region);
    if (latency.known) part.predicted_us = latency.us;
  }
  return schedule;
}

Result<Strategy> NamedStrategy(const std::string& name) {
  if (name.empty() || name == "search") return Strategy();
  if (name.rfind("lane:", 0) == 0) {
    return Strategy([wanted = name.substr(5)](const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, const SearchOptions&) -> Result<Schedule> {
      std::string names;
      for (size_t lane = 0; lane < lanes.size(); ++lane) {
        if (lanes[lane].spec.name == wanted) {
          PLAIT_ASSIGN_OR_RETURN(Schedule schedule, SingleLaneSchedule(graph, lanes, static_cast<LaneId>(lane)));
          return WithTimes(std::move(schedule), graph, lanes, costs);
        }
        names += (names.empty() ? "" : ", ") + lanes[lane].spec.name;
      }
      return NotFound("strategy 'lane:", wanted, "': there is no such lane; there are: ", names);
    });
  }
  if (name.rfind("random:", 0) == 0) {
    uint64_t seed = 0;
    const auto [end, error] = std::from_chars(name.data() + 7, name.data() + name.size(), seed);
    if (error != std::errc() || end != name.data() + name.size() || name.size() == 7) return InvalidArgument("strategy '", name, "': the seed is not a whole number");
    return Strategy([seed](const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, const SearchOptions&) -> Result<Schedule> {
      PLAIT_ASSIGN_OR_RETURN(Schedule schedule, RandomSchedule(graph, lanes, seed));
      return WithTimes(std::move(schedule), graph, lanes, costs);
    });
  }
  return NotFound("there is no strategy '", name, "'; there are: search, lane:NAME, random:SEED");
}

Result<PlanRequest> MakeRequest(const plait_plan_options& given, const plait_lanes& lanes, Watch* watch) {
  PlanRequest request;
  if (given.effort < PLAIT_EFFORT_FAST || given.effort > PLAIT_EFFORT_HIGH) return InvalidArgument("plait_plan_options::effort is ", given.effort, ", no plait_effort");
  if (given.annotation_count > 0 && given.annotations == nullptr) return NullArgument("plait_plan_options::annotations");
  PLAIT_RETURN_IF_ERROR(CheckSeconds(given.calibration_seconds_per_lane, true, "plait_plan_options::calibration_seconds_per_lane"));
  constexpr Effort kEfforts[] = {Effort::kFast, Effort::kDefault, Effort::kHigh};
  request.search.effort = kEfforts[given.effort];
  request.search.seed = given.seed;
  request.bind.strict = lanes.strict;
  request.cache_dir = lanes.cache_dir;
  request.tune = given.tune != 0;
  request.use_cached_plan = given.use_cache != 0;
  request.calibration_seconds_per_lane = given.calibration_seconds_per_lane;
  request.measure = given.calibration_seconds_per_lane > 0;
  const std::string name = given.strategy_name == nullptr ? "" : given.strategy_name;
  if (given.strategy != nullptr) {
    request.strategy = CallbackStrategy(*lanes.set, name.empty() ? "custom" : name.c_str(), given.strategy, given.strategy_user);
  } else {
    PLAIT_ASSIGN_OR_RETURN(request.strategy, NamedStrategy(name));
    if (request.strategy) request.measure = false;
  }
  if (given.annotation_count > 0) {
    request.rules = [&lanes, given](const Graph& prepared) { return AnnotatedRules(prepared, *lanes.set, given.annotations, given.annotation_count); };
    request.constraints = DescribeAnnotations(given.annotations, given.annotation_count);
  }
  watch->callback = given.progress;
  watch->user = given.progress_user;
  Install(watch, &request);
  return request;
}

void Keep(PlannedModel planned, const plait_model& model, const plait_lanes& lanes, plait_plan** plan) {
  auto object = std::make_shared<plait_plan>();
  object->planned = std::move(planned);
  object->graph = model.graph;
  object->lanes = lanes.set;
  object->strict = lanes.strict;
  Publish(std::move(object), plan);
}

Status Explain(const plait_plan* plan, char** text, std::string (*explain)(const Graph&, const Plan&)) {
  if (text == nullptr) return NullArgument("text");
  PLAIT_ASSIGN_OR_RETURN(const auto object, Find(plan, "plan"));
  PLAIT_ASSIGN_OR_RETURN(*text, CopyText(explain(*object->planned.graph, *object->planned.plan)));
  return Status();
}

}  // namespace
}  // namespace plait::c_api

using namespace plait;
using namespace plait::c_api;

plait_status plait_plan_make(const plait_model* model, const plait_lanes* lanes, const plait_plan_options* options, plait_plan** plan) {
  return Guarded([&]() -> Status {
    if (plan == nullptr) return NullArgument("plan");
    PLAIT_ASSIGN_OR_RETURN(const auto model_object, Find(model, "model"));
    PLAIT_ASSIGN_OR_RETURN(const auto lanes_object, Find(lanes, "lanes"));
    PLAIT_ASSIGN_OR_RETURN(const plait_plan_options given, ReadOptions<plait_plan_options>(options, PLAIT_PLAN_OPTIONS_INIT, "plait_plan_options"));
    Watch watch;
    PLAIT_ASSIGN_OR_RETURN(const PlanRequest request, MakeRequest(given, *lanes_object, &watch));
    Result<PlannedModel> planned = PlanGraph(*model_object->graph, *lanes_object->set, request);
    if (watch.is_stopped) return Status(PLAIT_CANCELLED, "the progress callback ended the planning");
    if (!planned.ok()) return planned.status();
    Keep(std::move(planned).value(), *model_object, *lanes_object, plan);
    return Status();
  });
}

plait_status plait_plan_load(const plait_model* model, const plait_lanes* lanes, const char* path, plait_plan** plan) {
  return Guarded([&]() -> Status {
    if (path == nullptr) return NullArgument("path");
    if (plan == nullptr) return NullArgument("plan");
    PLAIT_ASSIGN_OR_RETURN(const auto model_object, Find(model, "model"));
    PLAIT_ASSIGN_OR_RETURN(const auto lanes_object, Find(lanes, "lanes"));
    PLAIT_ASSIGN_OR_RETURN(PlannedModel planned, LoadPlanFor(*model_object->graph, *lanes_object->set, path));
    Keep(std::move(planned), *model_object, *lanes_object, plan);
    return Status();
  });
}

plait_status plait_plan_save(const plait_plan* plan, const char* path) {
  return Guarded([&]() -> Status {
    if (path == nullptr) return NullArgument("path");
    PLAIT_ASSIGN_OR_RETURN(const auto object, Find(plan, "plan"));
    return SavePlan(*object->planned.plan, path);
  });
}

plait_status plait_plan_destroy(plait_plan* plan) { return Destroy(plan, "plan"); }

plait_status plait_plan_get_info(const plait_plan* plan, plait_plan_info* info) {
  return Guarded([&]() -> Status {
    PLAIT_ASSIGN_OR_RETURN(const auto object, Find(plan, "plan"));
    const PlannedModel& planned = object->planned;
    const ProgramStats stats = StatsOf(planned.plan->program);
    plait_plan_info filled = PLAIT_PLAN_INFO_INIT;
    filled.strategy = planned.plan->schedule.strategy.c_str();
    filled.predicted_us = planned.plan->schedule.predicted_us;
    filled.lower_bound_us = planned.plan->schedule.lower_bound_us;
    filled.planning_us = planned.planning_us;
    filled.measured_us = planned.measured_us;
    filled.best_single_us = planned.best_single_us;
    filled.memory_bytes = static_cast<uint64_t>(planned.plan->program.arena_bytes);
    filled.part_count = static_cast<uint32_t>(stats.compute_steps);
    filled.handoff_count = static_cast<uint32_t>(stats.handoffs);
    filled.segment_count = static_cast<uint32_t>(stats.segments);
    filled.from_cache = planned.from_cache;
    return WriteInfo(filled, info, "plait_plan_info");
  });
}

plait_status plait_plan_explain(const plait_plan* plan, char** text) {
  return Guarded([&] { return Explain(plan, text, ExplainPlan); });
}

plait_status plait_plan_explain_json(const plait_plan* plan, char** json) {
  return Guarded([&] { return Explain(plan, json, ExplainPlanJson); });
}

plait_status plait_calibrate(const plait_model* model, const plait_lanes* lanes, const plait_calibrate_options* options, plait_calibration* report) {
  return Guarded([&]() -> Status {
    PLAIT_ASSIGN_OR_RETURN(const auto model_object, Find(model, "model"));
    PLAIT_ASSIGN_OR_RETURN(const auto lanes_object, Find(lanes, "lanes"));
    PLAIT_ASSIGN_OR_RETURN(const plait_calibrate_options given,
                           ReadOptions<plait_calibrate_options>(options, PLAIT_CALIBRATE_OPTIONS_INIT, "plait_calibrate_options"));
    PLAIT_RETURN_IF_ERROR(CheckSeconds(given.seconds_per_lane, false, "plait_calibrate_options::seconds_per_lane"));
    plait_calibration filled = PLAIT_CALIBRATION_INIT;
    if (report != nullptr) PLAIT_RETURN_IF_ERROR(WriteInfo(filled, report, "plait_calibration"));
    if (lanes_object->cache_dir.empty()) return InvalidArgument("the lanes have no cache_dir, so nothing that is measured could be kept");
    Watch watch{given.progress, given.progress_user};
    PlanRequest request;
    request.bind.strict = lanes_object->strict;
    request.cache_dir = lanes_object->cache_dir;
    request.calibration_seconds_per_lane = given.seconds_per_lane;
    Install(&watch, &request);
    Result<CalibrationReport> done = CalibrateGraph(*model_object->graph, *lanes_object->set, request);
    if (watch.is_stopped) return Status(PLAIT_CANCELLED, "the progress callback ended the calibration");
    if (!done.ok()) return done.status();
    filled.measured = static_cast<uint32_t>(done->measured);
    filled.known = static_cast<uint32_t>(done->known);
    filled.seconds = done->seconds;
    return report == nullptr ? Status() : WriteInfo(filled, report, "plait_calibration");
  });
}
