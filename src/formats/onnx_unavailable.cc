// The ONNX entry points of a build without protobuf (PLAIT_ONNX=OFF).
#include "src/formats/onnx_export.h"
#include "src/formats/onnx_import.h"

namespace plait {
namespace {
Status NotBuilt() {
  return Unsupported("this build has no ONNX support (it was configured with PLAIT_ONNX=OFF); use Plait's graph JSON");
}
}  // namespace

bool HasOnnx() { return false; }
Result<Graph> ImportOnnx(std::string_view, const ImportOptions&) { return NotBuilt(); }
Result<Graph> ImportOnnxFile(const std::string& path, const ImportOptions&) { return NotBuilt().Annotated(path); }
Result<std::string> ExportOnnx(const Graph&) { return NotBuilt(); }

}  // namespace plait
