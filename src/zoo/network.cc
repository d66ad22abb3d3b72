#include "src/zoo/network.h"

#include <algorithm>
#include <cmath>

namespace plait::zoo {
namespace {

constexpr float kBiasDeviation = 0.1f;
// How much of its mean a filter loses that reads what a ReLU leaves; see Network. Measured: with 0 another image
// changes the logits by 0.4 to 3 %, with 0.5 by 4 to 14 %, with 1 rounding is amplified a hundredfold.
constexpr double kCentring = 0.5;
// The square of a ReLU's mean over its mean square, for symmetric inputs: 1 / pi.
constexpr double kReluCommon = 0.318;

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

// For normal x of mean square 1, rounded.
Network::Level Network::LevelAfter(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::kSigmoid: return {0.29, 0.86};
    case UnaryKind::kHardSigmoid: return {0.28, 0.9};
    case UnaryKind::kSilu: return {0.36, 0.12};
    case UnaryKind::kHardSwish: return {0.35, 0.13};
    case UnaryKind::kGelu: return {0.42, 0.19};
    default: return {};
  }
}

TensorId Network::ImageNchw(int64_t size) {
  const TensorId image = builder_.Input("input", {1, 3, size, size});
  return Add("input.nhwc", OpKind::kTranspose, {image}, TransposeAttrs{{0, 2, 3, 1}});
}

TensorId Network::ImageNhwc(int64_t size) {
  const TensorId image = builder_.Input("input", {1, size, size, 3});
  return image;
}

TensorId Network::Conv(const std::string& name, TensorId x, int64_t channels, const Kernel& kernel, bool bias) {
  if (x == kNoTensor) return kNoTensor;
  const int64_t in = shape(x).back();
  std::vector<TensorId> inputs{x, Filters(name + ".weight", {channels, kernel.h, kernel.w, in}, channels, false, x)};
  if (bias) inputs.push_back(Constant(name + ".bias", {channels}, kBiasDeviation));
  Conv2DAttrs attrs;
  attrs.stride_h = attrs.stride_w = kernel.stride;
  attrs.pad = kernel.pad;
  const TensorId y = Add(name, OpKind::kConv2D, std::move(inputs), attrs);
  SetLevel(y, {});
  return y;
}

TensorId Network::Depthwise(const std::string& name, TensorId x, const Kernel& kernel) {
  if (x == kNoTensor) return kNoTensor;
  const int64_t channels = shape(x).back();
  const TensorId weight = Filters(name + ".weight", {kernel.h, kernel.w, channels}, channels, true, x);
  Conv2DAttrs attrs;
  attrs.stride_h = attrs.stride_w = kernel.stride;
  attrs.pad = kernel.pad;
  const TensorId y = Add(name, OpKind::kDepthwiseConv2D, {x, weight}, attrs);
  SetLevel(y, {});
  return y;
}

TensorId Network::Linear(const std::string& name, TensorId x, int64_t channels) {
  if (x == kNoTensor) return kNoTensor;
  const TensorId weight = Filters(name + ".weight", {channels, shape(x).back()}, channels, false, x);
  const TensorId bias = Constant(name + ".bias", {channels}, kBiasDeviation);
  const TensorId y = Add(name, OpKind::kFullyConnected, {x, weight, bias}, FullyConnectedAttrs{});
  SetLevel(y, {});
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
  SetLevel(y, {1.125, 0});  // of the four parameters' own means and deviations
  return y;
}

TensorId Network::LayerNorm(const std::string& name, TensorId x, float epsilon) {
  if (x == kNoTensor) return kNoTensor;
  const int64_t channels = shape(x).back();
  const TensorId gamma = Uniform(name + ".weight", channels, 0.75f, 1.25f);
  const TensorId beta = Constant(name + ".bias", {channels}, kBiasDeviation);
  const TensorId y = Add(name, OpKind::kLayerNorm, {x, gamma, beta}, NormAttrs{epsilon});
  SetLevel(y, {});
  return y;
}

TensorId Network::Unary(const std::string& name, TensorId x, UnaryKind kind) {
  const TensorId y = Add(name, OpKind::kUnary, {x}, UnaryAttrs{kind, {}});
  SetLevel(y, LevelAfter(kind));
  return y;
}

TensorId Network::Relu(const std::string& name, TensorId x, double kept) {
  const TensorId y = Add(name, OpKind::kUnary, {x}, UnaryAttrs{UnaryKind::kClamp, kRelu});
  SetLevel(y, {kept * power(x), kReluCommon});
  return y;
}

TensorId Network::Relu6(const std::string& name, TensorId x) {
  const TensorId y = Add(name, OpKind::kUnary, {x}, UnaryAttrs{UnaryKind::kClamp, kRelu6});
  SetLevel(y, {0.5 * power(x), kReluCommon});
  return y;
}

TensorId Network::Add(const std::string& name, TensorId a, TensorId b) {
  const TensorId y = Add(name, OpKind::kBinary, {a, b}, BinaryAttrs{BinaryKind::kAdd, {}});
  const double total = power(a) + power(b);
  SetLevel(y, {total, (power(a) * level(a).common + power(b) * level(b).common) / total});
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
  double squares = 0, common = 0, total = 0;
  for (TensorId part : parts) {
    if (part == kNoTensor) return kNoTensor;
    const auto share = static_cast<double>(shape(part)[axis]);
    squares += share * power(part);
    common += share * power(part) * level(part).common;
    total += share;
  }
  const TensorId y = Add(name, OpKind::kConcat, std::move(parts), ConcatAttrs{axis});
  SetLevel(y, {squares / total, common / squares});
  return y;
}

TensorId Network::Add(const std::string& name, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
  const TensorId first = inputs[0];
  const TensorId y = builder_.Add(name, kind, std::move(inputs), std::move(attrs));
  SetLevel(y, level(first));
  return y;
}

TensorId Network::Constant(const std::string& name, const Dims& shape, float deviation) {
  const std::shared_ptr<ConstData> data = Allocate(name, shape);
  if (data) random_.FillNormal(0, deviation, shape.Count(), data->as<float>());
  const TensorId constant = builder_.Constant(name, shape, data);
  SetLevel(constant, {static_cast<double>(deviation) * deviation, 0});
  return constant;
}

TensorId Network::Filters(const std::string& name, const Dims& dims, int64_t filters, bool interleaved, TensorId x) {
  const int64_t taps = dims.Count() / filters;
  const double centring = std::min(1.0, kCentring * level(x).common / kReluCommon);
  const double removed = 1 - (1 - centring) * (1 - centring);  // of the power that comes from the mean
  const double deviation = 1 / std::sqrt(static_cast<double>(taps) * power(x) * (1 - removed * level(x).common));
  const std::shared_ptr<ConstData> data = Allocate(name, dims);
  if (!data) return kNoTensor;
  auto* weights = data->as<float>();
  random_.FillNormal(0, static_cast<float>(deviation), dims.Count(), weights);
  const int64_t tap_stride = interleaved ? filters : 1, filter_stride = interleaved ? 1 : taps;
  for (int64_t f = 0; f < filters; ++f) {
    float* filter = weights + f * filter_stride;
    double sum = 0;
    for (int64_t t = 0; t < taps; ++t) sum += filter[t * tap_stride];
    const auto shift = static_cast<float>(centring * sum / static_cast<double>(taps));
    for (int64_t t = 0; t < taps; ++t) filter[t * tap_stride] -= shift;
  }
  return builder_.Constant(name, dims, data);
}

void Network::SetLevel(TensorId x, const Level& level) {
  if (x == kNoTensor) return;
  const auto index = static_cast<size_t>(x);
  if (levels_.size() <= index) levels_.resize(index + 1);
  levels_[index] = level;
}

Result<Graph> Network::Finish(TensorId output) {
  if (!out_of_memory_.empty()) return OutOfMemory("no memory for weights ", out_of_memory_);
  builder_.RenameTensor(output, "output");
  builder_.Output(output);
  return builder_.Build();
}

std::shared_ptr<ConstData> Network::Allocate(const std::string& name, const Dims& shape) {
  std::shared_ptr<ConstData> data = ConstData::Allocate(shape.Count() * static_cast<int64_t>(sizeof(float)));
  if (!data && out_of_memory_.empty()) out_of_memory_ = name;
  return data;
}

TensorId Network::Uniform(const std::string& name, int64_t count, float low, float high) {
  const Dims shape{count};
  const std::shared_ptr<ConstData> data = Allocate(name, shape);
  if (data) random_.FillUniform(low, high, count, data->as<float>());
  return builder_.Constant(name, shape, data);
}

TensorId ConvBn(Network& net, const std::string& name, TensorId x, int64_t channels, const Kernel& kernel,
                float epsilon) {
  return net.BatchNorm(name + ".bn", net.Conv(name + ".conv", x, channels, kernel), epsilon);
}

TensorId DepthwiseBn(Network& net, const std::string& name, TensorId x, const Kernel& kernel, float epsilon) {
  return net.BatchNorm(name + ".bn", net.Depthwise(name + ".conv", x, kernel), epsilon);
}

TensorId AddSqueezeExcite(Network& net, const std::string& name, TensorId x, const SqueezeExcite& se) {
  if (x == kNoTensor) return kNoTensor;
  TensorId gate = net.GlobalMean(name + ".mean", x, true);
  gate = net.Conv(name + ".fc1", gate, se.channels, Square(1), true);
  gate = se.activation == UnaryKind::kClamp ? net.Relu(name + ".activation", gate)
                                            : net.Unary(name + ".activation", gate, se.activation);
  gate = net.Conv(name + ".fc2", gate, net.shape(x).back(), Square(1), true);
  gate = net.Unary(name + ".gate", gate, se.gate);
  return net.Gate(name, x, gate);
}

int64_t MakeDivisible(double v) {
  const int64_t rounded = std::max<int64_t>(8, static_cast<int64_t>(v + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * v ? rounded + 8 : rounded;
}

}  // namespace plait::zoo
