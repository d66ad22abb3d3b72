// MobileNetV3-Large (Howard et al. 2019), torchvision's mobilenet_v3_large.
#include "src/zoo/network.h"

namespace plait::zoo {
namespace {

constexpr float kEpsilon = 1e-3f;

struct Block {
  int64_t kernel, expanded, channels;
  bool squeeze, hard_swish;
  int32_t stride;
};
constexpr Block kBlocks[] = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1},
};

TensorId Activate(Network& net, const std::string& name, TensorId x, bool hard_swish) {
  return hard_swish ? net.Unary(name, x, UnaryKind::kHardSwish) : net.Relu(name, x);
}

TensorId InvertedResidual(Network& net, const std::string& name, TensorId x, const Block& block) {
  const int64_t in = net.shape(x).back();
  TensorId y = x;
  if (block.expanded != in) {
    y = Activate(net, name + ".expand.act", ConvBn(net, name + ".expand", y, block.expanded, Square(1), kEpsilon),
                 block.hard_swish);
  }
  y = DepthwiseBn(net, name + ".depthwise", y, Square(block.kernel, block.stride), kEpsilon);
  y = Activate(net, name + ".depthwise.act", y, block.hard_swish);
  if (block.squeeze) {
    const int64_t squeezed = MakeDivisible(static_cast<double>(block.expanded) / 4);
    y = AddSqueezeExcite(net, name + ".se", y, {squeezed, UnaryKind::kClamp, UnaryKind::kHardSigmoid});
  }
  y = ConvBn(net, name + ".project", y, block.channels, Square(1), kEpsilon);
  return block.stride == 1 && in == block.channels ? net.Add(name + ".add", x, y) : y;
}

}  // namespace

Result<Graph> MobileNetV3Large(uint64_t seed) {
  Network net("mobilenet_v3_large", seed);
  TensorId x = net.ImageNchw(224);
  x = net.Unary("features.0.act", ConvBn(net, "features.0", x, 16, Square(3, 2), kEpsilon), UnaryKind::kHardSwish);
  int index = 1;
  for (const Block& block : kBlocks) {
    if (x == kNoTensor) break;
    x = InvertedResidual(net, "features." + std::to_string(index++), x, block);
  }
  x = net.Unary("features.16.act", ConvBn(net, "features.16", x, 960, Square(1), kEpsilon), UnaryKind::kHardSwish);
  x = net.GlobalMean("avgpool", x, false);
  x = net.Unary("classifier.1", net.Linear("classifier.0", x, 1280), UnaryKind::kHardSwish);
  return net.Finish(net.Linear("classifier.3", x, 1000));
}

}  // namespace plait::zoo
