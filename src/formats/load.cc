#include "src/formats/load.h"

#include <algorithm>
#include <filesystem>

#include "src/base/file_io.h"
#include "src/formats/json_graph.h"

namespace plait {
namespace {

struct Signature {
  size_t offset;
  std::string_view bytes;
  const char* is;
};

using namespace std::string_view_literals;
const char* Reads() {
  return HasOnnx() ? "this build reads ONNX and Plait's graph JSON" : "this build reads Plait's graph JSON only";
}
constexpr Signature kSignatures[] = {
    {4, "TFL3"sv, "a TensorFlow Lite file; convert it to ONNX (tf2onnx)"},
    {0, "\x1f\x8b"sv, "a gzip archive; unpack it first"},
    {0, "PK\x03\x04"sv,
     "a zip archive, as PyTorch checkpoints and Keras models are; unpack it, or export the model (torch.onnx.export)"},
    {0,
     "\xfd"sv
     "7zXZ"sv,
     "an xz archive; unpack it first"},
    {0, "\x28\xb5\x2f\xfd"sv, "a Zstandard archive; unpack it first"},
    {0, "\x89PNG"sv, "a PNG image"},
    {0, "\xff\xd8\xff"sv, "a JPEG image"},
    {0, "\x89HDF"sv, "an HDF5 file, as Keras writes; convert it to ONNX (tf2onnx)"},
    {0, "\x93NUMPY"sv, "a NumPy array; it may be an input of a model"},
    {0, "GGUF"sv, "a GGUF file"},
    {0,
     "\x7f"
     "ELF"sv,
     "a program"},
    {0, "%PDF"sv, "a PDF document"},
    {0, "version https://git-lfs"sv, "a Git LFS pointer; fetch the file itself (git lfs pull)"},
    {0, "\xff\xfe"sv, "text in UTF-16; save it as UTF-8"},
    {0, "\xfe\xff"sv, "text in UTF-16; save it as UTF-8"},
};

bool LooksLikeText(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, 512);
  return std::all_of(head.begin(), head.end(),
                     [](char c) { return (c >= 0x20 && c != 0x7f) || c == '\n' || c == '\r' || c == '\t'; });
}

bool LooksLikeJson(std::string_view bytes) {
  if (bytes.substr(0, 3) == "\xef\xbb\xbf") bytes.remove_prefix(3);  // UTF-8's byte order mark
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && bytes[first] == '{';
}

// An ONNX file begins with its IR version: field 1, a small number.
bool LooksLikeOnnx(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x08 && bytes[1] > 0 && bytes[1] < 0x40;
}

Status NotAModel(std::string_view bytes) {
  for (const Signature& s : kSignatures) {
    if (bytes.size() >= s.offset && bytes.substr(s.offset, s.bytes.size()) == s.bytes) {
      return Unsupported("is ", s.is, "; ", Reads());
    }
  }
  if (LooksLikeText(bytes)) return Corrupt("is a text file, not a model; ", Reads());
  return Corrupt("is no model that is known here (", bytes.size(), " bytes); ", Reads());
}

bool IsKnownOther(std::string_view bytes) { return NotAModel(bytes).code() == PLAIT_UNSUPPORTED; }

Result<Graph> Load(std::string_view bytes, const WeightsReader& weights, const ImportOptions& options) {
  if (bytes.empty()) return Corrupt("is empty; copy or export the model again");
  if (LooksLikeJson(bytes)) return ImportGraphJson(bytes, weights);
  if (IsKnownOther(bytes)) return NotAModel(bytes);
  if (!LooksLikeOnnx(bytes) && (!HasOnnx() || LooksLikeText(bytes))) return NotAModel(bytes);
  Result<Graph> graph = ImportOnnx(bytes, options);
  if (graph.ok() || graph.status().code() != PLAIT_CORRUPT || LooksLikeOnnx(bytes)) return graph;
  return NotAModel(bytes);
}

}  // namespace

Result<Graph> LoadModelFile(const std::string& path, const ImportOptions& options) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return IoError(path, ": is a directory; name the model file in it");
  PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  Result<Graph> graph = Load(bytes, ReadWeightsBeside(path), options);
  if (!graph.ok()) return graph.status().Annotated(path);
  return graph;
}

Result<Graph> LoadModelBytes(std::string_view bytes, const ImportOptions& options) {
  const WeightsReader none = [](const std::string& file) -> Result<std::string> {
    return Unsupported("its weights are in another file, '", file, "'; load it by its path, or write it with its weights inside");
  };
  return Load(bytes, none, options);
}

}  // namespace plait
