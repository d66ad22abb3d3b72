// Changes to ONNX files before they are judged.
#include <google/protobuf/text_format.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "tests/oracle/oracle.h"

namespace plait {
namespace {

struct Fill {
  float mean = 0, spread = 0.1f;  // uniform in mean - spread .. mean + spread
};

// Reads of each value: the operator's type and the input's index. Unsqueeze and Identity are looked through.
using Readers = std::multimap<std::string, std::pair<std::string, int>>;

Readers ReadersOf(const onnx::GraphProto& graph) {
  std::map<std::string, std::string> source;  // of an Unsqueeze's output
  Readers readers;
  for (const auto& node : graph.node()) {
    if (node.op_type() == "Unsqueeze" || node.op_type() == "Identity") source[node.output(0)] = node.input(0);
  }
  for (const auto& node : graph.node()) {
    for (int i = 0; i < node.input_size(); ++i) {
      std::string name = node.input(i);
      for (auto found = source.find(name); found != source.end(); found = source.find(name)) name = found->second;
      readers.emplace(name, std::make_pair(node.op_type(), i));
    }
  }
  return readers;
}

Fill FillFor(const std::string& op_type, int input, const std::vector<int64_t>& shape) {
  if ((op_type == "Conv" || op_type == "Gemm" || op_type == "MatMul") && input == 1) {
    double fan_in = 1;
    for (size_t i = 1; i < shape.size(); ++i) fan_in *= static_cast<double>(shape[i]);
    return {0, static_cast<float>(std::sqrt(6 / fan_in))};  // variance 2 / fan-in, as ReLUs need
  }
  const bool scale = op_type == "Mul" || (op_type == "BatchNormalization" && (input == 1 || input == 4));
  return scale ? Fill{1, 0.5f} : Fill{0, 0.1f};
}

bool Parse(const std::string& bytes, onnx::ModelProto* model) { return model->ParseFromString(bytes); }

}  // namespace

Status RefillOnnxWeights(std::string* bytes, uint64_t seed) {
  onnx::ModelProto model;
  if (!Parse(*bytes, &model)) return Corrupt("not an ONNX model");
  onnx::GraphProto* graph = model.mutable_graph();
  const Readers readers = ReadersOf(*graph);
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& t : graph->initializer()) {
    if (t.data_type() != onnx::TensorProto::INT64) continue;
    std::vector<int64_t> values(t.int64_data().begin(), t.int64_data().end());
    if (values.empty()) {
      values.resize(t.raw_data().size() / sizeof(int64_t));
      std::copy(t.raw_data().begin(), t.raw_data().end(), reinterpret_cast<char*>(values.data()));
    }
    shapes[t.name()] = std::move(values);
  }
  std::mt19937_64 random(seed);
  google::protobuf::RepeatedPtrField<onnx::NodeProto> kept;
  int refilled = 0;
  for (onnx::NodeProto& node : *graph->mutable_node()) {
    const auto shape = node.op_type() == "ConstantOfShape" ? shapes.find(node.input(0)) : shapes.end();
    if (shape == shapes.end()) {
      *kept.Add() = std::move(node);
      continue;
    }
    const auto reader = readers.find(node.output(0));
    const Fill fill =
        reader == readers.end() ? Fill{} : FillFor(reader->second.first, reader->second.second, shape->second);
    onnx::TensorProto* weights = graph->add_initializer();
    weights->set_name(node.output(0));
    weights->set_data_type(onnx::TensorProto::FLOAT);
    size_t count = 1;
    for (const int64_t d : shape->second) {
      weights->add_dims(d);
      count *= static_cast<size_t>(d);
    }
    std::string* raw = weights->mutable_raw_data();
    raw->resize(count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
      const float unit = static_cast<float>(random() >> 40) / static_cast<float>(1 << 23) - 1.0f;
      const float value = fill.mean + fill.spread * unit;
      std::copy_n(reinterpret_cast<const char*>(&value), sizeof(float), raw->data() + i * sizeof(float));
    }
    ++refilled;
  }
  if (refilled == 0) return InvalidArgument("the model makes no weights by ConstantOfShape");
  graph->mutable_node()->Swap(&kept);
  return model.SerializeToString(bytes) ? Status() : Internal("cannot serialize");
}

Status CutFinalSoftmax(std::string* bytes) {
  onnx::ModelProto model;
  if (!Parse(*bytes, &model)) return Corrupt("not an ONNX model");
  onnx::GraphProto* graph = model.mutable_graph();
  if (graph->output_size() != 1) return Status();
  for (int i = 0; i < graph->node_size(); ++i) {
    const onnx::NodeProto& node = graph->node(i);
    if (node.op_type() != "Softmax" || node.output(0) != graph->output(0).name()) continue;
    onnx::ValueInfoProto* output = graph->mutable_output(0);
    output->set_name(node.input(0));
    output->mutable_type()->mutable_tensor_type()->clear_shape();
    graph->mutable_node()->DeleteSubrange(i, 1);
    break;
  }
  return model.SerializeToString(bytes) ? Status() : Internal("cannot serialize");
}

std::string OnnxFromText(const std::string& text) {
  onnx::ModelProto model;
  std::string bytes;
  if (!google::protobuf::TextFormat::ParseFromString(text, &model) || !model.SerializeToString(&bytes)) return {};
  return bytes;
}

Result<std::string> FixLaterInputs(std::string_view bytes, const std::vector<std::string>& tensors) {
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return Corrupt("not an ONNX model");
  onnx::GraphProto* graph = model.mutable_graph();
  if (graph->input_size() != static_cast<int>(tensors.size())) return InvalidArgument("another number of inputs");
  for (int i = 1; i < graph->input_size(); ++i) {
    onnx::TensorProto* constant = graph->add_initializer();
    if (!constant->ParseFromString(tensors[static_cast<size_t>(i)])) return Corrupt("not a tensor");
    constant->set_name(graph->input(i).name());
  }
  return model.SerializeAsString();
}

Result<OracleTensor> ReadOnnxTensor(std::string_view bytes) {
  onnx::TensorProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return Corrupt("not a TensorProto");
  if (proto.data_type() != onnx::TensorProto::FLOAT) return Unsupported("not float32");
  OracleTensor tensor{
      proto.name(), {proto.dims().begin(), proto.dims().end()}, {proto.float_data().begin(), proto.float_data().end()}};
  if (tensor.values.empty()) {
    tensor.values.resize(proto.raw_data().size() / sizeof(float));
    if (!tensor.values.empty()) {
      std::memcpy(tensor.values.data(), proto.raw_data().data(), tensor.values.size() * sizeof(float));
    }
  }
  return tensor;
}

}  // namespace plait
