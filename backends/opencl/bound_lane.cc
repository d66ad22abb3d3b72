#include "backends/opencl/bound_lane.h"

#include <algorithm>
#include <thread>

#include "src/base/clock.h"
#include "src/base/log.h"

namespace plait::opencl {
namespace {

// How long Abandon waits for the device.
constexpr int64_t kAbandonNs = 5'000'000'000;

cl_int ExecutionStatus(const ClApi& api, cl_event event) {
  cl_int status = CL_QUEUED;
  const cl_int error = api.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
  return error == CL_SUCCESS ? status : error;
}

cl_ulong ProfilingValue(const ClApi& api, cl_event event, cl_profiling_info what) {
  cl_ulong value = 0;
  if (api.clGetEventProfilingInfo(event, what, sizeof(value), &value, nullptr) != CL_SUCCESS) return 0;
  return value;
}

}  // namespace

Result<std::unique_ptr<OpenClBoundLane>> OpenClBoundLane::Create(std::shared_ptr<Device> device, const SharedRegistry& registry,
                                                                 OpenClMemory memory, const BindRequest& request) {
  std::unique_ptr<OpenClBoundLane> lane(new OpenClBoundLane(std::move(device), request));
  PLAIT_RETURN_IF_ERROR(lane->Prepare(registry, memory));
  return lane;
}

OpenClBoundLane::~OpenClBoundLane() { Abandon(); }

Status OpenClBoundLane::Prepare(const SharedRegistry& registry, OpenClMemory memory) {
  const StepProgram& program = *request_.program;
  const std::vector<Step>& steps = program.steps[static_cast<size_t>(request_.lane)];
  PLAIT_ASSIGN_OR_RETURN(queue_, device_->CreateQueue(request_.options.timings));
  ArenaRequest arena{device_, &registry, request_.arena, program.arena_bytes, request_.options.strict, memory};
  PLAIT_ASSIGN_OR_RETURN(arena_, OpenArena(arena, queue_.get()));
  int64_t scratch = 0;
  for (const Step& step : steps) scratch = std::max(scratch, ScratchElements(*request_.graph, step));
  if (scratch > 0) {
    PLAIT_ASSIGN_OR_RETURN(scratch_, device_->CreateBuffer(scratch * 4, nullptr));
  }
  LowerContext context;
  context.device = device_.get();
  context.graph = request_.graph.get();
  context.program = &program;
  context.arena = arena_->memory();
  context.scratch = {scratch_.get(), nullptr};
  context.keep = &constants_;
  const auto count = static_cast<int64_t>(steps.size());
  for (int64_t first = 0; first < count;) {
    Segment segment;
    segment.first = first;
    segment.end = first;
    while (segment.end < count && steps[static_cast<size_t>(segment.end)].kind != StepKind::kSubmit) ++segment.end;
    segment.end = std::min(segment.end + 1, count);
    PLAIT_RETURN_IF_ERROR(PrepareSegment(context, &segment));
    first = segment.end;
    segments_.push_back(std::move(segment));
  }
  if (request_.options.timings) timings_.resize(steps.size());
  Result<std::unique_ptr<Signals>> signals = Signals::Create(device_);
  if (signals.ok()) {
    signals_ = std::move(signals).value();
  } else {  // slower, no less right
    Log(LogLevel::kWarning, "the lane waits by events: " + signals.status().message());
  }
  return Status();
}

Status OpenClBoundLane::PrepareSegment(const LowerContext& context, Segment* segment) {
  const StepProgram& program = *request_.program;
  for (int64_t i = segment->first; i < segment->end; ++i) {
    const Step& step = program.steps[static_cast<size_t>(request_.lane)][static_cast<size_t>(i)];
    for (const Wait& wait : step.waits) {
      // The lane's own steps precede this one in its queue.
      if (wait.lane != request_.lane) segment->waits.push_back(wait);
    }
    switch (step.kind) {
      case StepKind::kCompute: {
        PLAIT_ASSIGN_OR_RETURN(std::vector<Launch> launches, LowerStep(context, step));
        for (Launch& launch : launches) segment->commands.push_back({i, -1, std::move(launch)});
        break;
      }
      case StepKind::kAcquire:
      case StepKind::kPublish: {
        const bool acquire = step.kind == StepKind::kAcquire;
        (acquire ? segment->acquires : segment->publishes) = true;
        PLAIT_ASSIGN_OR_RETURN(const int handoff, arena_->Prepare(program, step.reads, acquire));
        segment->commands.push_back({i, handoff, {}});
        break;
      }
      case StepKind::kSubmit: break;
      case StepKind::kConvert:
      case StepKind::kGang: return Unsupported("step ", i, " (", Name(step.kind), "): the OpenCL lane runs Compute, Acquire, Publish and Submit");
    }
  }
  return Status();
}

void OpenClBoundLane::Submit(uint64_t n) noexcept {
  inference_ = n;
  submitted_ = finished_ = 0;
  ready_ns_ = submission_ns_ = 0;
  running_ = true;
}

bool OpenClBoundLane::WaitsHold(const Segment& segment) const {
  for (const Wait& wait : segment.waits) {
    const uint64_t target = inference_ * static_cast<uint64_t>(request_.program->step_count(wait.lane)) + static_cast<uint64_t>(wait.steps);
    if (request_.counters[static_cast<size_t>(wait.lane)].finished.load(std::memory_order_acquire) < target) return false;
  }
  return true;
}

cl_int OpenClBoundLane::EnqueueSegment(Segment& segment, InFlight* flight, int64_t* step) {
  cl_event last = nullptr;
  int others = 0;  // commands after the last launch's event
  *step = segment.first;
  if (submitted_ == 0) {
    const cl_int error = arena_->Begin(queue_.get(), &others);
    if (error != CL_SUCCESS) return error;
  }
  const size_t count = segment.commands.size();
  const bool ends = submitted_ + 1 == segments_.size();
  for (size_t i = 0; i < count; ++i) {
    Command& command = segment.commands[i];
    *step = command.step;
    cl_int error = CL_SUCCESS;
    if (command.handoff >= 0) {
      error = arena_->Enqueue(queue_.get(), command.handoff, &others);
    } else {
      cl_event event = nullptr;
      // Without timings only a launch that may be the segment's last command needs an event.
      bool wanted = request_.options.timings;
      if (!wanted && signals_ == nullptr) wanted = std::all_of(segment.commands.begin() + static_cast<std::ptrdiff_t>(i) + 1, segment.commands.end(), [](const Command& c) { return c.handoff >= 0; });
      error = opencl::Enqueue(*device_, queue_.get(), command.launch, wanted ? &event : nullptr);
      if (event != nullptr && error == CL_SUCCESS) {
        if (request_.options.timings) {
          flight->events.emplace_back(command.step, ClEvent(&device_->api(), event));
        } else {
          flight->last = ClEvent(&device_->api(), event);
        }
        last = event;
        others = 0;
      }
    }
    if (error != CL_SUCCESS) return error;
  }
  if (ends) {
    const cl_int error = arena_->End(queue_.get(), &others);
    if (error != CL_SUCCESS) return error;
  }
  if (signals_ != nullptr) {
    cl_event event = nullptr;
    flight->ticket = signals_->Draw();
    const cl_int error = signals_->EnqueueSignal(queue_.get(), flight->ticket, &event);
    if (error != CL_SUCCESS) return error;
    flight->last = ClEvent(&device_->api(), event);
  } else if (last == nullptr || others > 0 || request_.options.timings) {
    cl_event marker = nullptr;
    const cl_int error = device_->api().clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &marker);
    if (error != CL_SUCCESS) return error;
    flight->last = ClEvent(&device_->api(), marker);
  }
  return device_->api().clFlush(queue_.get());
}

bool OpenClBoundLane::TrySubmit() {
  if (submitted_ == segments_.size()) return false;
  Segment& segment = segments_[submitted_];
  if (ready_ns_ == 0) {
    if (!WaitsHold(segment)) return SubmitAhead(segment);
    ready_ns_ = NowNs();
  }
  const double latency_ns = segment.acquires ? request_.options.handoff_latency_us * 1e3 : 0;
  if (latency_ns > 0 && static_cast<double>(NowNs() - ready_ns_) < latency_ns) return false;
  ready_ns_ = 0;
  if (is_gated_) {
    signals_->Open(gate_ticket_);
    is_gated_ = false;
    ++submitted_;
    return true;
  }
  if (Enqueue(segment, false)) ++submitted_;
  return true;
}

// Enqueues the segment behind a gate if it is not there yet: true if it did, or the lane failed.
bool OpenClBoundLane::SubmitAhead(Segment& segment) {
  if (signals_ == nullptr || is_gated_ || !arena_->MayEnqueueAhead()) return false;
  is_gated_ = Enqueue(segment, true);
  return true;
}

// False if the lane failed.
bool OpenClBoundLane::Enqueue(Segment& segment, bool behind_gate) {
  InFlight flight;
  flight.submit_ns = NowNs();
  int64_t step = segment.first;
  cl_int error = CL_SUCCESS;
  if (behind_gate) {
    gate_ticket_ = signals_->Draw();
    error = signals_->EnqueueGate(queue_.get(), gate_ticket_);
  }
  if (error == CL_SUCCESS) error = EnqueueSegment(segment, &flight, &step);
  submission_ns_ += NowNs() - flight.submit_ns;
  if (flight.last || error != CL_SUCCESS) in_flight_.push_back(std::move(flight));
  if (error != CL_SUCCESS) Fail(segment, step, "cannot be enqueued", error);
  return error == CL_SUCCESS;
}

// CL_COMPLETE when the segment is done, an error if it failed. Events are asked now and then only where there are signals.
cl_int OpenClBoundLane::StatusOf(const InFlight& flight) {
  constexpr uint32_t kLooksPerEvent = 1024;
  if (signals_ == nullptr) return ExecutionStatus(device_->api(), flight.last.get());
  if (signals_->IsDone(flight.ticket)) return CL_COMPLETE;
  if (++looks_ % kLooksPerEvent != 0) return CL_RUNNING;
  const cl_int status = ExecutionStatus(device_->api(), flight.last.get());
  return status < 0 ? status : CL_RUNNING;
}

bool OpenClBoundLane::TryFinish() {
  if (finished_ == submitted_) return false;
  InFlight& flight = in_flight_.front();
  Segment& segment = segments_[finished_];
  if (flight.finished_ns == 0) {
    const cl_int status = StatusOf(flight);
    if (status < 0) {
      Fail(segment, segment.first, "failed on the device", status);
      return true;
    }
    if (status != CL_COMPLETE) return false;
    flight.finished_ns = NowNs();
    if (request_.options.timings) ReadTimings(flight);
  }
  const double latency_ns = segment.publishes ? request_.options.handoff_latency_us * 1e3 : 0;
  if (latency_ns > 0 && static_cast<double>(NowNs() - flight.finished_ns) < latency_ns) return false;
  in_flight_.pop_front();
  const auto steps = static_cast<uint64_t>(request_.program->step_count(request_.lane));
  request_.counters[static_cast<size_t>(request_.lane)].finished.store(inference_ * steps + static_cast<uint64_t>(segment.end),
                                                                       std::memory_order_release);
  ++finished_;
  return true;
}

LaneState OpenClBoundLane::Poll() noexcept {
  if (!error_.ok()) return LaneState::kFailed;
  if (!running_) return LaneState::kIdle;
  bool progress = false;
  while (error_.ok() && TrySubmit()) progress = true;
  while (error_.ok() && TryFinish()) progress = true;
  if (!error_.ok()) return LaneState::kFailed;
  if (finished_ == segments_.size()) {
    running_ = false;
    return LaneState::kIdle;
  }
  return progress ? LaneState::kProgress : LaneState::kWaiting;
}

void OpenClBoundLane::ReadTimings(const InFlight& flight) {
  const ClApi& api = device_->api();
  for (const auto& [step, event] : flight.events) timings_[static_cast<size_t>(step)] = {};
  if (flight.events.empty()) return;
  // Both clocks at the first launch: the driver stamped it as queued while it was being enqueued.
  const cl_ulong queued = ProfilingValue(api, flight.events.front().second.get(), CL_PROFILING_COMMAND_QUEUED);
  if (queued == 0) return;
  for (const auto& [step, event] : flight.events) {
    const cl_ulong start = ProfilingValue(api, event.get(), CL_PROFILING_COMMAND_START);
    const cl_ulong end = ProfilingValue(api, event.get(), CL_PROFILING_COMMAND_END);
    // Some drivers return zeros or nonsense; an unknown time is better than a wrong one.
    const auto wall = static_cast<cl_ulong>(flight.finished_ns - flight.submit_ns);
    if (start < queued || end < start || end - queued > 2 * wall + 1'000'000) continue;
    StepTiming& timing = timings_[static_cast<size_t>(step)];
    if (timing.start_ns == 0) timing.start_ns = flight.submit_ns + static_cast<int64_t>(start - queued);
    timing.end_ns = flight.submit_ns + static_cast<int64_t>(end - queued);
  }
}

void OpenClBoundLane::Fail(const Segment& segment, int64_t step, const char* doing, cl_int error) noexcept {
  const std::vector<Step>& steps = request_.program->steps[static_cast<size_t>(request_.lane)];
  // A segment fails as a whole; its first operator from the step on is named.
  std::string name;
  for (int64_t i = step; i < segment.end && name.empty(); ++i) {
    const Step& at = steps[static_cast<size_t>(i)];
    if (at.op != kNoOp) name = request_.graph->op(at.op).name;
  }
  error_ = DeviceLost("lane ", request_.program->lanes[static_cast<size_t>(request_.lane)].name, " (", device_->info().device, "): steps ",
                      segment.first, " to ", segment.end - 1, ", at step ", step, name.empty() ? "" : " (operator " + name + ")", ": ", doing, ": ",
                      ClErrorName(error));
}

void OpenClBoundLane::Abandon() noexcept {
  running_ = false;
  if (signals_ != nullptr) signals_->OpenAll();
  is_gated_ = false;
  if (in_flight_.empty()) {
    // The kernel that gave the last signal may not have returned yet.
    if (signals_ != nullptr) device_->api().clFinish(queue_.get());
    return;
  }
  const ClApi& api = device_->api();
  api.clFlush(queue_.get());
  const int64_t deadline = NowNs() + kAbandonNs;
  for (const InFlight& flight : in_flight_) {
    while (flight.last && ExecutionStatus(api, flight.last.get()) > CL_COMPLETE && NowNs() < deadline) std::this_thread::yield();
  }
  if (NowNs() < deadline) {
    // Also what a failed submission left behind without an event.
    api.clFinish(queue_.get());
  } else {
    Log(LogLevel::kError, StrCat(device_->info().device, " did not finish its work within ", kAbandonNs / 1'000'000, " ms and is given up"));
  }
  in_flight_.clear();
}

}  // namespace plait::opencl
