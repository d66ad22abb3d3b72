// The one place that sees protobuf.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

#include <bit>
#include <cstring>
#include <limits>

#include "src/base/checked.h"
#include "src/base/status.h"
#include "src/formats/onnx/model.h"

namespace plait {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX raw data is little-endian and is copied as it is");

constexpr int kMaxNesting = 64;  // messages within messages; a real model without control flow has about six

std::string DataTypeName(int32_t type) {
  if (!onnx::TensorProto_DataType_IsValid(type) || type == onnx::TensorProto::UNDEFINED) return StrCat("type ", type);
  std::string name = onnx::TensorProto_DataType_Name(static_cast<onnx::TensorProto_DataType>(type));
  if (name == "FLOAT") return "float32";
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name;
}

// Bytes of an element in raw_data; 0 for types that are not read.
int64_t RawSize(int32_t type) {
  switch (type) {
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::UINT32: return 4;
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::INT64: return 8;
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16: return 2;
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::BOOL: return 1;
    default: return 0;
  }
}

bool IsFloating(int32_t type) { return type == onnx::TensorProto::FLOAT || type == onnx::TensorProto::DOUBLE; }

template <typename From, typename To>
void ConvertRaw(const std::string& raw, To* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, raw.data() + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
    out[i] = static_cast<To>(value);
  }
}

void CopyRaw(int32_t type, const std::string& raw, int64_t count, ConstData* out) {
  switch (type) {
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::INT64:
      if (count > 0) std::memcpy(out->mutable_data(), raw.data(), raw.size());
      return;
    case onnx::TensorProto::DOUBLE: return ConvertRaw<double>(raw, out->as<float>(), count);
    case onnx::TensorProto::INT32: return ConvertRaw<int32_t>(raw, out->as<int64_t>(), count);
    case onnx::TensorProto::UINT32: return ConvertRaw<uint32_t>(raw, out->as<int64_t>(), count);
    case onnx::TensorProto::INT16: return ConvertRaw<int16_t>(raw, out->as<int64_t>(), count);
    case onnx::TensorProto::UINT16: return ConvertRaw<uint16_t>(raw, out->as<int64_t>(), count);
    case onnx::TensorProto::INT8: return ConvertRaw<int8_t>(raw, out->as<int64_t>(), count);
    default: return ConvertRaw<uint8_t>(raw, out->as<int64_t>(), count);
  }
}

template <typename To, typename Repeated>
void CopyTyped(const Repeated& values, ConstData* out) {
  To* to = out->as<To>();
  for (int i = 0; i < values.size(); ++i) to[i] = static_cast<To>(values.Get(i));
}

// Elements in the typed field that `type` uses when there is no raw data.
int64_t TypedCount(const onnx::TensorProto& t) {
  switch (t.data_type()) {
    case onnx::TensorProto::FLOAT: return t.float_data_size();
    case onnx::TensorProto::DOUBLE: return t.double_data_size();
    case onnx::TensorProto::INT64: return t.int64_data_size();
    case onnx::TensorProto::UINT32: return t.uint64_data_size();
    default: return t.int32_data_size();
  }
}

Result<Dims> DecodeDims(const onnx::TensorProto& t, const std::string& what, int64_t* count) {
  if (t.dims_size() > kMaxRank) {
    return Unsupported(what, " has ", t.dims_size(), " dimensions; at most ", kMaxRank, " are supported");
  }
  Dims dims;
  for (const int64_t d : t.dims()) {
    if (d < 0) return Corrupt(what, " has a negative dimension ", d);
    dims.push_back(d);
  }
  const std::optional<int64_t> product = CountOf(dims);
  if (!product) return Corrupt(what, " has a shape whose element count overflows");
  *count = *product;
  return dims;
}

// Takes the bytes out of `t` as it goes, so that a big model is not held twice.
Result<OnnxTensor> DecodeTensor(onnx::TensorProto* t, const std::string& what) {
  if (t->data_location() == onnx::TensorProto::EXTERNAL || t->external_data_size() > 0) {
    return Unsupported(
        what,
        " keeps its data in another file, which is not read; save the model with its weights inside one file "
        "(onnx.save without save_as_external_data)");
  }
  const int32_t type = t->data_type();
  const int64_t size = RawSize(type);
  if (size == 0) return Unsupported(what, " is ", DataTypeName(type), "; float32 and integers are read");
  if (t->has_segment()) return Unsupported(what, " is stored in segments");
  OnnxTensor out;
  out.name = t->name();
  out.dtype = IsFloating(type) ? DType::kF32 : DType::kI64;
  int64_t count = 0;
  PLAIT_ASSIGN_OR_RETURN(out.shape, DecodeDims(*t, what, &count));
  const bool raw = t->has_raw_data() && (!t->raw_data().empty() || TypedCount(*t) == 0);
  // In division form: count * size may overflow.
  const int64_t present = raw ? static_cast<int64_t>(t->raw_data().size()) / size : TypedCount(*t);
  if (present != count || (raw && static_cast<int64_t>(t->raw_data().size()) % size != 0)) {
    return Corrupt(what, " has the shape ", ToString(out.shape), " = ", count, " elements, but its data holds ",
                   present, raw ? StrCat(" (", t->raw_data().size(), " bytes)") : std::string());
  }
  std::shared_ptr<ConstData> data = ConstData::Allocate(count * SizeOf(out.dtype));
  if (data == nullptr) return OutOfMemory(what, ": no memory for ", count, " elements");
  if (raw) {
    CopyRaw(type, t->raw_data(), count, data.get());
    t->clear_raw_data();
  } else if (type == onnx::TensorProto::FLOAT) {
    CopyTyped<float>(t->float_data(), data.get());
  } else if (type == onnx::TensorProto::DOUBLE) {
    CopyTyped<float>(t->double_data(), data.get());
  } else if (type == onnx::TensorProto::INT64) {
    CopyTyped<int64_t>(t->int64_data(), data.get());
  } else if (type == onnx::TensorProto::UINT32) {
    CopyTyped<int64_t>(t->uint64_data(), data.get());
  } else {
    CopyTyped<int64_t>(t->int32_data(), data.get());
  }
  out.data = std::move(data);
  return out;
}

Result<OnnxAttribute> DecodeAttribute(onnx::AttributeProto* a, const std::string& what) {
  OnnxAttribute out;
  out.name = a->name();
  if (!a->ref_attr_name().empty()) {
    return Unsupported(what, " refers to an attribute of a function; functions are not read");
  }
  using Kind = OnnxAttribute::Kind;
  // Files from before IR version 2 have no type field; the filled field tells.
  auto type = a->type();
  if (type == onnx::AttributeProto::UNDEFINED) {
    type = a->has_f()             ? onnx::AttributeProto::FLOAT
           : a->has_i()           ? onnx::AttributeProto::INT
           : a->has_s()           ? onnx::AttributeProto::STRING
           : a->has_t()           ? onnx::AttributeProto::TENSOR
           : a->floats_size() > 0 ? onnx::AttributeProto::FLOATS
           : a->ints_size() > 0   ? onnx::AttributeProto::INTS
                                  : type;
  }
  switch (type) {
    case onnx::AttributeProto::FLOAT:
      out.kind = Kind::kFloat;
      out.f = a->f();
      break;
    case onnx::AttributeProto::INT:
      out.kind = Kind::kInt;
      out.i = a->i();
      break;
    case onnx::AttributeProto::STRING:
      out.kind = Kind::kString;
      out.s = a->s();
      break;
    case onnx::AttributeProto::FLOATS:
      out.kind = Kind::kFloats;
      out.floats.assign(a->floats().begin(), a->floats().end());
      break;
    case onnx::AttributeProto::INTS:
      out.kind = Kind::kInts;
      out.ints.assign(a->ints().begin(), a->ints().end());
      break;
    case onnx::AttributeProto::TENSOR: {
      PLAIT_ASSIGN_OR_RETURN(out.t, DecodeTensor(a->mutable_t(), what));
      out.kind = Kind::kTensor;
      break;
    }
    default: break;
  }
  return out;
}

OnnxValueInfo DecodeValueInfo(const onnx::ValueInfoProto& v) {
  OnnxValueInfo out;
  out.name = v.name();
  out.dtype.clear();
  if (!v.type().has_tensor_type()) return out;
  const auto& type = v.type().tensor_type();
  out.dtype = DataTypeName(type.elem_type());
  if (!type.has_shape()) return out;
  out.shape.emplace();
  for (const auto& d : type.shape().dim()) {
    out.shape->push_back(d.has_dim_value() ? OnnxDim{d.dim_value(), ""} : OnnxDim{-1, d.dim_param()});
  }
  return out;
}

Result<int64_t> DecodeOpset(const onnx::ModelProto& proto) {
  if (proto.ir_version() > onnx::IR_VERSION) {
    return Unsupported("the model is of IR version ", proto.ir_version(), "; this build reads up to ",
                       onnx::IR_VERSION);
  }
  int64_t opset = proto.opset_import_size() == 0 ? 1 : 0;  // files without the field are of opset 1
  for (const auto& o : proto.opset_import()) {
    if (o.domain().empty() || o.domain() == "ai.onnx") opset = std::max<int64_t>(opset, o.version());
  }
  if (opset < kMinOpset || opset > kMaxOpset) {
    return Unsupported("the model is of opset ", opset, "; opsets ", kMinOpset, " to ", kMaxOpset,
                       " are read (onnx.version_converter.convert_version can change it)");
  }
  return opset;
}

Status ParseProto(std::string_view bytes, onnx::ModelProto* proto) {
  if (bytes.empty()) return Corrupt("the ONNX model is empty");
  if (bytes.size() >= static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return Unsupported("the ONNX model has ", bytes.size(), " bytes; protobuf reads less than 2 GiB");
  }
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxNesting);
  if (!proto->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    return Corrupt("is not a whole ONNX model: its ", bytes.size(),
                   " bytes are truncated, damaged or something else; copy or export the model again");
  }
  return Status();
}

}  // namespace

std::optional<int64_t> CountOf(const Dims& dims) {
  std::optional<int64_t> product = 1;
  bool zero = false;
  for (const int64_t d : dims) {
    zero = zero || d == 0;
    product = product ? CheckedMul(*product, d == 0 ? 1 : d) : std::nullopt;
  }
  return product && zero ? 0 : product;
}

Result<OnnxModel> DecodeOnnx(std::string_view bytes) {
  onnx::ModelProto proto;
  PLAIT_RETURN_IF_ERROR(ParseProto(bytes, &proto));
  if (!proto.has_graph() || proto.ir_version() <= 0) {
    return Corrupt("is not an ONNX model: it has no ", proto.has_graph() ? "IR version" : "graph");
  }
  OnnxModel model;
  PLAIT_ASSIGN_OR_RETURN(model.opset, DecodeOpset(proto));
  onnx::GraphProto* graph = proto.mutable_graph();
  model.graph_name = graph->name();
  if (graph->sparse_initializer_size() > 0) {
    return Unsupported("the initializer '", graph->sparse_initializer(0).values().name(), "' is sparse; save it dense");
  }
  model.initializers.reserve(static_cast<size_t>(graph->initializer_size()));
  for (onnx::TensorProto& t : *graph->mutable_initializer()) {
    PLAIT_ASSIGN_OR_RETURN(OnnxTensor tensor, DecodeTensor(&t, StrCat("the initializer '", t.name(), "'")));
    model.initializers.push_back(std::move(tensor));
  }
  model.nodes.reserve(static_cast<size_t>(graph->node_size()));
  for (onnx::NodeProto& n : *graph->mutable_node()) {
    OnnxNode node;
    node.name = n.name();
    node.op_type = n.op_type();
    node.domain = n.domain() == "ai.onnx" ? "" : n.domain();
    node.inputs.assign(n.input().begin(), n.input().end());
    node.outputs.assign(n.output().begin(), n.output().end());
    for (onnx::AttributeProto& a : *n.mutable_attribute()) {
      const std::string what = StrCat("the attribute '", a.name(), "' of ", n.op_type(), " '", n.name(), "'");
      PLAIT_ASSIGN_OR_RETURN(OnnxAttribute attribute, DecodeAttribute(&a, what));
      node.attributes.push_back(std::move(attribute));
    }
    model.nodes.push_back(std::move(node));
  }
  for (const auto& v : graph->input()) model.inputs.push_back(DecodeValueInfo(v));
  for (const auto& v : graph->output()) model.outputs.push_back(DecodeValueInfo(v));
  return model;
}

namespace {

void EncodeTensor(const OnnxTensor& in, onnx::TensorProto* out) {
  out->set_name(in.name);
  out->set_data_type(in.is_int() ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT);
  for (const int64_t d : in.shape) out->add_dims(d);
  out->set_raw_data(in.data->data(), static_cast<size_t>(in.count() * SizeOf(in.dtype)));
}

void EncodeAttribute(const OnnxAttribute& in, onnx::AttributeProto* out) {
  out->set_name(in.name);
  using Kind = OnnxAttribute::Kind;
  switch (in.kind) {
    case Kind::kFloat:
      out->set_type(onnx::AttributeProto::FLOAT);
      out->set_f(in.f);
      break;
    case Kind::kInt:
      out->set_type(onnx::AttributeProto::INT);
      out->set_i(in.i);
      break;
    case Kind::kString:
      out->set_type(onnx::AttributeProto::STRING);
      out->set_s(in.s);
      break;
    case Kind::kFloats:
      out->set_type(onnx::AttributeProto::FLOATS);
      out->mutable_floats()->Assign(in.floats.begin(), in.floats.end());
      break;
    case Kind::kInts:
      out->set_type(onnx::AttributeProto::INTS);
      out->mutable_ints()->Assign(in.ints.begin(), in.ints.end());
      break;
    case Kind::kTensor:
      out->set_type(onnx::AttributeProto::TENSOR);
      EncodeTensor(in.t, out->mutable_t());
      break;
    case Kind::kOther: break;
  }
}

void EncodeValueInfo(const OnnxValueInfo& in, onnx::ValueInfoProto* out) {
  out->set_name(in.name);
  auto* type = out->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape();
  for (const OnnxDim& d : *in.shape) type->mutable_shape()->add_dim()->set_dim_value(d.value);
}

}  // namespace

Result<std::string> EncodeOnnx(const OnnxModel& model) {
  int64_t weight_bytes = 0;
  for (const OnnxTensor& t : model.initializers) weight_bytes += t.data->bytes();
  const Status too_big = Unsupported("the model needs more than the 2 GiB that one ONNX file can hold (", weight_bytes,
                                     " bytes of weights); export it as Plait's graph JSON");
  if (weight_bytes >= std::numeric_limits<int32_t>::max()) return too_big;
  onnx::ModelProto proto;
  proto.set_ir_version(kExportIrVersion);
  proto.set_producer_name("plait");
  auto* opset = proto.add_opset_import();
  opset->set_domain("");
  opset->set_version(model.opset);
  onnx::GraphProto* graph = proto.mutable_graph();
  graph->set_name(model.graph_name.empty() ? "graph" : model.graph_name);
  for (const OnnxTensor& t : model.initializers) EncodeTensor(t, graph->add_initializer());
  for (const OnnxNode& n : model.nodes) {
    onnx::NodeProto* node = graph->add_node();
    node->set_name(n.name);
    node->set_op_type(n.op_type);
    if (!n.domain.empty()) node->set_domain(n.domain);
    for (const std::string& i : n.inputs) node->add_input(i);
    for (const std::string& o : n.outputs) node->add_output(o);
    for (const OnnxAttribute& a : n.attributes) EncodeAttribute(a, node->add_attribute());
  }
  for (const OnnxValueInfo& v : model.inputs) EncodeValueInfo(v, graph->add_input());
  for (const OnnxValueInfo& v : model.outputs) EncodeValueInfo(v, graph->add_output());
  if (proto.ByteSizeLong() >= static_cast<size_t>(std::numeric_limits<int32_t>::max())) return too_big;
  std::string bytes;
  if (!proto.SerializeToString(&bytes)) return Internal("protobuf refused to serialize the model");
  return bytes;
}

}  // namespace plait
