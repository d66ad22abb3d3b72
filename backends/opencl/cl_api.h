// The OpenCL entry points that this backend calls, as a table: loaded at run time, replaceable by tests.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS  // clCreateCommandQueue: its successor needs OpenCL 2.0
#include <CL/cl.h>

#include <memory>
#include <string>
#include <utility>

#include "src/base/status.h"

// Entry points of OpenCL 1.2, which every driver has.
#define PLAIT_CL_REQUIRED_FUNCTIONS(F)                                                                              \
  F(clGetPlatformIDs) F(clGetPlatformInfo) F(clGetDeviceIDs) F(clGetDeviceInfo) F(clCreateSubDevices)               \
  F(clReleaseDevice) F(clCreateContext) F(clReleaseContext) F(clCreateCommandQueue) F(clReleaseCommandQueue)        \
  F(clRetainContext) F(clGetContextInfo) F(clRetainCommandQueue) F(clGetCommandQueueInfo)                           \
  F(clCreateBuffer) F(clReleaseMemObject) F(clCreateProgramWithSource) F(clCreateProgramWithBinary)                 \
  F(clBuildProgram) F(clGetProgramBuildInfo) F(clGetProgramInfo) F(clReleaseProgram) F(clCreateKernel)              \
  F(clReleaseKernel) F(clSetKernelArg) F(clGetKernelWorkGroupInfo) F(clEnqueueNDRangeKernel)                        \
  F(clEnqueueReadBufferRect) F(clEnqueueWriteBufferRect) F(clEnqueueWriteBuffer) F(clEnqueueFillBuffer)             \
  F(clEnqueueMapBuffer) F(clEnqueueUnmapMemObject) F(clEnqueueMarkerWithWaitList) F(clFlush) F(clFinish)            \
  F(clGetEventInfo) F(clGetEventProfilingInfo) F(clReleaseEvent)
// Entry points of OpenCL 2.0: null where the loader is older.
#define PLAIT_CL_OPTIONAL_FUNCTIONS(F) F(clSVMAlloc) F(clSVMFree) F(clSetKernelArgSVMPointer) F(clEnqueueSVMMemFill)

namespace plait {

struct ClApi {
#define PLAIT_CL_MEMBER(name) decltype(&::name) name = nullptr;
  PLAIT_CL_REQUIRED_FUNCTIONS(PLAIT_CL_MEMBER)
  PLAIT_CL_OPTIONAL_FUNCTIONS(PLAIT_CL_MEMBER)
#undef PLAIT_CL_MEMBER

  bool has_svm() const { return clSVMAlloc && clSVMFree && clSetKernelArgSVMPointer && clEnqueueSVMMemFill; }
};

// The table of the system's OpenCL loader, opened once a process and never closed (drivers do not survive that).
// Unsupported if there is no loader, or it lacks a required entry point; the message says which. Thread-safe.
Result<const ClApi*> LoadSystemOpenCl();

// "CL_OUT_OF_RESOURCES" for -5; "OpenCL error N" for a code without a name.
std::string ClErrorName(cl_int error);

// Owns one OpenCL object. Movable; thread-compatible.
template <typename T, auto kRelease>
class ClHandle {
 public:
  ClHandle() = default;
  ClHandle(const ClApi* api, T object) : api_(api), object_(object) {}
  ClHandle(ClHandle&& other) noexcept : api_(other.api_), object_(std::exchange(other.object_, nullptr)) {}
  ClHandle& operator=(ClHandle&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~ClHandle() { Reset(); }

  T get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void Reset() {
    if (object_ != nullptr) (api_->*kRelease)(std::exchange(object_, nullptr));
  }

 private:
  const ClApi* api_ = nullptr;
  T object_ = nullptr;
};

using ClDevice = ClHandle<cl_device_id, &ClApi::clReleaseDevice>;
using ClContext = ClHandle<cl_context, &ClApi::clReleaseContext>;
using ClQueue = ClHandle<cl_command_queue, &ClApi::clReleaseCommandQueue>;
using ClMem = ClHandle<cl_mem, &ClApi::clReleaseMemObject>;
using ClProgram = ClHandle<cl_program, &ClApi::clReleaseProgram>;
using ClKernel = ClHandle<cl_kernel, &ClApi::clReleaseKernel>;
using ClEvent = ClHandle<cl_event, &ClApi::clReleaseEvent>;

}  // namespace plait
