// The step list: what a schedule is lowered to. Simulator, verifier, executor and trace all read this and nothing else.
//
// A program has one list of steps per lane. A lane runs its list in order. Lanes meet only through counters: counter l is
// the number of steps that lane l has finished since the session began, so it only grows. A step may start when every
// one of its waits holds. Inference k (from 0) of a lane with S steps brings its counter from k*S to (k+1)*S.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/graph/graph.h"

namespace plait {

using LaneId = int32_t;
enum class LaneKind : uint8_t { kCpu, kGpu };

// A place where written bytes are visible. Lanes of one domain see each other's writes once ordered by a wait; between domains the writer
// has to Publish and the reader to Acquire, in that order. The host (CPU lanes, the application) is domain 0; each GPU lane has its own.
using DomainId = int32_t;
inline constexpr DomainId kHostDomain = 0;

struct LaneSpec {
  std::string name;            // "cpu0", "gpu0", ...
  LaneKind kind = LaneKind::kCpu;
  DomainId domain = kHostDomain;
  LaneId host = -1;            // for a GPU lane: the CPU lane whose thread submits and polls; -1: a thread of its own
};

// A dense piece of arena memory. The memory planner gives offsets; buffers whose lifetimes are ordered may overlap.
using BufferId = int32_t;
inline constexpr BufferId kConstantBuffer = -1;  // the bytes are the constant tensor's own data
enum class BufferRole : uint8_t { kActivation, kInput, kOutput };
struct BufferSpec {
  TensorId tensor = kNoTensor;  // the root tensor stored here (of the plan's graph)
  BufferRole role = BufferRole::kActivation;
  int64_t bytes = 0;
  int64_t offset = 0;           // in the arena, a multiple of kBufferAlignment; at least kBufferSlack bytes of arena follow it
  int strip = -1;               // the strip that it is private to: one lane writes and reads it, nothing of it is published; -1: none
  Region region = {};           // what of the tensor lies here, dense, if the buffer is private; else all of it does
  bool is_private() const { return strip >= 0; }
};
inline constexpr int64_t kBufferAlignment = 64;  // a cache line
inline constexpr int64_t kBufferSlack = 64;      // XNNPACK reads up to 16 bytes beyond

// A box inside a buffer: what a kernel reads or writes.
struct View {
  BufferId buffer = kConstantBuffer;
  TensorId tensor = kNoTensor;  // whose region this is
  Region region;                // in the tensor's coordinates
  int64_t offset = 0;           // bytes from the buffer's begin to the region's first element
  Dims strides;                 // elements, per axis of the tensor; innermost 1 for all axes of size > 1
  DType dtype = DType::kF32;

  const Dims& extent() const { return region.size; }
  bool IsDense() const;         // elements follow each other without gaps
  // One past the last byte that is touched, from the buffer's begin.
  int64_t EndOffset() const;
};

struct Wait {
  LaneId lane;
  int64_t steps;  // satisfied when the lane has finished this many steps (1-based) of the same inference
  friend bool operator==(const Wait&, const Wait&) = default;
};

enum class StepKind : uint8_t {
  kCompute,  // kernel: reads[] -> write
  kConvert,  // dtype or layout conversion at a handoff: reads[0] -> write
  kAcquire,  // makes reads[], published or written on the host, visible in this lane's domain
  kPublish,  // makes reads[], written by this lane, visible to the host
  kSubmit,   // ends a segment: hands all that stands since the last Submit to the device at once
  kGang,     // one block of a shared queue
};
std::string_view Name(StepKind kind);

struct Step {
  StepKind kind = StepKind::kCompute;
  OpId op = kNoOp;              // of the plan's graph; kNoOp for Acquire, Publish, Submit
  std::string kernel;           // kernel id, e.g. "xnnpack.conv2d"; chosen by the plan, checked by the backend
  Region region;                // of the operator's output
  std::vector<View> reads;      // Compute: one per operator input, in order (absent optional: a View with tensor == kNoTensor)
  View write;                   // Compute, Convert
  std::vector<Wait> waits;      // before this step; on CPU lanes any step, on GPU lanes Acquire and the first step of a segment only
  double predicted_us = 0;      // start-to-end time that the search assumed; 0 for bookkeeping steps
  double predicted_start_us = 0;
};

// A whole program. Immutable once verified.
struct StepProgram {
  std::vector<LaneSpec> lanes;
  std::vector<std::vector<Step>> steps;  // [lane][n]
  std::vector<BufferSpec> buffers;
  int64_t arena_bytes = 0;

  int64_t step_count(LaneId lane) const { return static_cast<int64_t>(steps[static_cast<size_t>(lane)].size()); }
};

}  // namespace plait
