#include "backends/opencl/standby.h"

#include <new>

namespace plait::opencl {
namespace {

constexpr int64_t kTurns = 200'000;  // a third of a millisecond at five cycles a turn and 3 GHz
constexpr cl_uint kBeginArgument = 1;

static_assert(sizeof(std::atomic<cl_int>) == sizeof(cl_int) && std::atomic<cl_int>::is_always_lock_free);

}  // namespace

Result<std::unique_ptr<Standby>> Standby::Create(std::shared_ptr<Device> device) {
  if (!device->info().is_cpu || !device->info().svm_atomics) return std::unique_ptr<Standby>();
  std::unique_ptr<Standby> standby(new Standby(device));
  constexpr size_t kLine = 64;
  void* memory = device->api().clSVMAlloc(device->context(), CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS, kLine, kLine);
  if (memory == nullptr) return OutOfMemory(device->info().device, ": no ", kLine, " bytes of shared virtual memory");
  standby->word_ = new (memory) std::atomic<cl_int>(0);
  Result<Launch> launch = LaunchBuilder(*device, Family::kStandby, "standby").Arg(Memory{nullptr, memory}).Arg({0}).Arg({kTurns}).Finish(1);
  if (!launch.ok()) return launch.status();
  standby->launch_ = std::move(launch).value();
  return standby;
}

Standby::~Standby() {
  if (word_ != nullptr) device_->api().clSVMFree(device_->context(), word_);
}

cl_int Standby::Begin(cl_command_queue queue) {
  if (is_on_) return CL_SUCCESS;
  cl_int error = device_->api().clSetKernelArg(launch_.kernel.get(), kBeginArgument, sizeof(begin_), &begin_);
  if (error == CL_SUCCESS) error = Enqueue(*device_, queue, launch_, nullptr);
  if (error == CL_SUCCESS) error = device_->api().clFlush(queue);
  is_on_ = error == CL_SUCCESS;
  return error;
}

void Standby::End() noexcept {
  if (!is_on_) return;
  begin_ = begin_ == 1 ? 0 : 1;
  word_->store(begin_, std::memory_order_release);
  is_on_ = false;
}

}  // namespace plait::opencl
