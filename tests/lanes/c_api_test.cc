// The C API with a GPU lane: what it does not share with the CPU lanes' tests.
#include <cstdlib>

#include "tests/api/sample.h"

namespace plait::testing {
namespace {

TEST(CApiOnGpu, BuffersThatAGpuTouchesAreCopied) {
  plait_lanes_options options = PLAIT_LANES_OPTIONS_INIT;
  options.clusters = "0";
  options.opencl_cpu = "1";
  plait_lanes* lanes = nullptr;
  ASSERT_PLAIT_OK(plait_lanes_open(&options, &lanes));
  const std::string json = SampleJson();
  plait_model* model = nullptr;
  ASSERT_PLAIT_OK(plait_model_load_memory(json.data(), json.size(), nullptr, &model));
  for (const char* strategy : {"lane:gpu0", "random:1", "random:2", "random:3"}) {
    SCOPED_TRACE(strategy);
    plait_plan_options planning = PLAIT_PLAN_OPTIONS_INIT;
    planning.strategy_name = strategy;
    plait_plan* plan = nullptr;
    plait_session* session = nullptr;
    ASSERT_PLAIT_OK(plait_plan_make(model, lanes, &planning, &plan));
    ASSERT_PLAIT_OK(plait_session_create(plan, nullptr, &session));
    const std::vector<float> input = Wave(kInputs, 0.1f);
    std::vector<float> expected(kOutputs);
    ASSERT_PLAIT_OK(plait_session_set_input(session, 0, input.data(), kInputs * sizeof(float)));
    ASSERT_PLAIT_OK(plait_session_run(session));
    ASSERT_PLAIT_OK(plait_session_get_output(session, 0, expected.data(), kOutputs * sizeof(float)));

    const size_t in_bytes = kInputs * sizeof(float) + PLAIT_BUFFER_SLACK, out_bytes = kOutputs * sizeof(float) + PLAIT_BUFFER_SLACK;
    float* const in = static_cast<float*>(std::aligned_alloc(PLAIT_BUFFER_ALIGNMENT, in_bytes));
    float* const out = static_cast<float*>(std::aligned_alloc(PLAIT_BUFFER_ALIGNMENT, out_bytes));
    const plait_buffer inputs[] = {{in, in_bytes}}, outputs[] = {{out, out_bytes}};
    ASSERT_PLAIT_OK(plait_session_bind_buffers(session, inputs, 1, outputs, 1));
    plait_session_stats stats = PLAIT_SESSION_STATS_INIT;
    ASSERT_PLAIT_OK(plait_session_get_stats(session, &stats));
    if (strategy == std::string("lane:gpu0")) {
      EXPECT_EQ(stats.copied_bytes, (kInputs + kOutputs) * sizeof(float));
    }
    for (int run = 0; run < 2; ++run) {
      std::copy(input.begin(), input.end(), in);
      std::fill(out, out + kOutputs, -1.0f);
      ASSERT_PLAIT_OK(plait_session_run(session));
      EXPECT_EQ(std::vector<float>(out, out + kOutputs), expected);
    }
    EXPECT_PLAIT_OK(plait_session_destroy(session));
    EXPECT_PLAIT_OK(plait_plan_destroy(plan));
    std::free(in);
    std::free(out);
  }
  EXPECT_PLAIT_OK(plait_model_destroy(model));
  EXPECT_PLAIT_OK(plait_lanes_destroy(lanes));
}

TEST(CApiOnGpu, AGpuThatIsRequiredAndAbsentIsAnError) {
  plait_lanes_options options = PLAIT_LANES_OPTIONS_INIT;
  options.gpu = PLAIT_GPU_REQUIRED;
  options.clusters = "0";
  plait_lanes* lanes = nullptr;
  const plait_status status = plait_lanes_open(&options, &lanes);
  EXPECT_EQ(status == PLAIT_OK, lanes != nullptr);
  if (status != PLAIT_OK) {
    EXPECT_NE(std::string(plait_last_error()).find("gpu0"), std::string::npos);
  }
  EXPECT_PLAIT_OK(plait_lanes_destroy(lanes));
}

}  // namespace
}  // namespace plait::testing
