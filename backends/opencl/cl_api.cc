#include "backends/opencl/cl_api.h"

#include <dlfcn.h>

#include <cstdlib>

namespace plait {
namespace {

Result<const ClApi*> Load() {
  // The names of the loader on Linux distributions, on Android, on Pixel phones and in cars.
  static constexpr const char* kNames[] = {"libOpenCL.so.1", "libOpenCL.so", "libOpenCL-pixel.so", "libOpenCL-car.so"};
  void* library = nullptr;
  std::string reasons;
  for (const char* name : kNames) {
    library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    const char* reason = ::dlerror();
    reasons += StrCat(reasons.empty() ? "" : "; ", reason != nullptr ? reason : name);
  }
  if (library == nullptr) {
    return Unsupported("no OpenCL loader was found (", reasons, "); install libOpenCL, e.g. ocl-icd-libopencl1");
  }
  static ClApi api;
  std::string missing;
#define PLAIT_CL_LOAD(name) api.name = reinterpret_cast<decltype(api.name)>(::dlsym(library, #name));
#define PLAIT_CL_CHECK(name) \
  if (api.name == nullptr) missing += " " #name;
  PLAIT_CL_REQUIRED_FUNCTIONS(PLAIT_CL_LOAD)
  PLAIT_CL_OPTIONAL_FUNCTIONS(PLAIT_CL_LOAD)
  PLAIT_CL_REQUIRED_FUNCTIONS(PLAIT_CL_CHECK)
#undef PLAIT_CL_LOAD
#undef PLAIT_CL_CHECK
  if (!missing.empty()) return Unsupported("the OpenCL loader is older than OpenCL 1.2; it lacks", missing);
  return &api;
}

}  // namespace

Result<const ClApi*> LoadSystemOpenCl() {
  static const Result<const ClApi*> loaded = Load();
  return loaded;
}

std::string ClErrorName(cl_int error) {
  switch (error) {
#define PLAIT_CL_NAME(code) \
  case code: return #code;
    PLAIT_CL_NAME(CL_SUCCESS)
    PLAIT_CL_NAME(CL_DEVICE_NOT_FOUND)
    PLAIT_CL_NAME(CL_DEVICE_NOT_AVAILABLE)
    PLAIT_CL_NAME(CL_COMPILER_NOT_AVAILABLE)
    PLAIT_CL_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    PLAIT_CL_NAME(CL_OUT_OF_RESOURCES)
    PLAIT_CL_NAME(CL_OUT_OF_HOST_MEMORY)
    PLAIT_CL_NAME(CL_PROFILING_INFO_NOT_AVAILABLE)
    PLAIT_CL_NAME(CL_MEM_COPY_OVERLAP)
    PLAIT_CL_NAME(CL_BUILD_PROGRAM_FAILURE)
    PLAIT_CL_NAME(CL_MAP_FAILURE)
    PLAIT_CL_NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET)
    PLAIT_CL_NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    PLAIT_CL_NAME(CL_COMPILE_PROGRAM_FAILURE)
    PLAIT_CL_NAME(CL_LINKER_NOT_AVAILABLE)
    PLAIT_CL_NAME(CL_LINK_PROGRAM_FAILURE)
    PLAIT_CL_NAME(CL_DEVICE_PARTITION_FAILED)
    PLAIT_CL_NAME(CL_KERNEL_ARG_INFO_NOT_AVAILABLE)
    PLAIT_CL_NAME(CL_INVALID_VALUE)
    PLAIT_CL_NAME(CL_INVALID_DEVICE_TYPE)
    PLAIT_CL_NAME(CL_INVALID_PLATFORM)
    PLAIT_CL_NAME(CL_INVALID_DEVICE)
    PLAIT_CL_NAME(CL_INVALID_CONTEXT)
    PLAIT_CL_NAME(CL_INVALID_QUEUE_PROPERTIES)
    PLAIT_CL_NAME(CL_INVALID_COMMAND_QUEUE)
    PLAIT_CL_NAME(CL_INVALID_HOST_PTR)
    PLAIT_CL_NAME(CL_INVALID_MEM_OBJECT)
    PLAIT_CL_NAME(CL_INVALID_BINARY)
    PLAIT_CL_NAME(CL_INVALID_BUILD_OPTIONS)
    PLAIT_CL_NAME(CL_INVALID_PROGRAM)
    PLAIT_CL_NAME(CL_INVALID_PROGRAM_EXECUTABLE)
    PLAIT_CL_NAME(CL_INVALID_KERNEL_NAME)
    PLAIT_CL_NAME(CL_INVALID_KERNEL_DEFINITION)
    PLAIT_CL_NAME(CL_INVALID_KERNEL)
    PLAIT_CL_NAME(CL_INVALID_ARG_INDEX)
    PLAIT_CL_NAME(CL_INVALID_ARG_VALUE)
    PLAIT_CL_NAME(CL_INVALID_ARG_SIZE)
    PLAIT_CL_NAME(CL_INVALID_KERNEL_ARGS)
    PLAIT_CL_NAME(CL_INVALID_WORK_DIMENSION)
    PLAIT_CL_NAME(CL_INVALID_WORK_GROUP_SIZE)
    PLAIT_CL_NAME(CL_INVALID_WORK_ITEM_SIZE)
    PLAIT_CL_NAME(CL_INVALID_GLOBAL_OFFSET)
    PLAIT_CL_NAME(CL_INVALID_EVENT_WAIT_LIST)
    PLAIT_CL_NAME(CL_INVALID_EVENT)
    PLAIT_CL_NAME(CL_INVALID_OPERATION)
    PLAIT_CL_NAME(CL_INVALID_BUFFER_SIZE)
    PLAIT_CL_NAME(CL_INVALID_GLOBAL_WORK_SIZE)
    PLAIT_CL_NAME(CL_INVALID_PROPERTY)
    PLAIT_CL_NAME(CL_INVALID_COMPILER_OPTIONS)
    PLAIT_CL_NAME(CL_INVALID_LINKER_OPTIONS)
    PLAIT_CL_NAME(CL_INVALID_DEVICE_PARTITION_COUNT)
#undef PLAIT_CL_NAME
    case -1001: return "CL_PLATFORM_NOT_FOUND_KHR";
    default: return StrCat("OpenCL error ", error);
  }
}

}  // namespace plait
