// One of the light models that ONNX ships for tests: networks of other people's making, judged by ONNX Runtime.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "src/base/file_io.h"
#include "src/formats/onnx_import.h"
#include "src/graph/passes.h"
#include "tests/oracle/oracle.h"

namespace plait {

// With seeded random weights instead of their constant fills, and before the final softmax: the model on ONNX Runtime and the
// optimized graph here have to agree within 1e-4 of the largest magnitude.
inline void CheckLightModel(const std::string& name) {
  if (!HasOracle()) GTEST_SKIP() << "built without ONNX Runtime";
  constexpr double kTolerance = 1e-4;
  constexpr uint64_t kSeed = 11;
  Result<std::string> bytes = ReadFile("/usr/share/libonnx-testdata/data/light/" + name + ".onnx");
  if (bytes.status().code() == PLAIT_NOT_FOUND) GTEST_SKIP() << "libonnx-testdata is not installed";
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const Result<Graph> untouched = ImportOnnx(*bytes);
  EXPECT_TRUE(untouched.ok()) << untouched.status().message();

  ASSERT_TRUE(RefillOnnxWeights(&bytes.value(), kSeed).ok());
  ASSERT_TRUE(CutFinalSoftmax(&bytes.value()).ok());
  const Result<Graph> graph = ImportOnnx(*bytes);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const std::vector<OracleTensor> inputs = RandomInputs(*graph, kSeed);
  const auto expected = RunOracle(*bytes, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  const Result<Graph> optimized = Optimize(*graph);
  ASSERT_TRUE(optimized.ok()) << optimized.status().message();
  const auto actual = RunReference(*optimized, inputs);
  ASSERT_TRUE(actual.ok()) << actual.status().message();
  EXPECT_LE(RelativeError(*expected, *actual), kTolerance);
}

}  // namespace plait
