// An ONNX model as plain data: what importer and exporter work on, so that protobuf stays in codec.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/graph/graph.h"

namespace plait {

// A constant. kF32 holds float32 (float64 is rounded); kI64 holds every integer type and bool.
struct OnnxTensor {
  std::string name;
  DType dtype = DType::kF32;
  Dims shape;
  std::shared_ptr<const ConstData> data;  // shape.Count() elements; never nullptr once decoded

  bool is_int() const { return dtype == DType::kI64; }
  int64_t count() const { return shape.Count(); }
};

struct OnnxAttribute {
  enum class Kind : uint8_t { kFloat, kInt, kString, kFloats, kInts, kTensor, kOther };
  std::string name;
  Kind kind = Kind::kOther;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  OnnxTensor t;
};

struct OnnxNode {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;  // "" for an absent optional one
  std::vector<OnnxAttribute> attributes;
};

struct OnnxDim {
  int64_t value = -1;  // -1: unknown
  std::string symbol;  // of an unknown one, if it has a name
};

struct OnnxValueInfo {
  std::string name;
  std::string dtype = "float32";  // ONNX's word, "" if the value is no tensor
  std::optional<std::vector<OnnxDim>> shape;
};

struct OnnxModel {
  int64_t opset = 0;  // of the default domain
  std::string graph_name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValueInfo> inputs, outputs;
};

// What the importer knows the meaning of; 22 came with IR version 10.
inline constexpr int64_t kMinOpset = 7;
inline constexpr int64_t kMaxOpset = 22;

// The product of non-negative sizes; nullopt if it overflows, or would if the zeros among them were ones: strides are products, too.
std::optional<int64_t> CountOf(const Dims& dims);

// Parses and bounds-checks: lengths of constants equal their shapes, dims are not negative, ranks fit. Nothing about operators.
Result<OnnxModel> DecodeOnnx(std::string_view bytes);

// opset 17, IR version 8.
Result<std::string> EncodeOnnx(const OnnxModel& model);
inline constexpr int64_t kExportOpset = 17;
inline constexpr int64_t kExportIrVersion = 8;

}  // namespace plait
