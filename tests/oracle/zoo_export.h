// One network of the zoo as an ONNX file, judged by ONNX Runtime.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "src/formats/onnx_export.h"
#include "src/formats/onnx_import.h"
#include "src/graph/passes.h"
#include "src/zoo/zoo.h"
#include "tests/oracle/oracle.h"

namespace plait {

// The exported network on ONNX Runtime, the optimized graph here, and the graph that comes back from the file have to agree within
// 1e-4 of the largest magnitude; and the way through the file must cost no operator.
inline void CheckZooExport(const std::string& name) {
  if (!HasOracle()) GTEST_SKIP() << "built without ONNX Runtime";
  constexpr double kTolerance = 1e-4;
  constexpr uint64_t kSeed = 5;
  const Result<Graph> graph = BuildZooModel(name, kSeed);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Result<std::string> bytes = ExportOnnx(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const std::vector<OracleTensor> inputs = RandomInputs(*graph, kSeed);
  const auto expected = RunOracle(*bytes, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().message();

  const Result<Graph> optimized = Optimize(*graph);
  ASSERT_TRUE(optimized.ok()) << optimized.status().message();
  const auto here = RunReference(*optimized, inputs);
  ASSERT_TRUE(here.ok()) << here.status().message();
  EXPECT_LE(RelativeError(*expected, *here), kTolerance);

  Result<Graph> back = ImportOnnx(*bytes);
  ASSERT_TRUE(back.ok()) << back.status().message();
  back = Optimize(*back);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->op_count(), optimized->op_count());
  const auto returned = RunReference(*back, inputs);
  ASSERT_TRUE(returned.ok()) << returned.status().message();
  EXPECT_LE(RelativeError(*expected, *returned), kTolerance);
}

}  // namespace plait
