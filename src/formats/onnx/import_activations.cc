// Activations and means that are compositions of a few elementwise operators.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/formats/onnx/lowering.h"

namespace plait {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Builds expressions over input 0 in the layout that costs nothing; Finish() makes the last operator the node's output.
class Expression {
 public:
  explicit Expression(OnnxLowering& n) : n_(n) {
    const OnnxValuePtr x = n.In(0);
    last_ = OnnxLowering::PreferLast({x});
    x_ = last_ ? n.Last(x) : n.Plain(x);
  }

  TensorId x() const { return x_; }
  bool last() const { return last_; }
  TensorId Unary(UnaryKind kind, TensorId a) { return n_.Emit("unary", OpKind::kUnary, {a}, UnaryAttrs{kind, {}}); }
  TensorId Clamped(TensorId a, float min, float max) {
    return n_.Emit("clamped", OpKind::kUnary, {a}, UnaryAttrs{UnaryKind::kClamp, {min, max}});
  }
  TensorId Positive(TensorId a) { return Clamped(a, 0.0f, kInfinity); }
  TensorId Negative(TensorId a) { return Clamped(a, -kInfinity, 0.0f); }
  TensorId Binary(BinaryKind kind, TensorId a, TensorId b) {
    return n_.Emit("binary", OpKind::kBinary, {a, b}, BinaryAttrs{kind, {}});
  }
  TensorId Scaled(TensorId a, float by) { return by == 1.0f ? a : Binary(BinaryKind::kMul, a, n_.ScalarConstant(by)); }
  TensorId Shifted(TensorId a, float by) { return Binary(BinaryKind::kAdd, a, n_.ScalarConstant(by)); }
  // log(1 + exp(a)) without overflow: max(a, 0) + log(1 + exp(-|a|)).
  TensorId Softplus(TensorId a) {
    const TensorId small = Unary(UnaryKind::kExp, Unary(UnaryKind::kNegate, Unary(UnaryKind::kAbs, a)));
    return Binary(BinaryKind::kAdd, Positive(a), Unary(UnaryKind::kLog, Shifted(small, 1.0f)));
  }
  // exp(min(a, 0)) - 1, which is 0 for positive a.
  TensorId ExpMinusOne(TensorId a) { return Shifted(Unary(UnaryKind::kExp, Negative(a)), -1.0f); }

  void Finish(TensorId result) {
    if (!n_.ok()) return;
    const Dims& wanted = n_.Shape(x_);
    // A factor is a vector of one element, which a scalar would grow to.
    if (!(n_.Shape(result) == wanted)) result = n_.Emit("shaped", OpKind::kReshape, {result}, ReshapeAttrs{wanted});
    if (n_.ok()) n_.SetTensor(0, result, last_);
  }

 private:
  OnnxLowering& n_;
  bool last_ = false;
  TensorId x_ = kNoTensor;
};

// gamma * (max(x, 0) + alpha * (exp(min(x, 0)) - 1))
void ExponentialLinear(OnnxLowering& n, float alpha, float gamma) {
  Expression e(n);
  const TensorId below = e.Scaled(e.ExpMinusOne(e.x()), alpha);
  e.Finish(e.Scaled(e.Binary(BinaryKind::kAdd, e.Positive(e.x()), below), gamma));
}

void ImportElu(OnnxLowering& n) { ExponentialLinear(n, n.Float("alpha", 1.0f), 1.0f); }

void ImportSelu(OnnxLowering& n) {
  ExponentialLinear(n, n.Float("alpha", 1.67326319217681884765625f), n.Float("gamma", 1.05070102214813232421875f));
}

void ImportCelu(OnnxLowering& n) {
  const float alpha = n.Float("alpha", 1.0f);
  if (alpha == 0.0f) return n.Fail(InvalidArgument("its attribute 'alpha' is 0"));
  Expression e(n);
  const TensorId below = e.Scaled(e.ExpMinusOne(e.Scaled(e.x(), 1.0f / alpha)), alpha);
  e.Finish(e.Binary(BinaryKind::kAdd, e.Positive(e.x()), below));
}

void ImportSoftplus(OnnxLowering& n) {
  Expression e(n);
  e.Finish(e.Softplus(e.x()));
}

void ImportSoftsign(OnnxLowering& n) {
  Expression e(n);
  e.Finish(e.Binary(BinaryKind::kDiv, e.x(), e.Shifted(e.Unary(UnaryKind::kAbs, e.x()), 1.0f)));
}

void ImportMish(OnnxLowering& n) {
  Expression e(n);
  e.Finish(e.Binary(BinaryKind::kMul, e.x(), e.Unary(UnaryKind::kTanh, e.Softplus(e.x()))));
}

// max(x, 0) + slope * min(x, 0)
void ImportPRelu(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0), slope = n.In(1);
  if (!n.ok()) return;
  const std::optional<Dims> shape = BroadcastShape(x->shape, slope->shape);
  if (!shape || !(*shape == x->shape)) {
    return n.Fail(InvalidArgument("its slopes ", ToString(slope->shape), " do not broadcast to ", ToString(x->shape)));
  }
  const bool last = OnnxLowering::PreferLast({x, slope});
  const TensorId a = last ? n.Last(x) : n.Plain(x), by = last ? n.Last(slope) : n.Plain(slope);
  const TensorId above = n.Emit("above", OpKind::kUnary, {a}, UnaryAttrs{UnaryKind::kClamp, kRelu});
  const TensorId below = n.Emit("below", OpKind::kUnary, {a}, UnaryAttrs{UnaryKind::kClamp, {-kInfinity, 0.0f}});
  const TensorId scaled = n.Emit("scaled", OpKind::kBinary, {below, by}, BinaryAttrs{BinaryKind::kMul, {}});
  n.EmitIn(last, 0, OpKind::kBinary, {above, scaled}, BinaryAttrs{BinaryKind::kAdd, {}});
}

}  // namespace

const OnnxHandlerTable& OnnxActivationHandlers() {
  static const OnnxHandlerTable table = {
      {"Celu", ImportCelu}, {"Elu", ImportElu},           {"Mish", ImportMish},         {"PRelu", ImportPRelu},
      {"Selu", ImportSelu}, {"Softplus", ImportSoftplus}, {"Softsign", ImportSoftsign},
  };
  return table;
}

}  // namespace plait
