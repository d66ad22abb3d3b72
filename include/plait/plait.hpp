/// Plait's C++ API: the C API (plait/plait.h, which is the specification) with RAII, std::span and Result<T>. C++20, header-only,
/// nothing is thrown: usable with -fno-exceptions -fno-rtti. Handles are movable, not copyable; a moved-from one is empty, and
/// calls on it are PLAIT_INVALID_ARGUMENT.
///
///     auto lanes = plait::Lanes::Open();
///     auto model = plait::Model::LoadFile("model.onnx");
///     auto plan = plait::Plan::Make(*model, *lanes);
///     auto session = plait::Session::Create(*plan);
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "plait/plait.h"
#include "plait/result.hpp"
#include "plait/strategy.h"

namespace plait {
inline namespace api {

namespace detail {

inline Status Outcome(plait_status status) { return status == PLAIT_OK ? Status() : Status(status, plait_last_error()); }

template <typename T>
Result<T> OutcomeOf(plait_status status, T value) {
  if (status != PLAIT_OK) return Outcome(status);
  return value;
}

template <typename T, plait_status (*kDestroy)(T*)>
struct Destroyer {
  void operator()(T* handle) const { static_cast<void>(kDestroy(handle)); }
};
template <typename T, plait_status (*kDestroy)(T*)>
using Handle = std::unique_ptr<T, Destroyer<T, kDestroy>>;

inline Result<std::string> TakeText(plait_status status, char* text) {
  if (status != PLAIT_OK) return Outcome(status);
  std::string copy(text);
  plait_string_free(text);
  return copy;
}

}  // namespace detail

/// The lanes of this machine.
class Lanes {
 public:
  static Result<Lanes> Open(const plait_lanes_options& options = PLAIT_LANES_OPTIONS_INIT) {
    plait_lanes* handle = nullptr;
    const plait_status status = plait_lanes_open(&options, &handle);
    return detail::OutcomeOf(status, Lanes(handle));
  }

  Result<size_t> Count() const {
    size_t count = 0;
    const plait_status status = plait_lanes_count(get(), &count);
    return detail::OutcomeOf(status, count);
  }
  Result<plait_lane_info> Get(size_t lane) const {
    plait_lane_info info = PLAIT_LANE_INFO_INIT;
    const plait_status status = plait_lanes_get(get(), lane, &info);
    return detail::OutcomeOf(status, info);
  }
  /// What was not opened and why, one a line.
  Result<std::string> Refused() const {
    char* text = nullptr;
    const plait_status status = plait_lanes_refused(get(), &text);
    return detail::TakeText(status, text);
  }
  plait_lanes* get() const { return handle_.get(); }

 private:
  explicit Lanes(plait_lanes* handle) : handle_(handle) {}
  detail::Handle<plait_lanes, plait_lanes_destroy> handle_;
};

/// A network.
class Model {
 public:
  static Result<Model> LoadFile(const std::string& path, const plait_model_options& options = PLAIT_MODEL_OPTIONS_INIT) {
    plait_model* handle = nullptr;
    const plait_status status = plait_model_load_file(path.c_str(), &options, &handle);
    return detail::OutcomeOf(status, Model(handle));
  }
  static Result<Model> LoadMemory(std::span<const std::byte> bytes, const plait_model_options& options = PLAIT_MODEL_OPTIONS_INIT) {
    plait_model* handle = nullptr;
    const plait_status status = plait_model_load_memory(bytes.data(), bytes.size(), &options, &handle);
    return detail::OutcomeOf(status, Model(handle));
  }
  static Result<Model> LoadDescriptor(int fd, int64_t offset, int64_t length, const plait_model_options& options = PLAIT_MODEL_OPTIONS_INIT) {
    plait_model* handle = nullptr;
    const plait_status status = plait_model_load_fd(fd, offset, length, &options, &handle);
    return detail::OutcomeOf(status, Model(handle));
  }
  static Result<Model> LoadZoo(const std::string& name) {
    plait_model* handle = nullptr;
    const plait_status status = plait_model_load_zoo(name.c_str(), &handle);
    return detail::OutcomeOf(status, Model(handle));
  }

  Result<plait_model_info> Info() const {
    plait_model_info info = PLAIT_MODEL_INFO_INIT;
    const plait_status status = plait_model_get_info(get(), &info);
    return detail::OutcomeOf(status, info);
  }
  Result<plait_tensor_info> Input(size_t i) const {
    plait_tensor_info info = PLAIT_TENSOR_INFO_INIT;
    const plait_status status = plait_model_get_input(get(), i, &info);
    return detail::OutcomeOf(status, info);
  }
  Result<plait_tensor_info> Output(size_t i) const {
    plait_tensor_info info = PLAIT_TENSOR_INFO_INIT;
    const plait_status status = plait_model_get_output(get(), i, &info);
    return detail::OutcomeOf(status, info);
  }
  Result<size_t> FindInput(const std::string& name) const {
    size_t i = 0;
    const plait_status status = plait_model_find_input(get(), name.c_str(), &i);
    return detail::OutcomeOf(status, i);
  }
  Result<size_t> FindOutput(const std::string& name) const {
    size_t i = 0;
    const plait_status status = plait_model_find_output(get(), name.c_str(), &i);
    return detail::OutcomeOf(status, i);
  }
  plait_model* get() const { return handle_.get(); }

 private:
  explicit Model(plait_model* handle) : handle_(handle) {}
  detail::Handle<plait_model, plait_model_destroy> handle_;
};

/// Measures what is not yet known of the model's operators on these lanes: plait_calibrate().
inline Result<plait_calibration> Calibrate(const Model& model, const Lanes& lanes, const plait_calibrate_options& options = PLAIT_CALIBRATE_OPTIONS_INIT) {
  plait_calibration report = PLAIT_CALIBRATION_INIT;
  const plait_status status = plait_calibrate(model.get(), lanes.get(), &options, &report);
  return detail::OutcomeOf(status, report);
}

/// How a model runs on lanes.
class Plan {
 public:
  static Result<Plan> Make(const Model& model, const Lanes& lanes, const plait_plan_options& options = PLAIT_PLAN_OPTIONS_INIT) {
    plait_plan* handle = nullptr;
    const plait_status status = plait_plan_make(model.get(), lanes.get(), &options, &handle);
    return detail::OutcomeOf(status, Plan(handle));
  }
  /// By a strategy of the application's own: `strategy(const Problem&, Schedule*)` returns a Status (below). It must not throw
  /// through this header if built without exceptions.
  template <typename Strategy>
  static Result<Plan> MakeBy(Strategy&& strategy, const Model& model, const Lanes& lanes, plait_plan_options options = PLAIT_PLAN_OPTIONS_INIT);
  static Result<Plan> Load(const Model& model, const Lanes& lanes, const std::string& path) {
    plait_plan* handle = nullptr;
    const plait_status status = plait_plan_load(model.get(), lanes.get(), path.c_str(), &handle);
    return detail::OutcomeOf(status, Plan(handle));
  }

  Status Save(const std::string& path) const { return detail::Outcome(plait_plan_save(get(), path.c_str())); }
  Result<plait_plan_info> Info() const {
    plait_plan_info info = PLAIT_PLAN_INFO_INIT;
    const plait_status status = plait_plan_get_info(get(), &info);
    return detail::OutcomeOf(status, info);
  }
  Result<std::string> Explain() const {
    char* text = nullptr;
    const plait_status status = plait_plan_explain(get(), &text);
    return detail::TakeText(status, text);
  }
  Result<std::string> ExplainJson() const {
    char* text = nullptr;
    const plait_status status = plait_plan_explain_json(get(), &text);
    return detail::TakeText(status, text);
  }
  plait_plan* get() const { return handle_.get(); }

 private:
  explicit Plan(plait_plan* handle) : handle_(handle) {}
  detail::Handle<plait_plan, plait_plan_destroy> handle_;
};

/// A plan ready to run: one call at a time.
class Session {
 public:
  static Result<Session> Create(const Plan& plan, const plait_session_options& options = PLAIT_SESSION_OPTIONS_INIT) {
    plait_session* handle = nullptr;
    const plait_status status = plait_session_create(plan.get(), &options, &handle);
    return detail::OutcomeOf(status, Session(handle));
  }

  /// Whole tensors, copied; `values` has as many elements as the tensor.
  template <typename T>
  Status SetInput(size_t i, std::span<const T> values) {
    return detail::Outcome(plait_session_set_input(get(), i, values.data(), values.size_bytes()));
  }
  template <typename T>
  Status SetInput(const std::string& name, std::span<const T> values) {
    return detail::Outcome(plait_session_set_input_by_name(get(), name.c_str(), values.data(), values.size_bytes()));
  }
  template <typename T>
  Status GetOutput(size_t i, std::span<T> values) {
    return detail::Outcome(plait_session_get_output(get(), i, values.data(), values.size_bytes()));
  }
  template <typename T>
  Status GetOutput(const std::string& name, std::span<T> values) {
    return detail::Outcome(plait_session_get_output_by_name(get(), name.c_str(), values.data(), values.size_bytes()));
  }

  /// The tensors' own memory, to be written and read in place between runs.
  template <typename T>
  Result<std::span<T>> Input(size_t i) {
    void* data = nullptr;
    size_t bytes = 0;
    const plait_status status = plait_session_input_data(get(), i, &data, &bytes);
    return detail::OutcomeOf(status, std::span<T>(static_cast<T*>(data), bytes / sizeof(T)));
  }
  template <typename T>
  Result<std::span<const T>> Output(size_t i) {
    const void* data = nullptr;
    size_t bytes = 0;
    const plait_status status = plait_session_output_data(get(), i, &data, &bytes);
    return detail::OutcomeOf(status, std::span<const T>(static_cast<const T*>(data), bytes / sizeof(T)));
  }
  Status BindBuffers(std::span<const plait_buffer> inputs, std::span<const plait_buffer> outputs) {
    return detail::Outcome(plait_session_bind_buffers(get(), inputs.data(), inputs.size(), outputs.data(), outputs.size()));
  }

  Status Run() { return detail::Outcome(plait_session_run(get())); }
  /// `callback(Status)` is called once, on a thread of the session; it may be move-only.
  template <typename Callback>
  Status RunAsync(Callback callback) {
    auto kept = std::make_unique<Callback>(std::move(callback));
    const plait_run_callback call = [](void* user, plait_session*, plait_status status, const char* message) {
      const std::unique_ptr<Callback> mine(static_cast<Callback*>(user));
      (*mine)(status == PLAIT_OK ? Status() : Status(status, message));
    };
    const Status status = detail::Outcome(plait_session_run_async(get(), call, kept.get()));
    if (status.ok()) static_cast<void>(kept.release());
    return status;
  }
  Status Wait() { return detail::Outcome(plait_session_wait(get())); }
  Status Cancel() { return detail::Outcome(plait_session_cancel(get())); }

  Result<plait_session_stats> Stats() const {
    plait_session_stats stats = PLAIT_SESSION_STATS_INIT;
    const plait_status status = plait_session_get_stats(get(), &stats);
    return detail::OutcomeOf(status, stats);
  }
  Result<plait_lane_stats> LaneStats(size_t lane) const {
    plait_lane_stats stats = PLAIT_LANE_STATS_INIT;
    const plait_status status = plait_session_get_lane_stats(get(), lane, &stats);
    return detail::OutcomeOf(status, stats);
  }
  Status Trace(const std::string& path) { return detail::Outcome(plait_session_trace(get(), path.c_str())); }
  plait_session* get() const { return handle_.get(); }

 private:
  explicit Session(plait_session* handle) : handle_(handle) {}
  detail::Handle<plait_session, plait_session_destroy> handle_;
};

/// What a strategy sees: plait/strategy.h. Questions that are out of range have empty answers.
class Problem {
 public:
  explicit Problem(const plait_problem* problem) : problem_(problem) {}
  size_t operator_count() const { return Ask<size_t>(plait_problem_operator_count); }
  size_t lane_count() const { return Ask<size_t>(plait_problem_lane_count); }
  plait_lane_info lane(size_t lane) const {
    plait_lane_info info = PLAIT_LANE_INFO_INIT;
    static_cast<void>(plait_problem_lane(problem_, lane, &info));
    return info;
  }
  plait_operator_info op(size_t op) const {
    plait_operator_info info = PLAIT_OPERATOR_INFO_INIT;
    static_cast<void>(plait_problem_operator(problem_, op, &info));
    return info;
  }
  bool CanRun(size_t op, size_t lane) const {
    int32_t can = 0;
    return plait_problem_can_run(problem_, op, lane, &can) == PLAIT_OK && can != 0;
  }
  plait_cut Cut(size_t op, size_t lane, int32_t axis) const {
    plait_cut cut = PLAIT_CUT_INIT;
    static_cast<void>(plait_problem_cut(problem_, op, lane, axis, &cut));
    return cut;
  }
  /// Of the whole operator; `unknown` if nothing is known or the lane cannot run it.
  double CostUs(size_t op, size_t lane, double unknown) const { return CostUs(op, lane, -1, 0, 0, unknown); }
  double CostUs(size_t op, size_t lane, int32_t axis, int64_t begin, int64_t count, double unknown) const {
    double us = 0;
    return plait_problem_cost(problem_, op, lane, axis, begin, count, &us) == PLAIT_OK ? us : unknown;
  }
  double HandoffUs(size_t from, size_t to, uint64_t bytes) const {
    double us = 0;
    static_cast<void>(plait_problem_handoff(problem_, from, to, bytes, &us));
    return us;
  }

 private:
  template <typename T>
  T Ask(plait_status (*question)(const plait_problem*, T*)) const {
    T answer{};
    static_cast<void>(question(problem_, &answer));
    return answer;
  }
  const plait_problem* problem_;
};

/// What a strategy writes: parts, appended to the lanes' work.
class Schedule {
 public:
  explicit Schedule(plait_schedule* schedule) : schedule_(schedule) {}
  Status Add(size_t op, size_t lane) { return Add(op, lane, -1, 0, 0); }
  Status Add(size_t op, size_t lane, int32_t axis, int64_t begin, int64_t count) {
    return detail::Outcome(plait_schedule_add(schedule_, op, lane, axis, begin, count));
  }

 private:
  plait_schedule* schedule_;
};

template <typename Strategy>
Result<Plan> Plan::MakeBy(Strategy&& strategy, const Model& model, const Lanes& lanes, plait_plan_options options) {
  using Function = std::remove_reference_t<Strategy>;
  struct Call {
    Function* function;
    Status status;
  } call{&strategy, Status()};
  options.strategy_user = &call;
  options.strategy = [](void* user, const plait_problem* problem, plait_schedule* schedule) -> int32_t {
    Call& mine = *static_cast<Call*>(user);
    Schedule written(schedule);
    mine.status = (*mine.function)(Problem(problem), &written);
    return mine.status.ok() ? 0 : 1;
  };
  Result<Plan> plan = Make(model, lanes, options);
  if (!plan.ok() && !call.status.ok()) return call.status;
  return plan;
}

}  // namespace api
}  // namespace plait
