// ResNet-50 (He et al. 2015) with the stride in the 3x3 convolution ("v1.5"), torchvision's resnet50.
#include "src/zoo/network.h"

namespace plait::zoo {
namespace {

TensorId Bottleneck(Network& net, const std::string& name, TensorId x, int64_t width, int32_t stride, bool downsample) {
  TensorId y = net.Relu(name + ".relu1", ConvBn(net, name + ".1", x, width, Square(1)));
  y = net.Relu(name + ".relu2", ConvBn(net, name + ".2", y, width, Square(3, stride)));
  y = ConvBn(net, name + ".3", y, 4 * width, Square(1));
  const TensorId shortcut = downsample ? ConvBn(net, name + ".downsample", x, 4 * width, Square(1, stride)) : x;
  // A shortcut that comes from a ReLU has no part below zero to lose.
  const double kept = downsample ? 0.5 : (net.power(shortcut) + net.power(y) / 2) / (net.power(shortcut) + net.power(y));
  return net.Relu(name + ".relu3", net.Add(name + ".add", shortcut, y), kept);
}

}  // namespace

Result<Graph> ResNet50(uint64_t seed) {
  Network net("resnet50", seed);
  TensorId x = net.ImageNchw(224);
  x = net.Relu("stem.relu", ConvBn(net, "stem", x, 64, Square(7, 2)));
  x = net.MaxPool("stem.maxpool", x, Pool(Square(3, 2)));
  constexpr int kBlocks[] = {3, 4, 6, 3};
  for (int layer = 0; layer < 4; ++layer) {
    for (int block = 0; block < kBlocks[layer]; ++block) {
      const std::string name = "layer" + std::to_string(layer + 1) + '.' + std::to_string(block);
      x = Bottleneck(net, name, x, int64_t{64} << layer, layer > 0 && block == 0 ? 2 : 1, block == 0);
    }
  }
  x = net.GlobalMean("avgpool", x, false);
  return net.Finish(net.Linear("fc", x, 1000));
}

}  // namespace plait::zoo
