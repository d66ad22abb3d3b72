#include <algorithm>

#include "backends/opencl/arena.h"
#include "backends/opencl/bound_lane.h"
#include "backends/opencl/device.h"
#include "backends/opencl/opencl.h"
#include "src/platform/affinity.h"

namespace plait {
namespace opencl {
namespace {

class OpenClLane final : public Lane {
 public:
  OpenClLane(const OpenClLaneConfig& config, std::shared_ptr<Device> device, OpenClMemory memory)
      : config_(config), device_(std::move(device)), memory_(memory) {}

  const std::string& name() const override { return config_.name; }
  LaneKind kind() const override { return LaneKind::kGpu; }
  const KernelRules& rules() const override { return OpenClKernelRules(); }
  bool coherent() const override { return memory_ == OpenClMemory::kSvm && !config_.strict; }
  const OpenClDeviceInfo& info() const { return device_->info(); }

  Status Start(bool is_own_thread) override {
    if (!is_own_thread || config_.host_cpus.empty()) return Status();
    return SetThreadAffinity(config_.host_cpus).Annotated("lane " + config_.name);
  }

  Result<std::unique_ptr<SharedMemory>> AllocateShared(int64_t bytes) override {
    if (bytes < 0) return InvalidArgument("lane ", config_.name, ": ", bytes, " bytes of shared memory");
    switch (memory_) {
      case OpenClMemory::kSvm: return AllocateSvm(device_, registry_, bytes);
      case OpenClMemory::kMapped: return AllocateMapped(device_, registry_, bytes);
      case OpenClMemory::kBest:
      case OpenClMemory::kCopied: break;
    }
    return std::unique_ptr<SharedMemory>();
  }

  Result<std::unique_ptr<BoundLane>> Bind(const BindRequest& request) override {
    Result<std::unique_ptr<OpenClBoundLane>> bound = OpenClBoundLane::Create(device_, *registry_, memory_, request);
    if (!bound.ok()) return bound.status().Annotated("lane " + config_.name);
    return std::unique_ptr<BoundLane>(std::move(bound).value());
  }

 private:
  OpenClLaneConfig config_;
  std::shared_ptr<Device> device_;
  OpenClMemory memory_;
  std::shared_ptr<SharedRegistry> registry_ = std::make_shared<SharedRegistry>();
};

}  // namespace
}  // namespace opencl

Result<std::unique_ptr<Lane>> CreateOpenClLane(const OpenClLaneConfig& config) {
  PLAIT_ASSIGN_OR_RETURN(std::shared_ptr<opencl::Device> device, opencl::Device::Open(config));
  const OpenClDeviceInfo& info = device->info();
  OpenClMemory memory = config.memory;
  if (memory == OpenClMemory::kBest) {
    memory = info.fine_grained_svm ? OpenClMemory::kSvm : info.unified_memory ? OpenClMemory::kMapped : OpenClMemory::kCopied;
  }
  if (memory == OpenClMemory::kSvm && !info.fine_grained_svm) {
    return Unsupported("lane ", config.name, ": ", info.device, " has no fine-grained shared virtual memory");
  }
  return std::unique_ptr<Lane>(new opencl::OpenClLane(config, std::move(device), memory));
}

const OpenClDeviceInfo& OpenClDeviceOf(const Lane& lane) { return static_cast<const opencl::OpenClLane&>(lane).info(); }

}  // namespace plait
