// One operator, its operands in strided memory, computed part by part on the OpenCL lane through hand-made step programs.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/opencl/opencl.h"
#include "backends/reference/reference.h"
#include "src/base/checked.h"
#include "src/base/clock.h"
#include "src/graph/builder.h"
#include "src/graph/operators.h"

namespace plait {

using Rng = std::mt19937;

inline int64_t Uniform(Rng& rng, int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); }

inline std::vector<float> RandomValues(Rng& rng, int64_t count, float low = -1.0f, float high = 1.0f) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = uniform(rng);
  return values;
}

// The lane on whatever OpenCL device there is; nullptr with the reason in `why` if there is none. A failure where there is one fails the test,
// unless the configuration asks for something that not every device has.
inline std::unique_ptr<Lane> TestLane(OpenClLaneConfig config, std::string* why) {
  config.allow_cpu_device = true;
  Result<std::unique_ptr<Lane>> lane = CreateOpenClLane(config);
  if (lane.ok()) return std::move(lane).value();
  *why = lane.status().message();
  if (config.memory == OpenClMemory::kBest) {
    for (const OpenClDeviceInfo& device : ListOpenClDevices(config.api)) EXPECT_FALSE(device.refused.empty()) << device.device << ": " << *why;
  }
  return nullptr;
}

// A fixture with a lane; its tests are skipped where no OpenCL device can be had.
class OpenClTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    lane_ = TestLane({}, &why);
    if (lane_ == nullptr) GTEST_SKIP() << why;
  }
  std::unique_ptr<Lane> lane_;
};

// Memory as the lane wants it, or plain aligned memory.
class Arena {
 public:
  Arena(Lane& lane, int64_t bytes) : bytes_(bytes + 2 * kBufferSlack) {
    Result<std::unique_ptr<SharedMemory>> shared = lane.AllocateShared(bytes_);
    EXPECT_TRUE(shared.ok()) << shared.status().message();
    if (shared.ok() && *shared != nullptr) {
      shared_ = std::move(shared).value();
      host_ = static_cast<char*>(shared_->host());
    } else {
      own_.resize(static_cast<size_t>(bytes_) + 64);
      host_ = own_.data() + (64 - reinterpret_cast<uintptr_t>(own_.data()) % 64) % 64;
    }
  }
  char* host() const { return host_; }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_;
  std::unique_ptr<SharedMemory> shared_;
  std::vector<char> own_;
  char* host_ = nullptr;
};

// Polls until the inference is over. The device answers or the test's own time limit ends it.
inline LaneState RunToEnd(BoundLane& bound, uint64_t n) {
  bound.Submit(n);
  while (true) {
    const LaneState state = bound.Poll();
    if (state == LaneState::kIdle || state == LaneState::kFailed) return state;
  }
}

// A graph of one operator whose operands lie in one arena, each inside a larger box.
class OperatorCase {
 public:
  // `dense`: operands are dense; else strides and offsets are drawn from `rng`.
  OperatorCase(Graph graph, Rng& rng, bool dense) : graph_(std::make_shared<const Graph>(std::move(graph))) {
    const Operator& op = graph_->op(0);
    storage_.resize(static_cast<size_t>(graph_->tensor_count()));
    for (TensorId id = 0; id < graph_->tensor_count(); ++id) {
      if (graph_->tensor(id).is_constant()) continue;
      const Dims& shape = graph_->tensor(id).shape;
      Dims parent = shape, begin = Dims::Filled(shape.rank(), 0);
      for (int i = 0; !dense && i < shape.rank(); ++i) {
        begin[i] = Uniform(rng, 0, 2);
        parent[i] += begin[i] + Uniform(rng, 0, 2);
      }
      Storage& at = storage_[static_cast<size_t>(id)];
      at.strides = DenseStrides(parent);
      for (int i = 0; i < shape.rank(); ++i) at.offset += begin[i] * at.strides[i] * 4;
      at.bytes = parent.Count() * 4;
      at.begin = arena_bytes_;
      at.buffer = static_cast<BufferId>(buffers_.size());
      buffers_.push_back({id, id == op.output ? BufferRole::kOutput : BufferRole::kInput, at.bytes, at.begin});
      arena_bytes_ += RoundUp(at.bytes + kBufferSlack, kBufferAlignment);
    }
    DrawInputs(rng, -1.0f, 1.0f);
  }

  void DrawInputs(Rng& rng, float low, float high) {
    inputs_.clear();
    for (TensorId id : graph_->inputs) inputs_.push_back(RandomValues(rng, graph_->tensor(id).shape.Count(), low, high));
  }
  void CopyInputsFrom(const OperatorCase& other) { inputs_ = other.inputs_; }

  const Graph& graph() const { return *graph_; }
  const std::shared_ptr<const Graph>& shared_graph() const { return graph_; }
  const Operator& op() const { return graph_->op(0); }
  const Dims& output_shape() const { return graph_->output(op()).shape; }
  int64_t arena_bytes() const { return arena_bytes_; }

  View ViewOf(TensorId id, const Region& region) const {
    View view;
    view.tensor = id;
    view.region = region;
    if (graph_->tensor(id).is_constant()) {
      view.strides = DenseStrides(graph_->tensor(id).shape);
    } else {
      const Storage& at = storage_[static_cast<size_t>(id)];
      view.buffer = at.buffer;
      view.offset = at.offset;
      view.strides = at.strides;
    }
    for (int i = 0; i < region.begin.rank(); ++i) view.offset += region.begin[i] * view.strides[i] * 4;
    return view;
  }
  Step ComputeStep(const Region& region) const {
    Step step;
    step.op = 0;
    step.region = region;
    for (size_t i = 0; i < op().inputs.size(); ++i) {
      const TensorId id = op().inputs[i];
      step.reads.push_back(id == kNoTensor ? View() : ViewOf(id, InputRegion(*graph_, op(), static_cast<int>(i), region)));
    }
    step.write = ViewOf(op().output, region);
    return step;
  }
  // A step that hands views over.
  static Step HandoffStep(StepKind kind, std::vector<View> views) {
    Step step;
    step.kind = kind;
    step.reads = std::move(views);
    return step;
  }
  static Step SubmitStep() { return HandoffStep(StepKind::kSubmit, {}); }
  // Acquire of everything, the parts, Publish of everything, Submit: one segment.
  std::shared_ptr<StepProgram> ProgramOf(const std::vector<Region>& parts) const {
    auto program = std::make_shared<StepProgram>();
    program->lanes.push_back({"gpu0", LaneKind::kGpu, 1, -1});
    program->buffers = buffers_;
    program->arena_bytes = arena_bytes_;
    std::vector<Step> steps;
    std::vector<View> reads, writes;
    for (TensorId id : graph_->inputs) reads.push_back(ViewOf(id, Region::Whole(graph_->tensor(id).shape)));
    steps.push_back(HandoffStep(StepKind::kAcquire, reads));
    for (const Region& part : parts) {
      steps.push_back(ComputeStep(part));
      writes.push_back(ViewOf(op().output, part));
    }
    steps.push_back(HandoffStep(StepKind::kPublish, writes));
    steps.push_back(SubmitStep());
    program->steps.push_back(std::move(steps));
    return program;
  }

  // NaNs everywhere, then the inputs.
  void Fill(char* arena) const {
    std::memset(arena, 0xff, static_cast<size_t>(arena_bytes_));
    for (size_t i = 0; i < graph_->inputs.size(); ++i) {
      const TensorId id = graph_->inputs[i];
      ForEach(id, [&](int64_t at, int64_t n) { std::memcpy(arena + at, &inputs_[i][static_cast<size_t>(n)], 4); });
    }
  }
  std::vector<float> Output(const char* arena) const {
    std::vector<float> out(static_cast<size_t>(output_shape().Count()));
    ForEach(op().output, [&](int64_t at, int64_t n) { std::memcpy(&out[static_cast<size_t>(n)], arena + at, 4); });
    return out;
  }
  std::vector<float> Reference() const {
    std::vector<const void*> inputs;
    for (const auto& values : inputs_) inputs.push_back(values.data());
    std::vector<std::vector<std::byte>> outputs;
    const Status status = EvaluateReference(*graph_, inputs, &outputs);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<float> out(outputs.empty() ? 0 : outputs[0].size() / 4);
    if (!out.empty()) std::memcpy(out.data(), outputs[0].data(), outputs[0].size());
    return out;
  }

  // The output of `program` on `lane`, computed twice in a row; the second run's is returned, as the first's memory proves less.
  std::vector<float> Run(Lane& lane, std::shared_ptr<const StepProgram> program, BindOptions options = {}) const {
    Arena arena(lane, arena_bytes_);
    Fill(arena.host());
    std::vector<LaneCounter> counters(program->lanes.size());
    BindRequest request{graph_, program, 0, arena.host(), counters, options};
    Result<std::unique_ptr<BoundLane>> bound = lane.Bind(request);
    EXPECT_TRUE(bound.ok()) << bound.status().message();
    if (!bound.ok()) return {};
    for (uint64_t n = 0; n < 2; ++n) {
      EXPECT_EQ(RunToEnd(**bound, n), LaneState::kIdle) << (*bound)->error().message();
      EXPECT_EQ(counters[0].finished.load(), (n + 1) * static_cast<uint64_t>(program->step_count(0)));
    }
    return Output(arena.host());
  }

 private:
  struct Storage {
    BufferId buffer = kConstantBuffer;
    int64_t begin = 0, offset = 0, bytes = 0;
    Dims strides;
  };
  // Calls f with the byte in the arena and the row-major number of every element.
  template <typename F>
  void ForEach(TensorId id, F f) const {
    const Dims& shape = graph_->tensor(id).shape;
    const Storage& storage = storage_[static_cast<size_t>(id)];
    Dims at = Dims::Filled(shape.rank(), 0);
    for (int64_t n = 0; n < shape.Count(); ++n) {
      int64_t byte = storage.begin + storage.offset;
      for (int i = 0; i < shape.rank(); ++i) byte += at[i] * storage.strides[i] * 4;
      f(byte, n);
      for (int i = shape.rank() - 1; i >= 0 && ++at[i] == shape[i]; --i) at[i] = 0;
    }
  }

  std::shared_ptr<const Graph> graph_;
  std::vector<Storage> storage_;
  std::vector<BufferSpec> buffers_;
  std::vector<std::vector<float>> inputs_;
  int64_t arena_bytes_ = 0;
};

// The largest difference relative to the largest magnitude of `expected`.
inline double RelativeError(const std::vector<float>& actual, const std::vector<float>& expected) {
  if (actual.size() != expected.size()) return INFINITY;
  double largest = 0, difference = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    const double d = std::abs(static_cast<double>(actual[i]) - expected[i]);
    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
  }
  return largest > 0 ? difference / largest : difference;
}

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The output cut along `axis` at the given positions.
inline std::vector<Region> CutAt(const Dims& shape, int axis, const std::vector<int64_t>& positions) {
  std::vector<Region> parts;
  int64_t from = 0;
  for (size_t i = 0; i <= positions.size(); ++i) {
    const int64_t to = i < positions.size() ? positions[i] : shape[axis];
    Region part = Region::Whole(shape);
    part.begin[axis] = from;
    part.size[axis] = to - from;
    if (to > from) parts.push_back(part);
    from = to;
  }
  return parts;
}

}  // namespace plait
