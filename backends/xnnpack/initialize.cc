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

std::atomic<bool> g_owns_process{false};
bool g_four_rows = false;

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

#if defined(PLAIT_WITH_CPUINFO) && defined(__x86_64__)

Status ChooseTiles() {
  const char* wanted = std::getenv("PLAIT_XNNPACK_TILES");
  const bool may_choose = wanted == nullptr ? g_owns_process.load() : std::string_view(wanted) == "4x16";
  if (!may_choose || !cpuinfo_initialize() || !cpuinfo_has_x86_fma3() || cpuinfo_has_x86_avx512f() || cpuinfo_get_cores_count() == 0) return MakeOneGemm();
  // XNNPACK asks for the first core's, whatever core it runs on.
  auto* core = const_cast<cpuinfo_core*>(cpuinfo_get_core(0));
  const cpuinfo_uarch uarch = core->uarch;
  if (uarch == cpuinfo_uarch_zen || uarch == cpuinfo_uarch_dhyana) return MakeOneGemm();
  core->uarch = cpuinfo_uarch_zen;
  Status status = MakeOneGemm();
  core->uarch = uarch;
  g_four_rows = status.ok();
  return status;
}

#else

Status ChooseTiles() { return Status(); }

#endif

Status Initialize() {
  PLAIT_RETURN_IF_ERROR(ToStatus(xnn_initialize(nullptr), "xnn_initialize"));
  return ChooseTiles();
}

}  // namespace

void OwnProcess() { g_owns_process.store(true); }

const Status& InitializeXnnpack() {
  static const Status* status = new Status(Initialize());
  return *status;
}

bool UsesFourRowTiles() { return InitializeXnnpack().ok() && g_four_rows; }

}  // namespace plait::xnn
