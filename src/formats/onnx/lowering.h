// What the handlers of ONNX operators work with: values by name, attributes, and the graph under construction.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/base/status.h"
#include "src/formats/onnx/model.h"
#include "src/formats/onnx_import.h"
#include "src/graph/builder.h"

namespace plait {

// A value of the file. Either a constant that is known now, or a tensor of the graph in up to two layouts, made when first
// asked for: `plain` is the file's own (N, C, spatial...), `last` has the channels innermost (N, spatial..., C; ranks 3 and 4).
struct OnnxValue {
  std::string name;
  Dims shape;  // in the file's layout
  std::shared_ptr<const OnnxTensor> constant;
  TensorId plain = kNoTensor;
  TensorId last = kNoTensor;
  bool unknown = false;  // made by an unsupported operator; whatever reads it is skipped

  bool is_constant() const { return constant != nullptr; }
  bool is_int() const { return constant != nullptr && constant->is_int(); }
};
using OnnxValuePtr = std::shared_ptr<OnnxValue>;

// Axis `axis` of the file's layout, counted in the channels-last layout of the same tensor.
constexpr int LastAxis(int axis, int rank) { return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1; }
Dims ToLast(const Dims& shape);  // shape with the channels moved innermost
std::vector<int32_t> ToLastPermutation(int rank);
std::vector<int32_t> FromLastPermutation(int rank);

// Everything that lives as long as one import.
struct OnnxImportState {
  explicit OnnxImportState(std::string name) : builder(std::move(name)) {}

  int64_t opset = 0;
  GraphBuilder builder;
  std::unordered_map<std::string, OnnxValuePtr> values;
  std::unordered_set<std::string> names;  // taken or reserved
  std::unordered_set<std::string> output_names;  // of the graph
  std::unordered_set<std::string> read_names;  // by some node, or as an output of the graph
  std::map<std::pair<const ConstData*, std::string>, TensorId>
      weights;  // rearranged constants, by source and arrangement
  int64_t generated_bytes = 0, max_generated_bytes = 0;

  std::string Unique(const std::string& hint);
};

// One node while it is lowered. The first mistake is kept (status()); afterwards every function is harmless and returns
// something empty, so handlers check ok() only before they index or divide by what they read.
class OnnxLowering {
 public:
  OnnxLowering(OnnxImportState* state, const OnnxNode* node) : state_(*state), node_(*node) {}

  bool ok() const { return status_.ok() && state_.builder.ok(); }
  Status status() const { return status_.ok() ? state_.builder.status() : status_; }
  void Fail(Status status);
  const OnnxNode& node() const { return node_; }
  int64_t opset() const { return state_.opset; }

  // Inputs.
  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  bool Has(int i) const { return i < input_count() && !node_.inputs[static_cast<size_t>(i)].empty(); }
  OnnxValuePtr In(int i);  // fails if absent; never nullptr
  const OnnxTensor* Constant(int i);  // fails if absent or not a constant
  const OnnxTensor* FloatConstant(int i);  // also fails if it holds integers
  std::vector<int64_t> IntsIn(int i);  // the elements of a constant integer vector or scalar
  float ScalarIn(int i, float fallback);  // the one element of a constant; `fallback` if absent
  bool AllConstant();  // every present input

  // Attributes.
  const OnnxAttribute* Find(std::string_view name) const;
  int64_t Int(std::string_view name, int64_t fallback);
  float Float(std::string_view name, float fallback);
  std::string String(std::string_view name, const std::string& fallback);
  std::vector<int64_t> Ints(std::string_view name);
  // `axis` counted from the end if negative; fails and returns 0 outside [-rank, rank).
  int Axis(int64_t axis, int rank);
  // The same for a list, sorted; fails on duplicates.
  std::vector<int32_t> Axes(const std::vector<int64_t>& axes, int rank);

  // Graph tensors of values.
  TensorId Plain(const OnnxValuePtr& value);
  TensorId Last(const OnnxValuePtr& value);
  // Whether an elementwise operator over `values` had better work channels-last: some exists only so, and all can be had so.
  static bool PreferLast(const std::vector<OnnxValuePtr>& values);
  const Dims& Shape(TensorId tensor) const { return state_.builder.shape(tensor); }
  const std::string& OutputName(int output = 0) const { return node_.outputs[static_cast<size_t>(output)]; }

  // A constant of `shape` made from `data`, named after `hint`.
  TensorId AddConstant(const std::string& hint, const Dims& shape, std::shared_ptr<const ConstData> data);
  // The constant `source` rearranged: element i of the result is element index[i]... of source, given as source strides per
  // result axis. Made once per (source, tag).
  TensorId Rearranged(const OnnxTensor& source, const std::string& tag, const Dims& shape, const Dims& source_strides);
  // Memory for a constant that the file does not hold; nullptr (and failed) beyond the budget.
  std::shared_ptr<ConstData> NewData(const Dims& shape, DType dtype = DType::kF32);
  TensorId ScalarConstant(float value);

  // Appends an operator whose tensor is internal, named after the node's first output and `hint`.
  TensorId Emit(const std::string& hint, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs);
  // Appends the operator that makes output `output` in the given layout.
  void EmitPlain(int output, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs);
  void EmitLast(int output, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs);
  // In `last` or plain layout, as told.
  void EmitIn(bool last, int output, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs);
  void SetConstant(int output, OnnxTensor tensor);
  void SetConstant(int output, const Dims& shape, std::shared_ptr<const ConstData> data, DType dtype);
  void SetAlias(int output, const OnnxValuePtr& value);
  // The tensor exists already, in this layout.
  void SetTensor(int output, TensorId tensor, bool last);
  bool Wanted(int output) const {
    return output < static_cast<int>(node_.outputs.size()) && !OutputName(output).empty();
  }
  // Whether anything reads the output, or it is one of the graph's.
  bool IsRead(int output) const { return Wanted(output) && state_.read_names.count(OutputName(output)) > 0; }
  // Fails as unsupported if an output beyond the first is read by anything.
  void OnlyFirstOutput();

 private:
  std::string TensorName(int output, bool last);
  void Define(int output, OnnxValuePtr value);

  OnnxImportState& state_;
  const OnnxNode& node_;
  Status status_;
};

using OnnxHandler = void (*)(OnnxLowering&);
// The handler of an operator of the default domain; nullptr if there is none.
OnnxHandler FindOnnxHandler(std::string_view op_type);

// By file: handlers of one family each, as (name, handler) tables.
using OnnxHandlerTable = std::map<std::string_view, OnnxHandler>;
const OnnxHandlerTable& OnnxSpatialHandlers();
const OnnxHandlerTable& OnnxElementwiseHandlers();
const OnnxHandlerTable& OnnxMatrixHandlers();
const OnnxHandlerTable& OnnxViewHandlers();
const OnnxHandlerTable& OnnxConstantHandlers();
const OnnxHandlerTable& OnnxReduceHandlers();
const OnnxHandlerTable& OnnxActivationHandlers();
const OnnxHandlerTable& OnnxNormHandlers();
const OnnxHandlerTable& OnnxResampleHandlers();

// Shared by families.
// The axes of Softmax and LogSoftmax: [axis, end). Before opset 13 they flatten all from `axis` on. Fails if there is no such axis.
struct SoftmaxAxes {
  int axis = 0, end = 0;
  bool flattens = false;
};
SoftmaxAxes ReadSoftmaxAxes(OnnxLowering& n, int rank);
void ImportReduceProduct(OnnxLowering& n);
// LayerNormalization over the axes from `axis` on, with its mean and inverse deviation as outputs 1 and 2 where they are wanted.
void ImportLayerNormWithStatistics(OnnxLowering& n, int axis, float epsilon);

// A numpy broadcast of two shapes; nullopt if they do not fit or the rank is too high.
std::optional<Dims> BroadcastShape(const Dims& a, const Dims& b);
// Strides of `shape` when read as the broadcast `to` (0 on repeated axes). `to` came from BroadcastShape with it.
Dims BroadcastStrides(const Dims& shape, const Dims& to);
// Walks `shape` in row-major order and copies out[k] = in[offset + the offset of k under `strides`]. f32 or i64.
void GatherStrided(const void* in, int64_t offset, const Dims& shape, const Dims& strides, DType dtype, void* out);

}  // namespace plait
