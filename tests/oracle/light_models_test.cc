// The light models that ONNX ships for tests: networks of other people's making, through import, passes and the reference backend.
#include <gtest/gtest.h>

#include "src/base/file_io.h"
#include "src/formats/onnx_export.h"
#include "src/formats/onnx_import.h"
#include "src/graph/passes.h"
#include "tests/oracle/oracle.h"

namespace plait {
namespace {

constexpr const char kFolder[] = "/usr/share/libonnx-testdata/data/light/";
constexpr double kTolerance = 1e-4;  // of the largest magnitude
constexpr uint64_t kSeed = 11;

class LightModel : public testing::TestWithParam<const char*> {};

TEST_P(LightModel, ComputesWhatOnnxRuntimeComputes) {
  if (!HasOracle()) GTEST_SKIP() << "built without ONNX Runtime";
  Result<std::string> bytes = ReadFile(std::string(kFolder) + GetParam() + ".onnx");
  if (bytes.status().code() == PLAIT_NOT_FOUND) GTEST_SKIP() << "libonnx-testdata is not installed";
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  ASSERT_TRUE(RefillOnnxWeights(&bytes.value(), kSeed).ok());
  ASSERT_TRUE(CutFinalSoftmax(&bytes.value()).ok());
  const Result<Graph> graph = ImportOnnx(*bytes);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const std::vector<OracleTensor> inputs = RandomInputs(*graph, kSeed);
  const auto expected = RunOracle(*bytes, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  const auto actual = RunReference(*graph, inputs);
  ASSERT_TRUE(actual.ok()) << actual.status().message();
  EXPECT_LE(RelativeError(*expected, *actual), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Light, LightModel, testing::Values("light_resnet50", "light_squeezenet", "light_densenet121", "light_inception_v2"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace plait
