// SqueezeNet 1.1 (Iandola et al. 2016), torchvision's squeezenet1_1.
#include "src/zoo/network.h"

namespace plait::zoo {
namespace {

struct Fire {
  int64_t squeeze, expand;
  bool pool_before;
};
constexpr Fire kFires[] = {{16, 64, true},   {16, 64, false},  {32, 128, true},  {32, 128, false},
                           {48, 192, true},  {48, 192, false}, {64, 256, false}, {64, 256, false}};

TensorId ConvRelu(Network& net, const std::string& name, TensorId x, int64_t channels, const Kernel& kernel) {
  return net.Relu(name + ".relu", net.Conv(name, x, channels, kernel, true));
}

}  // namespace

Result<Graph> SqueezeNet11(uint64_t seed) {
  Network net("squeezenet1_1", seed);
  TensorId x = ConvRelu(net, "stem", net.ImageNchw(224), 64, Unpadded(3, 2));
  int index = 2;
  for (const Fire& fire : kFires) {
    const std::string name = "fire" + std::to_string(index++);
    // The publisher rounds the pools' output up; at these sizes every window fits, so there is nothing to round.
    if (fire.pool_before) x = net.MaxPool(name + ".pool", x, Pool(Unpadded(3, 2)));
    x = ConvRelu(net, name + ".squeeze", x, fire.squeeze, Square(1));
    const TensorId narrow = ConvRelu(net, name + ".expand1x1", x, fire.expand, Square(1));
    const TensorId wide = ConvRelu(net, name + ".expand3x3", x, fire.expand, Square(3));
    x = net.Concat(name, {narrow, wide});
  }
  x = ConvRelu(net, "classifier", x, 1000, Square(1));
  return net.Finish(net.GlobalMean("pool", x, false));
}

}  // namespace plait::zoo
