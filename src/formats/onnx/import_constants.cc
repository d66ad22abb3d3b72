// Constants, and arithmetic on them: exporters compute shapes with it. What is not constant goes on as a tensor where it can.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "src/formats/onnx/lowering.h"

namespace plait {

void ImportBinary(OnnxLowering& n, BinaryKind kind);
void ImportVariadic(OnnxLowering& n, BinaryKind kind);

namespace {

// Wraps instead of overflowing: these are the numbers of a file.
int64_t Wrap(uint64_t v) { return static_cast<int64_t>(v); }
uint64_t U(int64_t v) { return static_cast<uint64_t>(v); }

enum class Arithmetic { kAdd, kSub, kMul, kDiv, kMax, kMin, kMod, kEqual, kGreater, kLess };

int64_t Apply(Arithmetic what, int64_t a, int64_t b) {
  switch (what) {
    case Arithmetic::kAdd: return Wrap(U(a) + U(b));
    case Arithmetic::kSub: return Wrap(U(a) - U(b));
    case Arithmetic::kMul: return Wrap(U(a) * U(b));
    case Arithmetic::kDiv: return b == -1 ? Wrap(-U(a)) : a / b;  // b != 0 was checked
    case Arithmetic::kMod: return b == -1 ? 0 : (a % b + b) % b;
    case Arithmetic::kMax: return std::max(a, b);
    case Arithmetic::kMin: return std::min(a, b);
    case Arithmetic::kEqual: return a == b;
    case Arithmetic::kGreater: return a > b;
    case Arithmetic::kLess: return a < b;
  }
  return 0;
}

float Apply(Arithmetic what, float a, float b) {
  switch (what) {
    case Arithmetic::kAdd: return a + b;
    case Arithmetic::kSub: return a - b;
    case Arithmetic::kMul: return a * b;
    case Arithmetic::kDiv: return a / b;
    case Arithmetic::kMod: return std::fmod(a, b);
    case Arithmetic::kMax: return std::max(a, b);
    case Arithmetic::kMin: return std::min(a, b);
    default: return 0;
  }
}

bool IsComparison(Arithmetic what) { return what >= Arithmetic::kEqual; }

// The operands of an elementwise constant operator spread to one shape.
std::shared_ptr<ConstData> Spread(OnnxLowering& n, const OnnxTensor& t, const Dims& shape) {
  const std::shared_ptr<ConstData> data = n.NewData(shape, t.dtype);
  if (data != nullptr) {
    GatherStrided(t.data->data(), 0, shape, BroadcastStrides(t.shape, shape), t.dtype, data->mutable_data());
  }
  return data;
}

template <typename T>
void FoldTyped(OnnxLowering& n, Arithmetic what, const OnnxTensor& a, const OnnxTensor& b, const Dims& shape) {
  const std::shared_ptr<ConstData> left = Spread(n, a, shape), right = Spread(n, b, shape);
  if (left == nullptr || right == nullptr) return;
  T* out = left->as<T>();
  const T* by = right->as<T>();
  const int64_t count = shape.Count();
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<T>) {
      if ((what == Arithmetic::kDiv || what == Arithmetic::kMod) && by[i] == 0) {
        return n.Fail(InvalidArgument("divides by zero"));
      }
    }
    out[i] = Apply(what, out[i], by[i]);
  }
  n.SetConstant(0, shape, left, a.dtype);
}

// Whether both inputs were constants (or a mistake was found), and so the node is done.
bool FoldBinary(OnnxLowering& n, Arithmetic what) {
  if (n.input_count() != 2) return false;
  const OnnxValuePtr a = n.In(0), b = n.In(1);
  if (!n.ok() || !a->is_constant() || !b->is_constant()) return !n.ok();
  if (a->is_int() != b->is_int()) {
    n.Fail(InvalidArgument("mixes integers and floats"));
    return true;
  }
  if (!a->is_int() && IsComparison(what)) {
    n.Fail(Unsupported("compares floats"));
    return true;
  }
  const std::optional<Dims> shape = BroadcastShape(a->shape, b->shape);
  if (!shape) {
    n.Fail(InvalidArgument("its operands ", ToString(a->shape), " and ", ToString(b->shape), " do not broadcast"));
  } else if (a->is_int()) {
    FoldTyped<int64_t>(n, what, *a->constant, *b->constant, *shape);
  } else {
    FoldTyped<float>(n, what, *a->constant, *b->constant, *shape);
  }
  return true;
}

template <Arithmetic kFold, BinaryKind kKind>
void ImportArithmetic(OnnxLowering& n) {
  if (!FoldBinary(n, kFold)) ImportBinary(n, kKind);
}

template <Arithmetic kFold, BinaryKind kKind>
void ImportExtremum(OnnxLowering& n) {
  if (!FoldBinary(n, kFold)) ImportVariadic(n, kKind);
}

template <Arithmetic kFold>
void ImportFoldOnly(OnnxLowering& n) {
  if (!FoldBinary(n, kFold)) n.Fail(Unsupported("works on computed tensors; only constants are supported"));
}

// One constant input, element by element; computed ones become `kind`.
void FoldUnary(OnnxLowering& n, UnaryKind kind, float (*of_float)(float), int64_t (*of_int)(int64_t)) {
  const OnnxValuePtr x = n.In(0);
  if (!n.ok()) return;
  if (!x->is_constant()) {
    if (kind == UnaryKind::kCopy) {
      return n.Fail(Unsupported("works on a computed tensor; only constants are supported"));
    }
    const bool last = OnnxLowering::PreferLast({x});
    return n.EmitIn(last, 0, OpKind::kUnary, {last ? n.Last(x) : n.Plain(x)}, UnaryAttrs{kind, {}});
  }
  const OnnxTensor& c = *x->constant;
  if (c.is_int() && of_int == nullptr) return n.Fail(Unsupported("works on integers"));
  const std::shared_ptr<ConstData> data = n.NewData(c.shape, c.dtype);
  if (data == nullptr) return;
  for (int64_t i = 0; i < c.count(); ++i) {
    if (c.is_int()) {
      data->as<int64_t>()[i] = of_int(c.data->as<int64_t>()[i]);
    } else {
      data->as<float>()[i] = of_float(c.data->as<float>()[i]);
    }
  }
  n.SetConstant(0, c.shape, data, c.dtype);
}

int64_t Same(int64_t v) { return v; }

void ImportNeg(OnnxLowering& n) {
  FoldUnary(n, UnaryKind::kNegate, [](float v) { return -v; }, [](int64_t v) { return Wrap(-U(v)); });
}
void ImportSqrt(OnnxLowering& n) {
  FoldUnary(n, UnaryKind::kSqrt, [](float v) { return std::sqrt(v); }, nullptr);
}
void ImportReciprocal(OnnxLowering& n) {
  FoldUnary(n, UnaryKind::kReciprocal, [](float v) { return 1 / v; }, nullptr);
}
void ImportFloor(OnnxLowering& n) {
  FoldUnary(n, UnaryKind::kCopy, [](float v) { return std::floor(v); }, Same);
}
void ImportCeil(OnnxLowering& n) {
  FoldUnary(n, UnaryKind::kCopy, [](float v) { return std::ceil(v); }, Same);
}
void ImportNot(OnnxLowering& n) {
  FoldUnary(n, UnaryKind::kCopy, [](float) { return 0.0f; }, [](int64_t v) -> int64_t { return v == 0; });
}

template <typename T>
void SetVector(OnnxLowering& n, const Dims& shape, const T* values, DType dtype) {
  const std::shared_ptr<ConstData> data = n.NewData(shape, dtype);
  if (data == nullptr) return;
  std::copy(values, values + shape.Count(), data->as<T>());
  n.SetConstant(0, shape, data, dtype);
}

void ImportConstant(OnnxLowering& n) {
  using Kind = OnnxAttribute::Kind;
  for (const OnnxAttribute& a : n.node().attributes) {
    if (a.name == "value" && a.kind == Kind::kTensor) return n.SetConstant(0, a.t);
    if (a.name == "value_float" && a.kind == Kind::kFloat) return SetVector(n, Dims{}, &a.f, DType::kF32);
    if (a.name == "value_int" && a.kind == Kind::kInt) return SetVector(n, Dims{}, &a.i, DType::kI64);
    if (a.name == "value_floats" && a.kind == Kind::kFloats) {
      return SetVector(n, Dims{static_cast<int64_t>(a.floats.size())}, a.floats.data(), DType::kF32);
    }
    if (a.name == "value_ints" && a.kind == Kind::kInts) {
      return SetVector(n, Dims{static_cast<int64_t>(a.ints.size())}, a.ints.data(), DType::kI64);
    }
  }
  n.Fail(Unsupported("has no value that is a tensor of numbers"));
}

void ImportConstantOfShape(OnnxLowering& n) {
  const std::vector<int64_t> sizes = n.IntsIn(0);
  if (!n.ok()) return;
  if (sizes.size() > static_cast<size_t>(kMaxRank)) return n.Fail(Unsupported("makes a tensor of rank ", sizes.size()));
  Dims shape;
  for (const int64_t s : sizes) {
    if (s < 0) return n.Fail(InvalidArgument("makes a tensor with the size ", s));
    shape.push_back(s);
  }
  const OnnxAttribute* value = n.Find("value");
  if (value != nullptr && (value->kind != OnnxAttribute::Kind::kTensor || value->t.count() != 1)) {
    return n.Fail(InvalidArgument("its attribute 'value' is no tensor of one element"));
  }
  const DType dtype = value != nullptr ? value->t.dtype : DType::kF32;
  const std::shared_ptr<ConstData> data = n.NewData(shape, dtype);
  if (data == nullptr) return;
  if (value != nullptr) {
    GatherStrided(value->t.data->data(), 0, shape, Dims::Filled(shape.rank(), 0), dtype, data->mutable_data());
  }
  n.SetConstant(0, shape, data, dtype);
}

void ImportShape(OnnxLowering& n) {
  const Dims& shape = n.In(0)->shape;
  const int64_t rank = shape.rank();
  auto position = [rank](int64_t v) { return std::clamp<int64_t>(v < 0 ? std::max(v, -rank) + rank : v, 0, rank); };
  const int64_t start = position(n.Int("start", 0)), end = position(n.Int("end", rank));
  if (n.ok()) SetVector(n, Dims{std::max<int64_t>(0, end - start)}, shape.begin() + start, DType::kI64);
}

void ImportSize(OnnxLowering& n) {
  const int64_t count = n.In(0)->shape.Count();
  if (n.ok()) SetVector(n, Dims{}, &count, DType::kI64);
}

// From the ONNX numbering of element types.
std::optional<DType> CastTarget(int64_t type) {
  constexpr int64_t kFloat = 1, kDouble = 11;
  const bool integer = (type >= 2 && type <= 7) || type == 9 || type == 12 || type == 13;
  if (type == kFloat || type == kDouble) return DType::kF32;
  return integer ? std::optional(DType::kI64) : std::nullopt;
}

void ImportCast(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  const std::optional<DType> to = CastTarget(n.Int("to", 0));
  if (!n.ok()) return;
  const DType from = x->is_int() ? DType::kI64 : DType::kF32;
  if (to == from) return n.SetAlias(0, x);
  if (!to || !x->is_constant()) return n.Fail(Unsupported("casts to another type"));
  const OnnxTensor& c = *x->constant;
  const std::shared_ptr<ConstData> data = n.NewData(c.shape, *to);
  if (data == nullptr) return;
  for (int64_t i = 0; i < c.count(); ++i) {
    if (*to == DType::kF32) {
      data->as<float>()[i] = static_cast<float>(c.data->as<int64_t>()[i]);
      continue;
    }
    const float v = c.data->as<float>()[i];
    if (!(std::fabs(v) < 9.2e18f)) return n.Fail(InvalidArgument("casts ", v, " to an integer"));
    data->as<int64_t>()[i] = static_cast<int64_t>(v);
  }
  n.SetConstant(0, c.shape, data, *to);
}

void ImportRange(OnnxLowering& n) {
  int64_t bounds[3] = {0, 0, 1};
  for (int i = 0; i < 3; ++i) {
    const OnnxTensor* c = n.Constant(i);
    if (c == nullptr) return;
    if (!c->is_int() || c->count() != 1) return n.Fail(Unsupported("counts by anything but integers"));
    bounds[i] = *c->data->as<int64_t>();
  }
  const auto [start, limit, delta] = bounds;
  constexpr int64_t kLargest = int64_t{1} << 40;  // keeps the arithmetic below from overflowing
  if (delta == 0 || std::max({std::abs(start / 2), std::abs(limit / 2), std::abs(delta / 2)}) > kLargest) {
    return n.Fail(InvalidArgument("counts from ", start, " to ", limit, " by ", delta));
  }
  const int64_t span = delta > 0 ? limit - start + delta - 1 : limit - start + delta + 1;
  const Dims shape{std::max<int64_t>(0, span / delta)};
  const std::shared_ptr<ConstData> data = n.NewData(shape, DType::kI64);
  if (data == nullptr) return;
  for (int64_t i = 0; i < shape[0]; ++i) data->as<int64_t>()[i] = start + i * delta;
  n.SetConstant(0, shape, data, DType::kI64);
}

void ImportWhere(OnnxLowering& n) {
  const OnnxTensor* condition = n.Constant(0);
  const OnnxTensor* a = n.Constant(1);
  const OnnxTensor* b = n.Constant(2);
  if (condition == nullptr || a == nullptr || b == nullptr) return;
  std::optional<Dims> shape = BroadcastShape(condition->shape, a->shape);
  if (shape) shape = BroadcastShape(*shape, b->shape);
  if (!shape || !condition->is_int() || a->dtype != b->dtype) {
    return n.Fail(InvalidArgument("its operands do not fit together"));
  }
  const auto chosen = Spread(n, *condition, *shape), left = Spread(n, *a, *shape), right = Spread(n, *b, *shape);
  if (chosen == nullptr || left == nullptr || right == nullptr) return;
  for (int64_t i = 0; i < shape->Count(); ++i) {
    if (chosen->as<int64_t>()[i] != 0) continue;
    if (a->is_int()) {
      left->as<int64_t>()[i] = right->as<int64_t>()[i];
    } else {
      left->as<float>()[i] = right->as<float>()[i];
    }
  }
  n.SetConstant(0, *shape, left, a->dtype);
}

// The product of all elements of a constant vector of integers; of a computed tensor like every other reduction.
void ImportReduceProd(OnnxLowering& n) {
  if (!n.In(0)->is_int()) return ImportReduceProduct(n);
  const std::vector<int64_t> values = n.IntsIn(0);
  const bool keep = n.Int("keepdims", 1) != 0;
  if (!n.ok()) return;
  int64_t product = 1;
  for (const int64_t v : values) product = Wrap(U(product) * U(v));
  SetVector(n, keep ? Dims{1} : Dims{}, &product, DType::kI64);
}

}  // namespace

const OnnxHandlerTable& OnnxConstantHandlers() {
  static const OnnxHandlerTable table = {
      {"Add", ImportArithmetic<Arithmetic::kAdd, BinaryKind::kAdd>},
      {"Sub", ImportArithmetic<Arithmetic::kSub, BinaryKind::kSub>},
      {"Mul", ImportArithmetic<Arithmetic::kMul, BinaryKind::kMul>},
      {"Div", ImportArithmetic<Arithmetic::kDiv, BinaryKind::kDiv>},
      {"Max", ImportExtremum<Arithmetic::kMax, BinaryKind::kMax>},
      {"Min", ImportExtremum<Arithmetic::kMin, BinaryKind::kMin>},
      {"Mod", ImportFoldOnly<Arithmetic::kMod>},
      {"Equal", ImportFoldOnly<Arithmetic::kEqual>},
      {"Greater", ImportFoldOnly<Arithmetic::kGreater>},
      {"Less", ImportFoldOnly<Arithmetic::kLess>},
      {"Neg", ImportNeg},
      {"Sqrt", ImportSqrt},
      {"Reciprocal", ImportReciprocal},
      {"Floor", ImportFloor},
      {"Ceil", ImportCeil},
      {"Not", ImportNot},
      {"Constant", ImportConstant},
      {"ConstantOfShape", ImportConstantOfShape},
      {"Shape", ImportShape},
      {"Size", ImportSize},
      {"Cast", ImportCast},
      {"Range", ImportRange},
      {"Where", ImportWhere},
      {"ReduceProd", ImportReduceProd},
  };
  return table;
}

}  // namespace plait
