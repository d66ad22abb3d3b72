// Vision Transformers with 16x16 patches (Dosovitskiy et al. 2020): timm's vit_tiny_patch16_224 and
// vit_base_patch16_224, the latter also torchvision's vit_b_16.
#include <cmath>

#include "src/zoo/network.h"

namespace plait::zoo {
namespace {

constexpr float kEpsilon = 1e-6f;
constexpr int64_t kPatch = 16;
constexpr int64_t kHeadWidth = 64;

// One of query, key and value: [3, 1, heads, tokens, width] -> [1, heads, tokens, width].
TensorId Pick(Network& net, const std::string& name, TensorId qkv, int64_t which) {
  const Dims& s = net.shape(qkv);
  const Dims picked{1, s[2], s[3], s[4]};
  const TensorId slice =
      net.Add(name + ".slice", OpKind::kSlice, {qkv}, SliceAttrs{{which, 0, 0, 0, 0}, {1, 1, s[2], s[3], s[4]}});
  return net.Add(name, OpKind::kReshape, {slice}, ReshapeAttrs{picked});
}

TensorId Attention(Network& net, const std::string& name, TensorId x) {
  const int64_t tokens = net.shape(x)[1], width = net.shape(x)[2], heads = width / kHeadWidth;
  TensorId qkv = net.Linear(name + ".qkv", x, 3 * width);
  qkv = net.Add(name + ".qkv.heads", OpKind::kReshape, {qkv}, ReshapeAttrs{{1, tokens, 3, heads, kHeadWidth}});
  qkv = net.Add(name + ".qkv.transposed", OpKind::kTranspose, {qkv}, TransposeAttrs{{2, 0, 3, 1, 4}});
  if (qkv == kNoTensor) return kNoTensor;
  const TensorId query = Pick(net, name + ".query", qkv, 0);
  const TensorId key = Pick(net, name + ".key", qkv, 1);
  const TensorId value = Pick(net, name + ".value", qkv, 2);
  const TensorId scale = net.Scalar(name + ".scale", 1 / std::sqrt(static_cast<float>(kHeadWidth)));
  const TensorId scaled =
      net.Add(name + ".query.scaled", OpKind::kBinary, {query, scale}, BinaryAttrs{BinaryKind::kMul, {}});
  TensorId weights = net.Add(name + ".scores", OpKind::kMatMul, {scaled, key}, MatMulAttrs{true});
  weights = net.Add(name + ".softmax", OpKind::kSoftmax, {weights}, SoftmaxAttrs{});
  TensorId y = net.Add(name + ".mix", OpKind::kMatMul, {weights, value}, MatMulAttrs{false});
  net.SetPower(y, 0.1 * net.power(value));  // means over nearly independent tokens
  y = net.Add(name + ".mix.transposed", OpKind::kTranspose, {y}, TransposeAttrs{{0, 2, 1, 3}});
  y = net.Add(name + ".mix.joined", OpKind::kReshape, {y}, ReshapeAttrs{{1, tokens, width}});
  return net.Linear(name + ".proj", y, width);
}

TensorId Block(Network& net, const std::string& name, TensorId x) {
  const int64_t width = net.shape(x)[2];
  TensorId y = Attention(net, name + ".attn", net.LayerNorm(name + ".norm1", x, kEpsilon));
  x = net.Add(name + ".add1", x, y);
  y = net.LayerNorm(name + ".norm2", x, kEpsilon);
  y = net.Unary(name + ".mlp.act", net.Linear(name + ".mlp.fc1", y, 4 * width), UnaryKind::kGelu);
  return net.Add(name + ".add2", x, net.Linear(name + ".mlp.fc2", y, width));
}

Result<Graph> Vit(const std::string& name, int64_t width, uint64_t seed) {
  Network net(name, seed);
  TensorId x = net.Conv("patch_embed.proj", net.ImageNchw(224), width, Unpadded(kPatch, kPatch), true);
  const int64_t patches = (224 / kPatch) * (224 / kPatch);
  x = net.Add("patch_embed.tokens", OpKind::kReshape, {x}, ReshapeAttrs{{1, patches, width}});
  const TensorId class_token = net.Constant("cls_token", {1, 1, width}, 1.0f);
  x = net.Concat("tokens", {class_token, x}, 1);
  x = net.Add("tokens.positioned", x, net.Constant("pos_embed", {1, patches + 1, width}, 0.5f));
  for (int i = 0; i < 12 && x != kNoTensor; ++i) x = Block(net, "blocks." + std::to_string(i), x);
  x = net.LayerNorm("norm", x, kEpsilon);
  x = net.Add("cls", OpKind::kSlice, {x}, SliceAttrs{{0, 0, 0}, {1, 1, width}});
  x = net.Add("cls.flat", OpKind::kReshape, {x}, ReshapeAttrs{{1, width}});
  return net.Finish(net.Linear("head", x, 1000));
}

}  // namespace

Result<Graph> VitTi16(uint64_t seed) { return Vit("vit_ti_16", 192, seed); }
Result<Graph> VitB16(uint64_t seed) { return Vit("vit_b_16", 768, seed); }

}  // namespace plait::zoo
