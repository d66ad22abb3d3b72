// MobileNetV2 (Sandler et al. 2018), torchvision's mobilenet_v2.
#include "src/zoo/network.h"

namespace plait::zoo {
namespace {

struct Stage {
  int64_t expansion, channels;
  int repeats;
  int32_t stride;  // of the first block
};
constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

TensorId InvertedResidual(Network& net, const std::string& name, TensorId x, const Stage& stage, int32_t stride) {
  const int64_t in = net.shape(x).back();
  TensorId y = x;
  if (stage.expansion != 1) {
    y = net.Relu6(name + ".expand.relu", ConvBn(net, name + ".expand", y, in * stage.expansion, Square(1)));
  }
  y = net.Relu6(name + ".depthwise.relu", DepthwiseBn(net, name + ".depthwise", y, Square(3, stride)));
  y = ConvBn(net, name + ".project", y, stage.channels, Square(1));
  return stride == 1 && in == stage.channels ? net.Add(name + ".add", x, y) : y;
}

}  // namespace

Result<Graph> MobileNetV2(uint64_t seed) {
  Network net("mobilenet_v2", seed);
  TensorId x = net.ImageNchw(224);
  x = net.Relu6("features.0.relu", ConvBn(net, "features.0", x, 32, Square(3, 2)));
  int block = 1;
  for (const Stage& stage : kStages) {
    for (int i = 0; i < stage.repeats && x != kNoTensor; ++i, ++block) {
      x = InvertedResidual(net, "features." + std::to_string(block), x, stage, i == 0 ? stage.stride : 1);
    }
  }
  x = net.Relu6("features.18.relu", ConvBn(net, "features.18", x, 1280, Square(1)));
  x = net.GlobalMean("pool", x, false);
  return net.Finish(net.Linear("classifier", x, 1000));
}

}  // namespace plait::zoo
