// ONNX models as graphs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "src/graph/graph.h"

namespace plait {

struct ImportOptions {
  // Sizes for inputs whose file leaves dimensions open ("batch", -1), by input name. A dimension that the file fixes has to agree.
  std::map<std::string, Dims> shapes;
  // Constants beyond four times the file's size that a model may make while it is read: filled tensors (ConstantOfShape),
  // expanded or rearranged weights. A model that wants more is refused.
  int64_t max_generated_bytes = int64_t{2} << 30;
};

// Whether this build reads and writes ONNX; without it the functions below answer Unsupported.
bool HasOnnx();

// Reads a serialized ModelProto: float32, static shapes, opset 7 and later. The result is valid; its inputs and outputs have the
// file's names, shapes, layout (NCHW for images) and order; spatial operators are NHWC inside, with Transposes where the two meet
// (Optimize() removes most). Constant integer arithmetic on shapes is evaluated here.
//
// Corrupt: the bytes are no ONNX model, or the model contradicts itself. InvalidArgument: an attribute or shape is impossible,
// or `options` do not fit. Unsupported: valid, but beyond this importer; one message lists every operator that it lacks.
// Treats `bytes` as hostile: never crashes, never allocates more than a constant times their length plus max_generated_bytes.
// Thread-safe.
Result<Graph> ImportOnnx(std::string_view bytes, const ImportOptions& options = {});

// The same from a file; messages name it.
Result<Graph> ImportOnnxFile(const std::string& path, const ImportOptions& options = {});

}  // namespace plait
