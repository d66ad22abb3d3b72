// One Plait lane of several cores against XNNPACK's own subgraph runtime on the same cores, interleaved round by round.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benchmarks/peers/xnnpack_subgraph.h"
#include "benchmarks/tool/inputs.h"
#include "benchmarks/tool/statistics.h"
#include "src/api/lanes.h"
#include "src/api/models.h"
#include "src/api/planning.h"
#include "src/base/clock.h"
#include "src/graph/passes.h"
#include "src/platform/affinity.h"
#include "src/platform/cpu_list.h"
#include "src/zoo/zoo.h"

namespace plait {
namespace {

constexpr double kTolerance = 1e-4;

struct Options {
  std::vector<std::string> models;
  std::string cpus = "0,1";
  int rounds = 31;
  bool profile = false;
  std::string json_file;
};

struct PoolDeleter {
  void operator()(pthreadpool_t pool) const { pthreadpool_destroy(pool); }
};
using Pool = std::unique_ptr<pthreadpool, PoolDeleter>;

struct Comparison {
  std::string model;
  std::vector<double> plait_us, xnnpack_us, ratio;  // ratio: XNNPACK's time over Plait's in the same round
  double error = 0;
};

// The caller on the first core, the workers on the others: nothing migrates while the runtime is measured.
Result<Pool> MakePinnedPool(const std::vector<int>& cpus) {
  const std::vector<int> workers(cpus.begin() + 1, cpus.end());
  if (!workers.empty()) PLAIT_RETURN_IF_ERROR(SetThreadAffinity(workers));  // threads inherit their maker's mask
  Pool pool(pthreadpool_create(cpus.size()));
  if (pool == nullptr) return OutOfMemory("pthreadpool_create(", cpus.size(), ") failed");
  PLAIT_RETURN_IF_ERROR(SetThreadAffinity(std::vector<int>{cpus.front()}));
  return pool;
}

// Workers spin for a while after their last work. The other contender must not share the cores with them.
void Park(pthreadpool_t pool) {
  pthreadpool_parallelize_1d(pool, [](void*, size_t) {}, nullptr, pthreadpool_get_threads_count(pool), PTHREADPOOL_FLAG_YIELD_WORKERS);
}

template <typename RunFn>
Status Timed(RunFn run, std::vector<double>* us) {
  PLAIT_RETURN_IF_ERROR(run());  // wakes the workers and warms the caches
  const int64_t begin_ns = NowNs();
  PLAIT_RETURN_IF_ERROR(run());
  us->push_back(static_cast<double>(NowNs() - begin_ns) / 1000);
  return Status();
}

// Both contenders on one model and one input.
struct Contenders {
  std::shared_ptr<Graph> peer_graph;  // optimised, without the copies that only Plait's storage needs
  std::unique_ptr<XnnpackRuntime> peer;
  PlannedModel planned;
  std::unique_ptr<Session> session;
};

Result<Contenders> Open(const Graph& graph, const LaneSet& lanes, pthreadpool_t pool, bool profile) {
  Contenders contenders;
  PLAIT_ASSIGN_OR_RETURN(Graph optimised, Optimize(graph));
  contenders.peer_graph = std::make_shared<Graph>(std::move(optimised));
  PLAIT_ASSIGN_OR_RETURN(contenders.peer, XnnpackRuntime::Create(*contenders.peer_graph, pool, profile));
  PLAIT_ASSIGN_OR_RETURN(contenders.planned, SingleLanePlan(graph, lanes, 0));
  SessionOptions session_options;
  session_options.bind.timings = profile;
  PLAIT_ASSIGN_OR_RETURN(contenders.session, OpenSession(contenders.planned, lanes, session_options));
  PLAIT_RETURN_IF_ERROR(FillInputs(*contenders.planned.graph, {}, 1, contenders.session.get()));
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::span<std::byte> from = contenders.session->input(static_cast<int>(i));
    std::copy(from.begin(), from.end(), contenders.peer->input(static_cast<int>(i)).begin());
  }
  return contenders;
}

Result<Comparison> Compare(const Options& options, const std::string& model, const Graph& graph, const LaneSet& lanes, pthreadpool_t pool) {
  PLAIT_ASSIGN_OR_RETURN(Contenders contenders, Open(graph, lanes, pool, false));
  Comparison result;
  result.model = model;
  for (int round = 0; round < options.rounds; ++round) {
    for (int turn = 0; turn < 2; ++turn) {
      if ((turn + round) % 2 == 0) {
        PLAIT_RETURN_IF_ERROR(Timed([&] { return contenders.peer->Run(); }, &result.xnnpack_us));
        Park(pool);
      } else {
        PLAIT_RETURN_IF_ERROR(Timed([&] { return contenders.session->Run(); }, &result.plait_us));
      }
    }
    result.ratio.push_back(result.xnnpack_us.back() / result.plait_us.back());
  }
  result.error = MaxRelativeError(CopyOutputs(*contenders.planned.graph, *contenders.session), contenders.peer->CopyOutputs());
  if (!(result.error <= kTolerance)) {
    return Internal(model, ": the outputs differ by ", result.error, " of the largest magnitude; at most ", kTolerance, " is rounding");
  }
  return result;
}

void PrintSums(const char* title, const std::map<std::string, std::vector<double>>& us_by_name) {
  std::vector<std::pair<double, std::string>> rows;
  double total_us = 0;
  for (const auto& [name, us] : us_by_name) {
    rows.emplace_back(Median(us), name);
    total_us += Median(us);
  }
  std::sort(rows.rbegin(), rows.rend());
  std::printf("  %-60s %10.0f us\n", title, total_us);
  for (const auto& [us, name] : rows) std::printf("    %-58s %10.0f us\n", name.c_str(), us);
}

// Where the time goes: sums by kind of operator, medians over the rounds.
Status Profile(const Options& options, const Graph& graph, const LaneSet& lanes, pthreadpool_t pool) {
  PLAIT_ASSIGN_OR_RETURN(Contenders contenders, Open(graph, lanes, pool, true));
  std::map<std::string, std::vector<double>> plait_us, xnnpack_us;
  const std::vector<Step>& steps = contenders.planned.plan->program.steps[0];
  for (int round = 0; round < options.rounds; ++round) {
    PLAIT_RETURN_IF_ERROR(contenders.peer->Run());
    PLAIT_RETURN_IF_ERROR(contenders.peer->Run());
    Park(pool);
    PLAIT_RETURN_IF_ERROR(contenders.session->Run());
    PLAIT_RETURN_IF_ERROR(contenders.session->Run());
    std::map<std::string, double> sums;
    PLAIT_ASSIGN_OR_RETURN(const std::vector<PeerTiming> timings, contenders.peer->Timings());
    for (const PeerTiming& timing : timings) sums[timing.name] += timing.us;
    for (const auto& [name, us] : sums) xnnpack_us[name].push_back(us);
    sums.clear();
    const std::span<const StepTiming> own = contenders.session->timings()[0];
    for (size_t i = 0; i < own.size(); ++i) {
      if (steps[i].kind == StepKind::kCompute) sums[steps[i].kernel] += static_cast<double>(own[i].end_ns - own[i].start_ns) / 1000;
    }
    for (const auto& [name, us] : sums) plait_us[name].push_back(us);
  }
  PrintSums("Plait, by kernel", plait_us);
  PrintSums("XNNPACK, by operator (whole microseconds each)", xnnpack_us);
  return Status();
}

nlohmann::json RowOf(const Comparison& c) {
  const auto interval = [](const std::vector<double>& samples) {
    const Interval i = MedianInterval95(samples);
    return nlohmann::json::array({i.low, i.high});
  };
  return {{"model", c.model},
          {"rounds", c.ratio.size()},
          {"plait_us", Median(c.plait_us)},
          {"plait_us_ci95", interval(c.plait_us)},
          {"xnnpack_us", Median(c.xnnpack_us)},
          {"xnnpack_us_ci95", interval(c.xnnpack_us)},
          {"speed_over_xnnpack", Median(c.ratio)},
          {"speed_over_xnnpack_ci95", interval(c.ratio)},
          {"max_rel_error", c.error}};
}

Status WriteJson(const std::string& file, const nlohmann::json& document) {
  if (file == "-") {
    std::cout << document.dump(2) << "\n";
    return Status();
  }
  std::ofstream out(file);
  out << document.dump(2) << "\n";
  if (!out.flush()) return IoError(file, ": cannot be written");
  return Status();
}

Status Main(const Options& options) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<int> cpus, ParseCpuList(options.cpus));
  if (cpus.size() < 2) return InvalidArgument("--cpus ", options.cpus, ": at least two cores make a pool");
  LaneOptions lane_options;
  lane_options.clusters = {cpus};
  lane_options.gpu = false;
  PLAIT_ASSIGN_OR_RETURN(const LaneSet lanes, OpenLanes(lane_options));
  PLAIT_ASSIGN_OR_RETURN(const Pool pool, MakePinnedPool(cpus));
  const bool text = options.json_file != "-";
  if (text) std::printf("%-20s %10s %23s %10s %23s %18s %8s\n", "model", "Plait us", "95 %", "XNNPACK us", "95 %", "XNNPACK / Plait", "error");
  nlohmann::json rows = nlohmann::json::array();
  for (const std::string& model : options.models) {
    PLAIT_ASSIGN_OR_RETURN(const Graph graph, LoadModel(model));
    Result<Comparison> result = Compare(options, model, graph, lanes, pool.get());
    if (!result.ok() && result.status().code() == PLAIT_UNSUPPORTED) {
      std::fprintf(stderr, "%s is skipped: %s\n", model.c_str(), result.status().message().c_str());
      continue;
    }
    PLAIT_RETURN_IF_ERROR(result.status().Annotated(model));
    const Comparison& c = result.value();
    const Interval plait = MedianInterval95(c.plait_us), xnnpack = MedianInterval95(c.xnnpack_us), ratio = MedianInterval95(c.ratio);
    if (text) {
      std::printf("%-20s %10.0f [%9.0f, %9.0f] %10.0f [%9.0f, %9.0f] %.3f [%.3f, %.3f] %8.1e\n", model.c_str(), Median(c.plait_us), plait.low, plait.high,
                  Median(c.xnnpack_us), xnnpack.low, xnnpack.high, Median(c.ratio), ratio.low, ratio.high, c.error);
      std::fflush(stdout);
    }
    rows.push_back(RowOf(c));
    if (options.profile && text) PLAIT_RETURN_IF_ERROR(Profile(options, graph, lanes, pool.get()));
  }
  if (options.json_file.empty()) return Status();
  return WriteJson(options.json_file, {{"cpus", cpus}, {"benchmarks", rows}});
}

}  // namespace
}  // namespace plait

int main(int argc, char** argv) {
  plait::Options options;
  CLI::App app("Plait's lane of several cores against XNNPACK's own subgraph runtime on the same cores, outputs compared");
  app.footer("A model with an operator that XNNPACK's subgraphs cannot express is named and skipped. Example:\n"
             "  plait_peer_xnnpack mobilenet_v2 resnet50 --rounds 61 --json peers.json");
  app.add_option("models", options.models, "Zoo names or files; without any: the whole zoo");
  app.add_option("--cpus", options.cpus, "Cores of both contenders; the first is the caller's")->capture_default_str();
  app.add_option("--rounds", options.rounds, "Interleaved rounds")->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_flag("--profile", options.profile, "Then show where each contender's time goes, by kind of operator");
  app.add_option("--json", options.json_file, "Write the figures to this file, or - for standard output");
  CLI11_PARSE(app, argc, argv);
  if (options.models.empty()) {
    for (const plait::ZooEntry& entry : plait::ZooEntries()) options.models.emplace_back(entry.name);
  }
  const plait::Status status = plait::Main(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "plait_peer_xnnpack: %s\n", status.message().c_str());
  return 1;
}
