// ONNX Runtime as the judge of our results, and what makes ONNX files fit for judging.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/graph/graph.h"

namespace plait {

struct OracleTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

// Whether ONNX Runtime was there when the tests were built.
bool HasOracle();

// Runs a serialized model on ONNX Runtime's CPU provider, one thread, without its graph optimisations. Outputs in the model's order.
// Unsupported without ONNX Runtime; InvalidArgument with its message if it refuses the model.
Result<std::vector<OracleTensor>> RunOracle(std::string_view model, const std::vector<OracleTensor>& inputs);

// Runs a graph by the reference backend; same inputs, by name; outputs in the graph's order.
Result<std::vector<OracleTensor>> RunReference(const Graph& graph, const std::vector<OracleTensor>& inputs);

// One seeded tensor per graph input, uniform in -1..1.
std::vector<OracleTensor> RandomInputs(const Graph& graph, uint64_t seed);

// The largest difference, relative to the largest magnitude of `expected`. Infinity if the lengths differ, something is not finite, or
// all of `expected` is zero (which would prove nothing).
double RelativeError(std::span<const float> expected, std::span<const float> actual);
// The largest over all tensors; infinity if their number differs.
double RelativeError(const std::vector<OracleTensor>& expected, const std::vector<OracleTensor>& actual);

// Replaces every float tensor that a model makes by ConstantOfShape by an initializer of seeded random weights, scaled so that
// activations keep their range: by fan-in for convolutions and matrix products, about one for scales and variances, small for shifts.
Status RefillOnnxWeights(std::string* model, uint64_t seed);

// Makes the input of the last Softmax the output, if the model's only output is a Softmax: differences before it are not squashed.
Status CutFinalSoftmax(std::string* model);

// A serialized ModelProto from protobuf's text form; empty if the text is malformed.
std::string OnnxFromText(const std::string& text);

// The model with inputs 1, 2, ... as constants: the i-th has the value of the serialized TensorProto `tensors[i]`.
Result<std::string> FixLaterInputs(std::string_view model, const std::vector<std::string>& tensors);

// A serialized TensorProto of float32, as ONNX' test data holds inputs and outputs.
Result<OracleTensor> ReadOnnxTensor(std::string_view bytes);

}  // namespace plait
