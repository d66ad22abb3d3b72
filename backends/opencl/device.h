// One OpenCL device, opened: context, kernels, constants. Shared by a lane and everything it bound.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/opencl/cl_api.h"
#include "backends/opencl/opencl.h"
#include "src/graph/graph.h"

namespace plait::opencl {

// Where kernels find elements: a buffer object, or an address in shared virtual memory; exactly one is set.
struct Memory {
  cl_mem buffer = nullptr;
  void* svm = nullptr;
};

// The families of kernels; each is one program, built when first asked for.
enum class Family : uint8_t { kGemm, kDepthwise, kPool, kElementwise, kRows, kLayout, kSignals };
inline constexpr int kFamilyCount = 7;

// Register tiles and work division, by device type.
struct Tuning {
  int vector = 8;          // VW
  int row_tile = 6;        // MR
  int gemv_tiles = 4;      // column tiles an item of the one-row kernel
  bool single_item_groups = true;  // CPU devices: work-groups of one item that takes much; else small items, many
};

class Device {
 public:
  // Opens the device that `config` asks for; see CreateOpenClLane.
  static Result<std::shared_ptr<Device>> Open(const OpenClLaneConfig& config);
  ~Device();

  const ClApi& api() const { return *api_; }
  const OpenClDeviceInfo& info() const { return info_; }
  const Tuning& tuning() const { return tuning_; }
  cl_context context() const { return context_.get(); }
  cl_device_id id() const { return id_; }

  // An in-order queue: the application's, if it gave one that keeps times or none are wanted.
  Result<ClQueue> CreateQueue(bool profiling) const;
  // Device memory of its own; `data` (bytes of it) is copied in if not null.
  // `data` is copied, or, with CL_MEM_USE_HOST_PTR in `flags`, is the buffer's memory and outlives it.
  Result<ClMem> CreateBuffer(int64_t bytes, const void* data, cl_mem_flags flags = CL_MEM_READ_WRITE) const;
  // A new kernel object. Builds (or loads) its program on first use. Thread-safe.
  Result<ClKernel> CreateKernel(Family family, const std::string& name);

  // A constant tensor's device copy, made once: dense for `form` empty, else whatever `make` returns, kept under `form`. The buffer lives as
  // long as someone holds it. Thread-safe.
  using MakeBytes = std::vector<float> (*)(const Tensor& tensor, int64_t parameter);
  Result<std::shared_ptr<ClMem>> Constant(const Tensor& tensor, const std::string& form, MakeBytes make, int64_t parameter);
  // At least `elements` zeros, for padding.
  Result<std::shared_ptr<ClMem>> Zeros(int64_t elements);

 private:
  Device() = default;
  Status FindDevice(const OpenClLaneConfig& config);
  Status OpenContext();
  // What the application handed in: checked and retained.
  Status AdoptContext(const OpenClLaneConfig& config);
  Status AdoptQueue(cl_command_queue queue);
  Result<ClProgram> Build(Family family);
  Result<ClProgram> BuildFromSource(const std::string& source, const std::string& options, const std::string& what);

  const ClApi* api_ = nullptr;
  OpenClDeviceInfo info_;
  Tuning tuning_;
  std::string cache_dir_;
  ClDevice sub_device_;      // owns id_ if the device had to be divided
  cl_device_id id_ = nullptr;
  ClContext context_;
  ClQueue queue_;            // the application's, if it gave one
  bool queue_keeps_times_ = false;
  std::mutex mutex_;         // guards all below
  ClProgram programs_[kFamilyCount];
  struct CachedConstant {
    std::weak_ptr<const ConstData> data;  // expired: the address may belong to another constant by now
    std::weak_ptr<ClMem> memory;
  };
  std::map<std::pair<const ConstData*, std::string>, CachedConstant> constants_;
  std::shared_ptr<ClMem> zeros_;
  int64_t zero_elements_ = 0;
};

}  // namespace plait::opencl
