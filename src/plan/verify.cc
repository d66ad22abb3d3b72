// The proof that a program is safe to run. It shares nothing with lowering but the geometry of boxes and the rules of
// storage (src/partition), so that a fault in lowering cannot hide itself.
//
// Why this suffices: every view is where AssignStorage says, and there no two elements of one buffer share a byte; the
// parts of every operator tile its output; so inside a buffer every byte has one writer, and what remains is that
// readers come after it and see it (CheckReads), and that buffers which share memory are in use one after the other
// (CheckMemoryReuse). What is private to a strip has a buffer for each strip, which one step writes and only its own lane touches.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/checked.h"
#include "src/graph/operators.h"
#include "src/partition/cuts.h"
#include "src/partition/dependencies.h"
#include "src/partition/storage.h"
#include "src/plan/boxes.h"
#include "src/plan/plan.h"
#include "src/plan/verify_reuse.h"

namespace plait {
namespace {

constexpr size_t kMaxLanes = 64;
constexpr size_t kMaxSteps = 1 << 24;
constexpr int64_t kMaxArenaBytes = int64_t{1} << 50;

size_t Index(int64_t id) { return static_cast<size_t>(id); }

// A region that a step writes, publishes or acquires.
struct Access {
  StepRef at;
  Region region;
};

class Verifier {
 public:
  Verifier(const Graph& graph, const StepProgram& program) : graph_(graph), program_(program) {}

  Status Run() {
    PLAIT_RETURN_IF_ERROR(CheckLanes());
    PLAIT_RETURN_IF_ERROR(CheckBuffers());
    for (size_t lane = 0; lane < program_.steps.size(); ++lane) PLAIT_RETURN_IF_ERROR(CheckLane(static_cast<LaneId>(lane)));
    PLAIT_RETURN_IF_ERROR(CheckTiling());
    PLAIT_RETURN_IF_ERROR(Simulate());
    PLAIT_RETURN_IF_ERROR(CheckTransfers());
    PLAIT_RETURN_IF_ERROR(CheckReads());
    PLAIT_RETURN_IF_ERROR(CheckOutputs());
    return CheckMemoryReuse(graph_, program_, [this](StepRef a, StepRef b) { return Before(a, b); });
  }

 private:
  const Step& At(StepRef s) const { return program_.steps[Index(s.lane)][Index(s.step)]; }
  DomainId DomainOf(LaneId lane) const { return program_.lanes[Index(lane)].domain; }
  bool IsGpu(LaneId lane) const { return program_.lanes[Index(lane)].kind == LaneKind::kGpu; }

  // "lane 'cpu0', step 12 (operator 'conv1')"
  std::string Where(StepRef s) const {
    std::string out = StrCat("lane '", program_.lanes[Index(s.lane)].name, "', step ", s.step);
    const Step& step = At(s);
    const bool has_op = step.op >= 0 && step.op < graph_.op_count();
    return has_op ? StrCat(out, " (operator '", graph_.op(step.op).name, "')") : StrCat(out, " (", Name(step.kind), ")");
  }
  template <typename... Args>
  Status Fault(StepRef s, const Args&... what) const { return Corrupt(Where(s), ": ", what...); }

  Status CheckLanes() {
    const size_t n = program_.lanes.size();
    if (n == 0 || n > kMaxLanes) return Corrupt("a program has 1 to ", kMaxLanes, " lanes, not ", n);
    if (program_.steps.size() != n) {
      return Corrupt("there are ", n, " lanes, but lists of steps for ", program_.steps.size());
    }
    for (size_t l = 0; l < n; ++l) {
      const LaneSpec& lane = program_.lanes[l];
      if (lane.kind != LaneKind::kCpu && lane.kind != LaneKind::kGpu) {
        return Corrupt("lane '", lane.name, "' is of an unknown kind");
      }
      if ((lane.kind == LaneKind::kCpu) != (lane.domain == kHostDomain)) {
        return Corrupt("lane '", lane.name, "' is in domain ", lane.domain);
      }
      for (size_t k = 0; k < l; ++k) {
        if (IsGpu(static_cast<LaneId>(l)) && program_.lanes[k].domain == lane.domain) {
          return Corrupt("lanes '", program_.lanes[k].name, "' and '", lane.name, "' share domain ", lane.domain);
        }
      }
      if (lane.host == -1) continue;
      const bool is_host_sound = lane.kind == LaneKind::kGpu && lane.host >= 0 && Index(lane.host) < n && !IsGpu(lane.host);
      if (!is_host_sound) return Corrupt("lane '", lane.name, "' has lane ", lane.host, " as its host");
    }
    size_t total = 0;
    for (const std::vector<Step>& steps : program_.steps) total += steps.size();
    if (total > kMaxSteps) return Corrupt("the program has ", total, " steps, more than ", kMaxSteps);
    return Status();
  }

  Status CheckBuffers() {
    PLAIT_ASSIGN_OR_RETURN(storage_, AssignStorage(graph_));
    producers_ = graph_.Producers();
    if (program_.arena_bytes < 0 || program_.arena_bytes > kMaxArenaBytes) {
      return Corrupt("the arena has ", program_.arena_bytes, " bytes");
    }
    std::vector<BufferRole> roles(graph_.tensors.size(), BufferRole::kActivation);
    for (TensorId t : graph_.inputs) roles[Index(t)] = BufferRole::kInput;
    for (TensorId t : graph_.outputs) roles[Index(t)] = BufferRole::kOutput;
    std::vector<bool> stored(graph_.tensors.size(), false);
    is_private_.assign(graph_.tensors.size(), false);
    for (size_t b = 0; b < program_.buffers.size(); ++b) {
      const BufferSpec& buffer = program_.buffers[b];
      const TensorId t = buffer.tensor;
      if (t < 0 || t >= graph_.tensor_count()) {
        return Corrupt("buffer ", b, " is for tensor ", t, " of ", graph_.tensor_count());
      }
      const Tensor& tensor = graph_.tensor(t);
      if (tensor.is_constant() || storage_[Index(t)].root != t) {
        return Corrupt("buffer ", b, ": tensor '", tensor.name, "' has no memory of its own");
      }
      if (buffer.is_private()) {
        PLAIT_RETURN_IF_ERROR(CheckPrivateBuffer(b));
      } else {
        if (stored[Index(t)]) return Corrupt("buffer ", b, ": tensor '", tensor.name, "' has two buffers");
        stored[Index(t)] = true;
      }
      if (buffer.role != roles[Index(t)]) return Corrupt("buffer ", b, ": tensor '", tensor.name, "' has the wrong role");
      if (!buffer.is_private() && buffer.bytes != tensor.bytes()) {
        return Corrupt("buffer ", b, " has ", buffer.bytes, " bytes, but tensor '", tensor.name, "' has ", tensor.bytes());
      }
      if (buffer.offset < 0 || buffer.offset % kBufferAlignment != 0) {
        return Corrupt("buffer ", b, " is at offset ", buffer.offset);
      }
      if (buffer.bytes > program_.arena_bytes - kBufferSlack ||
          buffer.offset > program_.arena_bytes - kBufferSlack - buffer.bytes) {
        return Corrupt("buffer ", b, " at offset ", buffer.offset, " reaches beyond the arena of ",
                       program_.arena_bytes, " bytes");
      }
    }
    for (TensorId t = 0; t < graph_.tensor_count(); ++t) {
      if (stored[Index(t)] && is_private_[Index(t)]) {
        return Corrupt("tensor '", graph_.tensor(t).name, "' has a buffer of its own beside those of strips");
      }
    }
    for (const std::vector<TensorId>* list : {&graph_.inputs, &graph_.outputs}) {
      for (TensorId t : *list) {
        if (!stored[Index(t)]) return Corrupt("graph input or output '", graph_.tensor(t).name, "' has no buffer");
      }
    }
    writes_.resize(graph_.tensors.size());
    publishes_.resize(graph_.tensors.size());
    acquires_.resize(graph_.tensors.size());
    private_writes_.resize(program_.buffers.size());
    return Status();
  }

  Status CheckPrivateBuffer(size_t b) {
    const BufferSpec& buffer = program_.buffers[b];
    const Tensor& tensor = graph_.tensor(buffer.tensor);
    auto fault = [&](const auto&... what) { return Corrupt("buffer ", b, " of strip ", buffer.strip, ": ", what...); };
    const Dims& shape = tensor.shape;
    if (buffer.region.begin.rank() != shape.rank() || buffer.region.size.rank() != shape.rank()) return fault("has another rank than its tensor");
    for (int i = 0; i < shape.rank(); ++i) {
      const int64_t begin = buffer.region.begin[i], size = buffer.region.size[i];
      if (begin < 0 || size < 1 || size > shape[i] || begin > shape[i] - size) return fault("holds ", ToString(buffer.region), " of ", ToString(shape));
    }
    if (buffer.bytes != buffer.region.size.Count() * SizeOf(tensor.dtype)) return fault("has ", buffer.bytes, " bytes for ", ToString(buffer.region));
    if (std::find(graph_.outputs.begin(), graph_.outputs.end(), buffer.tensor) != graph_.outputs.end() ||
        producers_[Index(buffer.tensor)] == kNoOp) {
      return fault("tensor '", tensor.name, "' belongs to the caller");
    }
    is_private_[Index(buffer.tensor)] = true;
    return Status();
  }

  // The view's region lies inside its tensor, and the view is exactly where that is stored. Only the read of a part
  // that consists of padding alone may be empty.
  Status CheckView(StepRef s, const View& view, bool may_be_empty = false) const {
    if (view.tensor < 0 || view.tensor >= graph_.tensor_count()) return Fault(s, "a view is of tensor ", view.tensor);
    const Tensor& tensor = graph_.tensor(view.tensor);
    const Dims& shape = tensor.shape;
    const int rank = shape.rank();
    auto fault = [&](const auto&... what) { return Fault(s, "the view of tensor '", tensor.name, "' ", what...); };
    if (view.region.begin.rank() != rank || view.region.size.rank() != rank || view.strides.rank() != rank) {
      return fault("has another rank");
    }
    for (int i = 0; i < rank; ++i) {
      const int64_t begin = view.region.begin[i], size = view.region.size[i];
      if (begin < 0 || size < (may_be_empty ? 0 : 1) || size > shape[i] || begin > shape[i] - size) {
        return fault("is out of range: ", ToString(view.region));
      }
    }
    if (view.dtype != tensor.dtype) return fault("has another dtype");
    if (is_private_[Index(view.tensor)]) return CheckPrivateView(s, view);
    const TensorStorage& storage = storage_[Index(view.tensor)];
    if (!(view.strides == storage.strides)) return fault("has other strides than the tensor");
    if (tensor.is_constant()) {
      if (view.buffer != kConstantBuffer) return fault("is in buffer ", view.buffer, ", but the tensor is a constant");
    } else {
      if (view.buffer < 0 || Index(view.buffer) >= program_.buffers.size()) return fault("is in buffer ", view.buffer);
      if (program_.buffers[Index(view.buffer)].tensor != storage.root) return fault("is in the wrong buffer");
    }
    int64_t element = storage.offset;
    for (int i = 0; i < rank; ++i) element += view.region.begin[i] * storage.strides[i];
    if (view.offset != element * SizeOf(tensor.dtype)) {
      return fault("is at offset ", view.offset, " instead of ", element * SizeOf(tensor.dtype));
    }
    return Status();
  }

  // A view that CheckView has found sound but for its place.
  Status CheckPrivateView(StepRef s, const View& view) const {
    auto fault = [&](const auto&... what) {
      return Fault(s, "the view of tensor '", graph_.tensor(view.tensor).name, "', which is private to strips, ", what...);
    };
    if (view.buffer < 0 || Index(view.buffer) >= program_.buffers.size()) return fault("is in buffer ", view.buffer);
    const BufferSpec& buffer = program_.buffers[Index(view.buffer)];
    if (buffer.tensor != view.tensor || !buffer.is_private()) return fault("is in the wrong buffer");
    const Dims strides = DenseStrides(buffer.region.size);
    if (!(view.strides == strides)) return fault("has other strides than its strip");
    int64_t element = 0;
    if (!view.region.IsEmpty()) {
      if (!Contains(buffer.region, view.region)) return fault("reaches beyond its strip: ", ToString(view.region), " of ", ToString(buffer.region));
      for (int i = 0; i < strides.rank(); ++i) element += (view.region.begin[i] - buffer.region.begin[i]) * strides[i];
    }
    if (view.offset != element * SizeOf(view.dtype)) return fault("is at offset ", view.offset, " instead of ", element * SizeOf(view.dtype));
    return Status();
  }

  Status CheckCompute(StepRef s) {
    const Step& step = At(s);
    if (step.op < 0 || step.op >= graph_.op_count()) {
      return Fault(s, "computes operator ", step.op, " of ", graph_.op_count());
    }
    const Operator& op = graph_.op(step.op);
    if (IsView(op.kind)) return Fault(s, "a ", Name(op.kind), " is a view and is never computed");
    PLAIT_RETURN_IF_ERROR(CheckView(s, step.write));
    if (step.write.tensor != op.output) return Fault(s, "does not write the operator's output");
    if (!(step.write.region == step.region)) {
      return Fault(s, "writes ", ToString(step.write.region), " instead of ", ToString(step.region));
    }
    if (step.reads.size() != op.inputs.size()) {
      return Fault(s, "has ", step.reads.size(), " reads for ", op.inputs.size(), " inputs");
    }
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const View& read = step.reads[i];
      if (read.tensor != op.inputs[i]) {
        return Fault(s, "read ", i, " is of tensor ", read.tensor, " instead of ", op.inputs[i]);
      }
      if (read.tensor == kNoTensor) {
        if (read.buffer != kConstantBuffer) return Fault(s, "read ", i, " of an absent input is in buffer ", read.buffer);
        continue;
      }
      const Region needed = InputRegion(graph_, op, static_cast<int>(i), step.region);
      PLAIT_RETURN_IF_ERROR(CheckView(s, read, needed.IsEmpty()));
      if (!(read.region == needed)) {
        return Fault(s, "read ", i, " is ", ToString(read.region), " instead of ", ToString(needed));
      }
    }
    if (!is_private_[Index(op.output)]) {
      writes_[Index(op.output)].push_back({s, step.region});
      return Status();
    }
    const BufferSpec& buffer = program_.buffers[Index(step.write.buffer)];
    std::vector<StepRef>& writes = private_writes_[Index(step.write.buffer)];
    if (!(buffer.region == step.region)) {
      return Fault(s, "writes ", ToString(step.region), " where strip ", buffer.strip, " keeps ", ToString(buffer.region));
    }
    if (!writes.empty()) return Fault(s, "writes what ", Where(writes.front()), " writes, too, in strip ", buffer.strip);
    writes.push_back(s);
    return Status();
  }

  // Acquire and Publish name tensors that have writers of their own, so that it is clear whose bytes move.
  Status CheckTransfer(StepRef s, std::vector<std::vector<Access>>* of_kind) {
    const Step& step = At(s);
    if (step.reads.empty()) return Fault(s, "moves nothing");
    for (const View& view : step.reads) {
      PLAIT_RETURN_IF_ERROR(CheckView(s, view));
      const OpId producer = producers_[Index(view.tensor)];
      if (is_private_[Index(view.tensor)]) return Fault(s, "moves tensor '", graph_.tensor(view.tensor).name, "', which is private to strips");
      const bool is_view = producer != kNoOp && IsView(graph_.op(producer).kind);
      if (is_view || graph_.tensor(view.tensor).is_constant()) {
        return Fault(s, "tensor '", graph_.tensor(view.tensor).name, "' is a view or a constant");
      }
      (*of_kind)[Index(view.tensor)].push_back({s, view.region});
    }
    return Status();
  }

  // One lane's list: which kinds stand where, and what each step says of itself.
  Status CheckLane(LaneId lane) {
    enum { kBetween, kAcquired, kComputing, kPublished } state = kBetween;  // inside a GPU segment
    const int64_t count = program_.step_count(lane);
    for (int64_t n = 0; n < count; ++n) {
      const StepRef s{lane, n};
      const Step& step = At(s);
      PLAIT_RETURN_IF_ERROR(CheckWaits(s));
      if (!IsGpu(lane)) {
        if (step.kind != StepKind::kCompute) return Fault(s, "a CPU lane has no ", Name(step.kind), " steps");
        PLAIT_RETURN_IF_ERROR(CheckCompute(s));
        continue;
      }
      if (!step.waits.empty() && state != kBetween) return Fault(s, "waits inside a segment");
      if (step.kind == StepKind::kAcquire && state == kBetween) {
        PLAIT_RETURN_IF_ERROR(CheckTransfer(s, &acquires_));
        state = kAcquired;
      } else if (step.kind == StepKind::kCompute && state != kPublished) {
        PLAIT_RETURN_IF_ERROR(CheckCompute(s));
        state = kComputing;
      } else if (step.kind == StepKind::kPublish && state == kComputing) {
        PLAIT_RETURN_IF_ERROR(CheckTransfer(s, &publishes_));
        state = kPublished;
      } else if (step.kind == StepKind::kSubmit && (state == kComputing || state == kPublished)) {
        if (!step.reads.empty()) return Fault(s, "a Submit moves nothing");
        state = kBetween;
      } else {
        return Fault(s, "a ", Name(step.kind),
                     " step cannot stand here: a segment is Acquire, Compute steps, Publish, Submit");
      }
    }
    if (state != kBetween) return Fault({lane, count - 1}, "the last segment is not submitted");
    return Status();
  }

  Status CheckWaits(StepRef s) const {
    for (const Wait& wait : At(s).waits) {
      if (wait.lane < 0 || Index(wait.lane) >= program_.lanes.size()) {
        return Fault(s, "waits for lane ", wait.lane, " of ", program_.lanes.size());
      }
      if (wait.lane == s.lane) return Fault(s, "waits for its own lane");
      if (wait.steps < 1 || wait.steps > program_.step_count(wait.lane)) {
        return Fault(s, "waits for step ", wait.steps, " of lane '", program_.lanes[Index(wait.lane)].name,
                     "', which has ", program_.step_count(wait.lane));
      }
    }
    return Status();
  }

  Status CheckTiling() const {
    for (const Operator& op : graph_.ops) {
      if (IsView(op.kind) || is_private_[Index(op.output)]) continue;
      std::vector<Region> regions;
      for (const Access& write : writes_[Index(op.output)]) regions.push_back(write.region);
      if (!TilesExactly(graph_.output(op).shape, regions)) {
        return Corrupt("operator '", op.name, "': its ", regions.size(), " steps do not compute each element of ",
                       ToString(graph_.output(op).shape), " once");
      }
    }
    return Status();
  }

  // Runs the counters as the lanes would, and keeps for every step how far each lane has certainly come when it starts.
  Status Simulate() {
    const size_t lanes = program_.lanes.size();
    started_.resize(lanes);
    for (size_t l = 0; l < lanes; ++l) started_[l].assign(program_.steps[l].size() * lanes, 0);
    std::vector<int64_t> counter(lanes, 0);
    size_t stuck = 0;
    for (size_t l = 0; stuck < lanes; l = (l + 1) % lanes) {
      const int64_t before = counter[l];
      while (counter[l] < program_.step_count(static_cast<LaneId>(l)) &&
             MayStart({static_cast<LaneId>(l), counter[l]}, counter)) {
        RecordStart({static_cast<LaneId>(l), counter[l]});
        ++counter[l];
      }
      stuck = counter[l] == before ? stuck + 1 : 0;
    }
    for (size_t l = 0; l < lanes; ++l) {
      if (counter[l] < program_.step_count(static_cast<LaneId>(l))) {
        return Fault({static_cast<LaneId>(l), counter[l]}, "waits for ever");
      }
    }
    return Status();
  }

  bool MayStart(StepRef s, const std::vector<int64_t>& counter) const {
    const std::vector<Wait>& waits = At(s).waits;
    return std::all_of(waits.begin(), waits.end(), [&](const Wait& w) { return counter[Index(w.lane)] >= w.steps; });
  }

  void RecordStart(StepRef s) {
    const size_t lanes = program_.lanes.size();
    int64_t* own = &started_[Index(s.lane)][Index(s.step) * lanes];
    auto finished = [&](LaneId lane, int64_t steps) {
      const int64_t* other = &started_[Index(lane)][Index(steps - 1) * lanes];
      for (size_t l = 0; l < lanes; ++l) own[l] = std::max(own[l], other[l]);
      own[Index(lane)] = std::max(own[Index(lane)], steps);
    };
    if (s.step > 0) finished(s.lane, s.step);
    for (const Wait& wait : At(s).waits) finished(wait.lane, wait.steps);
  }

  // Whether `a` has finished whenever `b` starts.
  bool Before(StepRef a, StepRef b) const {
    return started_[Index(b.lane)][Index(b.step) * program_.lanes.size() + Index(a.lane)] > a.step;
  }

  // A Publish moves what its lane has written; an Acquire moves what the host has: neither may overwrite newer bytes by
  // older ones.
  Status CheckTransfers() const {
    for (size_t t = 0; t < graph_.tensors.size(); ++t) {
      for (const Access& publish : publishes_[t]) {
        std::vector<Region> unwritten{publish.region};
        for (const Access& write : writes_[t]) {
          if (write.at.lane == publish.at.lane && write.at.step < publish.at.step) SubtractBox(write.region, &unwritten);
        }
        if (!unwritten.empty()) {
          return Fault(publish.at, "publishes ", ToString(unwritten.front()), " of tensor '", graph_.tensors[t].name,
                       "', which its lane has not written");
        }
      }
      for (const Access& acquire : acquires_[t]) {
        for (const Access& write : writes_[t]) {
          const Region common = Intersect(write.region, acquire.region);
          if (common.IsEmpty()) continue;
          if (write.at.lane == acquire.at.lane) {
            return Fault(acquire.at, "acquires ", ToString(common), " of tensor '", graph_.tensors[t].name,
                         "', which its own lane writes");
          }
          if (!IsOnHost(write, common, static_cast<TensorId>(t), acquire.at)) {
            return Fault(acquire.at, "acquires ", ToString(common), " of tensor '", graph_.tensors[t].name, "' before ",
                         Where(write.at), " has written and published it");
          }
        }
      }
    }
    return Status();
  }

  // Whether `region`, written by `write`, is complete in the host's memory when `at` starts.
  bool IsOnHost(const Access& write, const Region& region, TensorId t, StepRef at) const {
    if (!IsGpu(write.at.lane)) return Before(write.at, at);
    std::vector<Region> missing{region};
    for (const Access& publish : publishes_[Index(t)]) {
      if (publish.at.lane == write.at.lane && publish.at.step > write.at.step && Before(publish.at, at)) {
        SubtractBox(publish.region, &missing);
      }
    }
    return missing.empty();
  }

  Status CheckReads() const {
    for (size_t lane = 0; lane < program_.steps.size(); ++lane) {
      for (size_t n = 0; n < program_.steps[lane].size(); ++n) {
        const StepRef s{static_cast<LaneId>(lane), static_cast<int64_t>(n)};
        if (At(s).kind != StepKind::kCompute) continue;
        for (const View& read : At(s).reads) {
          if (read.tensor == kNoTensor || graph_.tensor(read.tensor).is_constant()) continue;
          if (is_private_[Index(read.tensor)]) {
            if (!read.region.IsEmpty()) PLAIT_RETURN_IF_ERROR(CheckPrivateRead(s, read));
            continue;
          }
          for (const Source& source : TraceRegion(graph_, producers_, read.tensor, read.region)) {
            PLAIT_RETURN_IF_ERROR(CheckSource(s, source));
          }
        }
      }
    }
    return Status();
  }

  Status CheckPrivateRead(StepRef s, const View& read) const {
    const std::vector<StepRef>& writes = private_writes_[Index(read.buffer)];
    const bool is_own = !writes.empty() && writes.front().lane == s.lane && writes.front().step < s.step;
    if (is_own) return Status();
    return Fault(s, "reads tensor '", graph_.tensor(read.tensor).name, "' of strip ", program_.buffers[Index(read.buffer)].strip,
                 ", which its lane has not computed before");
  }

  // Everything in `source` is written before `s` starts and visible in its domain.
  Status CheckSource(StepRef s, const Source& source) const {
    const Tensor& tensor = graph_.tensor(source.tensor);
    if (tensor.is_constant()) return Fault(s, "reads constant '", tensor.name, "' through a view");
    std::vector<Region> foreign;  // what other domains wrote
    if (producers_[Index(source.tensor)] == kNoOp && IsGpu(s.lane)) foreign.push_back(source.region);
    for (const Access& write : writes_[Index(source.tensor)]) {
      const Region common = Intersect(write.region, source.region);
      if (common.IsEmpty()) continue;
      if (!Before(write.at, s)) {
        return Fault(s, "reads ", ToString(common), " of tensor '", tensor.name, "', but does not wait for ",
                     Where(write.at));
      }
      if (DomainOf(write.at.lane) == DomainOf(s.lane)) continue;
      if (IsGpu(s.lane)) {
        foreign.push_back(common);
      } else if (!IsOnHost(write, common, source.tensor, s)) {
        return Fault(s, "reads ", ToString(common), " of tensor '", tensor.name, "', but ", Where(write.at),
                     " is not published before");
      }
    }
    if (foreign.empty()) return Status();
    for (const Access& acquire : acquires_[Index(source.tensor)]) {
      if (acquire.at.lane == s.lane && acquire.at.step < s.step) SubtractBox(acquire.region, &foreign);
    }
    if (foreign.empty()) return Status();
    return Fault(s, "reads ", ToString(foreign.front()), " of tensor '", tensor.name, "', which its lane has not acquired");
  }

  Status CheckOutputs() const {
    for (TensorId output : graph_.outputs) {
      for (const Source& source : TraceRegion(graph_, producers_, output, Region::Whole(graph_.tensor(output).shape))) {
        for (const Access& write : writes_[Index(source.tensor)]) {
          if (!IsGpu(write.at.lane)) continue;
          std::vector<Region> missing{Intersect(write.region, source.region)};
          if (missing.front().IsEmpty()) continue;
          for (const Access& publish : publishes_[Index(source.tensor)]) {
            if (publish.at.lane == write.at.lane && publish.at.step > write.at.step) SubtractBox(publish.region, &missing);
          }
          if (!missing.empty()) {
            return Fault(write.at, "writes ", ToString(missing.front()), " of graph output '",
                         graph_.tensor(output).name, "', which is never published");
          }
        }
      }
    }
    return Status();
  }

  const Graph& graph_;
  const StepProgram& program_;
  std::vector<TensorStorage> storage_;
  std::vector<OpId> producers_;
  std::vector<std::vector<Access>> writes_, publishes_, acquires_;  // by tensor
  std::vector<bool> is_private_;                                    // by tensor: its elements lie in buffers of strips
  std::vector<std::vector<StepRef>> private_writes_;                // by buffer: at most one
  std::vector<std::vector<int64_t>> started_;                       // [lane][step * lanes + other lane]
};

}  // namespace

Status VerifyProgram(const Graph& graph, const StepProgram& program) { return Verifier(graph, program).Run(); }

}  // namespace plait
