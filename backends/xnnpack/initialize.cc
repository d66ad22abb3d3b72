#include "backends/xnnpack/initialize.h"

#include <xnnpack.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "backends/xnnpack/xnn_operator.h"

#if defined(PLAIT_WITH_CPUINFO) && defined(__x86_64__)
#include <cpuinfo.h>
#endif

namespace plait::xnn {
namespace {

std::atomic<bool> g_four_rows{false};

#if defined(PLAIT_WITH_CPUINFO) && defined(__x86_64__)

// Makes the smallest operator that needs a GEMM: XNNPACK chooses its kernels when the first one is made.
Status MakeOneGemm() {
  const float weight = 1;
  xnn_operator_t op = nullptr;
  const std::lock_guard<std::mutex> lock(CreationMutex());
  const xnn_status status = xnn_create_fully_connected_nc_f32(1, 1, 1, 1, &weight, nullptr, -1, 1, 0, nullptr, nullptr, &op);
  if (status != xnn_status_success) return ToStatus(status, "xnn_create_fully_connected_nc_f32");
  xnn_delete_operator(op);
  return Status();
}

Status ChooseTiles(bool owns_process) {
  const char* wanted = std::getenv("PLAIT_XNNPACK_TILES");
  const bool may_choose = wanted == nullptr ? owns_process : std::string_view(wanted) == "4x16";
  if (!may_choose || !cpuinfo_initialize() || !cpuinfo_has_x86_fma3() || cpuinfo_has_x86_avx512f() || cpuinfo_get_cores_count() == 0) return Status();
  // XNNPACK asks for the first core's, whatever core it runs on.
  auto* core = const_cast<cpuinfo_core*>(cpuinfo_get_core(0));
  const cpuinfo_uarch uarch = core->uarch;
  if (uarch == cpuinfo_uarch_zen || uarch == cpuinfo_uarch_dhyana) return Status();
  core->uarch = cpuinfo_uarch_zen;
  const Status status = MakeOneGemm();
  core->uarch = uarch;
  g_four_rows = status.ok();
  return status;
}

#else

Status ChooseTiles(bool) { return Status(); }

#endif

Status Initialize(bool owns_process) {
  PLAIT_RETURN_IF_ERROR(ToStatus(xnn_initialize(nullptr), "xnn_initialize"));
  return ChooseTiles(owns_process);
}

}  // namespace

const Status& InitializeXnnpack(bool owns_process) {
  static const Status* status = new Status(Initialize(owns_process));
  return *status;
}

bool UsesFourRowTiles() { return g_four_rows; }

}  // namespace plait::xnn
