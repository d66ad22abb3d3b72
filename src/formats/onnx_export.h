// Graphs as ONNX models, for other runtimes.
#pragma once

#include <string>

#include "src/graph/graph.h"

namespace plait {

// `graph` (valid, float32) as a serialized ONNX model: opset 17, IR version 8. Inputs and outputs keep names, shapes and order.
// Images are NCHW inside; Transposes appear only where a graph's own interface or a layout-sensitive operator demands NHWC.
// Unsupported: a dtype other than f32, or more than the 2 GiB that protobuf can hold. Thread-safe.
Result<std::string> ExportOnnx(const Graph& graph);

}  // namespace plait
