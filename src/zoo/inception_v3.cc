// Inception v3 (Szegedy et al. 2015), torchvision's inception_v3 without the auxiliary classifier.
#include "src/zoo/network.h"

namespace plait::zoo {
namespace {

constexpr float kEpsilon = 1e-3f;

TensorId ConvRelu(Network& net, const std::string& name, TensorId x, int64_t channels, const Kernel& kernel) {
  return net.Relu(name + ".relu", ConvBn(net, name, x, channels, kernel, kEpsilon));
}

Kernel Row(int64_t width) {
  const auto pad = static_cast<int32_t>(width / 2);
  return {1, width, 1, {0, pad, 0, pad}};
}
Kernel Column(int64_t height) {
  const auto pad = static_cast<int32_t>(height / 2);
  return {height, 1, 1, {pad, 0, pad, 0}};
}

// A 3x3 average of stride 1, padded zeros counted, then 1x1.
TensorId PoolBranch(Network& net, const std::string& name, TensorId x, int64_t channels) {
  return ConvRelu(net, name + ".pool_proj", net.AveragePool(name + ".pool", x, Pool(Square(3), true)), channels,
                  Square(1));
}

TensorId InceptionA(Network& net, const std::string& name, TensorId x, int64_t pool_channels) {
  const TensorId b1 = ConvRelu(net, name + ".1x1", x, 64, Square(1));
  const TensorId b5 = ConvRelu(net, name + ".5x5_2", ConvRelu(net, name + ".5x5_1", x, 48, Square(1)), 64, Square(5));
  TensorId b3 = ConvRelu(net, name + ".3x3dbl_1", x, 64, Square(1));
  b3 = ConvRelu(net, name + ".3x3dbl_2", b3, 96, Square(3));
  b3 = ConvRelu(net, name + ".3x3dbl_3", b3, 96, Square(3));
  return net.Concat(name, {b1, b5, b3, PoolBranch(net, name, x, pool_channels)});
}

TensorId InceptionB(Network& net, const std::string& name, TensorId x) {
  const TensorId b3 = ConvRelu(net, name + ".3x3", x, 384, Unpadded(3, 2));
  TensorId dbl = ConvRelu(net, name + ".3x3dbl_1", x, 64, Square(1));
  dbl = ConvRelu(net, name + ".3x3dbl_2", dbl, 96, Square(3));
  dbl = ConvRelu(net, name + ".3x3dbl_3", dbl, 96, Unpadded(3, 2));
  return net.Concat(name, {b3, dbl, net.MaxPool(name + ".pool", x, Pool(Unpadded(3, 2)))});
}

TensorId InceptionC(Network& net, const std::string& name, TensorId x, int64_t width) {
  const TensorId b1 = ConvRelu(net, name + ".1x1", x, 192, Square(1));
  TensorId b7 = ConvRelu(net, name + ".7x7_1", x, width, Square(1));
  b7 = ConvRelu(net, name + ".7x7_2", b7, width, Row(7));
  b7 = ConvRelu(net, name + ".7x7_3", b7, 192, Column(7));
  TensorId dbl = ConvRelu(net, name + ".7x7dbl_1", x, width, Square(1));
  dbl = ConvRelu(net, name + ".7x7dbl_2", dbl, width, Column(7));
  dbl = ConvRelu(net, name + ".7x7dbl_3", dbl, width, Row(7));
  dbl = ConvRelu(net, name + ".7x7dbl_4", dbl, width, Column(7));
  dbl = ConvRelu(net, name + ".7x7dbl_5", dbl, 192, Row(7));
  return net.Concat(name, {b1, b7, dbl, PoolBranch(net, name, x, 192)});
}

TensorId InceptionD(Network& net, const std::string& name, TensorId x) {
  const TensorId b3 =
      ConvRelu(net, name + ".3x3_2", ConvRelu(net, name + ".3x3_1", x, 192, Square(1)), 320, Unpadded(3, 2));
  TensorId b7 = ConvRelu(net, name + ".7x7x3_1", x, 192, Square(1));
  b7 = ConvRelu(net, name + ".7x7x3_2", b7, 192, Row(7));
  b7 = ConvRelu(net, name + ".7x7x3_3", b7, 192, Column(7));
  b7 = ConvRelu(net, name + ".7x7x3_4", b7, 192, Unpadded(3, 2));
  return net.Concat(name, {b3, b7, net.MaxPool(name + ".pool", x, Pool(Unpadded(3, 2)))});
}

// 1x3 and 3x1 side by side.
TensorId Fork(Network& net, const std::string& name, TensorId x) {
  return net.Concat(name, {ConvRelu(net, name + "a", x, 384, Row(3)), ConvRelu(net, name + "b", x, 384, Column(3))});
}

TensorId InceptionE(Network& net, const std::string& name, TensorId x) {
  const TensorId b1 = ConvRelu(net, name + ".1x1", x, 320, Square(1));
  const TensorId b3 = Fork(net, name + ".3x3_2", ConvRelu(net, name + ".3x3_1", x, 384, Square(1)));
  TensorId dbl = ConvRelu(net, name + ".3x3dbl_1", x, 448, Square(1));
  dbl = Fork(net, name + ".3x3dbl_3", ConvRelu(net, name + ".3x3dbl_2", dbl, 384, Square(3)));
  return net.Concat(name, {b1, b3, dbl, PoolBranch(net, name, x, 192)});
}

TensorId Stem(Network& net, TensorId x) {
  x = ConvRelu(net, "1a_3x3", x, 32, Unpadded(3, 2));
  x = ConvRelu(net, "2a_3x3", x, 32, Unpadded(3));
  x = ConvRelu(net, "2b_3x3", x, 64, Square(3));
  x = net.MaxPool("maxpool1", x, Pool(Unpadded(3, 2)));
  x = ConvRelu(net, "3b_1x1", x, 80, Square(1));
  x = ConvRelu(net, "4a_3x3", x, 192, Unpadded(3));
  return net.MaxPool("maxpool2", x, Pool(Unpadded(3, 2)));
}

}  // namespace

Result<Graph> InceptionV3(uint64_t seed) {
  Network net("inception_v3", seed);
  TensorId x = Stem(net, net.ImageNchw(299));
  x = InceptionA(net, "mixed_5b", x, 32);
  x = InceptionA(net, "mixed_5c", x, 64);
  x = InceptionA(net, "mixed_5d", x, 64);
  x = InceptionB(net, "mixed_6a", x);
  x = InceptionC(net, "mixed_6b", x, 128);
  x = InceptionC(net, "mixed_6c", x, 160);
  x = InceptionC(net, "mixed_6d", x, 160);
  x = InceptionC(net, "mixed_6e", x, 192);
  x = InceptionD(net, "mixed_7a", x);
  x = InceptionE(net, "mixed_7b", x);
  x = InceptionE(net, "mixed_7c", x);
  x = net.GlobalMean("avgpool", x, false);
  return net.Finish(net.Linear("fc", x, 1000));
}

}  // namespace plait::zoo
