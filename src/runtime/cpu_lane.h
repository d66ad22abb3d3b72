// A CPU lane: pinned cores running kernels of one or more backends. Private to the runtime; made by CreateCpuLane.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/interface/cpu_kernels.h"
#include "backends/interface/lane.h"
#include "src/runtime/session.h"

namespace plait {

// What a lane of several backends can do: for each operator, what the first backend that supports it can.
class BackendList final : public KernelRules {
 public:
  explicit BackendList(std::vector<std::shared_ptr<CpuBackend>> backends) : backends_(std::move(backends)) {}
  std::string_view name() const override { return backends_.front()->rules().name(); }
  KernelSupport Supports(const Graph& graph, OpId op) const override;
  CutRule Cut(const Graph& graph, OpId op, SplitAxis axis) const override;
  bool Strided(const Graph& graph, OpId op, int operand) const override;

  // Indices of the backends to try for a step, in order: the one that `kernel` ("backend.name") belongs to, then the later ones that
  // support the operator. Without a kernel: all that support it.
  std::vector<size_t> Candidates(const Graph& graph, OpId op, const std::string& kernel) const;
  const std::vector<std::shared_ptr<CpuBackend>>& backends() const { return backends_; }

 private:
  const KernelRules* First(const Graph& graph, OpId op) const;
  const std::vector<std::shared_ptr<CpuBackend>> backends_;  // not empty
};

class CpuLane final : public Lane {
 public:
  explicit CpuLane(CpuLaneConfig config);
  ~CpuLane() override;

  const std::string& name() const override { return config_.name; }
  LaneKind kind() const override { return LaneKind::kCpu; }
  const KernelRules& rules() const override { return backends_; }
  bool coherent() const override { return true; }
  Status Start(bool is_own_thread) override;
  void Park() noexcept override;
  Result<std::unique_ptr<SharedMemory>> AllocateShared(int64_t bytes) override;
  Result<std::unique_ptr<BoundLane>> Bind(const BindRequest& request) override;
  std::vector<int> affinity() const override;

 private:
  void Pin();

  const CpuLaneConfig config_;
  const BackendList backends_;
  const pid_t pid_;
  mutable std::mutex mutex_;                            // guards the two below against threads that bind while the lane starts again
  std::vector<std::unique_ptr<CpuContext>> contexts_;   // [backend]; made by Start, on the lane's thread
  std::vector<int> affinity_;
};

}  // namespace plait
