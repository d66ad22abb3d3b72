// A plan's GPU steps, bound: segments of launches, submitted and polled without blocking.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "backends/interface/lane.h"
#include "backends/opencl/arena.h"
#include "backends/opencl/lower.h"
#include "backends/opencl/signals.h"

namespace plait::opencl {

class OpenClBoundLane final : public BoundLane {
 public:
  static Result<std::unique_ptr<OpenClBoundLane>> Create(std::shared_ptr<Device> device, const SharedRegistry& registry,
                                                         OpenClMemory memory, const BindRequest& request);
  ~OpenClBoundLane() override;

  void Submit(uint64_t n) noexcept override;
  LaneState Poll() noexcept override;
  void Abandon() noexcept override;
  Status error() const override { return error_; }
  std::span<const StepTiming> timings() const override { return timings_; }
  int64_t submission_ns() const override { return submission_ns_; }

 private:
  // One thing to enqueue, for step `step`.
  struct Command {
    int64_t step = 0;
    int handoff = -1;  // of the arena; -1: a launch
    Launch launch;
  };
  // Steps [first, end) of the lane, handed to the device together.
  struct Segment {
    int64_t first = 0, end = 0;
    std::vector<Wait> waits;       // on other lanes
    std::vector<Command> commands;
    bool acquires = false, publishes = false;
  };
  struct InFlight {
    ClEvent last;                  // completes with the segment
    cl_uint ticket = 0;            // signalled when it is complete, if the lane has signals
    int64_t finished_ns = 0;       // when it was seen complete; 0: not yet
    std::vector<std::pair<int64_t, ClEvent>> events;  // with timings: step and event of each launch
    int64_t submit_ns = 0;
  };

  OpenClBoundLane(std::shared_ptr<Device> device, const BindRequest& request) : device_(std::move(device)), request_(request) {}
  Status Prepare(const SharedRegistry& registry, OpenClMemory memory);
  Status PrepareSegment(const LowerContext& context, Segment* segment);
  bool WaitsHold(const Segment& segment) const;
  bool SubmitAhead(Segment& segment);
  bool Enqueue(Segment& segment, bool behind_gate);
  cl_int StatusOf(const InFlight& flight);
  bool TrySubmit();                // true if a segment was submitted or the lane failed
  bool TryFinish();                // true if a segment was finished or the lane failed
  cl_int EnqueueSegment(Segment& segment, InFlight* flight, int64_t* step);
  void ReadTimings(const InFlight& flight);
  void Fail(const Segment& segment, int64_t step, const char* doing, cl_int error) noexcept;

  std::shared_ptr<Device> device_;
  BindRequest request_;
  ClQueue queue_;
  ClMem scratch_;
  std::vector<std::shared_ptr<ClMem>> constants_;
  std::unique_ptr<DeviceArena> arena_;   // after the queue: its destructor uses it
  std::unique_ptr<Signals> signals_;     // nullptr: the device needs none
  std::vector<Segment> segments_;
  std::vector<StepTiming> timings_;
  std::deque<InFlight> in_flight_;       // [finished_, submitted_), and one more if is_gated_
  size_t submitted_ = 0, finished_ = 0;  // segments of this inference
  uint64_t inference_ = 0;
  bool running_ = false;
  bool is_gated_ = false;                // the newest in flight stands behind a closed gate, and is not counted in submitted_
  cl_uint gate_ticket_ = 0;
  uint32_t looks_ = 0;                   // at signals that were not given
  int64_t submission_ns_ = 0;            // spent on enqueueing this inference's segments
  int64_t ready_ns_ = 0;                 // when the next segment's waits were seen to hold; 0: not yet
  Status error_;
};

}  // namespace plait::opencl
