// All networks of the zoo; the small ones are in the daily suite, too.
#include "tests/oracle/zoo_export.h"

namespace plait {
namespace {

class ZooExport : public testing::TestWithParam<ZooEntry> {};

TEST_P(ZooExport, AgreesWithOnnxRuntime) { CheckZooExport(std::string(GetParam().name)); }

INSTANTIATE_TEST_SUITE_P(All, ZooExport, testing::ValuesIn(ZooEntries().begin(), ZooEntries().end()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace plait
