// From a graph (NHWC) to an ONNX model (NCHW).
//
// Every rank-4 tensor has up to two variants, made when first asked for: as the graph has it, and NCHW. Layout-bound operators ask
// for the one they need, all others follow their operands, so that Transposes appear only where the two meet.
#include "src/formats/onnx_export.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_set>

#include "src/formats/onnx/lowering.h"

namespace plait {
namespace {

using ValueId = int;
constexpr ValueId kNone = -1;

enum Variant { kAsIs = 0, kNchw = 1 };

OnnxAttribute IntAttr(const std::string& name, int64_t value) {
  OnnxAttribute a;
  a.name = name;
  a.kind = OnnxAttribute::Kind::kInt;
  a.i = value;
  return a;
}

OnnxAttribute FloatAttr(const std::string& name, float value) {
  OnnxAttribute a;
  a.name = name;
  a.kind = OnnxAttribute::Kind::kFloat;
  a.f = value;
  return a;
}

OnnxAttribute IntsAttr(const std::string& name, std::vector<int64_t> values) {
  OnnxAttribute a;
  a.name = name;
  a.kind = OnnxAttribute::Kind::kInts;
  a.ints = std::move(values);
  return a;
}

std::vector<int64_t> Widened(const std::vector<int32_t>& values) {
  return std::vector<int64_t>(values.begin(), values.end());
}

// A shape of the graph in NCHW order; lower ranks get leading ones, as broadcasting reads them.
Dims NchwShape(const Dims& shape) {
  Dims nhwc = Dims::Filled(4, 1);
  for (int i = 0; i < shape.rank(); ++i) nhwc[3 - i] = shape.back(i);
  return {nhwc[0], nhwc[3], nhwc[1], nhwc[2]};
}

// Whether the elements of an image stand in the same order in both layouts.
bool LayoutsCoincide(const Dims& nhwc) { return nhwc[1] * nhwc[2] == 1 || nhwc[3] == 1; }

const std::vector<int32_t> kToNchw = {0, 3, 1, 2};
const std::vector<int32_t> kToNhwc = {0, 2, 3, 1};

class Exporter {
 public:
  explicit Exporter(const Graph& graph) : graph_(graph), variants_(graph.tensors.size(), {kNone, kNone}) {
    for (const Tensor& t : graph.tensors) names_.insert(t.name);
  }

  Result<std::string> Run() {
    for (const Tensor& t : graph_.tensors) {
      if (t.dtype != DType::kF32) {
        return Unsupported("the tensor '", t.name, "' is ", Name(t.dtype), "; ONNX export writes f32 graphs");
      }
    }
    for (const TensorId id : graph_.inputs) {
      variant(id, kAsIs) = NewValue(graph_.tensor(id).name);
      fixed_.insert(variant(id, kAsIs));
      model_.inputs.push_back(Describe(id));
    }
    for (const Operator& op : graph_.ops) {
      op_ = &op;
      Lower(op);
      if (!status_.ok()) return status_;
    }
    for (const TensorId id : graph_.outputs) NameOutput(id);
    if (!status_.ok()) return status_;
    for (Node& n : nodes_) {
      for (const ValueId i : n.inputs) {
        n.node.inputs.push_back(i == kNone ? std::string() : values_[static_cast<size_t>(i)]);
      }
      n.node.outputs.push_back(values_[static_cast<size_t>(n.output)]);
      n.node.name = n.node.outputs[0];
      model_.nodes.push_back(std::move(n.node));
    }
    model_.opset = kExportOpset;
    model_.graph_name = graph_.name;
    return EncodeOnnx(model_);
  }

 private:
  struct Node {
    OnnxNode node;
    std::vector<ValueId> inputs;
    ValueId output = kNone;
  };

  ValueId& variant(TensorId id, Variant v) { return variants_[static_cast<size_t>(id)][v]; }

  OnnxValueInfo Describe(TensorId id) const {
    OnnxValueInfo info;
    info.name = graph_.tensor(id).name;
    info.shape.emplace();
    for (const int64_t d : graph_.tensor(id).shape) info.shape->push_back({d, ""});
    return info;
  }

  ValueId NewValue(const std::string& name) {
    values_.push_back(name);
    return static_cast<ValueId>(values_.size()) - 1;
  }

  std::string Unique(const std::string& hint) {
    std::string name = hint;
    for (int64_t i = 2; !names_.insert(name).second; ++i) name = StrCat(hint, "/", i);
    return name;
  }

  // The name of a tensor's variant, or of something on the way to it.
  ValueId NewValueFor(TensorId id, Variant v) {
    const std::string& name = graph_.tensor(id).name;
    return NewValue(v == kAsIs ? name : Unique(name + "/nchw"));
  }
  ValueId Temporary(const std::string& hint) { return NewValue(Unique(StrCat(graph_.output(*op_).name, "/", hint))); }

  void EmitTo(ValueId output, const std::string& type, std::vector<ValueId> inputs,
              std::vector<OnnxAttribute> attributes = {}) {
    Node n;
    n.node.op_type = type;
    n.node.attributes = std::move(attributes);
    n.inputs = std::move(inputs);
    n.output = output;
    nodes_.push_back(std::move(n));
  }
  ValueId Emit(const std::string& hint, const std::string& type, std::vector<ValueId> inputs,
               std::vector<OnnxAttribute> attributes = {}) {
    const ValueId output = Temporary(hint);
    EmitTo(output, type, std::move(inputs), std::move(attributes));
    return output;
  }
  // The current operator's result in layout `v`.
  void Finish(Variant v, const std::string& type, std::vector<ValueId> inputs,
              std::vector<OnnxAttribute> attributes = {}) {
    variant(op_->output, v) = NewValueFor(op_->output, v);
    EmitTo(variant(op_->output, v), type, std::move(inputs), std::move(attributes));
  }
  // The same, with a clamp behind it.
  void FinishClamped(Variant v, const Clamp& clamp, const std::string& type, std::vector<ValueId> inputs,
                     std::vector<OnnxAttribute> attributes = {}) {
    if (clamp.IsNone()) return Finish(v, type, std::move(inputs), std::move(attributes));
    FinishClamp(v, clamp, Emit("unclamped", type, std::move(inputs), std::move(attributes)));
  }
  void FinishClamp(Variant v, const Clamp& clamp, ValueId x) {
    if (clamp.IsNone()) return Finish(v, "Identity", {x});
    if (clamp == kRelu) return Finish(v, "Relu", {x});
    const ValueId min = std::isinf(clamp.min) ? kNone : Scalar(clamp.min),
                  max = std::isinf(clamp.max) ? kNone : Scalar(clamp.max);
    if (max == kNone) return Finish(v, "Clip", {x, min});
    Finish(v, "Clip", {x, min, max});
  }

  ValueId Initializer(const std::string& name, DType dtype, const Dims& shape, std::shared_ptr<const ConstData> data) {
    if (data == nullptr) {
      status_ = OutOfMemory("no memory for the constant '", name, "'");
      return kNone;
    }
    model_.initializers.push_back({name, dtype, shape, std::move(data)});
    const ValueId value = NewValue(name);
    fixed_.insert(value);
    return value;
  }
  ValueId Scalar(float value) {
    const auto found = scalars_.find(value);
    if (found != scalars_.end()) return found->second;
    std::shared_ptr<ConstData> data = ConstData::Allocate(SizeOf(DType::kF32));
    if (data != nullptr) *data->as<float>() = value;
    return scalars_[value] = Initializer(Unique(StrCat("scalar/", value)), DType::kF32, Dims{}, std::move(data));
  }
  ValueId Ints(const std::string& hint, const std::vector<int64_t>& values) {
    std::shared_ptr<ConstData> data = ConstData::Allocate(static_cast<int64_t>(values.size()) * SizeOf(DType::kI64));
    if (data != nullptr) std::copy(values.begin(), values.end(), data->as<int64_t>());
    return Initializer(Unique(StrCat(graph_.output(*op_).name, "/", hint)), DType::kI64,
                       Dims{static_cast<int64_t>(values.size())}, std::move(data));
  }

  // A constant in another order; see GatherStrided.
  ValueId Rearranged(TensorId id, const std::string& tag, const Dims& shape, const Dims& strides) {
    const auto key = std::make_pair(id, tag);
    const auto found = rearranged_.find(key);
    if (found != rearranged_.end()) return found->second;
    const Tensor& t = graph_.tensor(id);
    std::shared_ptr<ConstData> data = ConstData::Allocate(t.bytes());
    if (data != nullptr) GatherStrided(t.data->data(), 0, shape, strides, DType::kF32, data->mutable_data());
    return rearranged_[key] = Initializer(Unique(StrCat(t.name, "/", tag)), DType::kF32, shape, std::move(data));
  }

  // A tensor in a layout. kNchw: rank 4, or a constant of lower rank.
  ValueId Get(TensorId id, Variant v) {
    ValueId& slot = variant(id, v);
    if (slot != kNone) return slot;
    const Tensor& t = graph_.tensor(id);
    if (t.is_constant()) {
      if (v == kAsIs) return slot = Initializer(t.name, DType::kF32, t.shape, t.data);
      if (t.shape.Count() == 1) return slot = Get(id, kAsIs);
      Dims nhwc = Dims::Filled(4, 1);
      for (int i = 0; i < t.shape.rank(); ++i) nhwc[3 - i] = t.shape.back(i);
      const Dims s = DenseStrides(nhwc);
      return slot = Rearranged(id, "nchw", NchwShape(t.shape), Dims{s[0], s[3], s[1], s[2]});
    }
    const ValueId other = variant(id, v == kAsIs ? kNchw : kAsIs);
    const ValueId made = NewValueFor(id, v);
    if (LayoutsCoincide(t.shape)) {
      const Dims shape = v == kNchw ? NchwShape(t.shape) : t.shape;
      EmitTo(made, "Reshape", {other, Ints("shape", std::vector<int64_t>(shape.begin(), shape.end()))});
    } else {
      EmitTo(made, "Transpose", {other}, {IntsAttr("perm", Widened(v == kNchw ? kToNchw : kToNhwc))});
    }
    return variant(id, v) = made;
  }
  ValueId Input(int i, Variant v) { return Get(op_->inputs[static_cast<size_t>(i)], v); }
  bool HasInput(int i) const {
    return i < static_cast<int>(op_->inputs.size()) && op_->inputs[static_cast<size_t>(i)] != kNoTensor;
  }

  // The layout in which a layout-blind operator had better run: NCHW if its operands are rank 4 (or constants, or scalars) and some
  // computed one exists as NCHW.
  Variant Preferred() {
    if (graph_.output(*op_).shape.rank() != 4 && op_->kind != OpKind::kReduceMean) return kAsIs;
    bool some = false;
    for (const TensorId id : op_->inputs) {
      const Tensor& t = graph_.tensor(id);
      if (t.is_constant() || t.shape.Count() == 1) continue;
      if (t.shape.rank() != 4) return kAsIs;
      some = some || variant(id, kNchw) != kNone;
    }
    return some ? kNchw : kAsIs;
  }

  void NameOutput(TensorId id) {
    const ValueId value = Get(id, kAsIs);
    const std::string& name = graph_.tensor(id).name;
    model_.outputs.push_back(Describe(id));
    if (fixed_.count(value) > 0) {  // an input, a constant, or another output
      const ValueId copy = NewValue(name);
      EmitTo(copy, "Identity", {value});
      return;
    }
    values_[static_cast<size_t>(value)] = name;
    fixed_.insert(value);
  }

  static int NchwAxis(int axis) { return axis == 0 ? 0 : axis == 3 ? 1 : axis + 1; }
  static int AxisIn(Variant v, int axis) { return v == kNchw ? NchwAxis(axis) : axis; }
  static std::vector<int64_t> DimsIn(Variant v, const Dims& dims) {
    if (v == kAsIs) return std::vector<int64_t>(dims.begin(), dims.end());
    return {dims[0], dims[3], dims[1], dims[2]};
  }

  void Lower(const Operator& op) {
    switch (op.kind) {
      case OpKind::kConv2D:
      case OpKind::kDepthwiseConv2D: return LowerConv();
      case OpKind::kFullyConnected: return LowerFullyConnected();
      case OpKind::kMatMul: return LowerMatMul();
      case OpKind::kBinary: return LowerBinary();
      case OpKind::kUnary: return LowerUnary();
      case OpKind::kMaxPool2D:
      case OpKind::kAveragePool2D: return LowerPool();
      case OpKind::kReduceMean: return LowerReduce();
      case OpKind::kSoftmax: {
        const Variant v = Preferred();
        return Finish(v, "Softmax", {Input(0, v)}, {IntAttr("axis", v == kNchw ? 1 : -1)});
      }
      case OpKind::kLayerNorm:
        return Finish(kAsIs, "LayerNormalization", {Input(0, kAsIs), Input(1, kAsIs), Input(2, kAsIs)},
                      {IntAttr("axis", -1), FloatAttr("epsilon", op.as<NormAttrs>().epsilon)});
      case OpKind::kBatchNorm: return LowerBatchNorm();
      case OpKind::kConcat: {
        const Variant v = Preferred();
        std::vector<ValueId> inputs;
        for (int i = 0; i < static_cast<int>(op.inputs.size()); ++i) inputs.push_back(Input(i, v));
        return Finish(v, "Concat", std::move(inputs), {IntAttr("axis", AxisIn(v, op.as<ConcatAttrs>().axis))});
      }
      case OpKind::kSlice: return LowerSlice();
      case OpKind::kReshape: return LowerReshape();
      case OpKind::kTranspose: return LowerTranspose();
      case OpKind::kPad: return LowerPad();
    }
    status_ = Unsupported("the operator '", op.name, "' (", Name(op.kind), ") has no ONNX form");
  }

  ValueId ConvWeights() {
    const TensorId id = op_->inputs[1];
    if (op_->kind == OpKind::kConv2D) return Get(id, kNchw);
    const Tensor& t = graph_.tensor(id);
    const int64_t kh = t.shape[0], kw = t.shape[1], c = t.shape[2];
    if (t.is_constant()) return Rearranged(id, "c1hw", Dims{c, 1, kh, kw}, Dims{1, 1, kw * c, c});
    const ValueId chw = Emit("weights", "Transpose", {Get(id, kAsIs)}, {IntsAttr("perm", {2, 0, 1})});
    return Emit("weights", "Reshape", {chw, Ints("shape", {c, 1, kh, kw})});
  }

  static OnnxAttribute Pads(const Padding& p) { return IntsAttr("pads", {p.top, p.left, p.bottom, p.right}); }

  void LowerConv() {
    const auto& a = op_->as<Conv2DAttrs>();
    const Dims& w = graph_.input(*op_, 1).shape;
    const bool depthwise = op_->kind == OpKind::kDepthwiseConv2D;
    const int first = depthwise ? 0 : 1;
    std::vector<ValueId> inputs = {Input(0, kNchw), ConvWeights()};
    if (HasInput(2)) inputs.push_back(Input(2, kAsIs));
    FinishClamped(kNchw, a.clamp, "Conv", std::move(inputs),
                  {IntsAttr("kernel_shape", {w[first], w[first + 1]}), IntsAttr("strides", {a.stride_h, a.stride_w}),
                   IntsAttr("dilations", {a.dilation_h, a.dilation_w}), Pads(a.pad),
                   IntAttr("group", depthwise ? w[2] : a.groups)});
  }

  void LowerPool() {
    const auto& a = op_->as<Pool2DAttrs>();
    std::vector<OnnxAttribute> attributes = {IntsAttr("kernel_shape", {a.kernel_h, a.kernel_w}),
                                             IntsAttr("strides", {a.stride_h, a.stride_w}), Pads(a.pad)};
    const bool average = op_->kind == OpKind::kAveragePool2D;
    if (average) attributes.push_back(IntAttr("count_include_pad", a.count_include_pad ? 1 : 0));
    FinishClamped(kNchw, a.clamp, average ? "AveragePool" : "MaxPool", {Input(0, kNchw)}, std::move(attributes));
  }

  void LowerFullyConnected() {
    const auto& clamp = op_->as<FullyConnectedAttrs>().clamp;
    const ValueId x = Input(0, kAsIs);
    if (graph_.input(*op_, 0).shape.rank() == 2) {
      std::vector<ValueId> inputs = {x, Input(1, kAsIs)};
      if (HasInput(2)) inputs.push_back(Input(2, kAsIs));
      return FinishClamped(kAsIs, clamp, "Gemm", std::move(inputs), {IntAttr("transB", 1)});
    }
    const TensorId id = op_->inputs[1];
    const Dims& s = graph_.tensor(id).shape;
    const ValueId w = graph_.tensor(id).is_constant()
                          ? Rearranged(id, "io", Dims{s[1], s[0]}, Dims{1, s[1]})
                          : Emit("weights", "Transpose", {Get(id, kAsIs)}, {IntsAttr("perm", {1, 0})});
    if (!HasInput(2)) return FinishClamped(kAsIs, clamp, "MatMul", {x, w});
    FinishClamped(kAsIs, clamp, "Add", {Emit("product", "MatMul", {x, w}), Input(2, kAsIs)});
  }

  void LowerMatMul() {
    ValueId b = Input(1, kAsIs);
    if (op_->as<MatMulAttrs>().transpose_b) {
      std::vector<int64_t> perm;
      for (int i = 0; i < graph_.input(*op_, 1).shape.rank(); ++i) perm.push_back(i);
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
      b = Emit("b", "Transpose", {b}, {IntsAttr("perm", perm)});
    }
    Finish(kAsIs, "MatMul", {Input(0, kAsIs), b});
  }

  void LowerBinary() {
    static const char* const kNames[] = {"Add", "Sub", "Mul", "Div", "Max", "Min"};
    const auto& a = op_->as<BinaryAttrs>();
    const Variant v = Preferred();
    // A scalar reads the same in either layout.
    auto operand = [&](int i) {
      const Tensor& t = graph_.input(*op_, i);
      return Input(i, t.shape.Count() == 1 && !t.is_constant() && t.shape.rank() != 4 ? kAsIs : v);
    };
    FinishClamped(v, a.clamp, kNames[static_cast<int>(a.kind)], {operand(0), operand(1)});
  }

  void LowerUnary() {
    const auto& a = op_->as<UnaryAttrs>();
    const Variant v = Preferred();
    const ValueId x = Input(0, v);
    switch (a.kind) {
      case UnaryKind::kCopy: return Finish(v, "Identity", {x});
      case UnaryKind::kClamp: return FinishClamp(v, a.clamp, x);
      case UnaryKind::kSigmoid: return Finish(v, "Sigmoid", {x});
      case UnaryKind::kHardSigmoid:
        return Finish(v, "HardSigmoid", {x}, {FloatAttr("alpha", 1.0f / 6), FloatAttr("beta", 0.5f)});
      case UnaryKind::kHardSwish: return Finish(v, "HardSwish", {x});
      case UnaryKind::kSilu: return Finish(v, "Mul", {x, Emit("sigmoid", "Sigmoid", {x})});
      case UnaryKind::kGelu: {
        const ValueId erf = Emit("erf", "Erf", {Emit("scaled", "Mul", {x, Scalar(std::sqrt(0.5f))})});
        const ValueId gate = Emit("gate", "Add", {erf, Scalar(1.0f)});
        return Finish(v, "Mul", {Emit("half", "Mul", {x, Scalar(0.5f)}), gate});
      }
      case UnaryKind::kTanh: return Finish(v, "Tanh", {x});
      case UnaryKind::kExp: return Finish(v, "Exp", {x});
      case UnaryKind::kSqrt: return Finish(v, "Sqrt", {x});
      case UnaryKind::kErf: return Finish(v, "Erf", {x});
      case UnaryKind::kNegate: return Finish(v, "Neg", {x});
      case UnaryKind::kAbs: return Finish(v, "Abs", {x});
      case UnaryKind::kSquare: return Finish(v, "Mul", {x, x});
      case UnaryKind::kReciprocal: return Finish(v, "Reciprocal", {x});
      case UnaryKind::kLog: return Finish(v, "Log", {x});
    }
    status_ = Unsupported("the operator '", op_->name, "' has no ONNX form");
  }

  void LowerReduce() {
    const auto& a = op_->as<ReduceAttrs>();
    Variant v = Preferred();
    const int rank = graph_.input(*op_, 0).shape.rank();
    if (v == kNchw && !a.keep_dims) {
      // What remains has to stand in the same order: the channels move only past reduced axes.
      const auto reduced = [&](int axis) { return std::find(a.axes.begin(), a.axes.end(), axis) != a.axes.end(); };
      if (!reduced(3) && !(reduced(1) && reduced(2))) v = kAsIs;
    }
    std::vector<int64_t> axes;
    for (const int axis : a.axes) axes.push_back(rank == 4 ? AxisIn(v, axis) : axis);
    std::sort(axes.begin(), axes.end());
    const Variant out = a.keep_dims ? v : kAsIs;
    Finish(out, "ReduceMean", {Input(0, v)}, {IntsAttr("axes", axes), IntAttr("keepdims", a.keep_dims ? 1 : 0)});
  }

  void LowerBatchNorm() {
    const std::vector<OnnxAttribute> attributes = {FloatAttr("epsilon", op_->as<NormAttrs>().epsilon)};
    const Dims& shape = graph_.output(*op_).shape;
    const std::vector<ValueId> parameters = {Input(1, kAsIs), Input(2, kAsIs), Input(3, kAsIs), Input(4, kAsIs)};
    auto inputs = [&](ValueId x) {
      std::vector<ValueId> all = {x};
      all.insert(all.end(), parameters.begin(), parameters.end());
      return all;
    };
    if (shape.rank() == 4) return Finish(kNchw, "BatchNormalization", inputs(Input(0, kNchw)), attributes);
    if (shape.rank() == 2) return Finish(kAsIs, "BatchNormalization", inputs(Input(0, kAsIs)), attributes);
    const ValueId rows =
        Emit("rows", "Reshape", {Input(0, kAsIs), Ints("shape", {shape.Count() / shape.back(), shape.back()})});
    const ValueId norm = Emit("normalised", "BatchNormalization", inputs(rows), attributes);
    Finish(kAsIs, "Reshape", {norm, Ints("shape", std::vector<int64_t>(shape.begin(), shape.end()))});
  }

  void LowerSlice() {
    const auto& a = op_->as<SliceAttrs>();
    const Variant v = Preferred();
    std::vector<int64_t> begin, end, axes;
    const Dims& x = graph_.input(*op_, 0).shape;
    for (int i = 0; i < x.rank(); ++i) {
      if (a.begin[i] == 0 && a.size[i] == x[i]) continue;
      axes.push_back(AxisIn(v, i));
      begin.push_back(a.begin[i]);
      end.push_back(a.begin[i] + a.size[i]);
    }
    if (axes.empty()) return Finish(v, "Identity", {Input(0, v)});
    Finish(v, "Slice", {Input(0, v), Ints("starts", begin), Ints("ends", end), Ints("axes", axes)});
  }

  void LowerReshape() {
    const Dims& shape = op_->as<ReshapeAttrs>().shape;
    const TensorId in = op_->inputs[0];
    const Tensor& x = graph_.tensor(in);
    const bool either = x.shape.rank() == 4 && !x.is_constant() && LayoutsCoincide(x.shape);
    const ValueId from = either && variant(in, kAsIs) == kNone ? variant(in, kNchw) : Get(in, kAsIs);
    Finish(kAsIs, "Reshape", {from, Ints("shape", std::vector<int64_t>(shape.begin(), shape.end()))});
  }

  void LowerTranspose() {
    const auto& perm = op_->as<TransposeAttrs>().perm;
    const TensorId in = op_->inputs[0];
    if (perm == kToNhwc) {
      variant(op_->output, kNchw) = Get(in, kAsIs);
      return;
    }
    if (perm == kToNchw) {
      variant(op_->output, kAsIs) = Get(in, kNchw);
      return;
    }
    // From the variant that exists.
    const bool from_nchw = perm.size() == 4 && variant(in, kAsIs) == kNone && variant(in, kNchw) != kNone;
    std::vector<int64_t> axes;
    for (const int axis : perm) axes.push_back(from_nchw ? NchwAxis(axis) : axis);
    Finish(kAsIs, "Transpose", {from_nchw ? variant(in, kNchw) : Get(in, kAsIs)}, {IntsAttr("perm", axes)});
  }

  void LowerPad() {
    const auto& a = op_->as<PadAttrs>();
    const Variant v = Preferred();
    std::vector<int64_t> pads = DimsIn(v, a.before);
    const std::vector<int64_t> after = DimsIn(v, a.after);
    pads.insert(pads.end(), after.begin(), after.end());
    Finish(v, "Pad", {Input(0, v), Ints("pads", pads), Scalar(a.value)});
  }

  const Graph& graph_;
  const Operator* op_ = nullptr;
  Status status_;
  OnnxModel model_;
  std::vector<std::string> values_;  // names
  std::vector<Node> nodes_;
  std::vector<std::array<ValueId, 2>> variants_;
  std::unordered_set<std::string> names_;
  std::unordered_set<ValueId> fixed_;  // values whose names are not to be changed
  std::map<float, ValueId> scalars_;
  std::map<std::pair<TensorId, std::string>, ValueId> rearranged_;
};

}  // namespace

Result<std::string> ExportOnnx(const Graph& graph) {
  PLAIT_RETURN_IF_ERROR(Validate(graph));
  return Exporter(graph).Run();
}

}  // namespace plait
