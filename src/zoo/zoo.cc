#include "src/zoo/zoo.h"

#include <string>

#include "src/zoo/network.h"

namespace plait {
namespace {

constexpr std::string_view kNchw224 = "1x3x224x224 NCHW";
constexpr ZooEntry kEntries[] = {
    {"mobilenet_v3_large", "MobileNetV3-Large: inverted residuals, squeeze and excitation, hard swish", kNchw224,
     5483032, false, 217000000,
     "torchvision.models.mobilenet_v3_large, MobileNet_V3_Large_Weights: num_params 5483032, 0.22 GFLOPS (_ops 0.217, "
     "multiply-accumulates)"},
    {"mobilenet_v2", "MobileNetV2: inverted residuals", kNchw224, 3504872, false, 301000000,
     "torchvision.models.mobilenet_v2, MobileNet_V2_Weights: num_params 3504872, 0.30 GFLOPS (_ops 0.301, "
     "multiply-accumulates)"},
    {"squeezenet1_1", "SqueezeNet 1.1: fire modules with concatenations", kNchw224, 1235496, false, 349000000,
     "torchvision.models.squeezenet1_1, SqueezeNet1_1_Weights: num_params 1235496, 0.35 GFLOPS (_ops 0.349, "
     "multiply-accumulates)"},
    {"efficientnet_b0", "EfficientNet-B0: inverted residuals, squeeze and excitation, SiLU", kNchw224, 5288548, false,
     386000000,
     "torchvision.models.efficientnet_b0, EfficientNet_B0_Weights: num_params 5288548, 0.39 GFLOPS (_ops 0.386, "
     "multiply-accumulates)"},
    {"nasnet_mobile", "NASNet-A (4 @ 1056): wide irregular cells, softmax at the end", "1x224x224x3 NHWC", 5326716,
     true, 564000000,
     "tf.keras.applications.NASNetMobile: Total params 5326716, of which 36738 not trainable: BatchNorm's moving means "
     "and variances; 564 M "
     "multiply-adds (table in keras/applications/nasnet.py and in arXiv:1707.07012)"},
    {"vit_ti_16", "Vision Transformer, tiny: 12 blocks of width 192, 3 heads", kNchw224, 5717416, false, 1260000000,
     "timm vit_tiny_patch16_224: 5717416 parameters, 1.26 GMACs with attention's products (pytorch-image-models, "
     "results/benchmark-infer-amp-nchw-pt113-cu117-rtx3090.csv: infer_gmacs 1.26, param_count 5.72)"},
    {"densenet121", "DenseNet-121: every layer reads all before it", kNchw224, 7978856, false, 2834000000,
     "torchvision.models.densenet121, DenseNet121_Weights: num_params 7978856, 2.83 GFLOPS (_ops 2.834, "
     "multiply-accumulates)"},
    {"resnet50", "ResNet-50 v1.5: bottleneck residuals", kNchw224, 25557032, false, 4089000000,
     "torchvision.models.resnet50, ResNet50_Weights: num_params 25557032, 4.09 GFLOPS (_ops 4.089, "
     "multiply-accumulates)"},
    {"inception_v3", "Inception v3 without the auxiliary classifier", "1x3x299x299 NCHW", 23834568, false, 5713000000,
     "torchvision.models.inception_v3, Inception_V3_Weights: num_params 27161264 with the auxiliary classifier's "
     "3326696, which is left out; "
     "5.71 GFLOPS (_ops 5.713, multiply-accumulates without it)"},
    {"vit_b_16", "Vision Transformer, base: 12 blocks of width 768, 12 heads", kNchw224, 86567656, false, 17564000000,
     "torchvision.models.vit_b_16, ViT_B_16_Weights: num_params 86567656, 17.56 GFLOPS (_ops 17.564, "
     "multiply-accumulates with attention's "
     "products); timm vit_base_patch16_224"},
};

using Builder = Result<Graph> (*)(uint64_t seed);
struct NamedBuilder {
  std::string_view name;
  Builder build;
};
constexpr NamedBuilder kBuilders[] = {
    {"mobilenet_v3_large", zoo::MobileNetV3Large},
    {"mobilenet_v2", zoo::MobileNetV2},
    {"squeezenet1_1", zoo::SqueezeNet11},
    {"efficientnet_b0", zoo::EfficientNetB0},
    {"nasnet_mobile", zoo::NasNetMobile},
    {"vit_ti_16", zoo::VitTi16},
    {"densenet121", zoo::DenseNet121},
    {"resnet50", zoo::ResNet50},
    {"inception_v3", zoo::InceptionV3},
    {"vit_b_16", zoo::VitB16},
};

}  // namespace

std::span<const ZooEntry> ZooEntries() { return kEntries; }

Result<Graph> BuildZooModel(std::string_view name, uint64_t seed) {
  std::string known;
  for (const NamedBuilder& entry : kBuilders) {
    if (entry.name == name) return entry.build(seed);
    known.append(known.empty() ? "" : ", ").append(entry.name);
  }
  return NotFound("the zoo has no network '", name, "'; there are: ", known);
}

}  // namespace plait
