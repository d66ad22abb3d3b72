// NASNet-A (4 @ 1056) (Zoph et al. 2017), Keras's NASNetMobile without an auxiliary head.
#include <array>

#include "src/zoo/network.h"

namespace plait::zoo {
namespace {

constexpr float kEpsilon = 1e-3f;

// Padding as Keras's correct_pad gives it for stride 2: an even image gets one row less before it than after it.
Padding StridePadding(const Dims& image, int64_t kernel) {
  const auto half = static_cast<int32_t>(kernel / 2);
  const auto before = [&](int64_t extent) { return half - (extent % 2 == 0 ? 1 : 0); };
  return {before(image[1]), before(image[2]), half, half};
}

Kernel Strided(const Dims& image, int64_t kernel) { return {kernel, kernel, 2, StridePadding(image, kernel)}; }

// Twice: ReLU, depthwise, 1x1, batch norm. Only the first depthwise convolution is strided.
TensorId Separable(Network& net, const std::string& name, TensorId x, int64_t channels, int64_t kernel,
                   int32_t stride = 1) {
  if (x == kNoTensor) return kNoTensor;
  for (int i = 1; i <= 2; ++i) {
    const std::string half = name + '.' + std::to_string(i);
    const bool strided = i == 1 && stride == 2;
    x = net.Relu(half + ".relu", x);
    x = net.Depthwise(half + ".depthwise", x, strided ? Strided(net.shape(x), kernel) : Square(kernel));
    x = net.BatchNorm(half + ".bn", net.Conv(half + ".pointwise", x, channels, Square(1)), kEpsilon);
  }
  return x;
}

TensorId ReluConvBn(Network& net, const std::string& name, TensorId x, int64_t channels) {
  return ConvBn(net, name, net.Relu(name + ".relu", x), channels, Square(1), kEpsilon);
}

// Halves an image by two 1x1 paths that see pixels (0, 0), (2, 2), ... and (1, 1), (3, 3), ...
TensorId FactorizedReduction(Network& net, const std::string& name, TensorId p, int64_t channels) {
  p = net.Relu(name + ".relu", p);
  if (p == kNoTensor) return kNoTensor;
  const Dims image = net.shape(p);
  const Pool2DAttrs pick = Pool(Unpadded(1, 2));
  const TensorId even = net.AveragePool(name + ".pool1", p, pick);
  TensorId odd = net.Add(name + ".pad", OpKind::kPad, {p}, PadAttrs{{0, 0, 0, 0}, {0, 1, 1, 0}});
  odd = net.Add(name + ".crop", OpKind::kSlice, {odd}, SliceAttrs{{0, 1, 1, 0}, image});
  odd = net.AveragePool(name + ".pool2", odd, pick);
  const TensorId left = net.Conv(name + ".conv1", even, channels / 2, Square(1));
  const TensorId right = net.Conv(name + ".conv2", odd, channels / 2, Square(1));
  return net.BatchNorm(name + ".bn", net.Concat(name + ".concat", {left, right}), kEpsilon);
}

// The output of the cell before the last one, in the shape that this cell needs.
TensorId Adjust(Network& net, const std::string& name, TensorId p, TensorId x, int64_t channels) {
  if (p == kNoTensor || x == kNoTensor) return x;
  if (net.shape(p)[2] != net.shape(x)[2]) return FactorizedReduction(net, name, p, channels);
  return net.shape(p)[3] != channels ? ReluConvBn(net, name, p, channels) : p;
}

struct State {
  TensorId x, p;  // the outputs of the last cell and of the one before; p is kNoTensor before the first
};

// The braces of a call's list fix the order in which the summands are built; a call's arguments have none.
TensorId Sum(Network& net, const std::string& name, const std::array<TensorId, 2>& summands) {
  return net.Add(name, summands[0], summands[1]);
}

State NormalCell(Network& net, const std::string& name, const State& in, int64_t channels) {
  const TensorId p = Adjust(net, name + ".adjust", in.p, in.x, channels);
  const TensorId h = ReluConvBn(net, name + ".begin", in.x, channels);
  const auto separable = [&](const std::string& branch, TensorId x, int64_t kernel) {
    return Separable(net, name + branch, x, channels, kernel);
  };
  const auto average = [&](const std::string& branch, TensorId x) {
    return net.AveragePool(name + branch, x, Pool(Square(3)));
  };
  const TensorId x1 = Sum(net, name + ".add1", {separable(".left1", h, 5), separable(".right1", p, 3)});
  const TensorId x2 = Sum(net, name + ".add2", {separable(".left2", p, 5), separable(".right2", p, 3)});
  const TensorId x3 = Sum(net, name + ".add3", {average(".left3", h), p});
  const TensorId x4 = Sum(net, name + ".add4", {average(".left4", p), average(".right4", p)});
  net.SetPower(x4, 2 * net.power(x4));  // equal summands
  const TensorId x5 = Sum(net, name + ".add5", {separable(".left5", h, 3), h});
  return {net.Concat(name, {p, x1, x2, x3, x4, x5}), in.x};
}

State ReductionCell(Network& net, const std::string& name, const State& in, int64_t channels) {
  const TensorId p = Adjust(net, name + ".adjust", in.p, in.x, channels);
  const TensorId h = ReluConvBn(net, name + ".begin", in.x, channels);
  if (h == kNoTensor) return {kNoTensor, kNoTensor};
  const Padding pad = StridePadding(net.shape(h), 3);
  // The publisher pads with zeros and then pools: unlike absent elements they take part in maxima and averages.
  const TensorId padded =
      net.Add(name + ".pad", OpKind::kPad, {h}, PadAttrs{{0, pad.top, pad.left, 0}, {0, pad.bottom, pad.right, 0}});
  const Pool2DAttrs halve = Pool(Unpadded(3, 2));
  const auto separable = [&](const std::string& branch, TensorId x, int64_t kernel, int32_t stride) {
    return Separable(net, name + branch, x, channels, kernel, stride);
  };
  const TensorId x1 = Sum(net, name + ".add1", {separable(".left1", h, 5, 2), separable(".right1", p, 7, 2)});
  const TensorId x2 =
      Sum(net, name + ".add2", {net.MaxPool(name + ".left2", padded, halve), separable(".right2", p, 7, 2)});
  const TensorId x3 =
      Sum(net, name + ".add3", {net.AveragePool(name + ".left3", padded, halve), separable(".right3", p, 5, 2)});
  const TensorId x4 = Sum(net, name + ".add4", {x2, net.AveragePool(name + ".left4", x1, Pool(Square(3)))});
  const TensorId x5 =
      Sum(net, name + ".add5", {separable(".left5", x1, 3, 1), net.MaxPool(name + ".right5", padded, halve)});
  return {net.Concat(name, {x2, x3, x4, x5}), in.x};
}

}  // namespace

Result<Graph> NasNetMobile(uint64_t seed) {
  constexpr int64_t kFilters = 1056 / 24;
  Network net("nasnet_mobile", seed);
  const TensorId stem = net.Conv("stem.conv", net.ImageNhwc(224), 32, Unpadded(3, 2));
  State state{net.BatchNorm("stem.bn", stem, kEpsilon), kNoTensor};
  state = ReductionCell(net, "stem_1", state, kFilters / 4);
  state = ReductionCell(net, "stem_2", state, kFilters / 2);
  int index = 0;
  for (int64_t width = kFilters; width <= 4 * kFilters; width *= 2) {
    if (width > kFilters) state = ReductionCell(net, "reduce_" + std::to_string(index++), state, width);
    for (int i = 0; i < 4; ++i) state = NormalCell(net, "cell_" + std::to_string(index++), state, width);
  }
  TensorId x = net.GlobalMean("pool", net.Relu("relu", state.x), false);
  x = net.Linear("predictions", x, 1000);
  return net.Finish(net.Add("softmax", OpKind::kSoftmax, {x}, SoftmaxAttrs{}));
}

}  // namespace plait::zoo
