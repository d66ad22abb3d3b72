#include "backends/opencl/signals.h"

#include <new>

namespace plait::opencl {
namespace {

constexpr cl_uint kTicketArgument = 1;

static_assert(sizeof(std::atomic<cl_uint>) == sizeof(cl_uint) && std::atomic<cl_uint>::is_always_lock_free);

}  // namespace

Result<std::unique_ptr<Signals>> Signals::Create(std::shared_ptr<Device> device) {
  if (!device->info().is_cpu || !device->info().svm_atomics) return std::unique_ptr<Signals>();
  std::unique_ptr<Signals> signals(new Signals(device));
  const cl_svm_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS;
  void* memory = device->api().clSVMAlloc(device->context(), flags, sizeof(Words), alignof(Words));
  if (memory == nullptr) return OutOfMemory(device->info().device, ": no ", sizeof(Words), " bytes of shared virtual memory");
  signals->words_ = new (memory) Words;
  PLAIT_ASSIGN_OR_RETURN(signals->gate_, LaunchBuilder(*device, Family::kSignals, "gate").Arg(Memory{nullptr, &signals->words_->gate}).Arg({0}).Finish(1));
  PLAIT_ASSIGN_OR_RETURN(signals->signal_, LaunchBuilder(*device, Family::kSignals, "signal").Arg(Memory{nullptr, &signals->words_->done}).Arg({0}).Finish(1));
  return signals;
}

Signals::~Signals() {
  if (words_ != nullptr) device_->api().clSVMFree(device_->context(), words_);
}

cl_int Signals::EnqueueGate(cl_command_queue queue, cl_uint ticket) { return EnqueueWith(queue, gate_, ticket, nullptr); }

cl_int Signals::EnqueueSignal(cl_command_queue queue, cl_uint ticket, cl_event* event) { return EnqueueWith(queue, signal_, ticket, event); }

cl_int Signals::EnqueueWith(cl_command_queue queue, const Launch& launch, cl_uint ticket, cl_event* event) {
  const cl_int error = device_->api().clSetKernelArg(launch.kernel.get(), kTicketArgument, sizeof(ticket), &ticket);
  return error == CL_SUCCESS ? Enqueue(*device_, queue, launch, event) : error;
}

}  // namespace plait::opencl
