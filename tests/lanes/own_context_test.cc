// An application that computes with OpenCL itself hands its context and queue in.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "backends/opencl/cl_api.h"
#include "tests/api/sample.h"

namespace plait::testing {
namespace {

class OwnContext : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<const ClApi*> loaded = LoadSystemOpenCl();
    if (!loaded.ok()) GTEST_SKIP() << loaded.status().message();
    api_ = *loaded;
    cl_uint count = 0;
    if (api_->clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) GTEST_SKIP() << "no OpenCL platform";
    std::vector<cl_platform_id> platforms(count);
    ASSERT_EQ(api_->clGetPlatformIDs(count, platforms.data(), nullptr), CL_SUCCESS);
    for (const cl_platform_id platform : platforms) {
      if (api_->clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device_, nullptr) == CL_SUCCESS) break;
      device_ = nullptr;
    }
    if (device_ == nullptr) GTEST_SKIP() << "no OpenCL device that is a CPU";
    context_ = MakeContext();
    ASSERT_TRUE(context_);
    const std::string json = SampleJson();
    ASSERT_PLAIT_OK(plait_model_load_memory(json.data(), json.size(), nullptr, &model_));
    options_.clusters = "0";
    options_.opencl_context = context_.get();
  }
  void TearDown() override {
    EXPECT_PLAIT_OK(plait_lanes_destroy(lanes_));
    EXPECT_PLAIT_OK(plait_model_destroy(model_));
  }
  ClContext MakeContext() {
    cl_int error = CL_SUCCESS;
    return ClContext(api_, api_->clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &error));
  }
  ClQueue MakeQueue(const ClContext& context, cl_command_queue_properties properties) {
    cl_int error = CL_SUCCESS;
    return ClQueue(api_, api_->clCreateCommandQueue(context.get(), device_, properties, &error));
  }
  cl_uint References() {
    cl_uint count = 0;
    EXPECT_EQ(api_->clGetContextInfo(context_.get(), CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, nullptr), CL_SUCCESS);
    return count;
  }
  cl_uint References(const ClQueue& queue) {
    cl_uint count = 0;
    EXPECT_EQ(api_->clGetCommandQueueInfo(queue.get(), CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, nullptr), CL_SUCCESS);
    return count;
  }
  // What `count` comes to: drivers let go of some objects on threads of their own.
  template <typename Count>
  static cl_uint Settled(Count count, cl_uint wanted) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (count() != wanted && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return count();
  }
  std::vector<float> RunBy(const char* strategy, bool timings, const ClQueue* queue, cl_uint* queue_references) {
    plait_plan_options planning = PLAIT_PLAN_OPTIONS_INIT;
    planning.strategy_name = strategy;
    plait_plan* plan = nullptr;
    plait_session* session = nullptr;
    plait_session_options options = PLAIT_SESSION_OPTIONS_INIT;
    options.timings = timings;
    std::vector<float> output(kOutputs);
    const std::vector<float> input = Wave(kInputs, 0.1f);
    EXPECT_PLAIT_OK(plait_plan_make(model_, lanes_, &planning, &plan));
    EXPECT_PLAIT_OK(plait_session_create(plan, &options, &session));
    if (queue != nullptr) *queue_references = References(*queue);
    EXPECT_PLAIT_OK(plait_session_set_input(session, 0, input.data(), kInputs * sizeof(float)));
    for (int run = 0; run < 3; ++run) EXPECT_PLAIT_OK(plait_session_run(session));
    EXPECT_PLAIT_OK(plait_session_get_output(session, 0, output.data(), kOutputs * sizeof(float)));
    EXPECT_PLAIT_OK(plait_session_destroy(session));
    EXPECT_PLAIT_OK(plait_plan_destroy(plan));
    return output;
  }
  static void ExpectNear(const std::vector<float>& got, const std::vector<float>& expected) {
    float largest = 0;
    for (const float value : expected) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5f * largest) << i;
  }

  const ClApi* api_ = nullptr;
  cl_device_id device_ = nullptr;
  ClContext context_;
  plait_model* model_ = nullptr;
  plait_lanes* lanes_ = nullptr;
  plait_lanes_options options_ = PLAIT_LANES_OPTIONS_INIT;
};

TEST_F(OwnContext, TheGpuLaneWorksInItAndLetsGoOfIt) {
  const cl_uint before = References();
  ASSERT_PLAIT_OK(plait_lanes_open(&options_, &lanes_));
  EXPECT_GT(References(), before);
  size_t count = 0;
  ASSERT_PLAIT_OK(plait_lanes_count(lanes_, &count));
  ASSERT_EQ(count, 2u);
  const std::vector<float> expected = RunBy("lane:cpu0", false, nullptr, nullptr);
  for (const char* strategy : {"lane:gpu0", "random:1", "random:2"}) ExpectNear(RunBy(strategy, false, nullptr, nullptr), expected);
  EXPECT_PLAIT_OK(plait_lanes_destroy(lanes_));
  lanes_ = nullptr;
  EXPECT_EQ(Settled([&] { return References(); }, before), before);
}

TEST_F(OwnContext, SessionsUseTheQueueThatWasGiven) {
  const ClQueue plain = MakeQueue(context_, 0), timing = MakeQueue(context_, CL_QUEUE_PROFILING_ENABLE);
  ASSERT_TRUE(plain && timing);
  for (const ClQueue* queue : {&plain, &timing}) {
    // Drivers may keep times in every queue.
    cl_command_queue_properties properties = 0;
    ASSERT_EQ(api_->clGetCommandQueueInfo(queue->get(), CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr), CL_SUCCESS);
    const bool keeps_times = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
    SCOPED_TRACE(keeps_times);
    options_.opencl_device = device_;
    options_.opencl_queue = queue->get();
    ASSERT_PLAIT_OK(plait_lanes_open(&options_, &lanes_));
    const cl_uint opened = References(*queue);
    cl_uint with_session = 0, with_timings = 0;
    const std::vector<float> expected = RunBy("lane:cpu0", false, nullptr, nullptr);
    // A queue that keeps no times is left alone by a session that needs them. That comes first: drivers let go of a queue late that was used.
    ExpectNear(RunBy("lane:gpu0", true, queue, &with_timings), expected);
    EXPECT_EQ(with_timings > opened, keeps_times);
    ExpectNear(RunBy("lane:gpu0", false, queue, &with_session), expected);
    EXPECT_GT(with_session, opened);
    EXPECT_PLAIT_OK(plait_lanes_destroy(lanes_));
    lanes_ = nullptr;
    EXPECT_EQ(Settled([&] { return References(*queue); }, 1), 1u);
  }
}

TEST_F(OwnContext, WhatDoesNotBelongTogetherIsRefused) {
  const ClContext other = MakeContext();
  const ClQueue foreign = MakeQueue(other, 0), unordered = MakeQueue(context_, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  ASSERT_TRUE(foreign);
  options_.opencl_queue = foreign.get();
  EXPECT_REFUSED(plait_lanes_open(&options_, &lanes_), PLAIT_INVALID_ARGUMENT, "another context");
  if (unordered) {
    options_.opencl_queue = unordered.get();
    EXPECT_REFUSED(plait_lanes_open(&options_, &lanes_), PLAIT_INVALID_ARGUMENT, "out of order");
  }
  options_.opencl_queue = nullptr;
  options_.opencl_device = reinterpret_cast<cl_device_id>(&options_);  // compared, never followed
  EXPECT_REFUSED(plait_lanes_open(&options_, &lanes_), PLAIT_INVALID_ARGUMENT, "not one of the context's");
  options_.opencl_device = nullptr;
  options_.gpu = PLAIT_GPU_OFF;
  EXPECT_REFUSED(plait_lanes_open(&options_, &lanes_), PLAIT_INVALID_ARGUMENT, "PLAIT_GPU_OFF");
  options_.gpu = PLAIT_GPU_IF_PRESENT;
  options_.opencl_context = nullptr;
  options_.opencl_queue = foreign.get();
  EXPECT_REFUSED(plait_lanes_open(&options_, &lanes_), PLAIT_INVALID_ARGUMENT, "need opencl_context");
  EXPECT_EQ(lanes_, nullptr);
}

}  // namespace
}  // namespace plait::testing
