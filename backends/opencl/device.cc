#include "backends/opencl/device.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "backends/interface/steps.h"
#include "backends/opencl/kernels/sources.h"
#include "backends/opencl/program_cache.h"
#include "backends/opencl/rules.h"
#include "backends/opencl/select.h"
#include "src/base/log.h"

namespace plait::opencl {
namespace {

struct FamilyText {
  const char* name;
  const char* source;
};

FamilyText TextOf(Family family) {
  switch (family) {
    case Family::kGemm: return {"gemm", kGemmSource};
    case Family::kDepthwise: return {"depthwise", kDepthwiseSource};
    case Family::kPool: return {"pool", kPoolSource};
    case Family::kElementwise: return {"elementwise", kElementwiseSource};
    case Family::kRows: return {"rows", kRowsSource};
    case Family::kLayout: return {"layout", kLayoutSource};
    case Family::kSignals: return {"signals", kSignalsSource};
  }
  return {"", ""};
}

std::string BuildLog(const ClApi& api, cl_program program, cl_device_id device) {
  size_t bytes = 0;
  if (api.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string log(bytes, '\0');
  if (api.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr) != CL_SUCCESS) return "";
  constexpr size_t kShown = 1000;
  log.resize(std::min(log.find('\0'), std::min(log.size(), kShown)));
  return log;
}

std::string BinaryOf(const ClApi& api, cl_program program) {
  size_t bytes = 0;
  if (api.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(bytes), &bytes, nullptr) != CL_SUCCESS || bytes == 0) return "";
  std::string binary(bytes, '\0');
  unsigned char* place = reinterpret_cast<unsigned char*>(binary.data());
  if (api.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(place), &place, nullptr) != CL_SUCCESS) return "";
  return binary;
}

}  // namespace

Device::~Device() = default;

Result<std::shared_ptr<Device>> Device::Open(const OpenClLaneConfig& config) {
  std::shared_ptr<Device> device(new Device);
  device->api_ = config.api;
  if (device->api_ == nullptr) {
    PLAIT_ASSIGN_OR_RETURN(device->api_, LoadSystemOpenCl());
  }
  device->cache_dir_ = config.cache_dir;
  if (config.context != nullptr) {
    PLAIT_RETURN_IF_ERROR(device->AdoptContext(config).Annotated("lane " + config.name));
  } else if (config.device != nullptr || config.queue != nullptr) {
    return InvalidArgument("lane ", config.name, ": an OpenCL device or queue was given without its context");
  } else {
    PLAIT_RETURN_IF_ERROR(device->FindDevice(config));
  }
  if (!device->info_.is_cpu) device->tuning_ = {.vector = 4, .row_tile = 4, .gemv_tiles = 1, .single_item_groups = false};
  if (!device->context_) PLAIT_RETURN_IF_ERROR(device->OpenContext().Annotated(StrCat("lane ", config.name, ": ", device->info_.device)));
  return device;
}

Status Device::FindDevice(const OpenClLaneConfig& config) {
  std::vector<int> cpus = config.cpus;
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  PLAIT_RETURN_IF_ERROR(StartDrivers(*api_, cpus));
  PLAIT_ASSIGN_OR_RETURN(FoundDevice chosen, ChooseDevice(FindDevices(*api_), config));
  id_ = chosen.id;
  info_ = chosen.info;
  const auto cores = static_cast<int>(cpus.size());
  if (info_.is_cpu && cores > 0 && info_.compute_units > cores) {
    // The driver was started before with more threads: take as many of its units as there are cores.
    const cl_device_partition_property by_counts[] = {CL_DEVICE_PARTITION_BY_COUNTS, cores, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    cl_device_id part = nullptr;
    const cl_int error = api_->clCreateSubDevices(chosen.id, by_counts, 1, &part, nullptr);
    if (error != CL_SUCCESS) {
      return Unsupported("lane ", config.name, ": ", info_.device, " has ", info_.compute_units, " compute units for ", cores,
                         " cores and cannot be divided: ", ClErrorName(error), "; set POCL_MAX_PTHREAD_COUNT=", cores);
    }
    sub_device_ = ClDevice(api_, part);
    id_ = part;
    info_.compute_units = cores;
  }
  return Status();
}

Status Device::AdoptContext(const OpenClLaneConfig& config) {
  const auto context = static_cast<cl_context>(config.context);
  size_t bytes = 0;
  cl_int error = api_->clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &bytes);
  std::vector<cl_device_id> devices(bytes / sizeof(cl_device_id));
  if (error == CL_SUCCESS && !devices.empty()) error = api_->clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr);
  if (error != CL_SUCCESS || devices.empty()) return InvalidArgument("the OpenCL context that was given has no devices to ask for: ", ClErrorName(error));
  id_ = static_cast<cl_device_id>(config.device);
  if (id_ == nullptr) {
    if (devices.size() > 1) return InvalidArgument("the OpenCL context that was given has ", devices.size(), " devices; say which one is meant");
    id_ = devices[0];
  }
  if (std::find(devices.begin(), devices.end(), id_) == devices.end()) return InvalidArgument("the OpenCL device that was given is not one of the context's");
  info_ = DescribeDevice(*api_, id_).info;
  if (!info_.refused.empty()) return Unsupported(info_.device, ": ", info_.refused);
  error = api_->clRetainContext(context);
  if (error != CL_SUCCESS) return InvalidArgument("the OpenCL context that was given cannot be kept: ", ClErrorName(error));
  context_ = ClContext(api_, context);
  return config.queue == nullptr ? Status() : AdoptQueue(static_cast<cl_command_queue>(config.queue));
}

Status Device::AdoptQueue(cl_command_queue queue) {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  cl_command_queue_properties properties = 0;
  cl_int error = api_->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, nullptr);
  if (error == CL_SUCCESS) error = api_->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, nullptr);
  if (error == CL_SUCCESS) error = api_->clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties, nullptr);
  if (error != CL_SUCCESS) return InvalidArgument("the OpenCL queue that was given cannot be asked: ", ClErrorName(error));
  if (context != context_.get() || device != id_) return InvalidArgument("the OpenCL queue that was given is of another context or device");
  if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0) return InvalidArgument("the OpenCL queue that was given is out of order; one in order is needed");
  error = api_->clRetainCommandQueue(queue);
  if (error != CL_SUCCESS) return InvalidArgument("the OpenCL queue that was given cannot be kept: ", ClErrorName(error));
  queue_ = ClQueue(api_, queue);
  queue_keeps_times_ = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
  return Status();
}

Status Device::OpenContext() {
  cl_int error = CL_SUCCESS;
  context_ = ClContext(api_, api_->clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &error));
  if (!context_ || error != CL_SUCCESS) return DeviceLost("no OpenCL context: ", ClErrorName(error));
  return Status();
}

Result<ClQueue> Device::CreateQueue(bool profiling) const {
  cl_int error = CL_SUCCESS;
  if (queue_ && (queue_keeps_times_ || !profiling)) {
    error = api_->clRetainCommandQueue(queue_.get());
    if (error != CL_SUCCESS) return DeviceLost(info_.device, ": the application's command queue: ", ClErrorName(error));
    return ClQueue(api_, queue_.get());
  }
  ClQueue queue(api_, api_->clCreateCommandQueue(context_.get(), id_, profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &error));
  if (!queue || error != CL_SUCCESS) return DeviceLost(info_.device, ": no command queue: ", ClErrorName(error));
  return queue;
}

Result<ClMem> Device::CreateBuffer(int64_t bytes, const void* data, cl_mem_flags flags) const {
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  if (info_.max_allocation_bytes > 0 && bytes > info_.max_allocation_bytes) {
    return OutOfMemory(info_.device, ": a buffer of ", bytes, " bytes is more than its largest, ", info_.max_allocation_bytes);
  }
  cl_int error = CL_SUCCESS;
  if (data != nullptr && (flags & CL_MEM_USE_HOST_PTR) == 0) flags |= CL_MEM_COPY_HOST_PTR;
  ClMem buffer(api_, api_->clCreateBuffer(context_.get(), flags, size, const_cast<void*>(data), &error));
  if (!buffer || error != CL_SUCCESS) {
    return OutOfMemory(info_.device, ": no buffer of ", bytes, " bytes: ", ClErrorName(error));
  }
  return buffer;
}

Result<ClKernel> Device::CreateKernel(Family family, const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ClProgram& program = programs_[static_cast<size_t>(family)];
  if (!program) {
    PLAIT_ASSIGN_OR_RETURN(program, Build(family));
  }
  cl_int error = CL_SUCCESS;
  ClKernel kernel(api_, api_->clCreateKernel(program.get(), name.c_str(), &error));
  if (!kernel || error != CL_SUCCESS) return Internal("OpenCL kernel ", name, " cannot be made: ", ClErrorName(error));
  return kernel;
}

Result<ClProgram> Device::Build(Family family) {
  const FamilyText text = TextOf(family);
  const std::string what = StrCat("OpenCL program ", text.name, " on ", info_.device);
  ProgramKey key;
  key.source = StrCat(kPrelude, text.source);
  key.options = StrCat("-w -cl-std=CL1.2 -DVW=", tuning_.vector, " -DNV=", kTileColumns / tuning_.vector, " -DMR=", tuning_.row_tile,
                       " -DGEMV_TILES=", tuning_.gemv_tiles, tuning_.single_item_groups ? " -DLOCAL_ONE" : "");
  key.device = StrCat(info_.platform, " | ", info_.platform_version, " | ", info_.device, " | ", info_.driver_version);
  key.plait = PLAIT_VERSION;
  if (std::optional<std::string> binary = LoadProgram(cache_dir_, key)) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(binary->data());
    const size_t size = binary->size();
    cl_int status = CL_SUCCESS, error = CL_SUCCESS;
    ClProgram program(api_, api_->clCreateProgramWithBinary(context_.get(), 1, &id_, &size, &bytes, &status, &error));
    if (program && error == CL_SUCCESS && status == CL_SUCCESS &&
        api_->clBuildProgram(program.get(), 1, &id_, key.options.c_str(), nullptr, nullptr) == CL_SUCCESS) {
      return program;
    }
    Log(LogLevel::kInfo, what + ": the cached binary is refused by the driver and built again");
  }
  PLAIT_ASSIGN_OR_RETURN(ClProgram program, BuildFromSource(key.source, key.options, what));
  if (!cache_dir_.empty()) {
    const std::string binary = BinaryOf(*api_, program.get());
    const Status stored = binary.empty() ? IoError("the driver gives no binary") : StoreProgram(cache_dir_, key, binary);
    if (!stored.ok()) Log(LogLevel::kWarning, what + " is not cached: " + stored.message());
  }
  return program;
}

Result<ClProgram> Device::BuildFromSource(const std::string& source, const std::string& options, const std::string& what) {
  cl_int error = CL_SUCCESS;
  const char* text = source.c_str();
  ClProgram program(api_, api_->clCreateProgramWithSource(context_.get(), 1, &text, nullptr, &error));
  if (!program || error != CL_SUCCESS) return DeviceLost(what, ": ", ClErrorName(error));
  error = api_->clBuildProgram(program.get(), 1, &id_, options.c_str(), nullptr, nullptr);
  if (error != CL_SUCCESS) {
    return Unsupported(what, " does not build with \"", options, "\": ", ClErrorName(error), "; ", BuildLog(*api_, program.get(), id_));
  }
  return program;
}

Result<std::shared_ptr<ClMem>> Device::Constant(const Tensor& tensor, const std::string& form, MakeBytes make, int64_t parameter) {
  if (tensor.data == nullptr) return Internal("tensor ", tensor.name, " is no constant");
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(constants_, [](const auto& entry) { return entry.second.memory.expired() || entry.second.data.expired(); });
  CachedConstant& entry = constants_[{tensor.data.get(), form}];
  if (std::shared_ptr<ClMem> memory = entry.memory.lock()) return memory;
  std::shared_ptr<ClMem> memory;
  if (form.empty()) {
    // Kernels may load a whole vector tile from the last elements on.
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes() + kBufferSlack));
    std::memcpy(bytes.data(), tensor.data->data(), static_cast<size_t>(tensor.bytes()));
    PLAIT_ASSIGN_OR_RETURN(ClMem made, CreateBuffer(static_cast<int64_t>(bytes.size()), bytes.data(), CL_MEM_READ_ONLY));
    memory = std::make_shared<ClMem>(std::move(made));
  } else {
    const std::vector<float> bytes = make(tensor, parameter);
    PLAIT_ASSIGN_OR_RETURN(ClMem made, CreateBuffer(static_cast<int64_t>(bytes.size() * sizeof(float)), bytes.data(), CL_MEM_READ_ONLY));
    memory = std::make_shared<ClMem>(std::move(made));
  }
  entry = {tensor.data, memory};
  return memory;
}

Result<std::shared_ptr<ClMem>> Device::Zeros(int64_t elements) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (zeros_ == nullptr || zero_elements_ < elements) {
    const std::vector<float> zeros(static_cast<size_t>(elements), 0.0f);
    PLAIT_ASSIGN_OR_RETURN(ClMem made, CreateBuffer(elements * 4, zeros.data(), CL_MEM_READ_ONLY));
    zeros_ = std::make_shared<ClMem>(std::move(made));
    zero_elements_ = elements;
  }
  return zeros_;
}

}  // namespace plait::opencl
