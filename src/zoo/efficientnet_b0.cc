// EfficientNet-B0 (Tan and Le 2019), torchvision's efficientnet_b0.
#include <algorithm>

#include "src/zoo/network.h"

namespace plait::zoo {
namespace {

struct Stage {
  int64_t expansion, kernel;
  int32_t stride;  // of the first block
  int64_t channels;
  int repeats;
};
constexpr Stage kStages[] = {{1, 3, 1, 16, 1}, {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                             {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};

TensorId MbConv(Network& net, const std::string& name, TensorId x, const Stage& stage, int32_t stride) {
  const int64_t in = net.shape(x).back();
  TensorId y = x;
  if (stage.expansion != 1) {
    y = net.Unary(name + ".expand.silu", ConvBn(net, name + ".expand", y, in * stage.expansion, Square(1)),
                  UnaryKind::kSilu);
  }
  y = net.Unary(name + ".depthwise.silu", DepthwiseBn(net, name + ".depthwise", y, Square(stage.kernel, stride)),
                UnaryKind::kSilu);
  y = AddSqueezeExcite(net, name + ".se", y, {std::max<int64_t>(1, in / 4), UnaryKind::kSilu, UnaryKind::kSigmoid});
  y = ConvBn(net, name + ".project", y, stage.channels, Square(1));
  return stride == 1 && in == stage.channels ? net.Add(name + ".add", x, y) : y;
}

}  // namespace

Result<Graph> EfficientNetB0(uint64_t seed) {
  Network net("efficientnet_b0", seed);
  TensorId x = net.ImageNchw(224);
  x = net.Unary("features.0.silu", ConvBn(net, "features.0", x, 32, Square(3, 2)), UnaryKind::kSilu);
  int index = 1;
  for (const Stage& stage : kStages) {
    for (int i = 0; i < stage.repeats && x != kNoTensor; ++i) {
      x = MbConv(net, "features." + std::to_string(index) + '.' + std::to_string(i), x, stage, i == 0 ? stage.stride : 1);
    }
    ++index;
  }
  x = net.Unary("features.8.silu", ConvBn(net, "features.8", x, 1280, Square(1)), UnaryKind::kSilu);
  x = net.GlobalMean("avgpool", x, false);
  return net.Finish(net.Linear("classifier", x, 1000));
}

}  // namespace plait::zoo
