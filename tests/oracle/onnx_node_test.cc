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

// The files of test_data_set_0 called input_<i>.pb or output_<i>.pb.
std::vector<std::string> ReadFiles(const std::filesystem::path& folder, const std::string& prefix) {
  std::vector<std::string> files;
  while (true) {
    Result<std::string> bytes = ReadFile((folder / StrCat(prefix, files.size(), ".pb")).string());
    if (!bytes.ok()) return files;
    files.push_back(std::move(*bytes));
  }
}

Result<std::vector<OracleTensor>> ReadTensors(const std::vector<std::string>& files, size_t count) {
  std::vector<OracleTensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    PLAIT_ASSIGN_OR_RETURN(OracleTensor tensor, ReadOnnxTensor(files[i]));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

bool AllZero(const std::vector<OracleTensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const OracleTensor& t) {
    return std::all_of(t.values.begin(), t.values.end(), [](float v) { return v == 0; });
  });
}

// Whether the test could be run: imported as it is, or with all inputs but the first as constants (weights, axes, shapes).
bool Compare(const std::filesystem::path& test) {
  const Result<std::string> bytes = ReadFile((test / "model.onnx").string());
  if (!bytes.ok()) return false;
  const std::vector<std::string> inputs = ReadFiles(test / "test_data_set_0", "input_"),
                                 outputs = ReadFiles(test / "test_data_set_0", "output_");
  Result<Graph> graph = ImportOnnx(*bytes);
  if (!graph.ok()) {
    EXPECT_FALSE(graph.status().message().empty());
    const Result<std::string> fixed = FixLaterInputs(*bytes, inputs);
    if (!fixed.ok()) return false;
    graph = ImportOnnx(*fixed);
  }
  if (!graph.ok() || inputs.size() < graph->inputs.size()) return false;
  auto given = ReadTensors(inputs, graph->inputs.size());
  const auto expected = ReadTensors(outputs, outputs.size());
  if (!given.ok() || !expected.ok()) return false;
  for (size_t i = 0; i < given->size(); ++i) (*given)[i].name = graph->tensor(graph->inputs[i]).name;
  const auto actual = RunReference(*graph, *given);
  EXPECT_TRUE(actual.ok()) << actual.status().message();
  if (actual.ok() && !AllZero(*expected)) {
    EXPECT_LE(RelativeError(*expected, *actual), kTolerance);
  }
  return true;
}

TEST(OnnxNodes, AgreeWithTheirExpectedOutputs) {
  const std::filesystem::path root = "/usr/share/libonnx-testdata/data/node";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "libonnx-testdata is not installed";
  std::vector<std::filesystem::path> tests;
  for (const auto& entry : std::filesystem::directory_iterator(root)) tests.push_back(entry.path());
  std::sort(tests.begin(), tests.end());
  int compared = 0;
  for (const std::filesystem::path& test : tests) {
    SCOPED_TRACE(test.filename().string());
    compared += Compare(test);
  }
  testing::Test::RecordProperty("compared", compared);
  EXPECT_GE(compared, 460);  // of ONNX 1.17's; fewer means that an operator was lost
}

}  // namespace
}  // namespace plait
