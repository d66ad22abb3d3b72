#include "tests/oracle/zoo_export.h"

namespace plait {
namespace {

class ZooExport : public testing::TestWithParam<const char*> {};

TEST_P(ZooExport, AgreesWithOnnxRuntime) { CheckZooExport(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Small, ZooExport, testing::Values("mobilenet_v2", "squeezenet1_1", "vit_ti_16"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace plait
