#include "src/formats/onnx/lowering.h"

#include <algorithm>
#include <cstring>

#include "src/base/checked.h"

namespace plait {

Dims ToLast(const Dims& shape) {
  Dims out = shape;
  for (int i = 0; i < shape.rank(); ++i) out[LastAxis(i, shape.rank())] = shape[i];
  return out;
}

std::vector<int32_t> ToLastPermutation(int rank) {
  std::vector<int32_t> perm(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) perm[static_cast<size_t>(LastAxis(i, rank))] = i;
  return perm;
}

std::vector<int32_t> FromLastPermutation(int rank) {
  std::vector<int32_t> perm(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) perm[static_cast<size_t>(i)] = LastAxis(i, rank);
  return perm;
}

std::optional<Dims> BroadcastShape(const Dims& a, const Dims& b) {
  const int rank = std::max(a.rank(), b.rank());
  Dims out = Dims::Filled(rank, 1);
  for (int i = 0; i < rank; ++i) {
    const int64_t x = i < a.rank() ? a.back(i) : 1;
    const int64_t y = i < b.rank() ? b.back(i) : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[rank - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

Dims BroadcastStrides(const Dims& shape, const Dims& to) {
  const Dims dense = DenseStrides(shape);
  Dims out = Dims::Filled(to.rank(), 0);
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.back(i) != 1) out[to.rank() - 1 - i] = dense.back(i);
  }
  return out;
}

namespace {

template <typename T>
void GatherTyped(const T* in, const Dims& shape, const Dims& strides, T* out) {
  const int last = shape.rank() - 1;
  const int64_t columns = last < 0 ? 1 : shape[last], step = last < 0 ? 0 : strides[last];
  Dims at = Dims::Filled(shape.rank(), 0);
  while (true) {
    for (int64_t i = 0; i < columns; ++i) *out++ = in[i * step];
    int axis = last - 1;
    for (; axis >= 0; --axis) {
      in += strides[axis];
      if (++at[axis] < shape[axis]) break;
      in -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
    if (axis < 0) return;
  }
}

}  // namespace

void GatherStrided(const void* in, int64_t offset, const Dims& shape, const Dims& strides, DType dtype, void* out) {
  if (shape.Count() == 0) return;
  if (dtype == DType::kI64) {
    GatherTyped(static_cast<const int64_t*>(in) + offset, shape, strides, static_cast<int64_t*>(out));
  } else {
    GatherTyped(static_cast<const float*>(in) + offset, shape, strides, static_cast<float*>(out));
  }
}

std::string OnnxImportState::Unique(const std::string& hint) {
  std::string name = hint;
  for (int64_t i = 2; !names.insert(name).second; ++i) name = StrCat(hint, "/", i);
  return name;
}

void OnnxLowering::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

OnnxValuePtr OnnxLowering::In(int i) {
  if (Has(i)) {
    const auto found = state_.values.find(node_.inputs[static_cast<size_t>(i)]);
    if (found != state_.values.end()) return found->second;
  }
  Fail(InvalidArgument("has no input ", i));
  return std::make_shared<OnnxValue>();
}

const OnnxTensor* OnnxLowering::Constant(int i) {
  const OnnxValuePtr value = In(i);
  if (!value->is_constant()) {
    Fail(Unsupported("its input '", value->name, "' is computed; only a constant is supported there"));
    return nullptr;
  }
  return value->constant.get();  // kept alive by the value table
}

const OnnxTensor* OnnxLowering::FloatConstant(int i) {
  const OnnxTensor* c = Constant(i);
  if (c != nullptr && c->is_int()) {
    Fail(InvalidArgument("its input '", c->name, "' holds integers where floats belong"));
    return nullptr;
  }
  return c;
}

std::vector<int64_t> OnnxLowering::IntsIn(int i) {
  const OnnxTensor* c = Constant(i);
  if (c == nullptr) return {};
  if (!c->is_int() || c->shape.rank() > 1) {
    Fail(InvalidArgument("its input '", c->name, "' must be a vector of integers"));
    return {};
  }
  return std::vector<int64_t>(c->data->as<int64_t>(), c->data->as<int64_t>() + c->count());
}

float OnnxLowering::ScalarIn(int i, float fallback) {
  if (!Has(i)) return fallback;
  const OnnxTensor* c = Constant(i);
  if (c == nullptr) return fallback;
  if (c->count() != 1) {
    Fail(InvalidArgument("its input '", c->name, "' must be a scalar, not ", ToString(c->shape)));
    return fallback;
  }
  return c->is_int() ? static_cast<float>(*c->data->as<int64_t>()) : *c->data->as<float>();
}

bool OnnxLowering::AllConstant() {
  for (int i = 0; i < input_count(); ++i) {
    if (Has(i) && !In(i)->is_constant()) return false;
  }
  return true;
}

const OnnxAttribute* OnnxLowering::Find(std::string_view name) const {
  for (const OnnxAttribute& a : node_.attributes) {
    if (a.name == name) return &a;
  }
  return nullptr;
}

namespace {
Status WrongKind(std::string_view name, const char* want) {
  return InvalidArgument("its attribute '", name, "' is no ", want);
}
}  // namespace

int64_t OnnxLowering::Int(std::string_view name, int64_t fallback) {
  const OnnxAttribute* a = Find(name);
  if (a == nullptr) return fallback;
  if (a->kind != OnnxAttribute::Kind::kInt) Fail(WrongKind(name, "integer"));
  return a->i;
}

float OnnxLowering::Float(std::string_view name, float fallback) {
  const OnnxAttribute* a = Find(name);
  if (a == nullptr) return fallback;
  if (a->kind != OnnxAttribute::Kind::kFloat) Fail(WrongKind(name, "float"));
  return a->f;
}

std::string OnnxLowering::String(std::string_view name, const std::string& fallback) {
  const OnnxAttribute* a = Find(name);
  if (a == nullptr) return fallback;
  if (a->kind != OnnxAttribute::Kind::kString) Fail(WrongKind(name, "string"));
  return a->s;
}

std::vector<int64_t> OnnxLowering::Ints(std::string_view name) {
  const OnnxAttribute* a = Find(name);
  if (a == nullptr) return {};
  if (a->kind != OnnxAttribute::Kind::kInts) Fail(WrongKind(name, "list of integers"));
  return a->ints;
}

int OnnxLowering::Axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    Fail(InvalidArgument("its axis ", axis, " is outside a tensor of rank ", rank));
    return 0;
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int32_t> OnnxLowering::Axes(const std::vector<int64_t>& axes, int rank) {
  std::vector<int32_t> out;
  for (const int64_t a : axes) {
    out.push_back(Axis(a, rank));
    if (!ok()) return {};
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) Fail(InvalidArgument("names an axis twice"));
  return out;
}

std::shared_ptr<ConstData> OnnxLowering::NewData(const Dims& shape, DType dtype) {
  const std::optional<int64_t> count = CountOf(shape);
  const std::optional<int64_t> bytes = count ? CheckedMul(*count, SizeOf(dtype)) : std::nullopt;
  if (!bytes || *bytes > state_.max_generated_bytes - state_.generated_bytes) {
    Fail(Unsupported("makes a constant of ", ToString(shape), " elements: beyond the ", state_.max_generated_bytes,
                     " bytes that a model of this size may make (ImportOptions::max_generated_bytes)"));
    return nullptr;
  }
  state_.generated_bytes += *bytes;
  std::shared_ptr<ConstData> data = ConstData::Allocate(*bytes);
  if (data == nullptr) Fail(OutOfMemory("no memory for ", *bytes, " bytes"));
  return data;
}

TensorId OnnxLowering::AddConstant(const std::string& hint, const Dims& shape, std::shared_ptr<const ConstData> data) {
  if (data == nullptr || !ok()) return kNoTensor;
  return state_.builder.Constant(state_.Unique(hint), shape, std::move(data));
}

TensorId OnnxLowering::Rearranged(const OnnxTensor& source, const std::string& tag, const Dims& shape,
                                  const Dims& source_strides) {
  if (!ok()) return kNoTensor;
  const auto key = std::make_pair(source.data.get(), StrCat(tag, " ", ToString(shape)));
  const auto found = state_.weights.find(key);
  if (found != state_.weights.end()) return found->second;
  const std::shared_ptr<ConstData> data = NewData(shape);
  if (data == nullptr) return kNoTensor;
  GatherStrided(source.data->data(), 0, shape, source_strides, DType::kF32, data->mutable_data());
  const TensorId id = AddConstant(StrCat(source.name, "/", tag), shape, data);
  if (id != kNoTensor) state_.weights.emplace(key, id);
  return id;
}

TensorId OnnxLowering::ScalarConstant(float value) {
  const std::shared_ptr<ConstData> data = NewData(Dims{1});
  if (data == nullptr) return kNoTensor;
  *data->as<float>() = value;
  return AddConstant(StrCat(OutputName(), "/constant"), Dims{1}, data);
}

TensorId OnnxLowering::Plain(const OnnxValuePtr& value) {
  if (!ok() || value->plain != kNoTensor) return value->plain;
  // The name of a graph output belongs to the operator that writes it.
  const bool reserved = state_.output_names.count(value->name) > 0;
  if (value->is_constant()) {
    if (value->is_int()) {
      Fail(Unsupported("its input '", value->name, "' holds integers; only float32 tensors are computed with"));
      return kNoTensor;
    }
    // The file's name is reserved for exactly this tensor.
    const std::string name =
        reserved || value->name.empty() ? state_.Unique(StrCat(value->name, "/constant")) : value->name;
    return value->plain = state_.builder.Constant(name, value->shape, value->constant->data);
  }
  if (value->last == kNoTensor) {
    Fail(InvalidArgument("its input '", value->name, "' is not computed by anything"));
    return kNoTensor;
  }
  const int rank = value->shape.rank();
  const Dims last = Shape(value->last);
  const bool moves_nothing = last.Count() == last[0] * last.back() || last.back() == 1;
  if (moves_nothing) {
    return value->plain = state_.builder.Add(value->name, OpKind::kReshape, {value->last}, ReshapeAttrs{value->shape});
  }
  return value->plain = state_.builder.Add(value->name, OpKind::kTranspose, {value->last},
                                           TransposeAttrs{FromLastPermutation(rank)});
}

TensorId OnnxLowering::Last(const OnnxValuePtr& value) {
  if (!ok() || value->last != kNoTensor) return value->last;
  if (value->is_constant()) {
    if (value->is_int()) return Plain(value);  // fails
    // As broadcasting sees it: leading ones up to rank 4, unless there is nothing to move.
    if (value->shape.Count() == 1) return Plain(value);
    Dims shape = Dims::Filled(std::max(4, value->shape.rank()), 1);
    for (int i = 0; i < value->shape.rank(); ++i) shape[shape.rank() - 1 - i] = value->shape.back(i);
    return value->last = Rearranged(*value->constant, "last", ToLast(shape), ToLast(DenseStrides(shape)));
  }
  const int rank = value->shape.rank();
  const TensorId plain = Plain(value);
  if (!ok()) return kNoTensor;
  const std::string name = state_.Unique(StrCat(value->name, "/last"));
  const Dims& shape = value->shape;
  if (shape.Count() == shape[0] * shape[1] || shape[1] == 1) {
    return value->last = state_.builder.Add(name, OpKind::kReshape, {plain}, ReshapeAttrs{ToLast(shape)});
  }
  return value->last = state_.builder.Add(name, OpKind::kTranspose, {plain}, TransposeAttrs{ToLastPermutation(rank)});
}

bool OnnxLowering::PreferLast(const std::vector<OnnxValuePtr>& values) {
  bool some = false;
  int rank = 0;
  for (const OnnxValuePtr& v : values) rank = std::max(rank, v->shape.rank());
  for (const OnnxValuePtr& v : values) {
    if (v->is_constant()) {
      // Constants are padded to rank 4 for broadcasting, which a rank-3 result would not bear.
      if (rank != 4 && v->shape.Count() != 1) return false;
      continue;
    }
    if (v->shape.rank() != rank || (rank != 3 && rank != 4)) return false;
    some = some || (v->last != kNoTensor && v->plain == kNoTensor);
  }
  return some;
}

std::string OnnxLowering::TensorName(int output, bool last) {
  return last ? state_.Unique(StrCat(OutputName(output), "/last")) : OutputName(output);
}

void OnnxLowering::Define(int output, OnnxValuePtr value) {
  if (value->name.empty()) value->name = OutputName(output);
  state_.values[OutputName(output)] = std::move(value);
}

TensorId OnnxLowering::Emit(const std::string& hint, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
  if (!ok()) return kNoTensor;
  return state_.builder.Add(state_.Unique(StrCat(OutputName(), "/", hint)), kind, std::move(inputs), std::move(attrs));
}

void OnnxLowering::EmitIn(bool last, int output, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
  if (!ok()) return;
  SetTensor(output, state_.builder.Add(TensorName(output, last), kind, std::move(inputs), std::move(attrs)), last);
}

void OnnxLowering::EmitPlain(int output, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
  EmitIn(false, output, kind, std::move(inputs), std::move(attrs));
}

void OnnxLowering::EmitLast(int output, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
  EmitIn(true, output, kind, std::move(inputs), std::move(attrs));
}

void OnnxLowering::SetTensor(int output, TensorId tensor, bool last) {
  if (!ok()) return;
  auto value = std::make_shared<OnnxValue>();
  const Dims& shape = Shape(tensor);
  value->shape = shape;
  if (last) {
    for (int i = 0; i < shape.rank(); ++i) value->shape[i] = shape[LastAxis(i, shape.rank())];
  }
  (last ? value->last : value->plain) = tensor;
  Define(output, std::move(value));
}

void OnnxLowering::SetConstant(int output, OnnxTensor tensor) {
  if (!ok()) return;
  tensor.name = OutputName(output);
  auto value = std::make_shared<OnnxValue>();
  value->shape = tensor.shape;
  value->constant = std::make_shared<const OnnxTensor>(std::move(tensor));
  Define(output, std::move(value));
}

void OnnxLowering::SetConstant(int output, const Dims& shape, std::shared_ptr<const ConstData> data, DType dtype) {
  if (data != nullptr) SetConstant(output, OnnxTensor{OutputName(output), dtype, shape, std::move(data)});
}

void OnnxLowering::SetAlias(int output, const OnnxValuePtr& value) {
  if (ok()) Define(output, value);
}

void OnnxLowering::OnlyFirstOutput() {
  for (int i = 1; i < static_cast<int>(node_.outputs.size()); ++i) {
    if (IsRead(i)) {
      Fail(Unsupported("its output '", OutputName(i), "' is not computed; only the first output is"));
    }
  }
}

OnnxHandler FindOnnxHandler(std::string_view op_type) {
  for (const OnnxHandlerTable* table : {&OnnxSpatialHandlers(), &OnnxElementwiseHandlers(), &OnnxMatrixHandlers(),
                                        &OnnxViewHandlers(), &OnnxConstantHandlers(), &OnnxReduceHandlers(),
                                        &OnnxActivationHandlers(), &OnnxNormHandlers(), &OnnxResampleHandlers()}) {
    const auto found = table->find(op_type);
    if (found != table->end()) return found->second;
  }
  return nullptr;
}

}  // namespace plait
