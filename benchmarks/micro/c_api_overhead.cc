// What the C API adds to an inference: plait_session_run() against the executor inside of it, on one session of a network of one operator, in turns.
// Prints both and ends with 1 if the lower quartiles are further apart than the bound.
//   plait_micro_c_api_overhead [BOUND_US]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "plait/plait.h"
#include "src/api/session_object.h"
#include "src/base/clock.h"
#include "src/formats/json_graph.h"
#include "src/graph/builder.h"
#include "src/platform/affinity.h"

namespace plait {
namespace {

constexpr int kRounds = 2000, kRunsPerRound = 10;

std::string OneOperator() {
  GraphBuilder b("one");
  UnaryAttrs relu;
  relu.kind = UnaryKind::kClamp;
  relu.clamp = kRelu;
  b.Output(b.Add("relu", OpKind::kUnary, {b.Input("x", {1, 64})}, relu));
  Result<Graph> graph = b.Build();
  if (!graph.ok()) return "";
  Result<GraphJson> json = ExportGraphJson(*graph, "");
  return json.ok() ? json->text : "";
}

// Microseconds a run, `kRunsPerRound` of them.
template <typename Run>
double Time(Run run, bool* failed) {
  const int64_t start_ns = NowNs();
  for (int i = 0; i < kRunsPerRound; ++i) *failed |= !run();
  return static_cast<double>(NowNs() - start_ns) / 1e3 / kRunsPerRound;
}

double LowerQuartile(std::vector<double>* values) {
  const auto at = values->begin() + static_cast<std::ptrdiff_t>(values->size() / 4);
  std::nth_element(values->begin(), at, values->end());
  return *at;
}

bool Compare(plait_session* session, double bound_us) {
  // The handle is the object's address.
  Session* const executor = session->session.get();
  std::vector<double> outer, inner;
  bool failed = false;
  for (int round = 0; round < kRounds; ++round) {
    outer.push_back(Time([&] { return plait_session_run(session) == PLAIT_OK; }, &failed));
    inner.push_back(Time([&] { return executor->Run().ok(); }, &failed));
  }
  const double outer_us = LowerQuartile(&outer), inner_us = LowerQuartile(&inner);
  std::printf("plait_session_run %.2f us, the executor alone %.2f us: %.2f us more (bound: %.2f us)\n", outer_us, inner_us, outer_us - inner_us, bound_us);
  return !failed && outer_us - inner_us <= bound_us;
}

}  // namespace
}  // namespace plait

int main(int argc, char** argv) {
  const double bound_us = argc > 1 ? std::atof(argv[1]) : 2;
  const std::string json = plait::OneOperator();
  plait_lanes* lanes = nullptr;
  plait_model* model = nullptr;
  plait_plan* plan = nullptr;
  plait_session* session = nullptr;
  // The lane on one core, the caller on another, where there is one: waking threads takes longer than what is measured here.
  const std::vector<int> cores = plait::ThreadAffinity();
  const std::string lane_core = cores.empty() ? "0" : std::to_string(cores.front());
  plait_lanes_options options = PLAIT_LANES_OPTIONS_INIT;
  options.gpu = PLAIT_GPU_OFF;
  options.clusters = lane_core.c_str();
  if (cores.size() > 1 && !plait::SetThreadAffinity(std::vector<int>{cores.back()}).ok()) std::fprintf(stderr, "the caller stays unpinned\n");
  plait_plan_options planning = PLAIT_PLAN_OPTIONS_INIT;
  planning.strategy_name = "lane:cpu0";
  const bool ready = plait_lanes_open(&options, &lanes) == PLAIT_OK && plait_model_load_memory(json.data(), json.size(), nullptr, &model) == PLAIT_OK &&
                     plait_plan_make(model, lanes, &planning, &plan) == PLAIT_OK && plait_session_create(plan, nullptr, &session) == PLAIT_OK;
  if (!ready) std::fprintf(stderr, "%s\n", plait_last_error());
  const bool within = ready && plait::Compare(session, bound_us);
  plait_session_destroy(session);
  plait_plan_destroy(plan);
  plait_model_destroy(model);
  plait_lanes_destroy(lanes);
  return within ? 0 : 1;
}
