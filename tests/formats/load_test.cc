#include "src/formats/load.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>

#include "src/base/file_io.h"
#include "src/formats/json_graph.h"
#include "src/formats/onnx_export.h"
#include "src/formats/onnx_import.h"
#include "src/zoo/zoo.h"
#include "tests/formats/sample_graphs.h"

namespace plait {
namespace {

class LoadModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/plait_load_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(WriteFileAtomically(path, content).ok());
    return path;
  }
  // The message, which must name the path.
  std::string Refusal(const std::string& path) {
    const Result<Graph> graph = LoadModelFile(path);
    EXPECT_FALSE(graph.ok());
    EXPECT_NE(graph.status().message().find(path), std::string::npos) << graph.status().message();
    return graph.status().message();
  }
  void ExpectRefusal(const std::string& content, const std::string& says) {
    const std::string message = Refusal(Write("model", content));
    EXPECT_NE(message.find(says), std::string::npos) << message;
  }

  // A build without ONNX says so, for files as for memory.
  void ExpectNoOnnx(const Status& status) {
    EXPECT_EQ(status.code(), PLAIT_UNSUPPORTED);
    EXPECT_NE(status.message().find("PLAIT_ONNX"), std::string::npos) << status.message();
    EXPECT_EQ(ImportOnnxFile(folder_ + "/model.onnx").status().code(), PLAIT_UNSUPPORTED);
  }

  std::string folder_;
};

TEST_F(LoadModel, DecidesByTheContent) {
  const Result<Graph> graph = EveryOperator();
  ASSERT_TRUE(WriteGraphJsonFile(*graph, folder_ + "/looks_like.onnx").ok());
  const Result<Graph> json = LoadModelFile(folder_ + "/looks_like.onnx");
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ(Hash(*json), Hash(*graph));
  const Result<std::string> onnx = ExportOnnx(*graph);
  if (!HasOnnx()) return ExpectNoOnnx(onnx.status());
  ASSERT_TRUE(onnx.ok()) << onnx.status().message();
  const Result<Graph> back = LoadModelFile(Write("looks_like.json", *onnx));
  EXPECT_TRUE(back.ok()) << back.status().message();
}

TEST_F(LoadModel, SaysWhatAFileLacks) {
  EXPECT_NE(Refusal(folder_ + "/missing.onnx").find("no such file"), std::string::npos);
  EXPECT_NE(Refusal(folder_).find("directory"), std::string::npos);
  ASSERT_EQ(::mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  EXPECT_NE(Refusal(folder_ + "/fifo").find("regular"), std::string::npos);
  ExpectRefusal("", "empty");
  EXPECT_FALSE(LoadModelFile(std::string("a\0b", 3)).ok());
  EXPECT_FALSE(LoadModelFile(std::string(5000, 'x')).ok());
}

TEST_F(LoadModel, NamesOtherFormats) {
  ExpectRefusal(std::string("\x18\0\0\0TFL3", 8), "TensorFlow Lite");
  ExpectRefusal("\x1f\x8b\x08 and so on", "gzip");
  ExpectRefusal("PK\x03\x04 and so on", "zip");
  ExpectRefusal("\x89PNG\r\n\x1a\n", "PNG");
  ExpectRefusal("\x89HDF\r\n\x1a\n", "HDF5");
  ExpectRefusal("\xff\xfe{\0", "UTF-16");
  ExpectRefusal("version https://git-lfs.github.com/spec/v1\noid", "git lfs pull");
  ExpectRefusal("hello, world\n", "text");
  ExpectRefusal("%n%s%n", "text");
  ExpectRefusal(std::string(100, '\xfe'), "Plait's graph JSON");
  ExpectRefusal("{}", "format");
  ExpectRefusal("{\"format\": \"plait-gr", "JSON");
}

TEST_F(LoadModel, TruncatedModelsSaySo) {
  const Result<std::string> onnx = ExportOnnx(*EveryOperator());
  if (!HasOnnx()) return ExpectNoOnnx(onnx.status());
  ExpectRefusal(onnx->substr(0, onnx->size() / 2), "truncated");
}

// Every 40th of the file, and positions around each end, where headers and lists of names are.
std::vector<size_t> Cuts(size_t size) {
  std::set<size_t> cuts;
  for (size_t i = 0; i < 40; ++i) cuts.insert({size * i / 40, std::min(i, size - 1), size - 1 - std::min(i * i, size - 1)});
  return {cuts.begin(), cuts.end()};
}

TEST_F(LoadModel, ARealNetworkCutAnywhereIsRefused) {
  const Result<Graph> graph = BuildZooModel("squeezenet1_1");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  ASSERT_TRUE(WriteGraphJsonFile(*graph, folder_ + "/whole.json").ok());
  const std::string path = folder_ + "/model.json";
  const std::string json = *ReadFile(folder_ + "/whole.json"), weights = *ReadFile(folder_ + "/whole.json.weights");
  for (const size_t kept : Cuts(json.size() - 2)) {  // the last bracket and the end of its line
    SCOPED_TRACE(kept);
    Write("model.json", json.substr(0, kept));
    Refusal(path);
  }
  Write("model.json", json);
  for (const size_t kept : Cuts(weights.size())) {
    SCOPED_TRACE(kept);
    Write("whole.json.weights", weights.substr(0, kept));
    const std::string message = Refusal(path);
    EXPECT_NE(message.find("whole.json.weights"), std::string::npos) << message;
    EXPECT_NE(message.find(StrCat(weights.size())), std::string::npos) << message;
  }
  const Result<std::string> onnx = ExportOnnx(*graph);
  if (!HasOnnx()) return ExpectNoOnnx(onnx.status());
  ASSERT_TRUE(onnx.ok()) << onnx.status().message();
  for (const size_t kept : Cuts(onnx->size())) {
    SCOPED_TRACE(kept);
    Refusal(Write("model.onnx", onnx->substr(0, kept)));
  }
}

TEST_F(LoadModel, RandomBytesAreRefused) {
  std::mt19937 random(11);
  for (int i = 0; i < 500; ++i) {
    SCOPED_TRACE(i);
    std::string bytes(random() % (i % 10 == 0 ? 20000 : 40), '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (i % 2 == 1) bytes = "\x08\x07" + bytes;  // as ONNX begins
    Refusal(Write("model", bytes));
  }
}

}  // namespace
}  // namespace plait
