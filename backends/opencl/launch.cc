#include "backends/opencl/launch.h"

#include <limits>

namespace plait::opencl {

cl_int Enqueue(const Device& device, cl_command_queue queue, const Launch& launch, cl_event* event) {
  static constexpr size_t kOne[3] = {1, 1, 1};
  const size_t* local = device.tuning().single_item_groups ? kOne : nullptr;
  return device.api().clEnqueueNDRangeKernel(queue, launch.kernel.get(), 3, nullptr, launch.global.data(), local, 0, nullptr, event);
}

LaunchBuilder::LaunchBuilder(Device& device, Family family, const std::string& name) : device_(device), name_(name) {
  Result<ClKernel> kernel = device.CreateKernel(family, name);
  if (kernel.ok()) {
    kernel_ = std::move(kernel).value();
  } else {
    status_ = kernel.status();
  }
}

void LaunchBuilder::Set(size_t bytes, const void* value) {
  if (!status_.ok()) return;
  const cl_int error = device_.api().clSetKernelArg(kernel_.get(), next_, bytes, value);
  if (error != CL_SUCCESS) status_ = Internal("argument ", next_, " of OpenCL kernel ", name_, ": ", ClErrorName(error));
  ++next_;
}

LaunchBuilder& LaunchBuilder::Arg(const Memory& memory) {
  if (memory.buffer != nullptr || !status_.ok()) {
    Set(sizeof(cl_mem), &memory.buffer);
    return *this;
  }
  const cl_int error = device_.api().clSetKernelArgSVMPointer(kernel_.get(), next_, memory.svm);
  if (error != CL_SUCCESS) status_ = Internal("argument ", next_, " of OpenCL kernel ", name_, ": ", ClErrorName(error));
  ++next_;
  return *this;
}

LaunchBuilder& LaunchBuilder::Arg(float value) {
  Set(sizeof(value), &value);
  return *this;
}

LaunchBuilder& LaunchBuilder::Arg(float low, float high) {
  const cl_float2 range = {{low, high}};
  Set(sizeof(range), &range);
  return *this;
}

LaunchBuilder& LaunchBuilder::Arg(std::initializer_list<int64_t> values) {
  cl_int8 vector = {};
  size_t n = 0;
  for (int64_t value : values) {
    if (value < std::numeric_limits<cl_int>::min() || value > std::numeric_limits<cl_int>::max()) {
      if (status_.ok()) status_ = Unsupported("OpenCL kernel ", name_, " counts in 32 bits; ", value, " does not fit");
    }
    vector.s[n++] = static_cast<cl_int>(value);
  }
  Set(n * sizeof(cl_int), &vector);
  return *this;
}

Result<Launch> LaunchBuilder::Finish(int64_t x, int64_t y, int64_t z) {
  PLAIT_RETURN_IF_ERROR(status_);
  Launch launch;
  launch.kernel = std::move(kernel_);
  launch.global = {static_cast<size_t>(x), static_cast<size_t>(y), static_cast<size_t>(z)};
  return launch;
}

}  // namespace plait::opencl
