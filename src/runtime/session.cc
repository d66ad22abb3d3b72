#include "src/runtime/session.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "src/base/checked.h"
#include "src/base/clock.h"
#include "src/base/memory.h"
#include "src/runtime/host_thread.h"
#include "src/runtime/parking.h"

namespace plait {
namespace {

static_assert(kBlockAlignment >= kBufferAlignment);

Result<Block> AllocateTensors(int64_t bytes) {
  Block memory = Block::Allocate(static_cast<size_t>(bytes));
  if (memory.data() == nullptr) return OutOfMemory("no memory for ", bytes, " bytes of tensors");
  return memory;
}

// A lane's host, and the lanes of this session that it polls.
struct Host {
  std::shared_ptr<HostThread> thread;
  HostJob job;
  std::vector<int> cpus;  // to which it is pinned
};

// Everything that must not be torn down in a forked child: there the threads and devices behind it do not exist.
struct Resources {
  std::vector<std::shared_ptr<Lane>> lanes;
  Block host_arena;
  std::unique_ptr<SharedMemory> shared_arena;
  std::unique_ptr<LaneCounter[]> counters;
  std::vector<std::unique_ptr<BoundLane>> bound;  // [lane]; nullptr: no steps
  std::vector<Host> hosts;
  InferenceState state;
};

// Between the caller's memory for a tensor and the session's.
struct Copy {
  std::byte* to;
  const std::byte* from;
  size_t bytes;
};

void Perform(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) std::memcpy(copy.to, copy.from, copy.bytes);
}

class SessionImpl final : public Session {
 public:
  SessionImpl(std::shared_ptr<const Graph> graph, std::shared_ptr<const Plan> plan, const SessionOptions& options)
      : graph_(std::move(graph)), plan_(std::move(plan)), options_(options), pid_(::getpid()), r_(std::make_unique<Resources>()) {}
  ~SessionImpl() override;

  Status Prepare(std::vector<std::shared_ptr<Lane>> lanes);

  std::span<std::byte> input(int i) override { return inputs_[static_cast<size_t>(i)]; }
  std::span<const std::byte> output(int i) const override { return outputs_[static_cast<size_t>(i)]; }
  Status UseBuffers(std::span<void* const> inputs, std::span<void* const> outputs) override;
  int64_t copied_bytes() const override;
  Status Run() override;
  Status Cancel() override;
  std::vector<std::span<const StepTiming>> timings() const override;
  double submission_us(LaneId lane) const override {
    const BoundLane* bound = r_->bound[static_cast<size_t>(lane)].get();
    return bound == nullptr ? 0 : static_cast<double>(bound->submission_ns()) / 1e3;
  }
  const std::vector<LaneReport>& reports() const override { return reports_; }
  const Plan& plan() const override { return *plan_; }

 private:
  const StepProgram& program() const { return plan_->program; }
  Status CheckProgram() const;
  Status StartHosts();
  Status AllocateArena();
  Status BindLane(LaneId lane, std::span<std::byte* const> elsewhere, std::unique_ptr<BoundLane>* bound);
  Status BindLanes();
  Status MapTensors();
  // Where the caller's memory takes the place of the session's.
  struct Redirection {
    std::vector<std::byte*> elsewhere;                  // [buffer], as in BindRequest
    std::vector<std::span<std::byte>> inputs, outputs;  // to show
    std::vector<Copy> copies_in, copies_out;
  };
  Redirection Redirect(std::span<void* const> inputs, std::span<void* const> outputs) const;
  Status Rebind(Redirection to);
  std::vector<bool> TouchedByGpus() const;
  void Report();
  Status WrongProcess() const;
  bool ClaimHosts();
  bool BeginRun();
  void EndRun();
  void PostHosts(int caller_cpu, bool may_spin);
  void AwaitHosts(int64_t deadline_ns, bool may_spin);
  Status Conclude();

  const std::shared_ptr<const Graph> graph_;
  const std::shared_ptr<const Plan> plan_;
  const SessionOptions options_;
  const pid_t pid_;
  std::unique_ptr<Resources> r_;
  std::byte* arena_ = nullptr;
  std::vector<std::span<std::byte>> inputs_, outputs_;          // what input() and output() show
  std::vector<std::span<std::byte>> own_inputs_, own_outputs_;  // the session's own memory
  std::vector<Copy> copies_in_, copies_out_;
  std::vector<Block> unread_inputs_;  // graph inputs that no step reads
  std::vector<LaneReport> reports_;
  std::vector<int> lane_cpus_;               // ascending; cores of the lanes in use
  bool is_pinned_ = true;                    // all of them
  uint64_t inference_ = 0;
  uint64_t posted_ = 0;                      // host jobs, over all inferences
  Status fatal_;                             // why the session is unusable
  std::mutex run_mutex_;                     // orders Cancel against the begin and end of a run: it hits this run or none
  std::atomic<bool> is_running_{false};
};

Status SessionImpl::CheckProgram() const {
  const StepProgram& p = program();
  if (p.steps.size() != p.lanes.size()) return Corrupt("the plan has ", p.lanes.size(), " lanes and ", p.steps.size(), " step lists");
  if (r_->lanes.size() != p.lanes.size()) return InvalidArgument("the plan has ", p.lanes.size(), " lanes, ", r_->lanes.size(), " were given");
  const int lane_count = static_cast<int>(p.lanes.size());
  for (size_t l = 0; l < p.lanes.size(); ++l) {
    const LaneSpec& spec = p.lanes[l];
    const Lane* lane = r_->lanes[l].get();
    if (lane == nullptr) return InvalidArgument("lane ", spec.name, " of the plan is null");
    if (lane->name() != spec.name || lane->kind() != spec.kind) {
      return InvalidArgument("lane ", l, " of the plan is ", spec.name, ", the one given is ", lane->name());
    }
    const bool has_host = spec.kind == LaneKind::kGpu && spec.host >= 0;
    if (has_host && (spec.host >= lane_count || p.lanes[static_cast<size_t>(spec.host)].kind != LaneKind::kCpu)) {
      return Corrupt("lane ", spec.name, " is hosted by lane ", spec.host, ", which is no CPU lane of the plan");
    }
  }
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const BufferSpec& buffer = p.buffers[b];
    const std::optional<int64_t> end = CheckedAdd(buffer.offset, buffer.bytes);
    const std::optional<int64_t> padded = end ? CheckedAdd(*end, kBufferSlack) : std::nullopt;
    if (buffer.offset < 0 || buffer.bytes < 0 || buffer.offset % kBufferAlignment != 0 || !padded || *padded > p.arena_bytes) {
      return Corrupt("buffer ", b, " at ", buffer.offset, " with ", buffer.bytes, " bytes does not fit an arena of ", p.arena_bytes);
    }
  }
  return Status();
}

Status SessionImpl::StartHosts() {
  std::map<LaneId, size_t> host_of;
  for (LaneId l = 0; l < static_cast<LaneId>(r_->lanes.size()); ++l) {
    if (program().step_count(l) == 0) continue;
    const LaneSpec& spec = program().lanes[static_cast<size_t>(l)];
    const LaneId host = spec.kind == LaneKind::kGpu && spec.host >= 0 ? spec.host : l;
    if (!host_of.contains(host)) {
      host_of[host] = r_->hosts.size();
      r_->hosts.emplace_back();
      PLAIT_ASSIGN_OR_RETURN(r_->hosts.back().thread, HostThread::Of(r_->lanes[static_cast<size_t>(host)]));
    }
    Host& h = r_->hosts[host_of[host]];
    if (host != l) PLAIT_RETURN_IF_ERROR(h.thread->Adopt(r_->lanes[static_cast<size_t>(l)]));
    h.job.lanes.push_back({l, nullptr, false});
    h.job.state = &r_->state;
  }
  return Status();
}

Status SessionImpl::AllocateArena() {
  for (size_t l = 0; l < r_->lanes.size() && r_->shared_arena == nullptr; ++l) {
    if (program().steps[l].empty()) continue;
    PLAIT_ASSIGN_OR_RETURN(r_->shared_arena, r_->lanes[l]->AllocateShared(std::max<int64_t>(program().arena_bytes, kBufferAlignment)));
  }
  if (r_->shared_arena != nullptr) {
    arena_ = static_cast<std::byte*>(r_->shared_arena->host());
    std::memset(arena_, 0, static_cast<size_t>(program().arena_bytes));
    return Status();
  }
  PLAIT_ASSIGN_OR_RETURN(r_->host_arena, AllocateTensors(program().arena_bytes));
  arena_ = static_cast<std::byte*>(r_->host_arena.data());
  return Status();
}

Status SessionImpl::BindLane(LaneId lane, std::span<std::byte* const> elsewhere, std::unique_ptr<BoundLane>* bound) {
  BindRequest request;
  request.graph = graph_;
  request.program = std::shared_ptr<const StepProgram>(plan_, &plan_->program);
  request.lane = lane;
  request.arena = arena_;
  request.counters = std::span(r_->counters.get(), r_->lanes.size());
  request.elsewhere = elsewhere;
  request.options = options_.bind;
  PLAIT_ASSIGN_OR_RETURN(*bound, r_->lanes[static_cast<size_t>(lane)]->Bind(request));
  return Status();
}

Status SessionImpl::BindLanes() {
  const size_t lane_count = r_->lanes.size();
  r_->counters = std::make_unique<LaneCounter[]>(lane_count);
  r_->bound.resize(lane_count);
  for (Host& host : r_->hosts) {
    for (HostJob::Hosted& hosted : host.job.lanes) {
      std::unique_ptr<BoundLane>& bound = r_->bound[static_cast<size_t>(hosted.id)];
      PLAIT_RETURN_IF_ERROR(BindLane(hosted.id, {}, &bound));
      hosted.lane = bound.get();
    }
  }
  return Status();
}

std::vector<bool> SessionImpl::TouchedByGpus() const {
  std::vector<bool> touched(program().buffers.size(), false);
  const auto touch = [&](const View& view) {
    if (view.buffer >= 0 && static_cast<size_t>(view.buffer) < touched.size()) touched[static_cast<size_t>(view.buffer)] = true;
  };
  for (size_t l = 0; l < program().lanes.size(); ++l) {
    if (program().lanes[l].kind == LaneKind::kCpu) continue;
    for (const Step& step : program().steps[l]) {
      for (const View& view : step.reads) touch(view);
      touch(step.write);
    }
  }
  return touched;
}

SessionImpl::Redirection SessionImpl::Redirect(std::span<void* const> inputs, std::span<void* const> outputs) const {
  const std::vector<bool> on_gpu = TouchedByGpus();
  Redirection to{std::vector<std::byte*>(program().buffers.size(), nullptr), own_inputs_, own_outputs_, {}, {}};
  for (size_t b = 0; b < program().buffers.size(); ++b) {
    const BufferSpec& buffer = program().buffers[b];
    if (buffer.role == BufferRole::kActivation) continue;
    const bool is_input = buffer.role == BufferRole::kInput;
    const std::vector<TensorId>& ids = is_input ? graph_->inputs : graph_->outputs;
    const std::span<void* const> given = is_input ? inputs : outputs;
    const size_t i = static_cast<size_t>(std::find(ids.begin(), ids.end(), buffer.tensor) - ids.begin());
    if (i >= std::min(ids.size(), given.size()) || given[i] == nullptr) continue;
    std::byte* const memory = static_cast<std::byte*>(given[i]);
    std::byte* const own = arena_ + buffer.offset;
    if (!on_gpu[b]) {
      to.elsewhere[b] = memory;
    } else if (is_input) {
      to.copies_in.push_back({own, memory, static_cast<size_t>(buffer.bytes)});
    } else {
      to.copies_out.push_back({memory, own, static_cast<size_t>(buffer.bytes)});
    }
  }
  const auto show = [](std::span<void* const> given, std::vector<std::span<std::byte>>* shown) {
    for (size_t i = 0; i < std::min(given.size(), shown->size()); ++i) {
      if (given[i] != nullptr) (*shown)[i] = {static_cast<std::byte*>(given[i]), (*shown)[i].size()};
    }
  };
  show(inputs, &to.inputs);
  show(outputs, &to.outputs);
  return to;
}

Status SessionImpl::Rebind(Redirection to) {
  std::vector<std::unique_ptr<BoundLane>> bound(r_->lanes.size());
  for (size_t l = 0; l < bound.size(); ++l) {
    if (r_->bound[l] == nullptr || r_->lanes[l]->kind() != LaneKind::kCpu) continue;
    PLAIT_RETURN_IF_ERROR(BindLane(static_cast<LaneId>(l), to.elsewhere, &bound[l]));
  }
  // From here on nothing fails.
  for (Host& host : r_->hosts) {
    for (HostJob::Hosted& hosted : host.job.lanes) {
      const size_t l = static_cast<size_t>(hosted.id);
      if (bound[l] == nullptr) continue;
      r_->bound[l] = std::move(bound[l]);
      hosted.lane = r_->bound[l].get();
    }
  }
  inputs_ = std::move(to.inputs);
  outputs_ = std::move(to.outputs);
  copies_in_ = std::move(to.copies_in);
  copies_out_ = std::move(to.copies_out);
  return Status();
}

Status SessionImpl::UseBuffers(std::span<void* const> inputs, std::span<void* const> outputs) {
  if (::getpid() != pid_) return WrongProcess();
  if (!BeginRun()) return Status(PLAIT_BUSY, "the session is running an inference");
  // The last host of an inference lets go of its lanes a moment after the caller has been woken.
  Backoff backoff;
  while (r_->state.departures.load(std::memory_order_acquire) != posted_) backoff.Pause();
  const Status status = fatal_.ok() ? Rebind(Redirect(inputs, outputs)) : fatal_;
  EndRun();
  return status;
}

int64_t SessionImpl::copied_bytes() const {
  size_t bytes = 0;
  for (const auto* copies : {&copies_in_, &copies_out_}) {
    for (const Copy& copy : *copies) bytes += copy.bytes;
  }
  return static_cast<int64_t>(bytes);
}

Status SessionImpl::MapTensors() {
  std::map<std::pair<TensorId, BufferRole>, const BufferSpec*> by_tensor;
  for (const BufferSpec& buffer : program().buffers) by_tensor[{buffer.tensor, buffer.role}] = &buffer;
  const auto span_of = [&](TensorId tensor, BufferRole role) -> std::span<std::byte> {
    const auto found = by_tensor.find({tensor, role});
    if (found == by_tensor.end()) return {};
    return {arena_ + found->second->offset, static_cast<size_t>(found->second->bytes)};
  };
  for (TensorId id : graph_->inputs) {
    const Tensor& tensor = graph_->tensor(id);
    std::span<std::byte> memory = span_of(id, BufferRole::kInput);
    if (memory.empty() && tensor.bytes() > 0) {
      PLAIT_ASSIGN_OR_RETURN(Block unread, AllocateTensors(tensor.bytes()));
      memory = {static_cast<std::byte*>(unread.data()), static_cast<size_t>(tensor.bytes())};
      unread_inputs_.push_back(std::move(unread));
    }
    if (memory.size() != static_cast<size_t>(tensor.bytes())) {
      return Corrupt("input ", tensor.name, " has ", tensor.bytes(), " bytes, its buffer in the plan ", memory.size());
    }
    inputs_.push_back(memory);
  }
  for (TensorId id : graph_->outputs) {
    const Tensor& tensor = graph_->tensor(id);
    outputs_.push_back(span_of(id, BufferRole::kOutput));
    if (outputs_.back().size() != static_cast<size_t>(tensor.bytes())) {
      return Corrupt("output ", tensor.name, " has ", tensor.bytes(), " bytes, its buffer in the plan ", outputs_.back().size());
    }
  }
  own_inputs_ = inputs_;
  own_outputs_ = outputs_;
  return Status();
}

void SessionImpl::Report() {
  for (size_t l = 0; l < r_->lanes.size(); ++l) {
    LaneReport report;
    report.name = r_->lanes[l]->name();
    report.cpus = r_->lanes[l]->affinity();
    for (const Step& step : program().steps[l]) report.compute_steps += step.kind == StepKind::kCompute ? 1 : 0;
    if (r_->bound[l] != nullptr) {
      report.reference_steps = r_->bound[l]->reference_steps();
      is_pinned_ &= !report.cpus.empty();
      lane_cpus_.insert(lane_cpus_.end(), report.cpus.begin(), report.cpus.end());
    }
    reports_.push_back(std::move(report));
  }
  std::sort(lane_cpus_.begin(), lane_cpus_.end());
  std::vector<HostThread*> threads;
  for (Host& host : r_->hosts) threads.push_back(host.thread.get());
  for (Host& host : r_->hosts) {
    host.job.peers = threads;
    for (const HostJob::Hosted& hosted : host.job.lanes) {
      const std::vector<int>& cpus = reports_[static_cast<size_t>(hosted.id)].cpus;
      if (program().lanes[static_cast<size_t>(hosted.id)].kind == LaneKind::kCpu) host.cpus = cpus;
    }
  }
}

Status SessionImpl::Prepare(std::vector<std::shared_ptr<Lane>> lanes) {
  r_->lanes = std::move(lanes);
  PLAIT_RETURN_IF_ERROR(CheckProgram());
  PLAIT_RETURN_IF_ERROR(StartHosts());
  PLAIT_RETURN_IF_ERROR(AllocateArena());
  PLAIT_RETURN_IF_ERROR(BindLanes());
  PLAIT_RETURN_IF_ERROR(MapTensors());
  Report();
  return Status();
}

SessionImpl::~SessionImpl() {
  if (::getpid() != pid_) {
    // Leaked on purpose: see Resources.
    static_cast<void>(r_.release());
    return;
  }
  Backoff backoff;
  while (is_running_.load(std::memory_order_acquire)) backoff.Pause();
  { const std::lock_guard lock(run_mutex_); }  // the runner has left EndRun
  // The last host of an inference wakes the caller and only then lets go of the state.
  backoff.Reset();
  while (r_->state.departures.load(std::memory_order_acquire) != posted_) backoff.Pause();
}

Status SessionImpl::WrongProcess() const {
  return Status(PLAIT_WRONG_PROCESS, "the session was created before a fork() and cannot be used in the child; create a new one there");
}

bool SessionImpl::ClaimHosts() {
  for (size_t i = 0; i < r_->hosts.size(); ++i) {
    if (r_->hosts[i].thread->TryClaim()) continue;
    while (i > 0) r_->hosts[--i].thread->Release();
    return false;
  }
  return true;
}

void SessionImpl::AwaitHosts(int64_t deadline_ns, bool may_spin) {
  InferenceState& state = r_->state;
  if (may_spin) {
    constexpr int64_t kSpinNs = 20'000;
    const int64_t end_ns = NowNs() + kSpinNs;
    while (state.remaining.load(std::memory_order_acquire) != 0 && NowNs() < end_ns) CpuPause();
  }
  state.caller_sleeps.store(true, std::memory_order_seq_cst);
  for (uint32_t left = state.remaining.load(std::memory_order_seq_cst); left != 0; left = state.remaining.load(std::memory_order_seq_cst)) {
    // After the deadline the hosts have been told to give up, and they do so without waiting for each other.
    const int64_t timeout_ns = deadline_ns < 0 ? -1 : std::max<int64_t>(deadline_ns - NowNs(), 0);
    SleepWhile(state.remaining, left, timeout_ns);
    if (deadline_ns >= 0 && NowNs() >= deadline_ns && state.remaining.load(std::memory_order_seq_cst) != 0) {
      state.Stop(StopReason::kTimeout);
      deadline_ns = -1;
    }
  }
  state.caller_sleeps.store(false, std::memory_order_relaxed);
}

Status SessionImpl::Conclude() {
  InferenceState& state = r_->state;
  if (!state.abandoned.load(std::memory_order_relaxed)) return Status();
  // Counters only grow: an inference given up counts as run, so that the next one's waits mean what they say.
  for (size_t l = 0; l < r_->lanes.size(); ++l) {
    r_->counters[l].finished.store((inference_ + 1) * program().steps[l].size(), std::memory_order_release);
  }
  switch (static_cast<StopReason>(state.stop.load(std::memory_order_acquire))) {
    case StopReason::kNone: return Internal("an inference was given up without a reason");
    case StopReason::kCancelled: return Status(PLAIT_CANCELLED, "the inference was cancelled");
    case StopReason::kTimeout:
      fatal_ = Status(PLAIT_TIMEOUT, StrCat("the inference took longer than ", options_.timeout_us / 1e6, " s and was given up; create a new session"));
      return fatal_;
    case StopReason::kLaneFailed: {
      const size_t lane = static_cast<size_t>(state.failed_lane.load(std::memory_order_acquire));
      fatal_ = DeviceLost("lane ", r_->lanes[lane]->name(), " failed: ", r_->bound[lane]->error().message(),
                          "; create a new session, with a plan for the other lanes");
      return fatal_;
    }
  }
  return Internal("an inference was given up for an unknown reason");
}

bool SessionImpl::BeginRun() {
  const std::lock_guard lock(run_mutex_);
  if (is_running_.load(std::memory_order_relaxed)) return false;
  is_running_.store(true, std::memory_order_relaxed);
  r_->state.stop.store(0, std::memory_order_relaxed);
  return true;
}

void SessionImpl::EndRun() {
  const std::lock_guard lock(run_mutex_);
  is_running_.store(false, std::memory_order_release);
}

void SessionImpl::PostHosts(int caller_cpu, bool may_spin) {
  InferenceState& state = r_->state;
  state.failed_lane.store(-1, std::memory_order_relaxed);
  state.abandoned.store(false, std::memory_order_relaxed);
  state.remaining.store(static_cast<uint32_t>(r_->hosts.size()), std::memory_order_relaxed);
  posted_ += r_->hosts.size();
  const auto is_here = [&](const Host& host) { return std::find(host.cpus.begin(), host.cpus.end(), caller_cpu) != host.cpus.end(); };
  for (Host& host : r_->hosts) {
    host.job.inference = inference_;
    host.job.idle_spin_ns = may_spin || (!host.cpus.empty() && !is_here(host)) ? static_cast<int64_t>(options_.idle_spin_us * 1e3) : 0;
    host.thread->Post(&host.job);
  }
  // A thread woken on the caller's own core takes it at once: that one comes last.
  for (Host& host : r_->hosts) {
    if (!is_here(host)) host.thread->WakeIfParked();
  }
  for (Host& host : r_->hosts) host.thread->WakeIfParked();
}

Status SessionImpl::Run() {
  if (::getpid() != pid_) return WrongProcess();
  if (!BeginRun()) return Status(PLAIT_BUSY, "the session is running another inference");
  Status status = fatal_;
  if (status.ok() && !ClaimHosts()) {
    status = Status(PLAIT_BUSY, "a lane of the session is running another session's inference");
  } else if (status.ok()) {
    // A clock that could overflow is no clock: more than an hour is without bound.
    const bool has_deadline = options_.timeout_us > 0 && options_.timeout_us < 3.6e9;
    const int64_t deadline_ns = has_deadline ? NowNs() + static_cast<int64_t>(options_.timeout_us * 1e3) : -1;
    // Spinning for the end takes a core from a lane unless the caller has one of its own.
    const int caller_cpu = ::sched_getcpu();
    const bool may_spin = is_pinned_ && !std::binary_search(lane_cpus_.begin(), lane_cpus_.end(), caller_cpu);
    Perform(copies_in_);
    PostHosts(caller_cpu, may_spin);
    AwaitHosts(deadline_ns, may_spin);
    status = Conclude();
    if (status.ok()) Perform(copies_out_);
    ++inference_;
    for (Host& host : r_->hosts) host.thread->Release();
  }
  EndRun();
  return status;
}

Status SessionImpl::Cancel() {
  if (::getpid() != pid_) return WrongProcess();
  const std::lock_guard lock(run_mutex_);
  if (is_running_.load(std::memory_order_relaxed)) r_->state.Stop(StopReason::kCancelled);
  return Status();
}

std::vector<std::span<const StepTiming>> SessionImpl::timings() const {
  std::vector<std::span<const StepTiming>> all;
  if (!options_.bind.timings) return all;
  for (const std::unique_ptr<BoundLane>& lane : r_->bound) all.push_back(lane == nullptr ? std::span<const StepTiming>() : lane->timings());
  return all;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::Create(std::shared_ptr<const Graph> graph, std::shared_ptr<const Plan> plan,
                                                 std::vector<std::shared_ptr<Lane>> lanes, const SessionOptions& options) {
  if (graph == nullptr || plan == nullptr) return InvalidArgument("a session needs a graph and a plan");
  auto session = std::make_unique<SessionImpl>(std::move(graph), std::move(plan), options);
  PLAIT_RETURN_IF_ERROR(session->Prepare(std::move(lanes)));
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace plait
