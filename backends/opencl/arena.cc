#include "backends/opencl/arena.h"

#include <algorithm>
#include <optional>

#include "backends/opencl/axes.h"
#include "src/base/checked.h"
#include "src/base/memory.h"

namespace plait::opencl {

void SharedRegistry::Insert(void* host, const Entry& entry) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_[host] = entry;
}

void SharedRegistry::Erase(void* host) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.erase(host);
}

Memory SharedRegistry::Find(void* host, int64_t bytes) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(host);
  return found != entries_.end() && found->second.bytes >= bytes ? found->second.memory : Memory();
}

namespace {

class SvmMemory final : public SharedMemory {
 public:
  SvmMemory(std::shared_ptr<Device> device, std::shared_ptr<SharedRegistry> registry, void* host)
      : device_(std::move(device)), registry_(std::move(registry)), host_(host) {}
  ~SvmMemory() override {
    registry_->Erase(host_);
    device_->api().clSVMFree(device_->context(), host_);
  }
  void* host() const override { return host_; }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<SharedRegistry> registry_;
  void* host_;
};

constexpr int64_t kPageBytes = 4096;

// The host keeps one address, to which every mapping of a part has to lead; bound lanes map and unmap what they hand off.
class MappedMemory final : public SharedMemory {
 public:
  // `own`: what the buffer lies in, if that is not the driver's.
  MappedMemory(std::shared_ptr<Device> device, std::shared_ptr<SharedRegistry> registry, Block own, ClMem buffer, void* host)
      : device_(std::move(device)), registry_(std::move(registry)), own_(std::move(own)), buffer_(std::move(buffer)), host_(host) {}
  ~MappedMemory() override { registry_->Erase(host_); }
  void* host() const override { return host_; }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<SharedRegistry> registry_;
  Block own_;
  ClMem buffer_;
  void* host_;
};

// Shared virtual memory: handoffs are ordered by the queue and the counters alone.
class SvmArena final : public DeviceArena {
 public:
  explicit SvmArena(void* host) : memory_{nullptr, host} {}
  Memory memory() const override { return memory_; }
  bool MayEnqueueAhead() const override { return true; }
  Result<int> Prepare(const StepProgram&, const std::vector<View>&, bool) override { return 0; }
  cl_int Enqueue(cl_command_queue, int, int*) override { return CL_SUCCESS; }

 private:
  Memory memory_;
};

// First byte of a view in the arena.
int64_t FirstByte(const StepProgram& program, const View& view) {
  return program.buffers[static_cast<size_t>(view.buffer)].offset + view.offset;
}

// Bytes [begin, end) of the arena from a view's first to its last, in whole cache lines.
struct Range {
  int64_t begin = 0, end = 0;
  void* mapped = nullptr;
};

// A buffer in host memory. What the host writes is mapped for it from one inference's end to the Acquire; what it reads, from the
// Publish to the next inference's begin.
class MappedArena final : public DeviceArena {
 public:
  MappedArena(std::shared_ptr<Device> device, cl_mem buffer, void* host, int64_t bytes, cl_command_queue queue)
      : device_(std::move(device)), buffer_(buffer), host_(static_cast<char*>(host)), bytes_(bytes), queue_(queue) {}
  ~MappedArena() override {
    for (Handoff& handoff : handoffs_) {
      for (Range& range : handoff.ranges) Unmap(queue_, &range, nullptr);
    }
    device_->api().clFinish(queue_);
  }
  Memory memory() const override { return {buffer_, nullptr}; }

  Result<int> Prepare(const StepProgram& program, const std::vector<View>& views, bool acquire) override {
    Handoff handoff{acquire, {}};
    for (const View& view : views) {
      if (view.buffer == kConstantBuffer) continue;
      const int64_t first = FirstByte(program, view);
      const int64_t last = program.buffers[static_cast<size_t>(view.buffer)].offset + view.EndOffset();
      Range range{first / kBufferAlignment * kBufferAlignment, std::min(RoundUp(last, kBufferAlignment), bytes_), nullptr};
      if (acquire) {
        const cl_int error = Map(queue_, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, &range, nullptr);
        if (error != CL_SUCCESS) return DeviceLost("the shared arena cannot be mapped: ", ClErrorName(error));
      }
      handoff.ranges.push_back(range);
    }
    handoffs_.push_back(std::move(handoff));
    return static_cast<int>(handoffs_.size()) - 1;
  }

  cl_int Enqueue(cl_command_queue queue, int index, int* enqueued) override {
    Handoff& handoff = handoffs_[static_cast<size_t>(index)];
    for (Range& range : handoff.ranges) {
      const cl_int error = handoff.acquire ? Unmap(queue, &range, enqueued) : Map(queue, CL_FALSE, CL_MAP_READ, &range, enqueued);
      if (error != CL_SUCCESS) return error;
    }
    return CL_SUCCESS;
  }

  cl_int Begin(cl_command_queue queue, int* enqueued) override {
    return ForRanges(false, [&](Range* range) { return Unmap(queue, range, enqueued); });
  }
  cl_int End(cl_command_queue queue, int* enqueued) override {
    return ForRanges(true, [&](Range* range) { return Map(queue, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, range, enqueued); });
  }

 private:
  struct Handoff {
    bool acquire;
    std::vector<Range> ranges;
  };

  template <typename F>
  cl_int ForRanges(bool acquire, F f) {
    for (Handoff& handoff : handoffs_) {
      if (handoff.acquire != acquire) continue;
      for (Range& range : handoff.ranges) {
        const cl_int error = f(&range);
        if (error != CL_SUCCESS) return error;
      }
    }
    return CL_SUCCESS;
  }
  cl_int Map(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, Range* range, int* enqueued) {
    if (range->mapped != nullptr) return CL_SUCCESS;
    cl_int error = CL_SUCCESS;
    range->mapped = device_->api().clEnqueueMapBuffer(queue, buffer_, blocking, flags, static_cast<size_t>(range->begin),
                                                      static_cast<size_t>(range->end - range->begin), 0, nullptr, nullptr, &error);
    if (error != CL_SUCCESS) return error;
    if (enqueued != nullptr) ++*enqueued;
    // The host goes on using the address that it was given.
    return range->mapped == host_ + range->begin ? CL_SUCCESS : CL_MAP_FAILURE;
  }
  cl_int Unmap(cl_command_queue queue, Range* range, int* enqueued) {
    if (range->mapped == nullptr) return CL_SUCCESS;
    if (enqueued != nullptr) ++*enqueued;
    return device_->api().clEnqueueUnmapMemObject(queue, buffer_, std::exchange(range->mapped, nullptr), 0, nullptr, nullptr);
  }

  std::shared_ptr<Device> device_;
  cl_mem buffer_;
  char* host_;
  int64_t bytes_;
  cl_command_queue queue_;
  std::vector<Handoff> handoffs_;
};

// A buffer of the device's own: exactly the declared elements are copied.
class CopiedArena final : public DeviceArena {
 public:
  CopiedArena(std::shared_ptr<Device> device, ClMem buffer, void* host, int64_t bytes, bool poison)
      : device_(std::move(device)), buffer_(std::move(buffer)), host_(static_cast<char*>(host)), bytes_(bytes), poison_(poison) {}
  Memory memory() const override { return {buffer_.get(), nullptr}; }

  Result<int> Prepare(const StepProgram& program, const std::vector<View>& views, bool acquire) override {
    Handoff handoff{acquire, {}};
    for (const View& view : views) {
      if (view.buffer == kConstantBuffer) continue;
      Axes all = MergedAxes(view.region.size, {view.strides});
      EnsureUnitInner(&all, 0);
      const int64_t first = FirstByte(program, view);
      PLAIT_RETURN_IF_ERROR(ForEachOuter(all, 2, [&](const Axes& axes, const auto& offsets) {
        handoff.boxes.push_back({static_cast<size_t>(first + offsets[0] * 4), static_cast<size_t>(axes[1].extent * 4),
                                 static_cast<size_t>(axes[0].extent), axes[0].extent > 1 ? static_cast<size_t>(axes[0].strides[0] * 4) : 0});
        return Status();
      }));
    }
    handoffs_.push_back(std::move(handoff));
    return static_cast<int>(handoffs_.size()) - 1;
  }

  cl_int Enqueue(cl_command_queue queue, int index, int* enqueued) override {
    const Handoff& handoff = handoffs_[static_cast<size_t>(index)];
    for (const Box& box : handoff.boxes) {
      const size_t at[3] = {box.begin, 0, 0}, zero[3] = {0, 0, 0}, size[3] = {box.bytes, box.rows, 1};
      char* host = host_ + box.begin;
      const cl_int error =
          handoff.acquire
              ? device_->api().clEnqueueWriteBufferRect(queue, buffer_.get(), CL_FALSE, at, zero, size, box.pitch, 0, box.pitch, 0, host, 0, nullptr, nullptr)
              : device_->api().clEnqueueReadBufferRect(queue, buffer_.get(), CL_FALSE, at, zero, size, box.pitch, 0, box.pitch, 0, host, 0, nullptr, nullptr);
      if (error != CL_SUCCESS) return error;
      ++*enqueued;
    }
    return CL_SUCCESS;
  }

  cl_int Begin(cl_command_queue queue, int* enqueued) override {
    if (!poison_) return CL_SUCCESS;
    const cl_uint nan = 0x7fc0beefu;
    ++*enqueued;
    return device_->api().clEnqueueFillBuffer(queue, buffer_.get(), &nan, sizeof(nan), 0, static_cast<size_t>(bytes_ / 4 * 4), 0, nullptr, nullptr);
  }

 private:
  struct Box {
    size_t begin, bytes, rows, pitch;
  };
  struct Handoff {
    bool acquire;
    std::vector<Box> boxes;
  };
  std::shared_ptr<Device> device_;
  ClMem buffer_;
  char* host_;
  int64_t bytes_;
  bool poison_;
  std::vector<Handoff> handoffs_;
};

// Strict mode on shared virtual memory: kernels work in a shadow that starts as NaNs, and handoffs copy whole cache lines, so that
// what a phone without coherence would get wrong is wrong here.
class ShadowArena final : public DeviceArena {
 public:
  ShadowArena(std::shared_ptr<Device> device, void* shadow, void* host, int64_t bytes)
      : device_(std::move(device)), shadow_(shadow), host_(host), bytes_(bytes) {}
  ~ShadowArena() override { device_->api().clSVMFree(device_->context(), shadow_); }
  Memory memory() const override { return {nullptr, shadow_}; }
  bool MayEnqueueAhead() const override { return true; }

  Result<int> Prepare(const StepProgram& program, const std::vector<View>& views, bool acquire) override {
    std::vector<Launch> copies;
    const Memory from{nullptr, acquire ? host_ : shadow_}, to{nullptr, acquire ? shadow_ : host_};
    for (const View& view : views) {
      if (view.buffer == kConstantBuffer) continue;
      Axes all = MergedAxes(view.region.size, {view.strides});
      EnsureUnitInner(&all, 0);
      const int64_t first = FirstByte(program, view) / 4;
      PLAIT_RETURN_IF_ERROR(ForEachOuter(all, 4, [&](const Axes& axes, const auto& offsets) -> Status {
        const int64_t rows = axes[0].extent * axes[1].extent * axes[2].extent;
        LaunchBuilder launch(*device_, Family::kLayout, "copy_lines");
        launch.Arg(from)
            .Arg(to)
            .Arg({first + offsets[0], axes[0].strides[0], axes[1].strides[0], axes[2].strides[0], 0, 0, 0, 0})
            .Arg({axes[1].extent, axes[2].extent, rows, axes[3].extent, rows, 0, 0, 0});
        PLAIT_ASSIGN_OR_RETURN(Launch copy, launch.Finish(1));
        copies.push_back(std::move(copy));
        return Status();
      }));
    }
    handoffs_.push_back(std::move(copies));
    return static_cast<int>(handoffs_.size()) - 1;
  }

  cl_int Enqueue(cl_command_queue queue, int index, int* enqueued) override {
    for (const Launch& copy : handoffs_[static_cast<size_t>(index)]) {
      const cl_int error = opencl::Enqueue(*device_, queue, copy, nullptr);
      if (error != CL_SUCCESS) return error;
      ++*enqueued;
    }
    return CL_SUCCESS;
  }

  cl_int Begin(cl_command_queue queue, int* enqueued) override {
    const cl_uint nan = 0x7fc0beefu;
    ++*enqueued;
    return device_->api().clEnqueueSVMMemFill(queue, shadow_, &nan, sizeof(nan), static_cast<size_t>(bytes_ / 4 * 4), 0, nullptr, nullptr);
  }

 private:
  std::shared_ptr<Device> device_;
  void* shadow_;
  void* host_;
  int64_t bytes_;
  std::vector<std::vector<Launch>> handoffs_;
};

void* SvmAlloc(const Device& device, int64_t bytes) {
  return device.api().clSVMAlloc(device.context(), CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, static_cast<size_t>(std::max<int64_t>(bytes, 1)), 64);
}

}  // namespace

Result<std::unique_ptr<SharedMemory>> AllocateSvm(std::shared_ptr<Device> device, std::shared_ptr<SharedRegistry> registry, int64_t bytes) {
  void* host = SvmAlloc(*device, bytes);
  if (host == nullptr) return OutOfMemory(device->info().device, ": no ", bytes, " bytes of shared virtual memory");
  registry->Insert(host, {{nullptr, host}, bytes});
  return std::unique_ptr<SharedMemory>(new SvmMemory(std::move(device), std::move(registry), host));
}

namespace {

// Maps the whole buffer, then its second half and the whole at once: where the host sees its first byte. Unsupported if that moves.
Result<void*> StableAddress(const Device& device, cl_mem buffer, int64_t bytes) {
  PLAIT_ASSIGN_OR_RETURN(const ClQueue queue, device.CreateQueue(false));
  const auto map = [&](int64_t begin, int64_t end) -> Result<char*> {
    cl_int error = CL_SUCCESS;
    void* mapped = device.api().clEnqueueMapBuffer(queue.get(), buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, static_cast<size_t>(begin),
                                                   static_cast<size_t>(end - begin), 0, nullptr, nullptr, &error);
    if (mapped == nullptr || error != CL_SUCCESS) return OutOfMemory(device.info().device, ": a host buffer cannot be mapped: ", ClErrorName(error));
    return static_cast<char*>(mapped);
  };
  const auto unmap = [&](void* mapped) { device.api().clEnqueueUnmapMemObject(queue.get(), buffer, mapped, 0, nullptr, nullptr); };
  const int64_t size = std::max<int64_t>(bytes, 1), middle = size / 2 / kBufferAlignment * kBufferAlignment;
  PLAIT_ASSIGN_OR_RETURN(char* const address, map(0, size));
  unmap(address);
  bool moves = false;
  std::vector<char*> parts;
  for (const int64_t begin : {middle, int64_t{0}}) {
    PLAIT_ASSIGN_OR_RETURN(char* const part, map(begin, size));
    parts.push_back(part);
    moves = moves || part != address + begin;
  }
  for (char* part : parts) unmap(part);
  if (device.api().clFinish(queue.get()) != CL_SUCCESS) return DeviceLost(device.info().device, ": mapping a host buffer has failed");
  if (moves) return Unsupported(device.info().device, ": mappings of a host buffer move");
  return static_cast<void*>(address);
}

}  // namespace

Result<std::unique_ptr<SharedMemory>> AllocateMapped(std::shared_ptr<Device> device, std::shared_ptr<SharedRegistry> registry, int64_t bytes) {
  // Memory of the driver's own is what most devices share without a copy. Where its mappings move, memory of ours: those may not (OpenCL 3.0, clEnqueueMapBuffer).
  Block own;
  PLAIT_ASSIGN_OR_RETURN(ClMem buffer, device->CreateBuffer(bytes, nullptr, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR));
  Result<void*> address = StableAddress(*device, buffer.get(), bytes);
  if (!address.ok() && address.status().code() == PLAIT_UNSUPPORTED) {
    const std::optional<int64_t> total = CheckedAdd(bytes, 2 * kPageBytes);
    if (total) own = Block::Allocate(static_cast<size_t>(*total));
    if (own.data() == nullptr) return OutOfMemory("no ", bytes, " bytes of host memory");
    // Whole pages of its own: some drivers share no others without a copy.
    char* const pages = static_cast<char*>(own.data()) + (kPageBytes - static_cast<int64_t>(reinterpret_cast<uintptr_t>(own.data()) % kPageBytes)) % kPageBytes;
    PLAIT_ASSIGN_OR_RETURN(buffer, device->CreateBuffer(bytes, pages, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR));
    address = StableAddress(*device, buffer.get(), bytes);
  }
  PLAIT_RETURN_IF_ERROR(address.status());
  registry->Insert(*address, {{buffer.get(), nullptr}, bytes});
  return std::unique_ptr<SharedMemory>(new MappedMemory(std::move(device), std::move(registry), std::move(own), std::move(buffer), *address));
}

Result<std::unique_ptr<DeviceArena>> OpenArena(const ArenaRequest& request, cl_command_queue queue) {
  const Device& device = *request.device;
  Memory shared = request.registry->Find(request.host, request.bytes);
  const bool svm = shared.svm != nullptr || (device.info().system_svm && shared.buffer == nullptr && request.memory != OpenClMemory::kCopied);
  if (svm && !request.strict) return std::unique_ptr<DeviceArena>(new SvmArena(request.host));
  if (svm) {
    void* shadow = SvmAlloc(device, request.bytes + kBufferSlack);
    if (shadow == nullptr) return OutOfMemory(device.info().device, ": no ", request.bytes, " bytes for strict mode's shadow");
    return std::unique_ptr<DeviceArena>(new ShadowArena(request.device, shadow, request.host, request.bytes));
  }
  if (shared.buffer != nullptr && !request.strict) {
    return std::unique_ptr<DeviceArena>(new MappedArena(request.device, shared.buffer, request.host, request.bytes, queue));
  }
  PLAIT_ASSIGN_OR_RETURN(ClMem buffer, device.CreateBuffer(request.bytes + kBufferSlack, nullptr));
  return std::unique_ptr<DeviceArena>(new CopiedArena(request.device, std::move(buffer), request.host, request.bytes, request.strict));
}

}  // namespace plait::opencl
