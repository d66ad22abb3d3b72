// Kernel launches with all arguments set: what a compute step becomes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/device.h"

namespace plait::opencl {

struct Launch {
  ClKernel kernel;
  std::array<size_t, 3> global{1, 1, 1};
};

// Enqueues `launch` on an in-order queue; `event` may be null.
cl_int Enqueue(const Device& device, cl_command_queue queue, const Launch& launch, cl_event* event);

// Sets a kernel's arguments in the order of its parameters; the first mistake is kept and reported by Finish.
class LaunchBuilder {
 public:
  LaunchBuilder(Device& device, Family family, const std::string& name);

  LaunchBuilder& Arg(const Memory& memory);
  LaunchBuilder& Arg(float value);
  LaunchBuilder& Arg(float low, float high);  // float2
  // int, int2, int4 or int8 by the number of values, which must fit in 32 bits.
  LaunchBuilder& Arg(std::initializer_list<int64_t> values);

  // The launch over global sizes (each at least 1).
  Result<Launch> Finish(int64_t x, int64_t y = 1, int64_t z = 1);

 private:
  void Set(size_t bytes, const void* value);

  Device& device_;
  std::string name_;
  ClKernel kernel_;
  cl_uint next_ = 0;
  Status status_;
};

}  // namespace plait::opencl
