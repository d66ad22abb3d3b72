#include "src/formats/attributes.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace plait {
namespace {

using nlohmann::json;

// JSON has no infinities: they are strings.
json EncodeFloat(float v) {
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return v;
}

constexpr const char* kBinaryNames[] = {"add", "sub", "mul", "div", "max", "min"};
constexpr const char* kUnaryNames[] = {"copy", "clamp",  "sigmoid",    "hard_sigmoid", "hard_swish", "silu",
                                       "gelu", "tanh",   "exp",        "sqrt",         "erf",        "negate",
                                       "abs",  "square", "reciprocal", "log"};

class Writer {
 public:
  void Int(const char* name, int32_t* v, int32_t fallback) {
    if (*v != fallback) out[name] = *v;
  }
  void Pair(const char* name, int32_t* a, int32_t* b) {
    if (*a != 1 || *b != 1) out[name] = {*a, *b};
  }
  void Bool(const char* name, bool* v, bool fallback) {
    if (*v != fallback) out[name] = *v;
  }
  void Float(const char* name, float* v, float fallback) {
    if (*v != fallback) out[name] = EncodeFloat(*v);
  }
  void Pad(Padding* p) {
    if (!(*p == Padding{})) out["padding"] = {p->top, p->left, p->bottom, p->right};
  }
  void Clamp(plait::Clamp* c) {
    if (!c->IsNone()) out["clamp"] = {EncodeFloat(c->min), EncodeFloat(c->max)};
  }
  void List(const char* name, std::vector<int32_t>* v) { out[name] = *v; }
  void Sizes(const char* name, Dims* d) { out[name] = std::vector<int64_t>(d->begin(), d->end()); }
  template <typename Enum, size_t kCount>
  void Choice(const char* name, Enum* v, const char* const (&names)[kCount]) {
    out[name] = names[static_cast<size_t>(*v)];
  }

  json out = json::object();
};

class Reader {
 public:
  explicit Reader(const json& in) : in_(in) {}

  Status Finish() {
    if (status_.ok() && used_ != in_.size()) {
      for (const auto& [key, value] : in_.items()) {
        if (seen_.find("," + key + ",") == std::string::npos) return Corrupt("its attribute '", key, "' is unknown");
      }
    }
    return status_;
  }

  void Int(const char* name, int32_t* v, int32_t fallback) {
    *v = fallback;
    if (const json* j = Find(name)) Number(name, *j, v);
  }
  void Pair(const char* name, int32_t* a, int32_t* b) {
    *a = *b = 1;
    if (const json* j = Array(name, 2)) {
      Number(name, (*j)[0], a);
      Number(name, (*j)[1], b);
    }
  }
  void Bool(const char* name, bool* v, bool fallback) {
    *v = fallback;
    const json* j = Find(name);
    if (j == nullptr) return;
    if (!j->is_boolean()) return Fail(name, "must be true or false");
    *v = j->get<bool>();
  }
  void Float(const char* name, float* v, float fallback) {
    *v = fallback;
    if (const json* j = Find(name)) FloatValue(name, *j, v);
  }
  void Pad(Padding* p) {
    if (const json* j = Array("padding", 4)) {
      Number("padding", (*j)[0], &p->top);
      Number("padding", (*j)[1], &p->left);
      Number("padding", (*j)[2], &p->bottom);
      Number("padding", (*j)[3], &p->right);
    }
  }
  void Clamp(plait::Clamp* c) {
    if (const json* j = Array("clamp", 2)) {
      FloatValue("clamp", (*j)[0], &c->min);
      FloatValue("clamp", (*j)[1], &c->max);
    }
  }
  void List(const char* name, std::vector<int32_t>* v) {
    const json* j = Required(name);
    if (j == nullptr) return;
    if (!j->is_array() || j->size() > static_cast<size_t>(kMaxRank)) {
      return Fail(name, "must be a list of at most 8 numbers");
    }
    for (const json& e : *j) {
      v->push_back(0);
      Number(name, e, &v->back());
    }
  }
  void Sizes(const char* name, Dims* d) {
    const json* j = Required(name);
    if (j == nullptr) return;
    if (!j->is_array() || j->size() > static_cast<size_t>(kMaxRank)) {
      return Fail(name, "must be a list of at most 8 numbers");
    }
    for (const json& e : *j) {
      d->push_back(0);
      Number(name, e, &(*d)[d->rank() - 1]);
    }
  }
  template <typename Enum, size_t kCount>
  void Choice(const char* name, Enum* v, const char* const (&names)[kCount]) {
    const json* j = Required(name);
    if (j == nullptr) return;
    for (size_t i = 0; j->is_string() && i < kCount; ++i) {
      if (j->get_ref<const std::string&>() == names[i]) {
        *v = static_cast<Enum>(i);
        return;
      }
    }
    Fail(name, "is none of the known kinds");
  }

 private:
  void Fail(const char* name, const char* why) {
    if (status_.ok()) status_ = Corrupt("its attribute '", name, "' ", why);
  }
  const json* Find(const char* name) {
    const auto found = in_.find(name);
    if (found == in_.end()) return nullptr;
    ++used_;
    seen_ += std::string(",") + name + ",";
    return &*found;
  }
  const json* Required(const char* name) {
    const json* j = Find(name);
    if (j == nullptr) Fail(name, "is missing");
    return j;
  }
  const json* Array(const char* name, size_t size) {
    const json* j = Find(name);
    if (j == nullptr || (j->is_array() && j->size() == size)) return j;
    Fail(name, size == 2 ? "must be a list of 2" : "must be a list of 4");
    return nullptr;
  }
  template <typename T>
  void Number(const char* name, const json& j, T* v) {
    if (!j.is_number_integer() ||
        (j.is_number_unsigned() && j.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<T>::max())) ||
        (!j.is_number_unsigned() && j.get<int64_t>() < std::numeric_limits<T>::min())) {
      return Fail(name, "holds what is no integer in range");
    }
    *v = static_cast<T>(j.get<int64_t>());
  }
  void FloatValue(const char* name, const json& j, float* v) {
    if (j.is_string() && (j == "inf" || j == "-inf")) {
      *v = j == "inf" ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity();
    } else if (j.is_number() && std::fabs(j.get<double>()) <= std::numeric_limits<float>::max()) {
      *v = static_cast<float>(j.get<double>());
    } else {
      Fail(name, "holds what is no number in range");
    }
  }

  const json& in_;
  size_t used_ = 0;
  std::string seen_;
  Status status_;
};

template <typename Archive>
void Fields(Archive& io, Conv2DAttrs* a) {
  io.Pair("stride", &a->stride_h, &a->stride_w);
  io.Pair("dilation", &a->dilation_h, &a->dilation_w);
  io.Int("groups", &a->groups, 1);
  io.Pad(&a->pad);
  io.Clamp(&a->clamp);
}
template <typename Archive>
void Fields(Archive& io, Pool2DAttrs* a) {
  io.Pair("kernel", &a->kernel_h, &a->kernel_w);
  io.Pair("stride", &a->stride_h, &a->stride_w);
  io.Pad(&a->pad);
  io.Bool("count_include_pad", &a->count_include_pad, false);
  io.Clamp(&a->clamp);
}
template <typename Archive>
void Fields(Archive& io, FullyConnectedAttrs* a) {
  io.Clamp(&a->clamp);
}
template <typename Archive>
void Fields(Archive& io, MatMulAttrs* a) {
  io.Bool("transpose_b", &a->transpose_b, false);
}
template <typename Archive>
void Fields(Archive& io, BinaryAttrs* a) {
  io.Choice("function", &a->kind, kBinaryNames);
  io.Clamp(&a->clamp);
}
template <typename Archive>
void Fields(Archive& io, UnaryAttrs* a) {
  io.Choice("function", &a->kind, kUnaryNames);
  io.Clamp(&a->clamp);
}
template <typename Archive>
void Fields(Archive& io, ReduceAttrs* a) {
  io.List("axes", &a->axes);
  io.Bool("keep_dims", &a->keep_dims, true);
}
template <typename Archive>
void Fields(Archive&, SoftmaxAttrs*) {}
template <typename Archive>
void Fields(Archive& io, NormAttrs* a) {
  io.Float("epsilon", &a->epsilon, 1e-5f);
}
template <typename Archive>
void Fields(Archive& io, ConcatAttrs* a) {
  io.Int("axis", &a->axis, 0);
}
template <typename Archive>
void Fields(Archive& io, SliceAttrs* a) {
  io.Sizes("begin", &a->begin);
  io.Sizes("size", &a->size);
}
template <typename Archive>
void Fields(Archive& io, ReshapeAttrs* a) {
  io.Sizes("shape", &a->shape);
}
template <typename Archive>
void Fields(Archive& io, TransposeAttrs* a) {
  io.List("perm", &a->perm);
}
template <typename Archive>
void Fields(Archive& io, PadAttrs* a) {
  io.Sizes("before", &a->before);
  io.Sizes("after", &a->after);
  io.Float("value", &a->value, 0.0f);
}

// Calls f with the attribute struct of `kind`, as found in `attrs`, or fresh if another one is there.
template <typename F>
void Visit(OpKind kind, OpAttrs* attrs, F&& f) {
  auto with = [&]<typename A>() {
    if (!std::holds_alternative<A>(*attrs)) *attrs = A{};
    f(std::get_if<A>(attrs));
  };
  switch (kind) {
    case OpKind::kConv2D:
    case OpKind::kDepthwiseConv2D: return with.template operator()<Conv2DAttrs>();
    case OpKind::kFullyConnected: return with.template operator()<FullyConnectedAttrs>();
    case OpKind::kMatMul: return with.template operator()<MatMulAttrs>();
    case OpKind::kBinary: return with.template operator()<BinaryAttrs>();
    case OpKind::kUnary: return with.template operator()<UnaryAttrs>();
    case OpKind::kMaxPool2D:
    case OpKind::kAveragePool2D: return with.template operator()<Pool2DAttrs>();
    case OpKind::kReduceMean: return with.template operator()<ReduceAttrs>();
    case OpKind::kSoftmax: return with.template operator()<SoftmaxAttrs>();
    case OpKind::kLayerNorm:
    case OpKind::kBatchNorm: return with.template operator()<NormAttrs>();
    case OpKind::kConcat: return with.template operator()<ConcatAttrs>();
    case OpKind::kSlice: return with.template operator()<SliceAttrs>();
    case OpKind::kReshape: return with.template operator()<ReshapeAttrs>();
    case OpKind::kTranspose: return with.template operator()<TransposeAttrs>();
    case OpKind::kPad: return with.template operator()<PadAttrs>();
  }
}

}  // namespace

nlohmann::json EncodeAttributes(const Operator& op) {
  Writer writer;
  OpAttrs attrs = op.attrs;
  Visit(op.kind, &attrs, [&](auto* a) { Fields(writer, a); });
  return std::move(writer.out);
}

Status DecodeAttributes(const nlohmann::json& object, Operator* op) {
  if (!object.is_object()) return Corrupt("its attributes are no object");
  Reader reader(object);
  op->attrs = std::monostate{};
  Visit(op->kind, &op->attrs, [&](auto* a) { Fields(reader, a); });
  return reader.Finish();
}

}  // namespace plait
