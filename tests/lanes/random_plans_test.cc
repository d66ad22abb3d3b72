// Whole networks by real lanes, whole and by random plans, against ONNX Runtime. PLAIT_RANDOM_PLANS sets how many plans a network.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "src/api/lanes.h"
#include "src/api/planning.h"
#include "src/formats/onnx_export.h"
#include "src/platform/affinity.h"
#include "src/zoo/zoo.h"
#include "tests/lanes/devices.h"
#include "tests/oracle/oracle.h"

namespace plait {
namespace {

constexpr double kTolerance = 1e-4;  // of the largest magnitude
constexpr uint64_t kInputSeed = 11;

struct LaneChoice {
  const char* name;
  int cpu_lanes;
  bool gpu;
  bool strict;
};
constexpr LaneChoice kLaneChoices[] = {
    {"TwoCpuLanes", 2, false, false}, {"CpuAndGpu", 1, true, false},     {"TwoCpuLanesAndGpu", 2, true, false},
    {"CpuAndGpuStrict", 1, true, true}, {"TwoCpuLanesAndGpuStrict", 2, true, true},
};

int PlansPerLaneSet() {
  const char* text = std::getenv("PLAIT_RANDOM_PLANS");
  const int plans = text != nullptr ? std::atoi(text) : 5;
  return (plans + static_cast<int>(std::size(kLaneChoices)) - 1) / static_cast<int>(std::size(kLaneChoices));
}

// A network with what ONNX Runtime makes of it; kept for the tests that follow on the same one.
struct Judged {
  Graph graph;
  std::vector<OracleTensor> inputs, expected;
};

Result<const Judged*> Judge(const std::string& name) {
  static std::map<std::string, Judged> kept;
  const auto found = kept.find(name);
  if (found != kept.end()) return &found->second;
  kept.clear();  // one network at a time: they are large
  Judged judged;
  PLAIT_ASSIGN_OR_RETURN(judged.graph, BuildZooModel(name));
  judged.inputs = RandomInputs(judged.graph, kInputSeed);
  PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ExportOnnx(judged.graph));
  PLAIT_ASSIGN_OR_RETURN(judged.expected, RunOracle(bytes, judged.inputs));
  return &kept.emplace(name, std::move(judged)).first->second;
}

Result<LaneSet> Open(const LaneChoice& choice) {
  const std::vector<int> cores = ThreadAffinity();
  LaneOptions options;
  for (int i = 0; i < choice.cpu_lanes; ++i) options.clusters.push_back({cores[static_cast<size_t>(i) % cores.size()]});
  if (choice.gpu) options.opencl_cpus = {cores.back()};
  options.gpu = choice.gpu;
  options.strict = choice.strict;
  options.owns_process = true;
  return OpenLanes(options);
}

// The session's outputs as the oracle states them.
Result<std::vector<OracleTensor>> Infer(const PlannedModel& model, const LaneSet& lanes, const LaneChoice& choice, const std::vector<OracleTensor>& inputs) {
  SessionOptions options;
  options.bind.strict = choice.strict;
  options.timeout_us = 120e6;
  PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, OpenSession(model, lanes, options));
  const Graph& graph = *model.graph;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::span<std::byte> memory = session->input(static_cast<int>(i));
    if (memory.size() != inputs[i].values.size() * sizeof(float)) return Internal("input ", i, " has another size");
    std::memcpy(memory.data(), inputs[i].values.data(), memory.size());
  }
  PLAIT_RETURN_IF_ERROR(session->Run());
  for (const LaneReport& report : session->reports()) {
    if (report.reference_steps != 0) return Internal(report.name, " ran ", report.reference_steps, " steps on reference kernels");
  }
  std::vector<OracleTensor> outputs;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const std::span<const std::byte> memory = session->output(static_cast<int>(i));
    OracleTensor& output = outputs.emplace_back();
    const Tensor& tensor = graph.tensor(graph.outputs[i]);
    output.name = tensor.name;
    output.shape.assign(tensor.shape.begin(), tensor.shape.end());
    output.values.resize(memory.size() / sizeof(float));
    std::memcpy(output.values.data(), memory.data(), memory.size());
  }
  return outputs;
}

bool SameBits(const std::vector<OracleTensor>& a, const std::vector<OracleTensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].values.size() != b[i].values.size() ||
        std::memcmp(a[i].values.data(), b[i].values.data(), a[i].values.size() * sizeof(float)) != 0) {
      return false;
    }
  }
  return a.size() == b.size();
}

class RandomPlans : public testing::TestWithParam<std::tuple<std::string, LaneChoice>> {};

TEST_P(RandomPlans, EqualTheOracle) {
  const auto& [model, choice] = GetParam();
  if (!HasOracle()) GTEST_SKIP() << "built without ONNX Runtime";
  const Result<const Judged*> judged = Judge(model);
  ASSERT_TRUE(judged.ok()) << judged.status().message();
  const Result<LaneSet> lanes = Open(choice);
  if (!lanes.ok() && choice.gpu && !HasOpenClDevice()) GTEST_SKIP() << lanes.status().message();
  ASSERT_TRUE(lanes.ok()) << lanes.status().message();
  const Graph& graph = (*judged)->graph;

  std::vector<OracleTensor> whole;  // of the first lane alone
  for (LaneId lane = 0; lane < static_cast<LaneId>(lanes->lanes.size()); ++lane) {
    SCOPED_TRACE(lanes->lanes[static_cast<size_t>(lane)]->name() + " alone");
    const Result<PlannedModel> planned = SingleLanePlan(graph, *lanes, lane);
    ASSERT_TRUE(planned.ok()) << planned.status().message();
    const auto outputs = Infer(*planned, *lanes, choice, (*judged)->inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_LE(RelativeError((*judged)->expected, *outputs), kTolerance);
    if (lane == 0) whole = *outputs;
  }
  double largest_error = 0;
  const int plans = PlansPerLaneSet();
  for (int i = 0; i < plans; ++i) {
    const uint64_t seed = static_cast<uint64_t>(i) + 1;
    SCOPED_TRACE("random plan " + std::to_string(seed));
    const Result<PlannedModel> planned = RandomPlan(graph, *lanes, seed);
    ASSERT_TRUE(planned.ok()) << planned.status().message();
    const auto outputs = Infer(*planned, *lanes, choice, (*judged)->inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    const double error = RelativeError((*judged)->expected, *outputs);
    EXPECT_LE(error, kTolerance);
    largest_error = std::max(largest_error, error);
    // Lanes of one kind use the same kernels, so that no split changes a bit.
    if (!choice.gpu) {
      EXPECT_TRUE(SameBits(whole, *outputs));
    }
  }
  std::printf("%s, %s: %d random plans, largest relative error %.2e\n", model.c_str(), choice.name, plans, largest_error);
}

std::vector<std::string> ZooNames() {
  std::vector<std::string> names;
  for (const ZooEntry& entry : ZooEntries()) names.emplace_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Zoo, RandomPlans, testing::Combine(testing::ValuesIn(ZooNames()), testing::ValuesIn(kLaneChoices)),
                         [](const auto& param) { return std::get<0>(param.param) + "_" + std::get<1>(param.param).name; });

}  // namespace
}  // namespace plait
