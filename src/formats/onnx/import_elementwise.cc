// Operators that work element by element.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "src/formats/onnx/lowering.h"

namespace plait {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Input 0 in the layout that costs nothing.
TensorId Operand(OnnxLowering& n, bool* last) {
  const OnnxValuePtr x = n.In(0);
  *last = OnnxLowering::PreferLast({x});
  return *last ? n.Last(x) : n.Plain(x);
}

void EmitUnary(OnnxLowering& n, UnaryAttrs attrs) {
  bool last;
  const TensorId x = Operand(n, &last);
  n.EmitIn(last, 0, OpKind::kUnary, {x}, attrs);
}

template <UnaryKind kKind>
void ImportUnary(OnnxLowering& n) {
  EmitUnary(n, {kKind, {}});
}

TensorId Unary(OnnxLowering& n, const char* hint, TensorId x, UnaryKind kind) {
  return n.Emit(hint, OpKind::kUnary, {x}, UnaryAttrs{kind, {}});
}
TensorId Scale(OnnxLowering& n, const char* hint, TensorId x, float by) {
  return n.Emit(hint, OpKind::kBinary, {x, n.ScalarConstant(by)}, BinaryAttrs{BinaryKind::kMul, {}});
}
TensorId Shift(OnnxLowering& n, const char* hint, TensorId x, float by) {
  return n.Emit(hint, OpKind::kBinary, {x, n.ScalarConstant(by)}, BinaryAttrs{BinaryKind::kAdd, {}});
}

void ImportRelu(OnnxLowering& n) { EmitUnary(n, {UnaryKind::kClamp, kRelu}); }

void ImportClip(OnnxLowering& n) {
  Clamp clamp;
  if (n.opset() < 11) {
    clamp = {n.Float("min", -kInfinity), n.Float("max", kInfinity)};
  } else {
    clamp = {n.ScalarIn(1, -kInfinity), n.ScalarIn(2, kInfinity)};
  }
  // The files' way to say "no bound" in float32.
  if (clamp.min == std::numeric_limits<float>::lowest()) clamp.min = -kInfinity;
  if (clamp.max == std::numeric_limits<float>::max()) clamp.max = kInfinity;
  if (!(clamp.min <= clamp.max)) return n.Fail(InvalidArgument("clips to ", clamp.min, "..", clamp.max));
  EmitUnary(n, {UnaryKind::kClamp, clamp});
}

void ImportHardSigmoid(OnnxLowering& n) {
  const float alpha = n.Float("alpha", 0.2f), beta = n.Float("beta", 0.5f);
  if (std::fabs(alpha - 1.0f / 6) < 1e-6f && beta == 0.5f) return EmitUnary(n, {UnaryKind::kHardSigmoid, {}});
  bool last;
  const TensorId scaled = Scale(n, "scaled", Operand(n, &last), alpha);
  n.EmitIn(last, 0, OpKind::kBinary, {scaled, n.ScalarConstant(beta)}, BinaryAttrs{BinaryKind::kAdd, {0.0f, 1.0f}});
}

void ImportLeakyRelu(OnnxLowering& n) {
  const float alpha = n.Float("alpha", 0.01f);
  bool last;
  const TensorId x = Operand(n, &last);
  const TensorId scaled = Scale(n, "scaled", x, alpha);
  // The larger of x and alpha x is the leaky one for alpha up to 1, the smaller beyond.
  n.EmitIn(last, 0, OpKind::kBinary, {x, scaled}, BinaryAttrs{alpha <= 1 ? BinaryKind::kMax : BinaryKind::kMin, {}});
}

void ImportGelu(OnnxLowering& n) {
  const std::string approximate = n.String("approximate", "none");
  if (approximate == "none") return EmitUnary(n, {UnaryKind::kGelu, {}});
  if (approximate != "tanh") return n.Fail(InvalidArgument("its attribute 'approximate' is '", approximate, "'"));
  // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
  bool last;
  const TensorId x = Operand(n, &last);
  const TensorId inner =
      Shift(n, "inner", Scale(n, "small", Unary(n, "square", x, UnaryKind::kSquare), 0.044715f), 1.0f);
  const TensorId cubic = n.Emit("cubic", OpKind::kBinary, {x, inner}, BinaryAttrs{BinaryKind::kMul, {}});
  const TensorId tanh = Unary(n, "tanh", Scale(n, "argument", cubic, 0.7978845608f), UnaryKind::kTanh);
  const TensorId half = Scale(n, "half", x, 0.5f);
  n.EmitIn(last, 0, OpKind::kBinary, {half, Shift(n, "gate", tanh, 1.0f)}, BinaryAttrs{BinaryKind::kMul, {}});
}

void ImportPow(OnnxLowering& n) {
  const OnnxTensor* exponent = n.Constant(1);
  if (exponent == nullptr) return;
  const float e = n.ScalarIn(1, 1.0f);
  if (!n.ok()) return;
  if (exponent->shape.rank() > n.In(0)->shape.rank()) {
    return n.Fail(Unsupported("an exponent of higher rank than its base"));
  }
  if (e == 2.0f) return EmitUnary(n, {UnaryKind::kSquare, {}});
  if (e == 0.5f) return EmitUnary(n, {UnaryKind::kSqrt, {}});
  if (e == -1.0f) return EmitUnary(n, {UnaryKind::kReciprocal, {}});
  if (e == 1.0f) return n.SetAlias(0, n.In(0));
  bool last;
  if (e == 3.0f) {
    const TensorId x = Operand(n, &last);
    return n.EmitIn(last, 0, OpKind::kBinary, {x, Unary(n, "square", x, UnaryKind::kSquare)},
                    BinaryAttrs{BinaryKind::kMul, {}});
  }
  if (e == -0.5f) {
    const TensorId root = Unary(n, "root", Operand(n, &last), UnaryKind::kSqrt);
    return n.EmitIn(last, 0, OpKind::kUnary, {root}, UnaryAttrs{UnaryKind::kReciprocal, {}});
  }
  n.Fail(Unsupported("the exponent ", e, "; 2, 3, 1, 0.5, -0.5 and -1 are supported"));
}

// What is left of a left-to-right chain over two or more operands once all but its last operator are emitted.
struct ChainEnd {
  bool last = false;  // layout
  TensorId left = kNoTensor, right = kNoTensor;
};

// nullopt: failed, or a single operand, which the output then is.
std::optional<ChainEnd> EmitChain(OnnxLowering& n, BinaryKind kind) {
  std::vector<OnnxValuePtr> values;
  for (int i = 0; i < n.input_count(); ++i) values.push_back(n.In(i));
  if (values.empty()) n.Fail(InvalidArgument("has no inputs"));
  if (!n.ok()) return std::nullopt;
  if (values.size() == 1) {
    n.SetAlias(0, values[0]);
    return std::nullopt;
  }
  ChainEnd end;
  end.last = OnnxLowering::PreferLast(values);
  auto operand = [&](size_t i) { return end.last ? n.Last(values[i]) : n.Plain(values[i]); };
  end.left = operand(0);
  for (size_t i = 1; i < values.size(); ++i) {
    if (i > 1) end.left = n.Emit("partial", OpKind::kBinary, {end.left, end.right}, BinaryAttrs{kind, {}});
    end.right = operand(i);
    if (!n.ok()) return std::nullopt;
    if (!BroadcastShape(n.Shape(end.left), n.Shape(end.right))) {
      n.Fail(InvalidArgument("its operands ", ToString(values[0]->shape), " and ", ToString(values[i]->shape), " do not broadcast"));
      return std::nullopt;
    }
  }
  return end;
}

void ImportChain(OnnxLowering& n, BinaryKind kind) {
  const std::optional<ChainEnd> end = EmitChain(n, kind);
  if (end) n.EmitIn(end->last, 0, OpKind::kBinary, {end->left, end->right}, BinaryAttrs{kind, {}});
}

void ImportMean(OnnxLowering& n) {
  const std::optional<ChainEnd> end = EmitChain(n, BinaryKind::kAdd);
  if (!end) return;
  const TensorId sum = n.Emit("sum", OpKind::kBinary, {end->left, end->right}, BinaryAttrs{BinaryKind::kAdd, {}});
  const TensorId share = n.ScalarConstant(1.0f / static_cast<float>(n.input_count()));
  n.EmitIn(end->last, 0, OpKind::kBinary, {sum, share}, BinaryAttrs{BinaryKind::kMul, {}});
}

}  // namespace

// Lowers a binary operator over tensors; constants were tried before.
void ImportBinary(OnnxLowering& n, BinaryKind kind) {
  if (n.input_count() != 2) return n.Fail(InvalidArgument("has ", n.input_count(), " inputs instead of 2"));
  ImportChain(n, kind);
}

void ImportVariadic(OnnxLowering& n, BinaryKind kind) { ImportChain(n, kind); }

const OnnxHandlerTable& OnnxElementwiseHandlers() {
  static const OnnxHandlerTable table = {
      {"Abs", ImportUnary<UnaryKind::kAbs>},
      {"Clip", ImportClip},
      {"Erf", ImportUnary<UnaryKind::kErf>},
      {"Exp", ImportUnary<UnaryKind::kExp>},
      {"Gelu", ImportGelu},
      {"HardSigmoid", ImportHardSigmoid},
      {"HardSwish", ImportUnary<UnaryKind::kHardSwish>},
      {"LeakyRelu", ImportLeakyRelu},
      {"Log", ImportUnary<UnaryKind::kLog>},
      {"Pow", ImportPow},
      {"Relu", ImportRelu},
      {"Sigmoid", ImportUnary<UnaryKind::kSigmoid>},
      {"Tanh", ImportUnary<UnaryKind::kTanh>},
      {"Mean", ImportMean},
      {"Sum", [](OnnxLowering& n) { ImportChain(n, BinaryKind::kAdd); }},
  };
  return table;
}

}  // namespace plait
