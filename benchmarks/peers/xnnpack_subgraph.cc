#include "benchmarks/peers/xnnpack_subgraph.h"

#include <algorithm>
#include <cstring>

namespace plait {
namespace {

std::vector<size_t> Sizes(const Dims& dims) {
  std::vector<size_t> sizes;
  for (int i = 0; i < dims.rank(); ++i) sizes.push_back(static_cast<size_t>(dims[i]));
  return sizes;
}

uint32_t U(int64_t value) { return static_cast<uint32_t>(value); }

Status FromXnn(xnn_status status, const std::string& what) {
  if (status == xnn_status_success) return Status();
  return Unsupported(what, ": XNNPACK refuses with status ", static_cast<int>(status));
}

}  // namespace

// Adds one operator after the other to a subgraph. Values are defined when first asked for.
class SubgraphBuilder {
 public:
  SubgraphBuilder(const Graph& graph, XnnpackRuntime* runtime) : graph_(graph), runtime_(runtime), values_(graph.tensors.size(), XNN_INVALID_VALUE_ID) {}
  ~SubgraphBuilder() {
    if (subgraph_ != nullptr) xnn_delete_subgraph(subgraph_);
  }
  SubgraphBuilder(const SubgraphBuilder&) = delete;
  SubgraphBuilder& operator=(const SubgraphBuilder&) = delete;

  Status Build();
  xnn_subgraph_t subgraph() const { return subgraph_; }

 private:
  Status DefineExternals();
  Status AddOperator(const Operator& op);
  Status AddConvolution(const Operator& op);
  Status AddDepthwise(const Operator& op);
  Status AddPool(const Operator& op);
  Status AddUnary(const Operator& op);
  Status AddBinary(const Operator& op);
  Status AddMean(const Operator& op);
  Status AddLayerNorm(const Operator& op);
  Status AddConcat(const Operator& op);
  Status AddPad(const Operator& op);
  Status AddView(const Operator& op);

  // The first failure is kept; ids are then invalid and the operator is refused as a whole.
  uint32_t Define(const std::vector<size_t>& shape, const void* data, uint32_t external, uint32_t flags);
  uint32_t Temporary(const std::vector<size_t>& shape) { return Define(shape, nullptr, XNN_INVALID_VALUE_ID, 0); }
  uint32_t Scalar(float value);
  uint32_t Value(TensorId id);
  uint32_t Input(const Operator& op, size_t i) {
    return i < op.inputs.size() && op.inputs[i] != kNoTensor ? Value(op.inputs[i]) : XNN_INVALID_VALUE_ID;
  }
  uint32_t Output(const Operator& op) { return Value(op.output); }
  void Note(xnn_status status) {
    if (first_failure_ == xnn_status_success) first_failure_ = status;
  }
  void Binary(xnn_binary_operator kind, uint32_t a, uint32_t b, uint32_t out, const Clamp& clamp = {});
  void Unary(xnn_unary_operator kind, uint32_t in, uint32_t out) { Note(xnn_define_unary(subgraph_, kind, nullptr, in, out, 0)); }
  void Mean(const std::vector<size_t>& axes, uint32_t in, uint32_t out, bool keep_dims) {
    Note(xnn_define_static_reduce(subgraph_, xnn_reduce_mean, axes.size(), axes.data(), in, out, keep_dims ? XNN_FLAG_KEEP_DIMS : 0));
  }

  const Graph& graph_;
  XnnpackRuntime* runtime_;
  xnn_subgraph_t subgraph_ = nullptr;
  std::vector<uint32_t> values_;  // [TensorId]
  xnn_status first_failure_ = xnn_status_success;
};

Status SubgraphBuilder::Build() {
  PLAIT_RETURN_IF_ERROR(FromXnn(xnn_create_subgraph(U(static_cast<int64_t>(graph_.inputs.size() + graph_.outputs.size())), 0, &subgraph_), "a subgraph"));
  PLAIT_RETURN_IF_ERROR(DefineExternals());
  for (const Operator& op : graph_.ops) {
    const std::string what = StrCat("operator ", op.name, " (", Name(op.kind), ")");
    PLAIT_RETURN_IF_ERROR(AddOperator(op).Annotated(what));
    PLAIT_RETURN_IF_ERROR(FromXnn(first_failure_, what));
  }
  return Status();
}

Status SubgraphBuilder::DefineExternals() {
  uint32_t external = 0;
  for (TensorId id : graph_.inputs) {
    values_[static_cast<size_t>(id)] = Define(Sizes(graph_.tensor(id).shape), nullptr, external++, XNN_VALUE_FLAG_EXTERNAL_INPUT);
  }
  for (TensorId id : graph_.outputs) {
    if (values_[static_cast<size_t>(id)] != XNN_INVALID_VALUE_ID || graph_.tensor(id).is_constant()) {
      return Unsupported("output ", graph_.tensor(id).name, " is computed by no operator");
    }
    values_[static_cast<size_t>(id)] = Define(Sizes(graph_.tensor(id).shape), nullptr, external++, XNN_VALUE_FLAG_EXTERNAL_OUTPUT);
  }
  return FromXnn(first_failure_, "inputs and outputs");
}

uint32_t SubgraphBuilder::Define(const std::vector<size_t>& shape, const void* data, uint32_t external, uint32_t flags) {
  uint32_t id = XNN_INVALID_VALUE_ID;
  Note(xnn_define_tensor_value(subgraph_, xnn_datatype_fp32, shape.size(), shape.data(), data, external, flags, &id));
  return id;
}

uint32_t SubgraphBuilder::Scalar(float value) {
  constexpr size_t kFloats = 1 + XNN_EXTRA_BYTES / sizeof(float);
  auto memory = std::make_unique<float[]>(kFloats);
  memory[0] = value;
  const uint32_t id = Define({1}, memory.get(), XNN_INVALID_VALUE_ID, 0);
  runtime_->scalars_.push_back(std::move(memory));
  return id;
}

uint32_t SubgraphBuilder::Value(TensorId tensor_id) {
  uint32_t& id = values_[static_cast<size_t>(tensor_id)];
  if (id != XNN_INVALID_VALUE_ID) return id;
  const Tensor& tensor = graph_.tensor(tensor_id);
  id = Define(Sizes(tensor.shape), tensor.is_constant() ? tensor.data->data() : nullptr, XNN_INVALID_VALUE_ID, 0);
  return id;
}

void SubgraphBuilder::Binary(xnn_binary_operator kind, uint32_t a, uint32_t b, uint32_t out, const Clamp& clamp) {
  const xnn_binary_params params{clamp.min, clamp.max};
  Note(xnn_define_binary(subgraph_, kind, clamp.IsNone() ? nullptr : &params, a, b, out, 0));
}

Status SubgraphBuilder::AddOperator(const Operator& op) {
  switch (op.kind) {
    case OpKind::kConv2D: return AddConvolution(op);
    case OpKind::kDepthwiseConv2D: return AddDepthwise(op);
    case OpKind::kFullyConnected: {
      const Clamp& clamp = op.as<FullyConnectedAttrs>().clamp;
      Note(xnn_define_fully_connected(subgraph_, clamp.min, clamp.max, Input(op, 0), Input(op, 1), Input(op, 2), Output(op), 0));
      return Status();
    }
    case OpKind::kMatMul: {
      const uint32_t flags = op.as<MatMulAttrs>().transpose_b ? XNN_FLAG_TRANSPOSE_B : 0;
      Note(xnn_define_batch_matrix_multiply(subgraph_, Input(op, 0), Input(op, 1), Output(op), flags));
      return Status();
    }
    case OpKind::kBinary: return AddBinary(op);
    case OpKind::kUnary: return AddUnary(op);
    case OpKind::kMaxPool2D:
    case OpKind::kAveragePool2D: return AddPool(op);
    case OpKind::kReduceMean: return AddMean(op);
    case OpKind::kSoftmax: Note(xnn_define_softmax(subgraph_, Input(op, 0), Output(op), 0)); return Status();
    case OpKind::kLayerNorm: return AddLayerNorm(op);
    case OpKind::kConcat: return AddConcat(op);
    case OpKind::kPad: return AddPad(op);
    case OpKind::kSlice:
    case OpKind::kReshape:
    case OpKind::kTranspose: return AddView(op);
    case OpKind::kBatchNorm: break;
  }
  return Unsupported("no XNNPACK subgraph node does this");
}

Status SubgraphBuilder::AddConvolution(const Operator& op) {
  const Conv2DAttrs& a = op.as<Conv2DAttrs>();
  const Dims& weights = graph_.input(op, 1).shape;  // [Co,kh,kw,Ci/groups]
  Note(xnn_define_convolution_2d(subgraph_, U(a.pad.top), U(a.pad.right), U(a.pad.bottom), U(a.pad.left), U(weights[1]), U(weights[2]), U(a.stride_h),
                                 U(a.stride_w), U(a.dilation_h), U(a.dilation_w), U(a.groups), static_cast<size_t>(weights[3]),
                                 static_cast<size_t>(weights[0] / a.groups), a.clamp.min, a.clamp.max, Input(op, 0), Input(op, 1), Input(op, 2), Output(op), 0));
  return Status();
}

Status SubgraphBuilder::AddDepthwise(const Operator& op) {
  const Conv2DAttrs& a = op.as<Conv2DAttrs>();
  const Tensor& weights = graph_.input(op, 1);  // [kh,kw,C]; XNNPACK: [1,kh,kw,C]
  if (!weights.is_constant()) return Unsupported("its weights are computed");
  std::vector<size_t> shape = Sizes(weights.shape);
  shape.insert(shape.begin(), 1);
  const uint32_t filter = Define(shape, weights.data->data(), XNN_INVALID_VALUE_ID, 0);
  Note(xnn_define_depthwise_convolution_2d(subgraph_, U(a.pad.top), U(a.pad.right), U(a.pad.bottom), U(a.pad.left), U(weights.shape[0]),
                                           U(weights.shape[1]), U(a.stride_h), U(a.stride_w), U(a.dilation_h), U(a.dilation_w), 1,
                                           static_cast<size_t>(weights.shape[2]), a.clamp.min, a.clamp.max, Input(op, 0), filter, Input(op, 2), Output(op),
                                           0));
  return Status();
}

Status SubgraphBuilder::AddPool(const Operator& op) {
  const Pool2DAttrs& a = op.as<Pool2DAttrs>();
  uint32_t in = Input(op, 0);
  Padding pad = a.pad;
  if (op.kind == OpKind::kMaxPool2D) {
    Note(xnn_define_max_pooling_2d(subgraph_, U(pad.top), U(pad.right), U(pad.bottom), U(pad.left), U(a.kernel_h), U(a.kernel_w), U(a.stride_h),
                                   U(a.stride_w), 1, 1, a.clamp.min, a.clamp.max, in, Output(op), 0));
    return Status();
  }
  if (a.count_include_pad && pad != Padding{}) {  // XNNPACK's average divides by the existing pixels
    const size_t before[] = {0, static_cast<size_t>(pad.top), static_cast<size_t>(pad.left), 0};
    const size_t after[] = {0, static_cast<size_t>(pad.bottom), static_cast<size_t>(pad.right), 0};
    std::vector<size_t> shape = Sizes(graph_.input(op, 0).shape);
    for (size_t i = 0; i < shape.size(); ++i) shape[i] += before[i] + after[i];
    const uint32_t padded = Temporary(shape);
    Note(xnn_define_static_constant_pad(subgraph_, before, after, 0, in, padded, 0));
    in = padded;
    pad = {};
  }
  Note(xnn_define_average_pooling_2d(subgraph_, U(pad.top), U(pad.right), U(pad.bottom), U(pad.left), U(a.kernel_h), U(a.kernel_w), U(a.stride_h),
                                     U(a.stride_w), a.clamp.min, a.clamp.max, in, Output(op), 0));
  return Status();
}

Status SubgraphBuilder::AddUnary(const Operator& op) {
  const UnaryAttrs& a = op.as<UnaryAttrs>();
  const uint32_t in = Input(op, 0), out = Output(op);
  const std::vector<size_t> shape = Sizes(graph_.output(op).shape);
  switch (a.kind) {
    case UnaryKind::kCopy: Note(xnn_define_copy(subgraph_, in, out, 0)); break;
    case UnaryKind::kClamp: {
      xnn_unary_params params;
      params.clamp.min = a.clamp.min;
      params.clamp.max = a.clamp.max;
      Note(xnn_define_unary(subgraph_, xnn_unary_clamp, &params, in, out, 0));
      break;
    }
    case UnaryKind::kSilu: {
      const uint32_t gate = Temporary(shape);
      Unary(xnn_unary_sigmoid, in, gate);
      Binary(xnn_binary_multiply, in, gate, out);
      break;
    }
    case UnaryKind::kHardSigmoid: {
      const uint32_t scaled = Temporary(shape);
      Binary(xnn_binary_multiply, in, Scalar(1.0f / 6), scaled);
      Binary(xnn_binary_add, scaled, Scalar(0.5f), out, Clamp{0, 1});
      break;
    }
    case UnaryKind::kReciprocal: Binary(xnn_binary_divide, Scalar(1), in, out); break;
    case UnaryKind::kErf: return Unsupported("XNNPACK has no error function");
    case UnaryKind::kSigmoid: Unary(xnn_unary_sigmoid, in, out); break;
    case UnaryKind::kHardSwish: Unary(xnn_unary_hardswish, in, out); break;
    case UnaryKind::kGelu: Unary(xnn_unary_gelu, in, out); break;
    case UnaryKind::kTanh: Unary(xnn_unary_tanh, in, out); break;
    case UnaryKind::kExp: Unary(xnn_unary_exp, in, out); break;
    case UnaryKind::kSqrt: Unary(xnn_unary_square_root, in, out); break;
    case UnaryKind::kNegate: Unary(xnn_unary_negate, in, out); break;
    case UnaryKind::kAbs: Unary(xnn_unary_abs, in, out); break;
    case UnaryKind::kSquare: Unary(xnn_unary_square, in, out); break;
    case UnaryKind::kLog: Unary(xnn_unary_log, in, out); break;
  }
  return Status();
}

Status SubgraphBuilder::AddBinary(const Operator& op) {
  const BinaryAttrs& a = op.as<BinaryAttrs>();
  constexpr xnn_binary_operator kKinds[] = {xnn_binary_add,    xnn_binary_subtract, xnn_binary_multiply,
                                            xnn_binary_divide, xnn_binary_maximum,  xnn_binary_minimum};
  Binary(kKinds[static_cast<size_t>(a.kind)], Input(op, 0), Input(op, 1), Output(op), a.clamp);
  return Status();
}

Status SubgraphBuilder::AddMean(const Operator& op) {
  const ReduceAttrs& a = op.as<ReduceAttrs>();
  Mean(std::vector<size_t>(a.axes.begin(), a.axes.end()), Input(op, 0), Output(op), a.keep_dims);
  return Status();
}

Status SubgraphBuilder::AddLayerNorm(const Operator& op) {
  const std::vector<size_t> shape = Sizes(graph_.output(op).shape);
  std::vector<size_t> rows = shape;
  rows.back() = 1;
  const std::vector<size_t> axes = {shape.size() - 1};
  const uint32_t in = Input(op, 0), mean = Temporary(rows), squares = Temporary(shape), variance = Temporary(rows), shifted = Temporary(rows),
                 scale = Temporary(rows), centred = Temporary(shape), normal = Temporary(shape), scaled = Temporary(shape);
  Mean(axes, in, mean, true);
  Binary(xnn_binary_squared_difference, in, mean, squares);
  Mean(axes, squares, variance, true);
  Binary(xnn_binary_add, variance, Scalar(op.as<NormAttrs>().epsilon), shifted);
  Unary(xnn_unary_reciprocal_square_root, shifted, scale);
  Binary(xnn_binary_subtract, in, mean, centred);
  Binary(xnn_binary_multiply, centred, scale, normal);
  Binary(xnn_binary_multiply, normal, Input(op, 1), scaled);
  Binary(xnn_binary_add, scaled, Input(op, 2), Output(op));
  return Status();
}

Status SubgraphBuilder::AddConcat(const Operator& op) {
  const int32_t axis = op.as<ConcatAttrs>().axis;
  if (op.inputs.size() < 2) return Unsupported("a concatenation of one tensor");
  std::vector<size_t> shape = Sizes(graph_.input(op, 0).shape);
  uint32_t joined = Input(op, 0);
  for (size_t next = 1; next < op.inputs.size();) {  // nodes take two to four inputs; longer lists go on from what is joined
    const size_t count = std::min<size_t>(3, op.inputs.size() - next);
    for (size_t i = next; i < next + count; ++i) shape[static_cast<size_t>(axis)] += static_cast<size_t>(graph_.tensor(op.inputs[i]).shape[axis]);
    const uint32_t out = next + count == op.inputs.size() ? Output(op) : Temporary(shape);
    if (count == 1) Note(xnn_define_concatenate2(subgraph_, axis, joined, Input(op, next), out, 0));
    if (count == 2) Note(xnn_define_concatenate3(subgraph_, axis, joined, Input(op, next), Input(op, next + 1), out, 0));
    if (count == 3) Note(xnn_define_concatenate4(subgraph_, axis, joined, Input(op, next), Input(op, next + 1), Input(op, next + 2), out, 0));
    joined = out;
    next += count;
  }
  return Status();
}

Status SubgraphBuilder::AddPad(const Operator& op) {
  const PadAttrs& a = op.as<PadAttrs>();
  const std::vector<size_t> before = Sizes(a.before), after = Sizes(a.after);
  Note(xnn_define_static_constant_pad(subgraph_, before.data(), after.data(), a.value, Input(op, 0), Output(op), 0));
  return Status();
}

Status SubgraphBuilder::AddView(const Operator& op) {
  if (op.kind == OpKind::kSlice) {
    const std::vector<size_t> begin = Sizes(op.as<SliceAttrs>().begin), size = Sizes(graph_.output(op).shape);
    Note(xnn_define_static_slice(subgraph_, size.size(), begin.data(), size.data(), Input(op, 0), Output(op), 0));
  } else if (op.kind == OpKind::kReshape) {
    const std::vector<size_t> shape = Sizes(graph_.output(op).shape);
    Note(xnn_define_static_reshape(subgraph_, shape.size(), shape.data(), Input(op, 0), Output(op), 0));
  } else {
    const TransposeAttrs& a = op.as<TransposeAttrs>();
    const std::vector<size_t> perm(a.perm.begin(), a.perm.end());
    Note(xnn_define_static_transpose(subgraph_, perm.size(), perm.data(), Input(op, 0), Output(op), 0));
  }
  return Status();
}

Result<std::unique_ptr<XnnpackRuntime>> XnnpackRuntime::Create(const Graph& graph, pthreadpool_t pool, bool profile) {
  PLAIT_RETURN_IF_ERROR(FromXnn(xnn_initialize(nullptr), "XNNPACK on this processor"));
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.dtype != DType::kF32) return Unsupported("tensor ", tensor.name, " is ", Name(tensor.dtype), "; only f32 is compared");
  }
  std::unique_ptr<XnnpackRuntime> runtime(new XnnpackRuntime());
  SubgraphBuilder builder(graph, runtime.get());
  PLAIT_RETURN_IF_ERROR(builder.Build());
  PLAIT_RETURN_IF_ERROR(FromXnn(xnn_create_runtime_v2(builder.subgraph(), pool, profile ? XNN_FLAG_BASIC_PROFILING : 0, &runtime->runtime_), "the runtime"));
  PLAIT_RETURN_IF_ERROR(runtime->Setup(graph));
  return runtime;
}

Status XnnpackRuntime::Setup(const Graph& graph) {
  std::vector<xnn_external_value> externals;
  for (TensorId id : graph.inputs) inputs_.emplace_back(static_cast<size_t>(graph.tensor(id).bytes()) + XNN_EXTRA_BYTES);
  for (TensorId id : graph.outputs) {
    output_bytes_.push_back(static_cast<size_t>(graph.tensor(id).bytes()));
    outputs_.emplace_back(output_bytes_.back() + XNN_EXTRA_BYTES);
  }
  for (std::vector<std::byte>& memory : inputs_) externals.push_back({U(static_cast<int64_t>(externals.size())), memory.data()});
  for (std::vector<std::byte>& memory : outputs_) externals.push_back({U(static_cast<int64_t>(externals.size())), memory.data()});
  PLAIT_RETURN_IF_ERROR(FromXnn(xnn_reshape_runtime(runtime_), "the runtime's shapes"));
  return FromXnn(xnn_setup_runtime_v2(runtime_, externals.size(), externals.data()), "the runtime's memory");
}

XnnpackRuntime::~XnnpackRuntime() {
  if (runtime_ != nullptr) xnn_delete_runtime(runtime_);
}

std::vector<std::vector<std::byte>> XnnpackRuntime::CopyOutputs() const {
  std::vector<std::vector<std::byte>> copies;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    copies.emplace_back(outputs_[i].begin(), outputs_[i].begin() + static_cast<std::ptrdiff_t>(output_bytes_[i]));
  }
  return copies;
}

Status XnnpackRuntime::Run() {
  if (xnn_invoke_runtime(runtime_) != xnn_status_success) return Internal("XNNPACK's runtime failed");
  return Status();
}

Result<std::vector<PeerTiming>> XnnpackRuntime::Timings() const {
  size_t bytes = 0;
  xnn_get_runtime_profiling_info(runtime_, xnn_profile_info_operator_name, 0, nullptr, &bytes);
  std::vector<char> names(bytes + 1, '\0');
  PLAIT_RETURN_IF_ERROR(FromXnn(xnn_get_runtime_profiling_info(runtime_, xnn_profile_info_operator_name, bytes, names.data(), &bytes), "operator names"));
  size_t timing_bytes = 0;
  xnn_get_runtime_profiling_info(runtime_, xnn_profile_info_operator_timing, 0, nullptr, &timing_bytes);
  std::vector<uint64_t> us(timing_bytes / sizeof(uint64_t));
  PLAIT_RETURN_IF_ERROR(FromXnn(xnn_get_runtime_profiling_info(runtime_, xnn_profile_info_operator_timing, timing_bytes, us.data(), &timing_bytes), "operator times"));
  std::vector<PeerTiming> timings;
  const char* name = names.data();
  for (const uint64_t time_us : us) {
    timings.push_back({name, static_cast<double>(time_us)});
    name += std::strlen(name) + 1;
    if (name >= names.data() + bytes) name = names.data() + bytes;
  }
  return timings;
}

}  // namespace plait
