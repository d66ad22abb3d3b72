// Every function of the C API called wrongly: a status and a message, nothing worse.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "plait/strategy.h"
#include "tests/api/sample.h"

namespace plait::testing {
namespace {

struct Call {
  const char* name;
  std::function<plait_status()> make;
};

void NoCallback(void*, plait_session*, plait_status, const char*) {}

class CWrongUse : public Sample {
 protected:
  // All calls that take a handle, with these handles and otherwise good arguments.
  std::vector<Call> Calls(plait_lanes* l, plait_model* m, plait_plan* p, plait_session* s) {
    return {
        {"lanes_count", [=, this] { return plait_lanes_count(l, &size_); }},
        {"lanes_get", [=, this] { return plait_lanes_get(l, 0, &lane_); }},
        {"lanes_refused", [=, this] { return Text(plait_lanes_refused(l, &text_)); }},
        {"model_get_info", [=, this] { return plait_model_get_info(m, &model_info_); }},
        {"model_get_input", [=, this] { return plait_model_get_input(m, 0, &tensor_); }},
        {"model_get_output", [=, this] { return plait_model_get_output(m, 0, &tensor_); }},
        {"model_find_input", [=, this] { return plait_model_find_input(m, "image", &size_); }},
        {"model_find_output", [=, this] { return plait_model_find_output(m, "sum", &size_); }},
        {"plan_make", [=, this] { return plait_plan_make(m, l, nullptr, &made_plan_); }},
        {"plan_load", [=, this] { return plait_plan_load(m, l, "/dev/null", &made_plan_); }},
        {"plan_save", [=] { return plait_plan_save(p, "/dev/null/x"); }},
        {"plan_get_info", [=, this] { return plait_plan_get_info(p, &plan_info_); }},
        {"plan_explain", [=, this] { return Text(plait_plan_explain(p, &text_)); }},
        {"plan_explain_json", [=, this] { return Text(plait_plan_explain_json(p, &text_)); }},
        {"calibrate", [=] { return plait_calibrate(m, l, nullptr, nullptr); }},
        {"session_create", [=, this] { return plait_session_create(p, nullptr, &made_session_); }},
        {"session_set_input", [=, this] { return plait_session_set_input(s, 0, input_.data(), input_.size() * 4); }},
        {"session_set_input_by_name", [=, this] { return plait_session_set_input_by_name(s, "image", input_.data(), input_.size() * 4); }},
        {"session_get_output", [=, this] { return plait_session_get_output(s, 0, output_.data(), output_.size() * 4); }},
        {"session_get_output_by_name", [=, this] { return plait_session_get_output_by_name(s, "sum", output_.data(), output_.size() * 4); }},
        {"session_input_data", [=, this] { return plait_session_input_data(s, 0, &data_, &size_); }},
        {"session_output_data", [=, this] { return plait_session_output_data(s, 0, &const_data_, &size_); }},
        {"session_bind_buffers", [=] { return plait_session_bind_buffers(s, nullptr, 0, nullptr, 0); }},
        {"session_run", [=] { return plait_session_run(s); }},
        {"session_run_async", [=] { return plait_session_run_async(s, NoCallback, nullptr); }},
        {"session_wait", [=] { return plait_session_wait(s); }},
        {"session_cancel", [=] { return plait_session_cancel(s); }},
        {"session_get_stats", [=, this] { return plait_session_get_stats(s, &stats_); }},
        {"session_get_lane_stats", [=, this] { return plait_session_get_lane_stats(s, 0, &lane_stats_); }},
        {"session_trace", [=] { return plait_session_trace(s, "/dev/null"); }},
    };
  }
  // Calls with a NULL where none is allowed, on good handles.
  std::vector<Call> NullArgumentCalls() {
    return {
        {"lanes_open", [] { return plait_lanes_open(nullptr, nullptr); }},
        {"lanes_count", [this] { return plait_lanes_count(lanes, nullptr); }},
        {"lanes_get", [this] { return plait_lanes_get(lanes, 0, nullptr); }},
        {"lanes_refused", [this] { return plait_lanes_refused(lanes, nullptr); }},
        {"model_load_file", [this] { return plait_model_load_file(nullptr, nullptr, &model); }},
        {"model_load_file", [] { return plait_model_load_file("x", nullptr, nullptr); }},
        {"model_load_memory", [this] { return plait_model_load_memory(nullptr, 4, nullptr, &model); }},
        {"model_load_memory", [] { return plait_model_load_memory("x", 1, nullptr, nullptr); }},
        {"model_load_fd", [] { return plait_model_load_fd(0, 0, 0, nullptr, nullptr); }},
        {"model_load_zoo", [this] { return plait_model_load_zoo(nullptr, &model); }},
        {"model_load_zoo", [] { return plait_model_load_zoo("resnet50", nullptr); }},
        {"model_get_info", [this] { return plait_model_get_info(model, nullptr); }},
        {"model_get_input", [this] { return plait_model_get_input(model, 0, nullptr); }},
        {"model_get_output", [this] { return plait_model_get_output(model, 0, nullptr); }},
        {"model_find_input", [this] { return plait_model_find_input(model, nullptr, &size_); }},
        {"model_find_input", [this] { return plait_model_find_input(model, "image", nullptr); }},
        {"model_find_output", [this] { return plait_model_find_output(model, nullptr, &size_); }},
        {"model_find_output", [this] { return plait_model_find_output(model, "sum", nullptr); }},
        {"plan_make", [this] { return plait_plan_make(model, lanes, nullptr, nullptr); }},
        {"plan_load", [this] { return plait_plan_load(model, lanes, nullptr, &plan); }},
        {"plan_load", [this] { return plait_plan_load(model, lanes, "x", nullptr); }},
        {"plan_save", [this] { return plait_plan_save(plan, nullptr); }},
        {"plan_get_info", [this] { return plait_plan_get_info(plan, nullptr); }},
        {"plan_explain", [this] { return plait_plan_explain(plan, nullptr); }},
        {"plan_explain_json", [this] { return plait_plan_explain_json(plan, nullptr); }},
        {"session_create", [this] { return plait_session_create(plan, nullptr, nullptr); }},
        {"session_set_input", [this] { return plait_session_set_input(session, 0, nullptr, 4); }},
        {"session_set_input_by_name", [this] { return plait_session_set_input_by_name(session, nullptr, input_.data(), 4); }},
        {"session_set_input_by_name", [this] { return plait_session_set_input_by_name(session, "image", nullptr, 4); }},
        {"session_get_output", [this] { return plait_session_get_output(session, 0, nullptr, 4); }},
        {"session_get_output_by_name", [this] { return plait_session_get_output_by_name(session, nullptr, output_.data(), 4); }},
        {"session_get_output_by_name", [this] { return plait_session_get_output_by_name(session, "sum", nullptr, 4); }},
        {"session_input_data", [this] { return plait_session_input_data(session, 0, nullptr, &size_); }},
        {"session_input_data", [this] { return plait_session_input_data(session, 0, &data_, nullptr); }},
        {"session_output_data", [this] { return plait_session_output_data(session, 0, nullptr, &size_); }},
        {"session_output_data", [this] { return plait_session_output_data(session, 0, &const_data_, nullptr); }},
        {"session_run_async", [this] { return plait_session_run_async(session, nullptr, nullptr); }},
        {"session_get_stats", [this] { return plait_session_get_stats(session, nullptr); }},
        {"session_get_lane_stats", [this] { return plait_session_get_lane_stats(session, 0, nullptr); }},
    };
  }
  // What takes neither of the four handles, or destroys one.
  std::vector<Call> OtherCalls() {
    static const plait_allocator half = PLAIT_ALLOCATOR_INIT;
    return {
        {"lanes_destroy", [this] { return plait_lanes_destroy(reinterpret_cast<plait_lanes*>(model)); }},
        {"model_destroy", [this] { return plait_model_destroy(reinterpret_cast<plait_model*>(lanes)); }},
        {"plan_destroy", [this] { return plait_plan_destroy(reinterpret_cast<plait_plan*>(model)); }},
        {"session_destroy", [this] { return plait_session_destroy(reinterpret_cast<plait_session*>(lanes)); }},
        {"set_allocator", [] { return plait_set_allocator(&half); }},
        {"problem_operator_count", [this] { return plait_problem_operator_count(nullptr, &size_); }},
        {"problem_lane_count", [this] { return plait_problem_lane_count(nullptr, &size_); }},
        {"problem_lane", [this] { return plait_problem_lane(nullptr, 0, &lane_); }},
        {"problem_operator", [] { return plait_problem_operator(nullptr, 0, nullptr); }},
        {"problem_can_run", [] { return plait_problem_can_run(nullptr, 0, 0, nullptr); }},
        {"problem_cut", [] { return plait_problem_cut(nullptr, 0, 0, 0, nullptr); }},
        {"problem_cost", [] { return plait_problem_cost(nullptr, 0, 0, 0, 0, 0, nullptr); }},
        {"problem_handoff", [] { return plait_problem_handoff(nullptr, 0, 0, 0, nullptr); }},
        {"schedule_add", [] { return plait_schedule_add(nullptr, 0, 0, -1, 0, 0); }},
    };
  }
  plait_status Text(plait_status status) {
    plait_string_free(text_);
    text_ = nullptr;
    return status;
  }
  void ExpectAll(const std::vector<Call>& calls, plait_status status, const char* message) {
    for (const Call& call : calls) {
      SCOPED_TRACE(call.name);
      EXPECT_REFUSED(call.make(), status, message);
    }
    EXPECT_EQ(made_plan_, nullptr);
    EXPECT_EQ(made_session_, nullptr);
  }

  size_t size_ = 0;
  char* text_ = nullptr;
  void* data_ = nullptr;
  const void* const_data_ = nullptr;
  plait_lane_info lane_ = PLAIT_LANE_INFO_INIT;
  plait_model_info model_info_ = PLAIT_MODEL_INFO_INIT;
  plait_tensor_info tensor_ = PLAIT_TENSOR_INFO_INIT;
  plait_plan_info plan_info_ = PLAIT_PLAN_INFO_INIT;
  plait_session_stats stats_ = PLAIT_SESSION_STATS_INIT;
  plait_lane_stats lane_stats_ = PLAIT_LANE_STATS_INIT;
  plait_plan* made_plan_ = nullptr;
  plait_session* made_session_ = nullptr;
  std::vector<float> input_ = Wave(kInputs, 0.1f), output_ = std::vector<float>(kOutputs);
};

TEST_F(CWrongUse, NullHandles) {
  ExpectAll(Calls(nullptr, nullptr, nullptr, nullptr), PLAIT_INVALID_ARGUMENT, "is NULL");
  EXPECT_PLAIT_OK(plait_lanes_destroy(nullptr));
  EXPECT_PLAIT_OK(plait_model_destroy(nullptr));
  EXPECT_PLAIT_OK(plait_plan_destroy(nullptr));
  EXPECT_PLAIT_OK(plait_session_destroy(nullptr));
}

TEST_F(CWrongUse, NullArguments) {
  MakeSession();
  ExpectAll(NullArgumentCalls(), PLAIT_INVALID_ARGUMENT, "NULL");
  EXPECT_EQ(plait_session_trace(session, nullptr), PLAIT_INVALID_ARGUMENT);
}

// Functions that cannot fail take anything.
TEST_F(CWrongUse, WhatHasNoStatusTakesAnything) {
  EXPECT_STREQ(plait_status_name(static_cast<plait_status>(-1)), "unknown");
  EXPECT_STREQ(plait_status_name(static_cast<plait_status>(1'000'000)), "unknown");
  EXPECT_EQ(plait_zoo_name(static_cast<size_t>(-1)), nullptr);
  plait_string_free(nullptr);
  EXPECT_PLAIT_OK(plait_set_log_callback(nullptr, &size_));
  for (const char* text : {plait_version(), plait_features(), plait_last_error()}) EXPECT_NE(text, nullptr);
  EXPECT_EQ(plait_abi_version(), static_cast<uint32_t>(PLAIT_ABI_VERSION));
}

// A function that is exported and called wrongly nowhere here is a hole in these tests.
TEST_F(CWrongUse, CoversEveryExportedFunction) {
  MakeSession();
  const std::vector<Call> others = OtherCalls();
  for (const Call& call : others) {
    SCOPED_TRACE(call.name);
    EXPECT_EQ(call.make(), PLAIT_INVALID_ARGUMENT);
    EXPECT_STRNE(plait_last_error(), "");
  }
  std::set<std::string> called = {"status_name", "zoo_name", "string_free", "set_log_callback", "version", "features", "last_error", "abi_version"};
  for (const std::vector<Call>& calls : {Calls(lanes, model, plan, session), NullArgumentCalls(), others}) {
    for (const Call& call : calls) called.insert(call.name);
  }
  std::set<std::string> exported;
  std::ifstream symbols(PLAIT_SYMBOLS);
  for (std::string symbol; symbols >> symbol;) exported.insert(symbol.substr(std::strlen("plait_")));
  EXPECT_EQ(called, exported);
}

// Any thread may ask a session for its state while another one uses it; whatever else it does is refused.
TEST_F(CWrongUse, FromTwoThreads) {
  MakeSession();
  struct Flags {
    std::atomic<bool> in_callback{false}, may_return{false};
  } flags;
  const plait_run_callback hold = [](void* user, plait_session*, plait_status, const char*) {
    Flags& mine = *static_cast<Flags*>(user);
    mine.in_callback = true;
    while (!mine.may_return) std::this_thread::yield();
  };
  ASSERT_PLAIT_OK(plait_session_run_async(session, hold, &flags));
  while (!flags.in_callback) std::this_thread::yield();
  for (const Call& call : Calls(lanes, model, plan, session)) {
    SCOPED_TRACE(call.name);
    const std::string name = call.name;
    // Waiting would wait for us. What is no session's is not concerned.
    if (name == "session_wait" || name.rfind("session_", 0) != 0 || name == "session_create") continue;
    const bool any_time = name == "session_cancel" || name == "session_get_stats" || name == "session_get_lane_stats";
    EXPECT_EQ(call.make(), any_time ? PLAIT_OK : PLAIT_BUSY);
  }
  flags.may_return = true;
  EXPECT_PLAIT_OK(plait_session_wait(session));
  RunOn(session, input_);
}

TEST_F(CWrongUse, WrongSizesAndNumbers) {
  MakeSession();
  EXPECT_REFUSED(plait_session_set_input(session, 0, input_.data(), 12), PLAIT_INVALID_ARGUMENT, "'image' (f32 1x8x8x4) has 1024 bytes, 12 were given");
  EXPECT_REFUSED(plait_session_get_output(session, 0, output_.data(), kOutputs * 4 - 1), PLAIT_INVALID_ARGUMENT, "'sum'");
  EXPECT_REFUSED(plait_session_set_input(session, 1, input_.data(), 12), PLAIT_NOT_FOUND, "input 1");
  EXPECT_REFUSED(plait_session_get_output(session, 9, output_.data(), 12), PLAIT_NOT_FOUND, "output 9");
  EXPECT_REFUSED(plait_session_set_input_by_name(session, "picture", input_.data(), 12), PLAIT_NOT_FOUND, "it has: image");
  EXPECT_EQ(plait_session_input_data(session, 1, &data_, &size_), PLAIT_NOT_FOUND);
  EXPECT_EQ(plait_session_output_data(session, 1, &const_data_, &size_), PLAIT_NOT_FOUND);
  plait_session_options options = PLAIT_SESSION_OPTIONS_INIT;
  options.timeout_us = -1;
  EXPECT_REFUSED(plait_session_create(plan, &options, &made_session_), PLAIT_INVALID_ARGUMENT, "timeout_us");
  options = PLAIT_SESSION_OPTIONS_INIT;
  options.reserved = 1;
  EXPECT_REFUSED(plait_session_create(plan, &options, &made_session_), PLAIT_INVALID_ARGUMENT, "reserved");
  const int64_t dims[] = {1, 8, 8, 4}, zero[] = {0};
  plait_shape shapes[] = {{"image", dims, 4}, {"image", dims, 4}};
  plait_model_options model_options = PLAIT_MODEL_OPTIONS_INIT;
  model_options.shapes = shapes;
  model_options.shape_count = 2;
  const std::string json = SampleJson();
  plait_model* made = nullptr;
  EXPECT_REFUSED(plait_model_load_memory(json.data(), json.size(), &model_options, &made), PLAIT_INVALID_ARGUMENT, "twice");
  shapes[0] = {"image", zero, 1};
  EXPECT_REFUSED(plait_model_load_memory(json.data(), json.size(), &model_options, &made), PLAIT_INVALID_ARGUMENT, "not positive");
  shapes[0] = {"image", dims, 1000};
  EXPECT_REFUSED(plait_model_load_memory(json.data(), json.size(), &model_options, &made), PLAIT_INVALID_ARGUMENT, "rank 1000");
  shapes[0] = {nullptr, dims, 4};
  EXPECT_REFUSED(plait_model_load_memory(json.data(), json.size(), &model_options, &made), PLAIT_INVALID_ARGUMENT, "NULL");
}

TEST_F(CWrongUse, HandlesOfAnotherKind) {
  MakeSession();
  const std::vector<Call> calls = Calls(reinterpret_cast<plait_lanes*>(plan), reinterpret_cast<plait_model*>(session), reinterpret_cast<plait_plan*>(model),
                                        reinterpret_cast<plait_session*>(lanes));
  ExpectAll(calls, PLAIT_INVALID_ARGUMENT, "another kind");
  EXPECT_REFUSED(plait_plan_destroy(reinterpret_cast<plait_plan*>(model)), PLAIT_INVALID_ARGUMENT, "another kind");
}

TEST_F(CWrongUse, HandlesThatWereDestroyed) {
  MakeSession();
  const std::vector<Call> calls = Calls(lanes, model, plan, session);
  EXPECT_PLAIT_OK(plait_session_destroy(session));
  EXPECT_PLAIT_OK(plait_plan_destroy(plan));
  EXPECT_PLAIT_OK(plait_model_destroy(model));
  EXPECT_PLAIT_OK(plait_lanes_destroy(lanes));
  ExpectAll(calls, PLAIT_INVALID_ARGUMENT, "no live handle");
  EXPECT_REFUSED(plait_session_destroy(session), PLAIT_INVALID_ARGUMENT, "no live handle");
  EXPECT_REFUSED(plait_lanes_destroy(lanes), PLAIT_INVALID_ARGUMENT, "no live handle");
  session = nullptr, plan = nullptr, model = nullptr, lanes = nullptr;
}

// What the child finds wrong goes to standard error and into its exit status.
TEST_F(CWrongUse, HandlesOfAParentProcess) {
  MakeSession();
  RunOn(session, input_);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);
    int wrong = 0;
    for (const Call& call : Calls(lanes, model, plan, session)) {
      const plait_status status = call.make();
      if (status != PLAIT_WRONG_PROCESS) {
        std::fprintf(stderr, "%s in the child: %s, %s\n", call.name, plait_status_name(status), plait_last_error());
        ++wrong;
      }
    }
    wrong += plait_session_destroy(session) != PLAIT_OK;
    wrong += plait_plan_destroy(plan) != PLAIT_OK;
    wrong += plait_model_destroy(model) != PLAIT_OK;
    wrong += plait_lanes_destroy(lanes) != PLAIT_OK;
    ::_exit(wrong);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  RunOn(session, input_);
}

TEST_F(CWrongUse, LongMessagesAreCut) {
  const std::string name(100'000, 'n');
  size_t i = 0;
  EXPECT_EQ(plait_model_find_input(model, name.c_str(), &i), PLAIT_NOT_FOUND);
  const std::string message = plait_last_error();
  EXPECT_LT(message.size(), 2048u);
  EXPECT_EQ(message.substr(message.size() - 3), "...");
}

}  // namespace
}  // namespace plait::testing
