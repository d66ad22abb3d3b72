// The light models that are not in the daily suite: local response normalisation, shuffles, weights by the hundred megabytes.
#include "tests/oracle/light_model.h"

namespace plait {
namespace {

class LightModel : public testing::TestWithParam<const char*> {};

TEST_P(LightModel, AgreesWithOnnxRuntime) { CheckLightModel(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Others, LightModel,
                         testing::Values("light_shufflenet", "light_inception_v1", "light_zfnet512",
                                         "light_bvlc_alexnet", "light_vgg19"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace plait
