#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "src/api/c_objects.h"
#include "src/api/session_object.h"
#include "src/base/checked.h"
#include "src/base/file_io.h"
#include "src/plan/trace.h"

namespace plait::c_api {
namespace {

// A session that was found and claimed; `body` gets it.
template <typename Body>
plait_status WithSession(plait_session* session, Body&& body) noexcept {
  return Guarded([&]() -> Status {
    PLAIT_ASSIGN_OR_RETURN(const auto object, Find(session, "session"));
    PLAIT_ASSIGN_OR_RETURN(plait_session::Use use, object->Claim());
    return body(*object);
  });
}

Result<std::span<std::byte>> Input(plait_session& s, size_t i) {
  if (i >= s.graph().inputs.size()) return NotFound("input ", i, ": the model has ", s.graph().inputs.size());
  return s.session->input(static_cast<int>(i));
}

Result<std::span<const std::byte>> Output(plait_session& s, size_t i) {
  if (i >= s.graph().outputs.size()) return NotFound("output ", i, ": the model has ", s.graph().outputs.size());
  return s.session->output(static_cast<int>(i));
}

Status CheckBytes(const plait_session& s, TensorId id, size_t bytes, size_t wanted) {
  if (bytes == wanted) return Status();
  const Tensor& tensor = s.graph().tensor(id);
  return InvalidArgument("tensor '", tensor.name, "' (", Name(tensor.dtype), " ", ToString(tensor.shape), ") has ", wanted, " bytes, ", bytes, " were given");
}

Status SetInput(plait_session& s, size_t i, const void* data, size_t bytes) {
  PLAIT_ASSIGN_OR_RETURN(const std::span<std::byte> memory, Input(s, i));
  PLAIT_RETURN_IF_ERROR(CheckBytes(s, s.graph().inputs[i], bytes, memory.size()));
  std::memcpy(memory.data(), data, bytes);
  return Status();
}

Status GetOutput(plait_session& s, size_t i, void* data, size_t bytes) {
  PLAIT_ASSIGN_OR_RETURN(const std::span<const std::byte> memory, Output(s, i));
  PLAIT_RETURN_IF_ERROR(CheckBytes(s, s.graph().outputs[i], bytes, memory.size()));
  std::memcpy(data, memory.data(), bytes);
  return Status();
}

struct Range {
  uintptr_t begin, end;
};

// The caller's buffers for `ids` as Session::UseBuffers takes them; ranges that are written or read go to `ranges`.
Result<std::vector<void*>> CheckBuffers(const Graph& graph, const std::vector<TensorId>& ids, const plait_buffer* buffers, size_t count, const char* what,
                                        std::vector<Range>* ranges) {
  if (count > ids.size()) return InvalidArgument(count, " buffers for ", what, "s: the model has ", ids.size());
  if (count > 0 && buffers == nullptr) return InvalidArgument("the buffers for ", what, "s are NULL");
  std::vector<void*> memory;
  for (size_t i = 0; i < count; ++i) {
    memory.push_back(buffers[i].data);
    if (buffers[i].data == nullptr) continue;
    const Tensor& tensor = graph.tensor(ids[i]);
    const uintptr_t begin = reinterpret_cast<uintptr_t>(buffers[i].data);
    if (begin % PLAIT_BUFFER_ALIGNMENT != 0) return InvalidArgument("the buffer of ", what, " '", tensor.name, "' does not begin at a multiple of ", PLAIT_BUFFER_ALIGNMENT);
    const size_t least = static_cast<size_t>(RoundUp(tensor.bytes(), PLAIT_BUFFER_ALIGNMENT)) + PLAIT_BUFFER_SLACK;
    if (buffers[i].bytes < least || buffers[i].bytes > std::numeric_limits<uintptr_t>::max() - begin) {
      return InvalidArgument("the buffer of ", what, " '", tensor.name, "' has ", buffers[i].bytes, " bytes; ", least, " are needed (the tensor rounded up, and slack)");
    }
    const Range range{begin, begin + least};
    for (const Range& other : *ranges) {
      if (range.begin < other.end && other.begin < range.end) return InvalidArgument("the buffer of ", what, " '", tensor.name, "' overlaps another one");
    }
    ranges->push_back(range);
  }
  return memory;
}

static_assert(PLAIT_BUFFER_ALIGNMENT == kBufferAlignment && PLAIT_BUFFER_SLACK == kBufferSlack);

Status CheckMicroseconds(double us, const char* field) {
  return std::isfinite(us) && us >= 0 ? Status() : InvalidArgument(field, " is ", us, "; a number of microseconds was expected");
}

}  // namespace
}  // namespace plait::c_api

using namespace plait;
using namespace plait::c_api;

plait_status plait_session_create(const plait_plan* plan, const plait_session_options* options, plait_session** session) {
  return Guarded([&]() -> Status {
    if (session == nullptr) return NullArgument("session");
    PLAIT_ASSIGN_OR_RETURN(const auto plan_object, Find(plan, "plan"));
    PLAIT_ASSIGN_OR_RETURN(const plait_session_options given, ReadOptions<plait_session_options>(options, PLAIT_SESSION_OPTIONS_INIT, "plait_session_options"));
    PLAIT_RETURN_IF_ERROR(CheckMicroseconds(given.timeout_us, "plait_session_options::timeout_us"));
    PLAIT_RETURN_IF_ERROR(CheckMicroseconds(given.idle_spin_us, "plait_session_options::idle_spin_us"));
    if (given.reserved != 0) return InvalidArgument("plait_session_options::reserved is not 0");
    SessionOptions wanted;
    wanted.timeout_us = given.timeout_us;
    wanted.idle_spin_us = std::min(given.idle_spin_us, 1e9);
    wanted.bind.strict = plan_object->strict;
    wanted.bind.timings = given.timings != 0;
    PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<Session> opened, OpenSession(plan_object->planned, *plan_object->lanes, wanted));
    Publish(std::make_shared<plait_session>(plan_object, std::move(opened), wanted.bind.timings), session);
    return Status();
  });
}

plait_status plait_session_destroy(plait_session* session) {
  return Guarded([&]() -> Status {
    if (session == nullptr) return Status();
    PLAIT_ASSIGN_OR_RETURN(const std::shared_ptr<plait_session> object, Remove(session, "session"));
    if (object != nullptr) object->Retire();
    return Status();
  });
}

plait_status plait_session_set_input(plait_session* session, size_t i, const void* data, size_t bytes) {
  return WithSession(session, [&](plait_session& s) -> Status { return data == nullptr ? NullArgument("data") : SetInput(s, i, data, bytes); });
}

plait_status plait_session_set_input_by_name(plait_session* session, const char* name, const void* data, size_t bytes) {
  return WithSession(session, [&](plait_session& s) -> Status {
    if (data == nullptr) return NullArgument("data");
    PLAIT_ASSIGN_OR_RETURN(const size_t i, FindTensor(s.graph(), s.graph().inputs, name, "input"));
    return SetInput(s, i, data, bytes);
  });
}

plait_status plait_session_get_output(plait_session* session, size_t i, void* data, size_t bytes) {
  return WithSession(session, [&](plait_session& s) -> Status { return data == nullptr ? NullArgument("data") : GetOutput(s, i, data, bytes); });
}

plait_status plait_session_get_output_by_name(plait_session* session, const char* name, void* data, size_t bytes) {
  return WithSession(session, [&](plait_session& s) -> Status {
    if (data == nullptr) return NullArgument("data");
    PLAIT_ASSIGN_OR_RETURN(const size_t i, FindTensor(s.graph(), s.graph().outputs, name, "output"));
    return GetOutput(s, i, data, bytes);
  });
}

plait_status plait_session_input_data(plait_session* session, size_t i, void** data, size_t* bytes) {
  return WithSession(session, [&](plait_session& s) -> Status {
    if (data == nullptr) return NullArgument("data");
    if (bytes == nullptr) return NullArgument("bytes");
    PLAIT_ASSIGN_OR_RETURN(const std::span<std::byte> memory, Input(s, i));
    *data = memory.data();
    *bytes = memory.size();
    return Status();
  });
}

plait_status plait_session_output_data(plait_session* session, size_t i, const void** data, size_t* bytes) {
  return WithSession(session, [&](plait_session& s) -> Status {
    if (data == nullptr) return NullArgument("data");
    if (bytes == nullptr) return NullArgument("bytes");
    PLAIT_ASSIGN_OR_RETURN(const std::span<const std::byte> memory, Output(s, i));
    *data = memory.data();
    *bytes = memory.size();
    return Status();
  });
}

plait_status plait_session_bind_buffers(plait_session* session, const plait_buffer* inputs, size_t input_count, const plait_buffer* outputs, size_t output_count) {
  return WithSession(session, [&](plait_session& s) -> Status {
    std::vector<Range> ranges;
    PLAIT_ASSIGN_OR_RETURN(const std::vector<void*> in, CheckBuffers(s.graph(), s.graph().inputs, inputs, input_count, "input", &ranges));
    PLAIT_ASSIGN_OR_RETURN(const std::vector<void*> out, CheckBuffers(s.graph(), s.graph().outputs, outputs, output_count, "output", &ranges));
    return s.UseBuffers(in, out);
  });
}

plait_status plait_session_run(plait_session* session) {
  return WithSession(session, [](plait_session& s) { return s.Run(); });
}

plait_status plait_session_run_async(plait_session* session, plait_run_callback callback, void* user) {
  return Guarded([&]() -> Status {
    if (callback == nullptr) return NullArgument("callback");
    PLAIT_ASSIGN_OR_RETURN(const auto object, Find(session, "session"));
    PLAIT_ASSIGN_OR_RETURN(plait_session::Use use, object->Claim());
    return object->RunAsync(object, callback, user, &use);
  });
}

plait_status plait_session_wait(plait_session* session) {
  return Guarded([&]() -> Status {
    PLAIT_ASSIGN_OR_RETURN(const auto object, Find(session, "session"));
    return object->Wait();
  });
}

plait_status plait_session_cancel(plait_session* session) {
  return Guarded([&]() -> Status {
    PLAIT_ASSIGN_OR_RETURN(const auto object, Find(session, "session"));
    object->Cancel();
    return Status();
  });
}

plait_status plait_session_get_stats(const plait_session* session, plait_session_stats* stats) {
  return Guarded([&]() -> Status {
    PLAIT_ASSIGN_OR_RETURN(const auto object, Find(session, "session"));
    return WriteInfo(object->Stats(), stats, "plait_session_stats");
  });
}

plait_status plait_session_get_lane_stats(const plait_session* session, size_t lane, plait_lane_stats* stats) {
  return Guarded([&]() -> Status {
    PLAIT_ASSIGN_OR_RETURN(const auto object, Find(session, "session"));
    const std::vector<LaneReport>& reports = object->session->reports();
    if (lane >= reports.size()) return NotFound("lane ", lane, ": there are ", reports.size());
    plait_lane_stats filled = PLAIT_LANE_STATS_INIT;
    filled.name = reports[lane].name.c_str();
    filled.compute_steps = static_cast<uint32_t>(reports[lane].compute_steps);
    filled.reference_steps = static_cast<uint32_t>(reports[lane].reference_steps);
    filled.is_pinned = !reports[lane].cpus.empty();
    return WriteInfo(filled, stats, "plait_lane_stats");
  });
}

plait_status plait_session_trace(plait_session* session, const char* path) {
  return WithSession(session, [&](plait_session& s) -> Status {
    if (path == nullptr) return NullArgument("path");
    if (!s.has_timings) return InvalidArgument("the session keeps no timings; create it with plait_session_options::timings");
    if (s.Stats().runs == 0) return InvalidArgument("the session has not run yet; there is nothing to trace");
    return WriteFileAtomically(path, TraceJson(s.graph(), s.plan->planned.plan->program, s.session->timings()));
  });
}
