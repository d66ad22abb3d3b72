// ONNX' own node tests: whatever this importer accepts must give the outputs that come with them; it may refuse, never crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "src/base/file_io.h"
#include "src/formats/onnx_import.h"
#include "tests/oracle/oracle.h"

namespace plait {
namespace {

constexpr double kTolerance = 1e-4;  // of the largest magnitude

// The tensors of test_data_set_0 called input_<i>.pb or output_<i>.pb.
Result<std::vector<OracleTensor>> ReadTensors(const std::filesystem::path& folder, const std::string& prefix) {
  std::vector<OracleTensor> tensors;
  for (int i = 0;; ++i) {
    const Result<std::string> bytes = ReadFile((folder / (prefix + std::to_string(i) + ".pb")).string());
    if (bytes.status().code() == PLAIT_NOT_FOUND) return tensors;
    if (!bytes.ok()) return bytes.status();
    PLAIT_ASSIGN_OR_RETURN(OracleTensor tensor, ReadOnnxTensor(*bytes));
    tensors.push_back(std::move(tensor));
  }
}

bool AllZero(const std::vector<OracleTensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const OracleTensor& t) { return std::all_of(t.values.begin(), t.values.end(), [](float v) { return v == 0; }); });
}

TEST(OnnxNodes, AgreeWithTheirExpectedOutputs) {
  const std::filesystem::path root = "/usr/share/libonnx-testdata/data/node";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "libonnx-testdata is not installed";
  std::vector<std::filesystem::path> cases;
  for (const auto& entry : std::filesystem::directory_iterator(root)) cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  int compared = 0;
  for (const std::filesystem::path& test : cases) {
    SCOPED_TRACE(test.filename().string());
    const Result<std::string> bytes = ReadFile((test / "model.onnx").string());
    if (!bytes.ok()) continue;
    const Result<Graph> graph = ImportOnnx(*bytes);
    if (!graph.ok()) {
      EXPECT_FALSE(graph.status().message().empty());
      continue;
    }
    auto inputs = ReadTensors(test / "test_data_set_0", "input_");
    const auto outputs = ReadTensors(test / "test_data_set_0", "output_");
    if (!inputs.ok() || !outputs.ok() || inputs->size() != graph->inputs.size()) continue;
    for (size_t i = 0; i < inputs->size(); ++i) (*inputs)[i].name = graph->tensor(graph->inputs[i]).name;
    const auto actual = RunReference(*graph, *inputs);
    ASSERT_TRUE(actual.ok()) << actual.status().message();
    if (!AllZero(*outputs)) {
      EXPECT_LE(RelativeError(*outputs, *actual), kTolerance);
    }
    ++compared;
  }
  EXPECT_GE(compared, 180);  // of ONNX 1.17's; fewer means that an operator was lost
}

}  // namespace
}  // namespace plait
