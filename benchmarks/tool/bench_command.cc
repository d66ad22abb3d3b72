// `plait bench`: every lane alone, all cores as one pool, and the plan, interleaved round by round.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "benchmarks/tool/commands.h"
#include "benchmarks/tool/inputs.h"
#include "benchmarks/tool/options.h"
#include "benchmarks/tool/statistics.h"
#include "backends/reference/reference.h"
#include "src/base/clock.h"
#include "src/plan/trace.h"

namespace plait {
namespace {

struct BenchOptions {
  CommonOptions common;
  std::vector<std::string> models;
  int rounds = 31;
  double round_ms = 100;
  std::vector<std::string> compare;
  bool reference = false;
};

struct Contender {
  std::string name;      // "lane:cpu0", "all-cpu", "plan"
  bool is_lane = false;  // one of the lanes whose speeds are summed for the share
  PlannedModel planned;
  std::unique_ptr<Session> session;
  std::vector<double> us;      // [round]: the median of its inferences
  std::vector<double> all_us;  // every inference
  double max_rel_error = 0;
};

// Lanes of the all-cpu contender: the pool alone.
LaneSet PoolOnly(const LaneSet& lanes) {
  LaneSet pool;
  pool.lanes = {lanes.all_cpu};
  pool.descriptions = {"all cores as one pool"};
  pool.cpus = {lanes.all_cpus};
  return pool;
}

Status AddContender(const std::string& name, bool is_lane, PlannedModel planned, const LaneSet& lanes, const BenchOptions& options,
                    std::vector<Contender>* contenders) {
  SessionOptions session_options;
  session_options.bind.strict = options.common.strict;
  session_options.bind.handoff_latency_us = options.common.handoff_latency_us;
  Contender contender;
  contender.name = name;
  contender.is_lane = is_lane;
  contender.planned = std::move(planned);
  PLAIT_ASSIGN_OR_RETURN(contender.session, OpenSession(contender.planned, lanes, session_options));
  PLAIT_RETURN_IF_ERROR(FillInputs(*contender.planned.graph, {}, options.common.seed, contender.session.get()));
  contenders->push_back(std::move(contender));
  return Status();
}

Status OpenContenders(const BenchOptions& options, const LaneSet& lanes, const LaneSet& pool, const std::string& model,
                      std::vector<Contender>* contenders) {
  PLAIT_ASSIGN_OR_RETURN(const Graph graph, LoadModel(options.common, model));
  PLAIT_ASSIGN_OR_RETURN(PlannedModel plan, PlanModel(options.common, lanes, model, graph));
  for (LaneId lane = 0; lane < static_cast<LaneId>(lanes.lanes.size()); ++lane) {
    Result<PlannedModel> alone = SingleLanePlan(graph, lanes, lane);
    if (!alone.ok()) {  // the lane cannot run the whole model: no contender
      std::fprintf(stderr, "plait: %s alone is left out: %s\n", lanes.lanes[static_cast<size_t>(lane)]->name().c_str(), alone.status().message().c_str());
      continue;
    }
    PLAIT_RETURN_IF_ERROR(AddContender("lane:" + lanes.lanes[static_cast<size_t>(lane)]->name(), true, std::move(alone).value(), lanes, options, contenders));
  }
  if (lanes.all_cpu != nullptr) {
    PLAIT_ASSIGN_OR_RETURN(PlannedModel alone, SingleLanePlan(graph, pool, 0));
    PLAIT_RETURN_IF_ERROR(AddContender("all-cpu", false, std::move(alone), pool, options, contenders));
  }
  for (const std::string& strategy : options.compare) {
    PLAIT_ASSIGN_OR_RETURN(PlannedModel simple, PlanBySimpleStrategy(options.common, lanes, graph, strategy));
    PLAIT_RETURN_IF_ERROR(AddContender("plan:" + strategy, false, std::move(simple), lanes, options, contenders));
  }
  return AddContender("plan", false, std::move(plan), lanes, options, contenders);
}

// An inference that takes longer is not warmed up by another one: waking the lanes is a thousandth of it, and its weights do not stay in caches.
constexpr double kLongUs = 50e3;

// One timed inference of every contender, beginning with the `first`-th.
Status TakeTurns(size_t first, std::vector<Contender>* contenders) {
  for (size_t k = 0; k < contenders->size(); ++k) {
    Contender& contender = (*contenders)[(k + first) % contenders->size()];
    const bool is_long = !contender.all_us.empty() && contender.all_us.back() > kLongUs;
    if (!is_long) PLAIT_RETURN_IF_ERROR(contender.session->Run().Annotated(contender.name));  // wakes the lanes and warms the caches
    const int64_t begin_ns = NowNs();
    PLAIT_RETURN_IF_ERROR(contender.session->Run().Annotated(contender.name));
    contender.all_us.push_back(static_cast<double>(NowNs() - begin_ns) / 1000);
  }
  return Status();
}

// A round of a small network would be over within one mood of a machine whose cores change speed; so the contenders take turns until it has lasted.
Status Measure(const BenchOptions& options, const std::string& model, std::vector<Contender>* contenders) {
  Progress progress(options.common.quiet);
  const int64_t start_ns = NowNs();
  for (int round = 0; round < options.rounds; ++round) {
    const int64_t round_ns = NowNs();
    const size_t before = contenders->front().all_us.size();
    size_t turn = static_cast<size_t>(round);
    do {
      PLAIT_RETURN_IF_ERROR(TakeTurns(turn++, contenders));
    } while (static_cast<double>(NowNs() - round_ns) < options.round_ms * 1e6);
    for (Contender& contender : *contenders) {
      contender.us.push_back(Median({contender.all_us.begin() + static_cast<std::ptrdiff_t>(before), contender.all_us.end()}));
    }
    const double seconds = static_cast<double>(NowNs() - start_ns) / 1e9;
    progress.Show(StrCat(model, ": round ", round + 1, " of ", options.rounds, ", ",
                         static_cast<int>(seconds / (round + 1) * (options.rounds - round - 1) + 0.5), " s left"));
  }
  return Status();
}

// Against the reference backend where asked for, else against the first lane alone (whose own error is then against the second contender).
Status CompareOutputs(const BenchOptions& options, const std::string& model, std::vector<Contender>* contenders) {
  std::vector<std::vector<std::vector<std::byte>>> outputs;
  for (const Contender& contender : *contenders) outputs.push_back(CopyOutputs(*contender.planned.graph, *contender.session));
  if (options.reference) {
    PLAIT_ASSIGN_OR_RETURN(const Graph graph, LoadModel(options.common, model));
    std::vector<const void*> inputs;
    Contender& first = contenders->front();
    for (size_t i = 0; i < graph.inputs.size(); ++i) inputs.push_back(first.session->input(static_cast<int>(i)).data());
    std::vector<std::vector<std::byte>> expected;
    PLAIT_RETURN_IF_ERROR(EvaluateReference(graph, inputs, &expected));
    for (size_t i = 0; i < contenders->size(); ++i) (*contenders)[i].max_rel_error = MaxRelativeError(outputs[i], expected);
  } else {
    for (size_t i = 1; i < contenders->size(); ++i) (*contenders)[i].max_rel_error = MaxRelativeError(outputs[i], outputs[0]);
    if (contenders->size() > 1) contenders->front().max_rel_error = MaxRelativeError(outputs[0], outputs[1]);
  }
  return Status();
}

// Per round: the plan's speed over the best single lane's (by median) and over the sum of all lanes' speeds.
struct Ratios {
  std::string best_lane;
  std::vector<double> gain, share, over_pool;
  std::map<std::string, std::vector<double>> over;  // other plans, by name
};

Ratios RatiosOf(const std::vector<Contender>& contenders) {
  Ratios ratios;
  const Contender& plan = contenders.back();
  const Contender* best = nullptr;
  const Contender* pool = nullptr;
  for (const Contender& contender : contenders) {
    if (contender.is_lane && (best == nullptr || Median(contender.us) < Median(best->us))) best = &contender;
    if (contender.name == "all-cpu") pool = &contender;
  }
  if (best != nullptr) ratios.best_lane = best->name;
  for (size_t round = 0; round < plan.us.size(); ++round) {
    double speeds = 0;
    for (const Contender& contender : contenders) {
      if (contender.is_lane) speeds += 1 / contender.us[round];
    }
    if (best != nullptr) ratios.gain.push_back(best->us[round] / plan.us[round]);
    if (speeds > 0) ratios.share.push_back(1 / plan.us[round] / speeds);
    for (const Contender& contender : contenders) {
      if (contender.name.rfind("plan:", 0) == 0) ratios.over[contender.name].push_back(contender.us[round] / plan.us[round]);
    }
    if (pool != nullptr) ratios.over_pool.push_back(pool->us[round] / plan.us[round]);
  }
  return ratios;
}

int LanesUsed(const Session& session) {
  return static_cast<int>(std::count_if(session.reports().begin(), session.reports().end(), [](const LaneReport& r) { return r.compute_steps > 0; }));
}

int ReferenceFallbacks(const Session& session) {
  int count = 0;
  for (const LaneReport& report : session.reports()) count += report.reference_steps;
  return count;
}

void PrintTable(const std::string& model, const std::vector<Contender>& contenders, const Ratios& ratios, bool reference) {
  std::printf("\n%s\n%-12s %12s %23s %10s %10s %12s %6s %10s %5s\n", model.c_str(), "contender", "median us", "95 % interval", "p90", "p99", "predicted",
              "lanes", "max error", "ref");
  for (const Contender& contender : contenders) {
    const Interval ci = MedianInterval95(contender.us);
    const double predicted = contender.planned.plan->schedule.predicted_us;
    std::printf("%-12s %12.0f     [%8.0f, %8.0f] %10.0f %10.0f %12s %6d %10.1e %5d\n", contender.name.c_str(), Median(contender.us), ci.low, ci.high,
                Quantile(contender.all_us, 0.9), Quantile(contender.all_us, 0.99), predicted > 0 ? StrCat(static_cast<int64_t>(predicted)).c_str() : "-",
                LanesUsed(*contender.session), contender.max_rel_error, ReferenceFallbacks(*contender.session));
  }
  if (!ratios.gain.empty()) {
    const Interval gain = MedianInterval95(ratios.gain), share = MedianInterval95(ratios.share);
    std::printf("plan: %.2fx the best single lane, %s [%.2f, %.2f]; share of summed lane speeds %.2f [%.2f, %.2f]", Median(ratios.gain),
                ratios.best_lane.c_str(), gain.low, gain.high, Median(ratios.share), share.low, share.high);
    if (!ratios.over_pool.empty()) std::printf("; %.2fx all-cpu", Median(ratios.over_pool));
    std::printf("\n");
  }
  for (const auto& [name, over] : ratios.over) {
    const Interval ci = MedianInterval95(over);
    std::printf("plan: %.2fx %s [%.2f, %.2f]\n", Median(over), name.c_str(), ci.low, ci.high);
  }
  std::printf("(max error: largest output difference from %s, relative to the largest magnitude; ref: steps on reference kernels)\n",
              reference ? "the reference backend" : "the first lane alone");
}

nlohmann::json IntervalJson(const Interval& interval) { return nlohmann::json::array({interval.low, interval.high}); }

void AppendRows(const std::string& model, const std::vector<Contender>& contenders, const Ratios& ratios, bool reference, nlohmann::json* rows) {
  for (const Contender& contender : contenders) {
    nlohmann::json row = {{"name", model + "/" + contender.name},
                          {"run_name", model + "/" + contender.name},
                          {"run_type", "aggregate"},
                          {"model", model},
                          {"contender", contender.name},
                          {"runs", contender.us.size()},
                          {"inferences", contender.all_us.size()},
                          {"iterations", contender.us.size()},
                          {"real_time", Median(contender.us)},
                          {"time_unit", "us"},
                          {"median_us", Median(contender.us)},
                          {"ci95_us", IntervalJson(MedianInterval95(contender.us))},
                          {"p90_us", Quantile(contender.all_us, 0.9)},
                          {"p99_us", Quantile(contender.all_us, 0.99)},
                          {"predicted_us", contender.planned.plan->schedule.predicted_us},
                          {"max_rel_error", std::isfinite(contender.max_rel_error) ? nlohmann::json(contender.max_rel_error) : nlohmann::json("inf")},
                          {"error_against", reference ? "reference" : "first lane"},
                          {"lanes_used", LanesUsed(*contender.session)},
                          {"reference_fallbacks", ReferenceFallbacks(*contender.session)}};
    if (contender.name == "plan") {
      const ProgramStats stats = StatsOf(contender.planned.plan->program);
      row["handoffs"] = stats.handoffs;
      row["segments"] = stats.segments;
      row["planning_us"] = contender.planned.planning_us;
      row["lower_bound_us"] = contender.planned.plan->schedule.lower_bound_us;
      if (!ratios.gain.empty()) {
        row["best_lane"] = ratios.best_lane;
        row["speedup_over_best_lane"] = Median(ratios.gain);
        row["speedup_over_best_lane_ci95"] = IntervalJson(MedianInterval95(ratios.gain));
        row["share_of_summed_lane_speeds"] = Median(ratios.share);
        row["share_of_summed_lane_speeds_ci95"] = IntervalJson(MedianInterval95(ratios.share));
      }
      for (const auto& [name, over] : ratios.over) {
        row["speedup_over"][name] = {{"median", Median(over)}, {"ci95", IntervalJson(MedianInterval95(over))}};
      }
      if (!ratios.over_pool.empty()) {
        row["speedup_over_all_cpu"] = Median(ratios.over_pool);
        row["speedup_over_all_cpu_ci95"] = IntervalJson(MedianInterval95(ratios.over_pool));
      }
    }
    rows->push_back(std::move(row));
  }
}

nlohmann::json Context(const LaneSet& lanes, const BenchOptions& options) {
  char date[32] = "";
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  if (localtime_r(&now, &local) != nullptr) std::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S%z", &local);
  nlohmann::json rows = nlohmann::json::array();
  for (size_t i = 0; i < lanes.lanes.size(); ++i) rows.push_back({{"name", lanes.lanes[i]->name()}, {"description", lanes.descriptions[i]}});
  return {{"date", date},
          {"executable", "plait"},
          {"plait_version", PLAIT_VERSION},
          {"num_cpus", std::thread::hardware_concurrency()},
          {"lanes", rows},
          {"handoff_latency_us", options.common.handoff_latency_us},
          {"strict", options.common.strict},
          {"rounds", options.rounds},
          {"json_schema_version", 1}};
}

Status WriteTrace(const BenchOptions& options, const LaneSet& lanes, const PlannedModel& planned) {
  SessionOptions session_options;
  session_options.bind.strict = options.common.strict;
  session_options.bind.handoff_latency_us = options.common.handoff_latency_us;
  session_options.bind.timings = true;
  PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, OpenSession(planned, lanes, session_options));
  PLAIT_RETURN_IF_ERROR(FillInputs(*planned.graph, {}, options.common.seed, session.get()));
  for (int i = 0; i < 3; ++i) PLAIT_RETURN_IF_ERROR(session->Run());
  return WriteOutput(options.common.trace_file, TraceJson(*planned.graph, planned.plan->program, session->timings()));
}

Status Bench(const BenchOptions& options) {
  if (!options.common.trace_file.empty() && options.models.size() != 1) return InvalidArgument("--trace takes one model, not ", options.models.size());
  PLAIT_ASSIGN_OR_RETURN(const LaneSet lanes, OpenLanes(options.common));
  const LaneSet pool = PoolOnly(lanes);
  const bool text = options.common.json_file != "-";
  if (text) {
    for (size_t i = 0; i < lanes.lanes.size(); ++i) std::printf("%-6s %s\n", lanes.lanes[i]->name().c_str(), lanes.descriptions[i].c_str());
    std::fflush(stdout);
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const std::string& model : options.models) {
    std::vector<Contender> contenders;
    PLAIT_RETURN_IF_ERROR(OpenContenders(options, lanes, pool, model, &contenders));
    PLAIT_RETURN_IF_ERROR(Measure(options, model, &contenders));
    PLAIT_RETURN_IF_ERROR(CompareOutputs(options, model, &contenders));
    const Ratios ratios = RatiosOf(contenders);
    if (text) PrintTable(model, contenders, ratios, options.reference);
    std::fflush(stdout);
    AppendRows(model, contenders, ratios, options.reference, &rows);
    if (!options.common.trace_file.empty()) PLAIT_RETURN_IF_ERROR(WriteTrace(options, lanes, contenders.back().planned));
  }
  if (options.common.json_file.empty()) return Status();
  return WriteOutput(options.common.json_file, nlohmann::json({{"context", Context(lanes, options)}, {"benchmarks", rows}}).dump(2) + "\n");
}

}  // namespace

void AddBenchCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app->add_subcommand("bench", "Measure each lane alone, all cores as one pool, and the plan, interleaved");
  command->footer("Examples:\n  plait bench mobilenet_v2 resnet50\n  plait bench vit_ti_16 --clusters 0 --opencl-cpu 1 --json vit.json\n"
                  "  plait bench resnet50 --handoff-latency 300\n  plait bench mobilenet_v2 --no-tune --compare split,heft");
  command->add_option("models", options->models, "Files or zoo names")->required();
  command->add_option("--rounds", options->rounds, "Interleaved rounds")->check(CLI::Range(1, 100000));
  command
      ->add_option("--compare", options->compare,
                   "Measure plans of simple strategies, too: fastest (each operator on its fastest lane), heft, heft-split, split (every operator cut by itself), "
                   "by-operator (the search, but parts wait for whole operators)")
      ->delimiter(',')
      ->check(CLI::IsMember(SimpleStrategies()));
  command->add_option("--round-ms", options->round_ms, "A round takes turns for so long, once at least, and counts by its medians")->check(CLI::Range(0.0, 60000.0));
  command->add_flag("--reference", options->reference, "Compare outputs with the reference backend's (slow) instead of the first lane's");
  command->add_option("--trace", options->common.trace_file, "Write a Chrome/Perfetto trace of one inference by the plan to this file");
  AddLaneOptions(command, &options->common);
  AddPlanOptions(command, &options->common);
  AddJsonOption(command, &options->common);
  command->callback([=] { *exit_code = ExitCode(Bench(*options)); });
}

}  // namespace plait
