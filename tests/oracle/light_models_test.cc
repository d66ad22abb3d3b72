#include "tests/oracle/light_model.h"

namespace plait {
namespace {

class LightModel : public testing::TestWithParam<const char*> {};

TEST_P(LightModel, AgreesWithOnnxRuntime) { CheckLightModel(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Light, LightModel,
                         testing::Values("light_resnet50", "light_squeezenet", "light_densenet121",
                                         "light_inception_v2"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace plait
