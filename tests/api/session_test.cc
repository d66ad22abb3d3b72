#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/api/sample.h"

namespace plait::testing {
namespace {

class CSession : public Sample {};

TEST_F(CSession, RunsByIndexByNameAndInPlaceAlike) {
  MakeSession();
  const std::vector<float> input = Wave(kInputs, 0.1f);
  const std::vector<float> by_index = RunOn(session, input);
  std::vector<float> by_name(kOutputs), in_place(kOutputs);

  ASSERT_PLAIT_OK(plait_session_set_input_by_name(session, "image", input.data(), kInputs * sizeof(float)));
  ASSERT_PLAIT_OK(plait_session_run(session));
  ASSERT_PLAIT_OK(plait_session_get_output_by_name(session, "sum", by_name.data(), kOutputs * sizeof(float)));
  EXPECT_EQ(by_index, by_name);

  void* in = nullptr;
  const void* out = nullptr;
  size_t bytes = 0;
  ASSERT_PLAIT_OK(plait_session_input_data(session, 0, &in, &bytes));
  ASSERT_EQ(bytes, kInputs * sizeof(float));
  std::memcpy(in, input.data(), bytes);
  ASSERT_PLAIT_OK(plait_session_run(session));
  ASSERT_PLAIT_OK(plait_session_output_data(session, 0, &out, &bytes));
  ASSERT_EQ(bytes, kOutputs * sizeof(float));
  std::memcpy(in_place.data(), out, bytes);
  EXPECT_EQ(by_index, in_place);
}

TEST_F(CSession, ObjectsThatASessionNeedsMayBeDestroyedFirst) {
  MakeSession();
  ASSERT_PLAIT_OK(plait_plan_destroy(plan));
  ASSERT_PLAIT_OK(plait_model_destroy(model));
  ASSERT_PLAIT_OK(plait_lanes_destroy(lanes));
  plan = nullptr, model = nullptr, lanes = nullptr;
  EXPECT_EQ(RunOn(session, Wave(kInputs, 0.1f)).size(), kOutputs);
}

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

std::unique_ptr<float, FreeMemory> Aligned(size_t bytes) {
  return std::unique_ptr<float, FreeMemory>(static_cast<float*>(std::aligned_alloc(PLAIT_BUFFER_ALIGNMENT, bytes)));
}

constexpr size_t kInputBuffer = kInputs * sizeof(float) + PLAIT_BUFFER_SLACK, kOutputBuffer = kOutputs * sizeof(float) + PLAIT_BUFFER_SLACK;

TEST_F(CSession, UsesTheCallersBuffersInPlace) {
  MakeSession("random:3");
  const std::vector<float> input = Wave(kInputs, 0.1f);
  const std::vector<float> expected = RunOn(session, input);

  const auto in = Aligned(kInputBuffer), out = Aligned(kOutputBuffer);
  const plait_buffer inputs[] = {{in.get(), kInputBuffer}}, outputs[] = {{out.get(), kOutputBuffer}};
  ASSERT_PLAIT_OK(plait_session_bind_buffers(session, inputs, 1, outputs, 1));
  void* input_data = nullptr;
  const void* output_data = nullptr;
  size_t bytes = 0;
  ASSERT_PLAIT_OK(plait_session_input_data(session, 0, &input_data, &bytes));
  EXPECT_EQ(input_data, in.get());
  ASSERT_PLAIT_OK(plait_session_output_data(session, 0, &output_data, &bytes));
  EXPECT_EQ(output_data, out.get());
  for (int run = 0; run < 3; ++run) {
    std::copy(input.begin(), input.end(), in.get());
    std::fill(out.get(), out.get() + kOutputs, -1.0f);
    ASSERT_PLAIT_OK(plait_session_run(session));
    EXPECT_EQ(std::vector<float>(out.get(), out.get() + kOutputs), expected);
    EXPECT_EQ(std::vector<float>(in.get(), in.get() + kInputs), input);
  }
  plait_session_stats stats = PLAIT_SESSION_STATS_INIT;
  ASSERT_PLAIT_OK(plait_session_get_stats(session, &stats));
  EXPECT_EQ(stats.copied_bytes, 0u);

  // Back to the session's own memory: the buffers are left alone.
  ASSERT_PLAIT_OK(plait_session_bind_buffers(session, nullptr, 0, nullptr, 0));
  std::fill(out.get(), out.get() + kOutputs, -1.0f);
  EXPECT_EQ(RunOn(session, input), expected);
  EXPECT_EQ(out.get()[0], -1.0f);
}

TEST_F(CSession, RefusesBuffersThatDoNotFit) {
  MakeSession();
  const auto memory = Aligned(kInputBuffer + kOutputBuffer + 64);
  char* const at = reinterpret_cast<char*>(memory.get());
  const plait_buffer small[] = {{at, kInputBuffer - 1}}, odd[] = {{at + 4, kInputBuffer}}, good[] = {{at, kInputBuffer}};
  const plait_buffer overlapping[] = {{at + kInputBuffer - 64, kOutputBuffer}};
  EXPECT_REFUSED(plait_session_bind_buffers(session, small, 1, nullptr, 0), PLAIT_INVALID_ARGUMENT, "'image' has");
  EXPECT_REFUSED(plait_session_bind_buffers(session, odd, 1, nullptr, 0), PLAIT_INVALID_ARGUMENT, "multiple of 64");
  EXPECT_REFUSED(plait_session_bind_buffers(session, good, 1, overlapping, 1), PLAIT_INVALID_ARGUMENT, "overlaps");
  EXPECT_REFUSED(plait_session_bind_buffers(session, good, 2, nullptr, 0), PLAIT_INVALID_ARGUMENT, "the model has 1");
  EXPECT_REFUSED(plait_session_bind_buffers(session, nullptr, 1, nullptr, 0), PLAIT_INVALID_ARGUMENT, "NULL");
  RunOn(session, Wave(kInputs, 0.1f));
}

struct Ended {
  std::atomic<int> calls{0};
  std::atomic<int> status{-1};
  int more = 0;             // inferences to start from the callback
  bool destroys = false;
};

void OnEnd(void* user, plait_session* session, plait_status status, const char*) {
  Ended& ended = *static_cast<Ended*>(user);
  std::vector<float> output(kOutputs);
  EXPECT_PLAIT_OK(plait_session_get_output(session, 0, output.data(), kOutputs * sizeof(float)));
  EXPECT_EQ(plait_session_wait(session), PLAIT_INVALID_ARGUMENT);
  ended.status = status;
  if (ended.more > 0) {
    --ended.more;
    EXPECT_PLAIT_OK(plait_session_run_async(session, OnEnd, user));
    EXPECT_EQ(plait_session_run_async(session, OnEnd, user), PLAIT_BUSY);
  }
  if (ended.destroys) {
    EXPECT_PLAIT_OK(plait_session_destroy(session));
  }
  ++ended.calls;
}

TEST_F(CSession, RunsAsynchronouslyAndFromItsCallback) {
  MakeSession();
  Ended ended;
  ended.more = 4;
  ASSERT_PLAIT_OK(plait_session_run_async(session, OnEnd, &ended));
  ASSERT_PLAIT_OK(plait_session_wait(session));
  EXPECT_EQ(ended.calls, 5);
  EXPECT_EQ(ended.status, PLAIT_OK);
  plait_session_stats stats = PLAIT_SESSION_STATS_INIT;
  ASSERT_PLAIT_OK(plait_session_get_stats(session, &stats));
  EXPECT_EQ(stats.runs, 5u);
  EXPECT_GT(stats.min_us, 0);
  EXPECT_LE(stats.min_us, stats.mean_us);
  EXPECT_LE(stats.mean_us, stats.max_us);
  RunOn(session, Wave(kInputs, 0.1f));
}

TEST_F(CSession, ACallbackMayDestroyItsSession) {
  MakeSession();
  Ended ended;
  ended.destroys = true;
  ASSERT_PLAIT_OK(plait_session_run_async(session, OnEnd, &ended));
  while (ended.calls == 0) std::this_thread::yield();
  EXPECT_REFUSED(plait_session_run(session), PLAIT_INVALID_ARGUMENT, "no live handle");
  session = nullptr;
}

TEST_F(CSession, DestroyWaitsForTheCallback) {
  MakeSession();
  Ended ended;
  ended.more = 2;
  ASSERT_PLAIT_OK(plait_session_run_async(session, OnEnd, &ended));
  while (ended.calls < 3) std::this_thread::yield();
  ASSERT_PLAIT_OK(plait_session_run_async(session, OnEnd, &ended));
  // Gone between the start and the end: the callback may find its handle dead, and is called all the same.
  ASSERT_PLAIT_OK(plait_session_wait(session));
  ASSERT_PLAIT_OK(plait_session_destroy(session));
  session = nullptr;
  EXPECT_EQ(ended.calls, 4);
}

void KeepBusy(void* user, plait_session*, plait_status, const char*) {
  auto& flags = *static_cast<std::pair<std::atomic<bool>, std::atomic<bool>>*>(user);
  flags.first = true;
  while (!flags.second) std::this_thread::yield();
}

TEST_F(CSession, IsBusyWhileAnotherCallIsServed) {
  MakeSession();
  std::pair<std::atomic<bool>, std::atomic<bool>> flags{false, false};
  ASSERT_PLAIT_OK(plait_session_run_async(session, KeepBusy, &flags));
  while (!flags.first) std::this_thread::yield();
  float value[4];
  void* data = nullptr;
  size_t bytes = 0;
  EXPECT_REFUSED(plait_session_run(session), PLAIT_BUSY, "another call");
  EXPECT_EQ(plait_session_run_async(session, KeepBusy, &flags), PLAIT_BUSY);
  EXPECT_EQ(plait_session_set_input(session, 0, value, sizeof value), PLAIT_BUSY);
  EXPECT_EQ(plait_session_get_output(session, 0, value, sizeof value), PLAIT_BUSY);
  EXPECT_EQ(plait_session_input_data(session, 0, &data, &bytes), PLAIT_BUSY);
  EXPECT_EQ(plait_session_bind_buffers(session, nullptr, 0, nullptr, 0), PLAIT_BUSY);
  EXPECT_EQ(plait_session_trace(session, "/dev/null"), PLAIT_BUSY);
  plait_session_stats stats = PLAIT_SESSION_STATS_INIT;
  EXPECT_PLAIT_OK(plait_session_get_stats(session, &stats));
  EXPECT_PLAIT_OK(plait_session_cancel(session));
  flags.second = true;
  EXPECT_PLAIT_OK(plait_session_wait(session));
  RunOn(session, Wave(kInputs, 0.1f));
}

void Note(void* user, plait_session*, plait_status status, const char* message) {
  if (status == PLAIT_CANCELLED) {
    EXPECT_NE(std::string(message).find("cancelled"), std::string::npos);
  }
  *static_cast<std::atomic<int>*>(user) = status;
}

TEST_F(CSession, CancelEndsWhatRunAsyncBeganAndLeavesTheSessionUsable) {
  MakeSession();
  ASSERT_PLAIT_OK(plait_session_cancel(session));  // nothing to cancel
  for (int i = 0; i < 50; ++i) {
    std::atomic<int> status{-1};
    ASSERT_PLAIT_OK(plait_session_run_async(session, Note, &status));
    ASSERT_PLAIT_OK(plait_session_cancel(session));
    ASSERT_PLAIT_OK(plait_session_wait(session));
    EXPECT_TRUE(status == PLAIT_CANCELLED || status == PLAIT_OK) << status;  // OK: it had ended before
  }
  RunOn(session, Wave(kInputs, 0.1f));
}

TEST_F(CSession, TracesTheLastInferenceIfAsked) {
  MakeSession("lane:cpu0", /*timings=*/true);
  const Folder folder;
  const std::string path = folder / "trace.json";
  EXPECT_REFUSED(plait_session_trace(session, path.c_str()), PLAIT_INVALID_ARGUMENT, "has not run");
  RunOn(session, Wave(kInputs, 0.1f));
  ASSERT_PLAIT_OK(plait_session_trace(session, path.c_str()));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_NE(text.str().find("\"second\""), std::string::npos);
  EXPECT_EQ(plait_session_trace(session, (folder / "none/trace.json").c_str()), PLAIT_IO_ERROR);
}

TEST_F(CSession, ReportsLanes) {
  MakeSession();
  plait_lane_stats stats = PLAIT_LANE_STATS_INIT;
  ASSERT_PLAIT_OK(plait_session_get_lane_stats(session, 0, &stats));
  EXPECT_STREQ(stats.name, "cpu0");
  EXPECT_EQ(stats.compute_steps, 3u);
  EXPECT_EQ(plait_session_get_lane_stats(session, lane_count, &stats), PLAIT_NOT_FOUND);
  EXPECT_REFUSED(plait_session_trace(session, "/dev/null"), PLAIT_INVALID_ARGUMENT, "timings");
}

// Threads that create, run, cancel and destroy sessions over the same lanes, all at once; PLAIT_THREADS_SECONDS: how long (the nightly run under TSan).
TEST_F(CSession, ManyThreadsAtOnce) {
  MakePlan(lane_count > 1 ? "random:5" : "lane:cpu0");
  plait_session* shared = nullptr;
  ASSERT_PLAIT_OK(plait_session_create(plan, nullptr, &shared));
  const char* const seconds = std::getenv("PLAIT_THREADS_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds == nullptr ? 0 : std::atoi(seconds));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<float> input = Wave(kInputs, 0.1f);
      for (int i = 0; i < 6 || std::chrono::steady_clock::now() < end; ++i) {
        plait_session* own = nullptr;
        EXPECT_PLAIT_OK(plait_session_create(plan, nullptr, &own));
        for (plait_session* used : {own, shared}) {
          const plait_status outcomes[] = {plait_session_set_input(used, 0, input.data(), kInputs * sizeof(float)), plait_session_run(used)};
          for (const plait_status status : outcomes) EXPECT_TRUE(status == PLAIT_OK || status == PLAIT_BUSY || status == PLAIT_CANCELLED) << plait_last_error();
          if (t % 2 == 0) {
            EXPECT_PLAIT_OK(plait_session_cancel(used));
          }
        }
        EXPECT_PLAIT_OK(plait_session_destroy(own));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<float> output = RunOn(shared, Wave(kInputs, 0.1f));
  ASSERT_PLAIT_OK(plait_session_create(plan, nullptr, &session));
  EXPECT_EQ(RunOn(session, Wave(kInputs, 0.1f)), output);
  EXPECT_PLAIT_OK(plait_session_destroy(shared));
}

// One thread destroys a session that another one keeps using.
TEST_F(CSession, DestroyDuringARun) {
  MakePlan();
  for (int i = 0; i < 10; ++i) {
    plait_session* used = nullptr;
    ASSERT_PLAIT_OK(plait_session_create(plan, nullptr, &used));
    std::atomic<bool> started{false};
    std::thread runner([&] {
      for (plait_status status = PLAIT_OK; status == PLAIT_OK || status == PLAIT_BUSY; started = true) status = plait_session_run(used);
    });
    while (!started) std::this_thread::yield();
    EXPECT_PLAIT_OK(plait_session_destroy(used));
    runner.join();
  }
}

}  // namespace
}  // namespace plait::testing
