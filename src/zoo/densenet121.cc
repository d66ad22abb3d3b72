// DenseNet-121 (Huang et al. 2016), torchvision's densenet121.
#include "src/zoo/network.h"

namespace plait::zoo {
namespace {

constexpr float kEpsilon = 1e-5f;
constexpr int64_t kGrowth = 32;

TensorId NormRelu(Network& net, const std::string& name, TensorId x) {
  return net.Relu(name + ".relu", net.BatchNorm(name, x, kEpsilon));
}

// Each layer reads everything that the block has computed so far and adds kGrowth channels.
TensorId DenseBlock(Network& net, const std::string& name, TensorId x, int layers) {
  std::vector<TensorId> features{x};
  for (int i = 1; i <= layers; ++i) {
    const std::string layer = name + ".layer" + std::to_string(i);
    TensorId y = features.size() == 1 ? x : net.Concat(layer + ".concat", features);
    y = net.Conv(layer + ".conv1", NormRelu(net, layer + ".norm1", y), 4 * kGrowth, Square(1));
    features.push_back(net.Conv(layer + ".conv2", NormRelu(net, layer + ".norm2", y), kGrowth, Square(3)));
  }
  return net.Concat(name, features);
}

}  // namespace

Result<Graph> DenseNet121(uint64_t seed) {
  Network net("densenet121", seed);
  TensorId x = net.Conv("conv0", net.ImageNchw(224), 64, Square(7, 2));
  x = net.MaxPool("pool0", NormRelu(net, "norm0", x), Pool(Square(3, 2)));
  constexpr int kLayers[] = {6, 12, 24, 16};
  for (int block = 1; block <= 4; ++block) {
    x = DenseBlock(net, "denseblock" + std::to_string(block), x, kLayers[block - 1]);
    if (block == 4 || x == kNoTensor) break;
    const std::string name = "transition" + std::to_string(block);
    x = NormRelu(net, name + ".norm", x);
    x = net.Conv(name + ".conv", x, net.shape(x).back() / 2, Square(1));
    x = net.AveragePool(name + ".pool", x, Pool(Unpadded(2, 2)));
  }
  x = net.GlobalMean("pool", NormRelu(net, "norm5", x), false);
  return net.Finish(net.Linear("classifier", x, 1000));
}

}  // namespace plait::zoo
