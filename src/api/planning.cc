#include "src/api/planning.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/plan/predicted.h"
#include "src/platform/affinity.h"
#include "src/platform/topology.h"

#ifndef PLAIT_VERSION
#error "PLAIT_VERSION is set by room.cmake"
#endif

namespace plait {
namespace {

uint64_t HashText(const std::string& text) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// What measurements depend on: the machine, its lanes, and how handoffs are made.
std::string SocDescription(const LaneSet& lanes, const BindOptions& bind) {
  std::string soc = ReadTopology(SysFs(), ThreadAffinity()).cpu;
  for (size_t i = 0; i < lanes.lanes.size(); ++i) soc += "; " + lanes.lanes[i]->name() + ": " + lanes.descriptions[i];
  if (bind.strict) soc += "; strict";
  if (bind.handoff_latency_us > 0) soc += StrCat("; handoff latency +", bind.handoff_latency_us, " us");
  return soc;
}

std::string ProfilePath(const std::string& soc, const PlanRequest& request) {
  return request.cache_dir + "/profile-" + Hex(HashText(soc)) + ".json";
}

LanesToMeasure ToMeasure(const LaneSet& lanes) { return {lanes.lanes, lanes.Planning()}; }

SocProfile NewProfile(const LaneSet& lanes, const std::string& soc) {
  SocProfile profile = EmptyProfile(ToMeasure(lanes), soc, PLAIT_VERSION);
  for (size_t i = 0; i < profile.lanes.size(); ++i) {
    profile.lanes[i].device = lanes.descriptions[i];
    profile.lanes[i].cpus = lanes.cpus[i];
    profile.lanes[i].coherent = lanes.lanes[i]->coherent();
  }
  return profile;
}

bool MadeFor(const SocProfile& profile, const SocProfile& expected) {
  if (profile.soc != expected.soc || profile.plait_version != expected.plait_version || profile.lanes.size() != expected.lanes.size()) return false;
  for (size_t i = 0; i < profile.lanes.size(); ++i) {
    if (profile.lanes[i].name != expected.lanes[i].name || profile.lanes[i].device != expected.lanes[i].device) return false;
  }
  return true;
}

Result<std::shared_ptr<const Graph>> Prepare(const Graph& graph, const std::vector<PlanningLane>& lanes) {
  PLAIT_ASSIGN_OR_RETURN(Graph prepared, PrepareGraph(graph, lanes));
  return std::shared_ptr<const Graph>(std::make_shared<Graph>(std::move(prepared)));
}

Result<PlannedModel> FromSchedule(std::shared_ptr<const Graph> graph, const std::vector<PlanningLane>& lanes, Result<Schedule> schedule,
                                  const std::string& soc) {
  if (!schedule.ok()) return schedule.status();
  PLAIT_ASSIGN_OR_RETURN(Plan plan, Lower(*graph, lanes, *schedule));
  plan.soc = soc;
  PlannedModel model;
  model.graph = std::move(graph);
  model.plan = std::make_shared<Plan>(std::move(plan));
  return model;
}

// What a plan file cannot prove by itself: that its lanes are those of this machine, with kernels that can be cut like that.
Result<Plan> LoadPlanOn(const Graph& graph, const std::vector<PlanningLane>& lanes, const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(Plan plan, LoadPlan(graph, path));
  bool same = plan.program.lanes.size() == lanes.size();
  for (size_t i = 0; same && i < lanes.size(); ++i) {
    same = plan.program.lanes[i].name == lanes[i].spec.name && plan.program.lanes[i].kind == lanes[i].spec.kind;
  }
  if (!same) return Corrupt(path, ": was made for other lanes than those of this machine; `plait devices` lists them, `plait plan` makes a new plan");
  PLAIT_RETURN_IF_ERROR(CheckSchedule(graph, lanes, plan.schedule).Annotated(path));
  return plan;
}

}  // namespace

SocProfile LoadCachedProfile(const LaneSet& lanes, const PlanRequest& request) {
  const SocProfile empty = NewProfile(lanes, SocDescription(lanes, request.bind));
  if (request.cache_dir.empty()) return empty;
  const std::string path = ProfilePath(empty.soc, request);
  Result<SocProfile> profile = LoadSocProfile(path);
  if (!profile.ok()) {
    if (profile.status().code() != PLAIT_NOT_FOUND) Log(LogLevel::kWarning, "the kept SoC profile is measured anew: " + profile.status().message());
    return empty;
  }
  return MadeFor(*profile, empty) ? std::move(profile).value() : empty;
}

Status SaveCachedProfile(const SocProfile& profile, const PlanRequest& request) {
  return request.cache_dir.empty() ? Status() : SaveSocProfile(profile, ProfilePath(profile.soc, request));
}

namespace {

// Adds to the profile what it lacks for the graph, and keeps it.
Result<CalibrationReport> Calibrate(const std::shared_ptr<const Graph>& graph, const LaneSet& lanes, const PlanRequest& request, SocProfile* profile) {
  const LanesToMeasure measured = ToMeasure(lanes);
  CalibrationOptions options;
  options.bind = request.bind;
  options.seconds_per_lane = request.calibration_seconds_per_lane;
  options.progress = request.progress;
  options.stop = request.stop;
  bool changed = false;
  if (!HasHandoffs(*profile)) {
    PLAIT_RETURN_IF_ERROR(CalibrateHandoffs(measured, options, profile));
    changed = true;
  }
  PLAIT_ASSIGN_OR_RETURN(const CalibrationReport report, CalibrateModel(graph, measured, options, profile));
  if (!changed && report.measured == 0) return report;
  // Losing the cache costs the next run some seconds, no more.
  if (Status status = SaveCachedProfile(*profile, request); !status.ok()) Log(LogLevel::kWarning, status.message());
  return report;
}

// Strategies give times of parts at best: the plan's is when the last would end, or unknown with one of them.
void PredictFromParts(Plan* plan) {
  const std::vector<Part>& parts = plan->schedule.parts;
  if (plan->schedule.predicted_us > 0 || std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.predicted_us <= 0; })) return;
  const Result<std::vector<std::vector<StepTiming>>> timings = PredictedTimings(plan->program);
  if (!timings.ok()) return;
  for (const std::vector<StepTiming>& lane : *timings) {
    for (const StepTiming& step : lane) plan->schedule.predicted_us = std::max(plan->schedule.predicted_us, static_cast<double>(step.end_ns) / 1e3);
  }
}

Result<PlannedModel> Search(std::shared_ptr<const Graph> graph, const LaneSet& lanes, const PlanRequest& request, const SocProfile& profile) {
  PlannedModel model;
  model.graph = std::move(graph);
  if (request.tune && !request.strategy) {
    TuneOptions options;
    options.search = request.search;
    options.bind = request.bind;
    options.progress = request.progress;
    options.stop = request.stop;
    PLAIT_ASSIGN_OR_RETURN(TuneResult tuned, TunePlan(model.graph, ToMeasure(lanes), profile, options));
    model.planning_us = tuned.planning_us;
    model.rounds = tuned.rounds;
    model.measured = tuned.measured;
    model.avoided = tuned.avoided;
    model.measured_us = tuned.measured_us;
    model.best_single_us = tuned.best_single_us;
    tuned.plan.soc = profile.soc;
    model.plan = std::make_shared<Plan>(std::move(tuned.plan));
    return model;
  }
  std::vector<PlanningLane> planning = lanes.Planning();
  ApplyProfile(profile, &planning);
  const MeasuredLatency latency(profile);
  const int64_t start_ns = NowNs();
  const Strategy strategy = request.strategy ? request.strategy : Strategy(PlanSchedule);
  PLAIT_ASSIGN_OR_RETURN(const Schedule schedule, strategy(*model.graph, planning, CostsFrom(profile, &latency), request.search));
  model.planning_us = static_cast<double>(NowNs() - start_ns) / 1000;
  if (request.strategy) PLAIT_RETURN_IF_ERROR(CheckSchedule(*model.graph, planning, schedule).Annotated("strategy '" + schedule.strategy + "'"));
  PLAIT_ASSIGN_OR_RETURN(Plan plan, Lower(*model.graph, planning, schedule));
  plan.soc = profile.soc;
  if (request.strategy) PredictFromParts(&plan);
  model.plan = std::make_shared<Plan>(std::move(plan));
  return model;
}

}  // namespace

Result<CalibrationReport> CalibrateGraph(const Graph& graph, const LaneSet& lanes, const PlanRequest& request) {
  PLAIT_ASSIGN_OR_RETURN(const std::shared_ptr<const Graph> prepared, Prepare(graph, lanes.Planning()));
  SocProfile profile = LoadCachedProfile(lanes, request);
  return Calibrate(prepared, lanes, request, &profile);
}

Result<PlannedModel> PlanGraph(const Graph& graph, const LaneSet& lanes, const PlanRequest& request) {
  PLAIT_ASSIGN_OR_RETURN(std::shared_ptr<const Graph> prepared, Prepare(graph, lanes.Planning()));
  LaneSet constrained = lanes;
  if (request.rules) {
    PLAIT_ASSIGN_OR_RETURN(constrained.rules, request.rules(*prepared));
  }
  SocProfile profile = LoadCachedProfile(lanes, request);
  // Whatever changes the plan is in the key: model, machine, search and whether candidates are run.
  const std::string key = StrCat(Hex(Hash(*prepared)), profile.soc, PLAIT_VERSION, static_cast<int>(request.search.effort), ' ', request.search.evaluations, ' ',
                                 request.search.seed, request.tune, request.constraints);
  const std::string path = request.cache_dir.empty() || request.strategy ? "" : request.cache_dir + "/plan-" + Hex(HashText(key)) + ".json";
  if (!path.empty() && request.use_cached_plan) {
    Result<Plan> kept = LoadPlanOn(*prepared, constrained.Planning(), path);
    if (kept.ok()) {
      PlannedModel model;
      model.graph = std::move(prepared);
      model.plan = std::make_shared<Plan>(std::move(kept).value());
      model.from_cache = true;
      return model;
    }
    if (kept.status().code() != PLAIT_NOT_FOUND) Log(LogLevel::kWarning, "the kept plan is made anew: " + kept.status().message());
  }
  if (request.measure) PLAIT_RETURN_IF_ERROR(Calibrate(prepared, lanes, request, &profile).status());
  PLAIT_ASSIGN_OR_RETURN(PlannedModel model, Search(std::move(prepared), constrained, request, profile));
  if (!path.empty()) {
    if (Status status = SavePlan(*model.plan, path); !status.ok()) Log(LogLevel::kWarning, status.message());
  }
  return model;
}

Result<PlannedModel> LoadPlanFor(const Graph& graph, const LaneSet& lanes, const std::string& path) {
  const std::vector<PlanningLane> planning = lanes.Planning();
  PLAIT_ASSIGN_OR_RETURN(std::shared_ptr<const Graph> prepared, Prepare(graph, planning));
  PLAIT_ASSIGN_OR_RETURN(Plan plan, LoadPlanOn(*prepared, planning, path));
  PlannedModel model;
  model.graph = std::move(prepared);
  model.plan = std::make_shared<Plan>(std::move(plan));
  return model;
}

Result<PlannedModel> SingleLanePlan(const Graph& graph, const LaneSet& lanes, LaneId lane) {
  const std::vector<PlanningLane> planning = lanes.Planning();
  PLAIT_ASSIGN_OR_RETURN(std::shared_ptr<const Graph> prepared, Prepare(graph, planning));
  Result<Schedule> schedule = SingleLaneSchedule(*prepared, planning, lane);
  return FromSchedule(std::move(prepared), planning, std::move(schedule), "");
}

Result<PlannedModel> RandomPlan(const Graph& graph, const LaneSet& lanes, uint64_t seed) {
  const std::vector<PlanningLane> planning = lanes.Planning();
  PLAIT_ASSIGN_OR_RETURN(std::shared_ptr<const Graph> prepared, Prepare(graph, planning));
  Result<Schedule> schedule = RandomSchedule(*prepared, planning, seed);
  return FromSchedule(std::move(prepared), planning, std::move(schedule), "");
}

Result<std::unique_ptr<Session>> OpenSession(const PlannedModel& model, const LaneSet& lanes, const SessionOptions& options) {
  return Session::Create(model.graph, model.plan, lanes.lanes, options);
}

}  // namespace plait
