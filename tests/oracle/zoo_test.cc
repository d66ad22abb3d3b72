// Networks of the zoo as ONNX files: what ONNX Runtime makes of them against what the graph computes here.
#include <gtest/gtest.h>

#include "src/formats/onnx_export.h"
#include "src/formats/onnx_import.h"
#include "src/zoo/zoo.h"
#include "tests/oracle/oracle.h"

namespace plait {
namespace {

constexpr double kTolerance = 1e-4;  // of the largest magnitude
constexpr uint64_t kSeed = 5;

class ZooExport : public testing::TestWithParam<const char*> {};

TEST_P(ZooExport, ComputesTheSameEverywhere) {
  if (!HasOracle()) GTEST_SKIP() << "built without ONNX Runtime";
  const Result<Graph> graph = BuildZooModel(GetParam(), kSeed);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Result<std::string> bytes = ExportOnnx(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const std::vector<OracleTensor> inputs = RandomInputs(*graph, kSeed);
  const auto expected = RunOracle(*bytes, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  const auto actual = RunReference(*graph, inputs);
  ASSERT_TRUE(actual.ok()) << actual.status().message();
  EXPECT_LE(RelativeError(*expected, *actual), kTolerance);

  const Result<Graph> back = ImportOnnx(*bytes);
  ASSERT_TRUE(back.ok()) << back.status().message();
  const auto again = RunReference(*back, inputs);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_LE(RelativeError(*expected, *again), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Small, ZooExport, testing::Values("mobilenet_v2", "squeezenet1_1", "vit_ti_16"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace plait
