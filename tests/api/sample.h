// A small network and handles that clean up after themselves.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "plait/plait.h"
#include "src/formats/json_graph.h"
#include "src/graph/builder.h"

#define ASSERT_PLAIT_OK(call) ASSERT_EQ(call, PLAIT_OK) << plait_last_error()
#define EXPECT_PLAIT_OK(call) EXPECT_EQ(call, PLAIT_OK) << plait_last_error()
// The call fails with `code`, and the message names `text`.
#define EXPECT_REFUSED(call, code, text) \
  do {                                   \
    EXPECT_EQ(call, code);               \
    EXPECT_NE(std::string(plait_last_error()).find(text), std::string::npos) << plait_last_error(); \
  } while (false)

namespace plait::testing {

inline constexpr size_t kInputs = 1 * 8 * 8 * 4, kOutputs = 1 * 8 * 8 * 16;

inline std::vector<float> Wave(size_t count, float step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 13) * step - 0.4f;
  return values;
}

// Two convolutions and a sum: "image" -> "first" -> "second", "sum" of both. As JSON with its weights inside.
inline std::string SampleJson() {
  GraphBuilder b("sample");
  const TensorId image = b.Input("image", {1, 8, 8, 4});
  Conv2DAttrs attrs;
  attrs.pad = {1, 1, 1, 1};
  attrs.clamp = kRelu;
  const TensorId first = b.Add("first", OpKind::kConv2D, {image, b.Constant("w1", {16, 3, 3, 4}, Wave(16 * 9 * 4, 0.05f))}, attrs);
  const TensorId second = b.Add("second", OpKind::kConv2D, {first, b.Constant("w2", {16, 3, 3, 16}, Wave(16 * 9 * 16, 0.03f))}, attrs);
  b.Output(b.Add("sum", OpKind::kBinary, {first, second}, BinaryAttrs{BinaryKind::kAdd, {}}));
  Result<Graph> graph = b.Build();
  if (!graph.ok()) return graph.status().message();
  Result<GraphJson> json = ExportGraphJson(*graph, "");
  return json.ok() ? json->text : json.status().message();
}

// Two lanes on two cores (both on one, where there is no second), the sample, and what is made of them.
class Sample : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string json = SampleJson();
    ASSERT_PLAIT_OK(plait_model_load_memory(json.data(), json.size(), nullptr, &model));
    plait_lanes_options options = PLAIT_LANES_OPTIONS_INIT;
    options.gpu = PLAIT_GPU_OFF;
    options.clusters = "0/1";
    if (plait_lanes_open(&options, &lanes) != PLAIT_OK) {
      options.clusters = "0/0";
      ASSERT_PLAIT_OK(plait_lanes_open(&options, &lanes));
    }
    ASSERT_PLAIT_OK(plait_lanes_count(lanes, &lane_count));
    ASSERT_EQ(lane_count, 2u);
  }
  void TearDown() override {
    EXPECT_PLAIT_OK(plait_session_destroy(session));
    EXPECT_PLAIT_OK(plait_plan_destroy(plan));
    EXPECT_PLAIT_OK(plait_model_destroy(model));
    EXPECT_PLAIT_OK(plait_lanes_destroy(lanes));
  }
  void MakePlan(const char* strategy = "lane:cpu0") {
    plait_plan_options options = PLAIT_PLAN_OPTIONS_INIT;
    options.strategy_name = strategy;
    ASSERT_PLAIT_OK(plait_plan_make(model, lanes, &options, &plan));
  }
  void MakeSession(const char* strategy = "lane:cpu0", bool timings = false) {
    MakePlan(strategy);
    plait_session_options options = PLAIT_SESSION_OPTIONS_INIT;
    options.timings = timings;
    ASSERT_PLAIT_OK(plait_session_create(plan, &options, &session));
  }
  std::vector<float> RunOn(plait_session* used, const std::vector<float>& input) {
    std::vector<float> output(kOutputs);
    EXPECT_PLAIT_OK(plait_session_set_input(used, 0, input.data(), input.size() * sizeof(float)));
    EXPECT_PLAIT_OK(plait_session_run(used));
    EXPECT_PLAIT_OK(plait_session_get_output(used, 0, output.data(), output.size() * sizeof(float)));
    return output;
  }

  plait_lanes* lanes = nullptr;
  plait_model* model = nullptr;
  plait_plan* plan = nullptr;
  plait_session* session = nullptr;
  size_t lane_count = 0;
};

// A folder that is there while the test runs.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/plait_api_XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() {
    if (::system(("rm -rf '" + path_ + "'").c_str()) != 0) ADD_FAILURE() << path_;
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace plait::testing
