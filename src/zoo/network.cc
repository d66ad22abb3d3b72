#include "src/zoo/network.h"

#include <algorithm>
#include <cmath>

namespace plait::zoo {
namespace {

// The mean square of f(x) for normal x of mean square 1, rounded.
double PowerAfter(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::kSigmoid: return 0.29;
    case UnaryKind::kHardSigmoid: return 0.28;
    case UnaryKind::kSilu: return 0.36;
    case UnaryKind::kHardSwish: return 0.35;
    case UnaryKind::kGelu: return 0.42;
    default: return 1;
  }
}

constexpr float kBiasDeviation = 0.1f;

}  // namespace

uint64_t Random::Next() {
  state_ += 0x9e3779b97f4a7c15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void Random::FillNormal(float mean, float deviation, int64_t count, float* to) {
  // Four 16-bit numbers from one draw; their sum has mean 4 * 65535 / 2 and variance 4 * (65536^2 - 1) / 12.
  constexpr int32_t kCentre = 2 * 65535;
  constexpr float kDeviation = 37837.2275f;
  const float scale = deviation / kDeviation;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t z = Next();
    const auto sum = static_cast<int32_t>((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48)) - kCentre;
    const float centred = static_cast<float>(sum) * scale;
    to[i] = centred + mean;
  }
}

void Random::FillUniform(float low, float high, int64_t count, float* to) {
  const float step = (high - low) / 16777216.0f;
  for (int64_t i = 0; i < count; ++i) {
    const float offset = static_cast<float>(Next() >> 40) * step;
    to[i] = offset + low;
  }
}

Kernel Square(int64_t size, int32_t stride) {
  const auto pad = static_cast<int32_t>((size - 1) / 2);
  return {size, size, stride, {pad, pad, pad, pad}};
}

Kernel Unpadded(int64_t size, int32_t stride) { return {size, size, stride, {}}; }

Pool2DAttrs Pool(const Kernel& kernel, bool count_include_pad) {
  Pool2DAttrs pool;
  pool.kernel_h = static_cast<int32_t>(kernel.h);
  pool.kernel_w = static_cast<int32_t>(kernel.w);
  pool.stride_h = pool.stride_w = kernel.stride;
  pool.pad = kernel.pad;
  pool.count_include_pad = count_include_pad;
  return pool;
}

TensorId Network::ImageNchw(int64_t size) {
  const TensorId image = builder_.Input("input", {1, 3, size, size});
  SetPower(image, 1);
  return Add("input.nhwc", OpKind::kTranspose, {image}, TransposeAttrs{{0, 2, 3, 1}});
}

TensorId Network::ImageNhwc(int64_t size) {
  const TensorId image = builder_.Input("input", {1, size, size, 3});
  SetPower(image, 1);
  return image;
}

TensorId Network::Conv(const std::string& name, TensorId x, int64_t channels, const Kernel& kernel, bool bias) {
  if (x == kNoTensor) return kNoTensor;
  const int64_t in = shape(x).back();
  const double deviation = 1 / std::sqrt(static_cast<double>(kernel.h * kernel.w * in) * power(x));
  std::vector<TensorId> inputs{x, Constant(name + ".weight", {channels, kernel.h, kernel.w, in}, static_cast<float>(deviation))};
  if (bias) inputs.push_back(Constant(name + ".bias", {channels}, kBiasDeviation));
  Conv2DAttrs attrs;
  attrs.stride_h = attrs.stride_w = kernel.stride;
  attrs.pad = kernel.pad;
  const TensorId y = Add(name, OpKind::kConv2D, std::move(inputs), attrs);
  SetPower(y, 1);
  return y;
}

TensorId Network::Depthwise(const std::string& name, TensorId x, const Kernel& kernel) {
  if (x == kNoTensor) return kNoTensor;
  const double deviation = 1 / std::sqrt(static_cast<double>(kernel.h * kernel.w) * power(x));
  const TensorId weight = Constant(name + ".weight", {kernel.h, kernel.w, shape(x).back()}, static_cast<float>(deviation));
  Conv2DAttrs attrs;
  attrs.stride_h = attrs.stride_w = kernel.stride;
  attrs.pad = kernel.pad;
  const TensorId y = Add(name, OpKind::kDepthwiseConv2D, {x, weight}, attrs);
  SetPower(y, 1);
  return y;
}

TensorId Network::Linear(const std::string& name, TensorId x, int64_t channels) {
  if (x == kNoTensor) return kNoTensor;
  const int64_t in = shape(x).back();
  const double deviation = 1 / std::sqrt(static_cast<double>(in) * power(x));
  const TensorId weight = Constant(name + ".weight", {channels, in}, static_cast<float>(deviation));
  const TensorId bias = Constant(name + ".bias", {channels}, kBiasDeviation);
  const TensorId y = Add(name, OpKind::kFullyConnected, {x, weight, bias}, FullyConnectedAttrs{});
  SetPower(y, 1);
  return y;
}

TensorId Network::BatchNorm(const std::string& name, TensorId x, float epsilon) {
  if (x == kNoTensor) return kNoTensor;
  const int64_t channels = shape(x).back();
  const auto scale = static_cast<float>(power(x));
  const TensorId gamma = Uniform(name + ".weight", channels, 0.75f, 1.25f);
  const TensorId beta = Constant(name + ".bias", {channels}, 0.2f);
  const TensorId mean = Constant(name + ".running_mean", {channels}, 0.2f * std::sqrt(scale));
  const TensorId variance = Uniform(name + ".running_var", channels, 0.75f * scale, 1.25f * scale);
  const TensorId y = Add(name, OpKind::kBatchNorm, {x, gamma, beta, mean, variance}, NormAttrs{epsilon});
  SetPower(y, 1.125);  // of the four parameters' own means and deviations
  return y;
}

TensorId Network::LayerNorm(const std::string& name, TensorId x, float epsilon) {
  if (x == kNoTensor) return kNoTensor;
  const int64_t channels = shape(x).back();
  const TensorId gamma = Uniform(name + ".weight", channels, 0.75f, 1.25f);
  const TensorId beta = Constant(name + ".bias", {channels}, kBiasDeviation);
  const TensorId y = Add(name, OpKind::kLayerNorm, {x, gamma, beta}, NormAttrs{epsilon});
  SetPower(y, 1);
  return y;
}

TensorId Network::Unary(const std::string& name, TensorId x, UnaryKind kind) {
  const TensorId y = Add(name, OpKind::kUnary, {x}, UnaryAttrs{kind, {}});
  SetPower(y, PowerAfter(kind));
  return y;
}

TensorId Network::Relu(const std::string& name, TensorId x, double kept) {
  const TensorId y = Add(name, OpKind::kUnary, {x}, UnaryAttrs{UnaryKind::kClamp, kRelu});
  SetPower(y, kept * power(x));
  return y;
}

TensorId Network::Relu6(const std::string& name, TensorId x) {
  const TensorId y = Add(name, OpKind::kUnary, {x}, UnaryAttrs{UnaryKind::kClamp, kRelu6});
  SetPower(y, 0.5 * power(x));
  return y;
}

TensorId Network::Add(const std::string& name, TensorId a, TensorId b) {
  const TensorId y = Add(name, OpKind::kBinary, {a, b}, BinaryAttrs{BinaryKind::kAdd, {}});
  SetPower(y, power(a) + power(b));
  return y;
}

TensorId Network::Gate(const std::string& name, TensorId x, TensorId gate) {
  const TensorId y = Add(name, OpKind::kBinary, {x, gate}, BinaryAttrs{BinaryKind::kMul, {}});
  SetPower(y, power(x) * power(gate));
  return y;
}

TensorId Network::MaxPool(const std::string& name, TensorId x, const Pool2DAttrs& pool) {
  const TensorId y = Add(name, OpKind::kMaxPool2D, {x}, pool);
  SetPower(y, 2 * power(x));
  return y;
}

TensorId Network::AveragePool(const std::string& name, TensorId x, const Pool2DAttrs& pool) {
  return Add(name, OpKind::kAveragePool2D, {x}, pool);
}

TensorId Network::GlobalMean(const std::string& name, TensorId x, bool keep_dims) {
  return Add(name, OpKind::kReduceMean, {x}, ReduceAttrs{{1, 2}, keep_dims});
}

TensorId Network::Concat(const std::string& name, std::vector<TensorId> parts, int32_t axis) {
  double weighted = 0, total = 0;
  for (TensorId part : parts) {
    if (part == kNoTensor) return kNoTensor;
    const auto share = static_cast<double>(shape(part)[axis]);
    weighted += share * power(part);
    total += share;
  }
  const TensorId y = Add(name, OpKind::kConcat, std::move(parts), ConcatAttrs{axis});
  SetPower(y, weighted / total);
  return y;
}

TensorId Network::Add(const std::string& name, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
  const TensorId first = inputs[0];
  const TensorId y = builder_.Add(name, kind, std::move(inputs), std::move(attrs));
  SetPower(y, power(first));
  return y;
}

TensorId Network::Constant(const std::string& name, const Dims& shape, float deviation) {
  const std::shared_ptr<ConstData> data = Allocate(shape);
  if (data) random_.FillNormal(0, deviation, shape.Count(), data->as<float>());
  const TensorId constant = builder_.Constant(name, shape, data);
  SetPower(constant, static_cast<double>(deviation) * deviation);
  return constant;
}

double Network::SetPower(TensorId x, double power) {
  if (x == kNoTensor) return power;
  const auto index = static_cast<size_t>(x);
  if (power_.size() <= index) power_.resize(index + 1, 1);
  return power_[index] = power;
}

Result<Graph> Network::Finish(TensorId output) {
  builder_.RenameTensor(output, "output");
  builder_.Output(output);
  return builder_.Build();
}

// Where memory lacks the builder keeps the mistake.
std::shared_ptr<ConstData> Network::Allocate(const Dims& shape) {
  return ConstData::Allocate(shape.Count() * static_cast<int64_t>(sizeof(float)));
}

TensorId Network::Uniform(const std::string& name, int64_t count, float low, float high) {
  const Dims shape{count};
  const std::shared_ptr<ConstData> data = Allocate(shape);
  if (data) random_.FillUniform(low, high, count, data->as<float>());
  return builder_.Constant(name, shape, data);
}

TensorId ConvBn(Network& net, const std::string& name, TensorId x, int64_t channels, const Kernel& kernel, float epsilon) {
  return net.BatchNorm(name + ".bn", net.Conv(name + ".conv", x, channels, kernel), epsilon);
}

TensorId DepthwiseBn(Network& net, const std::string& name, TensorId x, const Kernel& kernel, float epsilon) {
  return net.BatchNorm(name + ".bn", net.Depthwise(name + ".conv", x, kernel), epsilon);
}

TensorId AddSqueezeExcite(Network& net, const std::string& name, TensorId x, const SqueezeExcite& se) {
  if (x == kNoTensor) return kNoTensor;
  TensorId gate = net.GlobalMean(name + ".mean", x, true);
  gate = net.Conv(name + ".fc1", gate, se.channels, Square(1), true);
  gate = se.activation == UnaryKind::kClamp ? net.Relu(name + ".activation", gate) : net.Unary(name + ".activation", gate, se.activation);
  gate = net.Conv(name + ".fc2", gate, net.shape(x).back(), Square(1), true);
  gate = net.Unary(name + ".gate", gate, se.gate);
  return net.Gate(name, x, gate);
}

int64_t MakeDivisible(double v) {
  const int64_t rounded = std::max<int64_t>(8, static_cast<int64_t>(v + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * v ? rounded + 8 : rounded;
}

}  // namespace plait::zoo
