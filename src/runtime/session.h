// A session: a plan bound to real lanes and memory, ready to run.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/interface/cpu_kernels.h"
#include "backends/interface/lane.h"
#include "src/plan/plan.h"

namespace plait {

// A CPU lane: a cluster of cores, pinned, running kernels of the given backends; the first that supports an operator runs it. By
// convention the last is the reference backend, and steps that fall to it are counted (LaneReport::reference_steps).
struct CpuLaneConfig {
  std::string name;                 // "cpu0"
  std::vector<int> cpus;            // affinity; empty: not pinned
  int threads = 1;                  // including the lane's own thread
  std::vector<std::shared_ptr<CpuBackend>> backends;
};
Result<std::unique_ptr<Lane>> CreateCpuLane(const CpuLaneConfig& config);

struct SessionOptions {
  BindOptions bind;
  double timeout_us = 10e6;         // 0: none; an inference that takes longer ends with PLAIT_TIMEOUT and the session is unusable
  // How long a lane's thread spins for the next inference before it sleeps; not at all on the core that Run was called on.
  double idle_spin_us = 50;
};

struct LaneReport {
  std::string name;
  std::vector<int> cpus;            // affinity read back from the system; empty: not pinned
  int compute_steps = 0;
  int reference_steps = 0;          // run by the reference backend
};

// One inference at a time: a second concurrent Run returns PLAIT_BUSY. All other functions are thread-compatible. Destruction waits for a
// running inference. After fork() every call returns PLAIT_WRONG_PROCESS in the child.
class Session {
 public:
  // Starts a thread per CPU lane, binds all lanes, allocates the arena. `lanes` in the order of the plan's; they may be shared by several sessions, one of which runs at a time.
  // `graph` is the plan's graph.
  static Result<std::unique_ptr<Session>> Create(std::shared_ptr<const Graph> graph, std::shared_ptr<const Plan> plan,
                                                 std::vector<std::shared_ptr<Lane>> lanes, const SessionOptions& options);
  virtual ~Session() = default;

  // The memory of the i-th graph input or output, dense, row-major, in the graph's declared shape. Written and read between runs.
  virtual std::span<std::byte> input(int i) = 0;
  virtual std::span<const std::byte> output(int i) const = 0;

  // From now on inference reads the i-th graph input from inputs[i], and writes the i-th output to outputs[i] (nullptr, or beyond the list: the session's own memory), and
  // input() and output() show that memory. It is aligned and padded as a buffer of a plan (kBufferAlignment, kBufferSlack), and lives until the next call or the session's end. CPU lanes
  // use it in place; a tensor that a GPU lane touches is copied before or after each run. Prepares the steps of CPU lanes anew. On failure all is as it was. PLAIT_BUSY while running.
  virtual Status UseBuffers(std::span<void* const> inputs, std::span<void* const> outputs) = 0;
  // Copied in each run on behalf of UseBuffers.
  virtual int64_t copied_bytes() const = 0;

  virtual Status Run() = 0;
  virtual Status Cancel() = 0;  // any thread; the running inference ends with PLAIT_CANCELLED

  // [lane][step] of the last inference; empty unless BindOptions::timings.
  virtual std::vector<std::span<const StepTiming>> timings() const = 0;
  // What submitting to the lane's device took its host thread in the last inference; 0 for CPU lanes.
  virtual double submission_us(LaneId lane) const = 0;
  virtual const std::vector<LaneReport>& reports() const = 0;
  virtual const Plan& plan() const = 0;
};

}  // namespace plait
