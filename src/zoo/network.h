// What the zoo's networks are built from: layers with seeded weights. Private to the zoo.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/graph/builder.h"

namespace plait::zoo {

// A stream of pseudo-random numbers (splitmix64) that is the same on every machine: integer arithmetic, then one
// rounding.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // Nearly normal: each is the sum of four uniform numbers.
  void FillNormal(float mean, float deviation, int64_t count, float* to);
  void FillUniform(float low, float high, int64_t count, float* to);

 private:
  uint64_t Next();
  uint64_t state_;
};

struct Kernel {
  int64_t h = 1, w = 1;
  int32_t stride = 1;
  Padding pad;
};
// A square kernel, padded by half of it, as "same" padding of odd kernels is for stride 1.
Kernel Square(int64_t size, int32_t stride = 1);
Kernel Unpadded(int64_t size, int32_t stride = 1);
Pool2DAttrs Pool(const Kernel& kernel, bool count_include_pad = false);

// Adds layers to a graph. Constants are named after their layer, ".weight", ".bias" and so on.
//
// Every tensor's power (its expected mean square) is tracked along the layers, and weights are scaled by the power of
// what they read, so that a convolution's output has power 1 at any depth. Filters lose a part of their mean: what
// ReLUs leave has a common positive mean, which would otherwise grow with depth until all images gave nearly the same
// output; without any mean the network would be chaotic and amplify rounding. Mistakes are kept by the graph's
// builder and reported by Finish().
class Network {
 public:
  Network(std::string_view name, uint64_t seed) : builder_(std::string(name)), random_(seed) {}

  // The input in PyTorch's layout [1, 3, size, size], and the transposition of it that everything else reads.
  TensorId ImageNchw(int64_t size);
  // The input as [1, size, size, 3].
  TensorId ImageNhwc(int64_t size);

  TensorId Conv(const std::string& name, TensorId x, int64_t channels, const Kernel& kernel, bool bias = false);
  TensorId Depthwise(const std::string& name, TensorId x, const Kernel& kernel);
  TensorId Linear(const std::string& name, TensorId x, int64_t channels);
  TensorId BatchNorm(const std::string& name, TensorId x, float epsilon);
  TensorId LayerNorm(const std::string& name, TensorId x, float epsilon);

  TensorId Unary(const std::string& name, TensorId x, UnaryKind kind);
  // `kept`: the share of the power that lies above zero, 1/2 for a symmetric distribution.
  TensorId Relu(const std::string& name, TensorId x, double kept = 0.5);
  TensorId Relu6(const std::string& name, TensorId x);
  TensorId Add(const std::string& name, TensorId a, TensorId b);
  // x * gate, where gate lies between 0 and 1 and is broadcast over rows and columns.
  TensorId Gate(const std::string& name, TensorId x, TensorId gate);

  TensorId MaxPool(const std::string& name, TensorId x, const Pool2DAttrs& pool);
  TensorId AveragePool(const std::string& name, TensorId x, const Pool2DAttrs& pool);
  // The mean over rows and columns: [N, 1, 1, C], or [N, C] without keep_dims.
  TensorId GlobalMean(const std::string& name, TensorId x, bool keep_dims);
  TensorId Concat(const std::string& name, std::vector<TensorId> parts, int32_t axis = 3);

  // Layers without weights that keep the power.
  TensorId Add(const std::string& name, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs);
  // A constant of normal numbers with the deviation.
  TensorId Constant(const std::string& name, const Dims& shape, float deviation);
  TensorId Scalar(const std::string& name, float value) { return builder_.Constant(name, Dims{}, {value}); }

  const Dims& shape(TensorId x) const { return builder_.shape(x); }
  double power(TensorId x) const { return level(x).power; }
  void SetPower(TensorId x, double power) { SetLevel(x, {power, level(x).common}); }

  // The validated graph with `output` renamed "output".
  Result<Graph> Finish(TensorId output);

 private:
  struct Level {
    double power = 1;
    double common = 0;  // the share of the power that is the square of the mean over all elements
  };
  static Level LevelAfter(UnaryKind kind);
  Level level(TensorId x) const {
    return static_cast<size_t>(x) < levels_.size() && x >= 0 ? levels_[static_cast<size_t>(x)] : Level{};
  }
  void SetLevel(TensorId x, const Level& level);
  // Weights that give power 1 from what they read, `x`. The filters stand one after another, or, interleaved, side by
  // side.
  TensorId Filters(const std::string& name, const Dims& shape, int64_t filters, bool interleaved, TensorId x);

  std::shared_ptr<ConstData> Allocate(const std::string& name, const Dims& shape);
  TensorId Uniform(const std::string& name, int64_t count, float low, float high);

  GraphBuilder builder_;
  Random random_;
  std::vector<Level> levels_;   // by tensor
  std::string out_of_memory_;   // the first constant that memory lacked for
};

// convolution, batch norm: named NAME.conv and NAME.bn
TensorId ConvBn(Network& net, const std::string& name, TensorId x, int64_t channels, const Kernel& kernel,
                float epsilon = 1e-5f);
TensorId DepthwiseBn(Network& net, const std::string& name, TensorId x, const Kernel& kernel, float epsilon = 1e-5f);

// Squeeze and excitation: the mean of each channel, through two 1x1 convolutions, gates the channel.
struct SqueezeExcite {
  int64_t channels;  // between the two convolutions
  UnaryKind activation, gate;
};
TensorId AddSqueezeExcite(Network& net, const std::string& name, TensorId x, const SqueezeExcite& se);

// `v` rounded to a multiple of 8, by at most a tenth down; the rule of the MobileNets.
int64_t MakeDivisible(double v);

Result<Graph> MobileNetV2(uint64_t seed);
Result<Graph> MobileNetV3Large(uint64_t seed);
Result<Graph> ResNet50(uint64_t seed);
Result<Graph> InceptionV3(uint64_t seed);
Result<Graph> SqueezeNet11(uint64_t seed);
Result<Graph> EfficientNetB0(uint64_t seed);
Result<Graph> DenseNet121(uint64_t seed);
Result<Graph> VitTi16(uint64_t seed);
Result<Graph> VitB16(uint64_t seed);
Result<Graph> NasNetMobile(uint64_t seed);

}  // namespace plait::zoo
