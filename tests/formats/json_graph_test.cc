#include "src/formats/json_graph.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "src/base/file_io.h"
#include "src/formats/base64.h"
#include "src/zoo/zoo.h"
#include "tests/formats/sample_graphs.h"

namespace plait {
namespace {

WeightsReader Giving(const std::string& weights) {
  return [weights](const std::string&) -> Result<std::string> { return weights; };
}

Result<Graph> Import(const std::string& text) { return ImportGraphJson(text, Giving("")); }

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string SmallText() { return ExportGraphJson(*EveryOperator(), "")->text; }

TEST(GraphJson, RoundTripGivesTheSameBytes) {
  for (const std::string name : {"", "mobilenet_v2", "vit_ti_16"}) {
    SCOPED_TRACE(name);
    const Result<Graph> graph = name.empty() ? EveryOperator() : BuildZooModel(name);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    const Result<GraphJson> first = ExportGraphJson(*graph, "g.weights");
    ASSERT_TRUE(first.ok()) << first.status().message();
    EXPECT_FALSE(first->weights.empty());
    const Result<Graph> back = ImportGraphJson(first->text, Giving(first->weights));
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(Hash(*back), Hash(*graph));
    const Result<GraphJson> second = ExportGraphJson(*back, "g.weights");
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(second->text, first->text);
    EXPECT_EQ(second->weights, first->weights);
  }
}

TEST(GraphJson, InlineRoundTripGivesTheSameBytes) {
  const Result<Graph> back = Import(SmallText());
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(ExportGraphJson(*back, "")->text, SmallText());
}

TEST(GraphJson, FilesRoundTrip) {
  const std::string folder = testing::TempDir() + "/plait_graph_json_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const Result<Graph> graph = EveryOperator();
  ASSERT_TRUE(WriteGraphJsonFile(*graph, folder + "/g.json").ok());
  const Result<Graph> back = ReadGraphJsonFile(folder + "/g.json");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(Hash(*back), Hash(*graph));
  // The weights of another graph are not taken, of whatever length they are.
  const std::string weights = *ReadFile(folder + "/g.json.weights");
  for (const auto& [other, says] : {std::pair(std::string("something else"), "14 bytes"), std::pair(std::string(weights.size(), 'x'), "checksum")}) {
    ASSERT_TRUE(WriteFileAtomically(folder + "/g.json.weights", other).ok());
    const Result<Graph> mixed = ReadGraphJsonFile(folder + "/g.json");
    EXPECT_EQ(mixed.status().code(), PLAIT_CORRUPT);
    EXPECT_NE(mixed.status().message().find(says), std::string::npos) << mixed.status().message();
  }
  std::filesystem::remove_all(folder);
}

TEST(GraphJson, WeightsStayInTheFolder) {
  const std::string folder = testing::TempDir() + "/plait_graph_escape_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder + "/inner");
  ASSERT_TRUE(WriteFileAtomically(folder + "/secret", "secret").ok());
  const WeightsReader read = ReadWeightsBeside(folder + "/inner/g.json");
  for (const std::string& name : {std::string("../secret"), folder + "/secret", std::string(".."), std::string(),
                                  std::string("a\\b"), std::string("a\0b", 3)}) {
    EXPECT_EQ(read(name).status().code(), PLAIT_INVALID_ARGUMENT) << name;
  }
  std::error_code error;
  std::filesystem::create_symlink(folder + "/secret", folder + "/inner/link", error);
  if (!error) {
    EXPECT_EQ(read("link").status().code(), PLAIT_INVALID_ARGUMENT);
  }
  EXPECT_EQ(read("missing").status().code(), PLAIT_NOT_FOUND);
  std::filesystem::remove_all(folder);
}

// A few operators, so that every byte of the text can be tried.
std::string TinyText() {
  GraphBuilder b("tiny");
  const TensorId x = b.Add("nhwc", OpKind::kTranspose, {b.Input("x", {1, 2, 3, 3})}, TransposeAttrs{{0, 2, 3, 1}});
  Conv2DAttrs conv;
  conv.stride_h = 2;
  conv.clamp = kRelu6;
  const TensorId c =
      b.Add("conv", OpKind::kConv2D,
            {x, b.Constant("w", {3, 2, 2, 2}, Ramp(24, -0.3f, 0.1f)), b.Constant("b", {3}, Ramp(3, 0.0f, 1.0f))}, conv);
  b.Output(b.Add("mean", OpKind::kReduceMean, {c}, ReduceAttrs{{1, 2}, false}));
  return ExportGraphJson(*b.Build(), "")->text;
}

TEST(GraphJson, EveryTruncationIsRefused) {
  const std::string text = TinyText();
  for (size_t n = 0; n + 2 < text.size(); ++n) {
    EXPECT_FALSE(Import(text.substr(0, n)).ok()) << n;
  }
}

TEST(GraphJson, AnyByteMayBeWrong) {
  const std::string text = TinyText();
  for (size_t i = 0; i < text.size(); ++i) {
    constexpr int kFlips[] = {0x01, 0x10, 0xff};
    std::string bad = text;
    bad[i] = static_cast<char>(bad[i] ^ kFlips[i % 3]);
    const Result<Graph> graph = Import(bad);
    if (!graph.ok()) {
      EXPECT_FALSE(graph.status().message().empty());
    }
  }
}

TEST(GraphJson, WrongFieldsAreNamed) {
  const std::string text = SmallText();
  const std::vector<std::array<std::string, 3>> cases = {
      // from, to, what the message says
      {"\"version\": 1", "\"version\": 2", "version 2"},
      {"\"plait-graph\"", "\"other\"", "format"},
      {"\"kind\":\"Softmax\"", "\"kind\":\"Quux\"", "Quux"},
      {"\"stride\":[2,1]", "\"stride\":[0,1]", "stride"},
      {"\"stride\":[2,1]", "\"stride\":[99999999999,1]", "stride"},
      {"\"stride\":[2,1]", "\"strike\":[2,1]", "strike"},
      {"\"stride\":[2,1]", "\"stride\":[2,1],\"groups\":0", "groups"},
      {"\"dilation\":[2,1]", "\"dilation\":[4611686018427387904,1]", "dilation"},
      {"\"clamp\":[0.0,6.0]", "\"clamp\":[7.0,6.0]", "clamp"},
      {"\"output\":\"conv\"", "\"output\":\"nowhere\"", "nowhere"},
      {"\"inputs\": [\"image\"]", "\"inputs\": [\"nhwc\"]", "nhwc"},
      {"\"shape\":[1,3,9,8]", "\"shape\":[1,3,9,-8]", "-8"},
      {"\"shape\":[1,3,9,8]", "\"shape\":[4294967296,4294967296,9,8]", "overflows"},
      {"\"shape\":[1,3,9,8]", "\"shape\":[1,1,1,1,1,1,3,9,8]", "shape"},
      {"\"dtype\":\"f32\"", "\"dtype\":\"f31\"", "dtype"},
      {"\"axis\":3", "\"axis\":4", "axis"},
      {"\"perm\":[0,2,3,1]", "\"perm\":[0,2,2,1]", "perm"},
  };
  for (const auto& [from, to, says] : cases) {
    const Result<Graph> graph = Import(Replaced(text, from, to));
    ASSERT_FALSE(graph.ok()) << to;
    EXPECT_NE(graph.status().message().find(says), std::string::npos) << to << ": " << graph.status().message();
  }
}

TEST(GraphJson, CyclesAndWrongOrderAreRefused) {
  const char* const kText = R"({"format": "plait-graph", "version": 1, "inputs": ["x"], "outputs": ["b"],
    "tensors": [{"name": "x", "dtype": "f32", "shape": [2]}, {"name": "a", "dtype": "f32", "shape": [2]}, {"name": "b", "dtype": "f32", "shape": [2]}],
    "operators": [
      {"name": "a", "kind": "Unary", "inputs": ["b"], "output": "a", "attributes": {"function": "abs"}},
      {"name": "b", "kind": "Unary", "inputs": ["x"], "output": "b", "attributes": {"function": "abs"}}]})";
  const Result<Graph> unsorted = Import(kText);
  EXPECT_NE(unsorted.status().message().find("out of order"), std::string::npos) << unsorted.status().message();
  EXPECT_FALSE(
      Import(Replaced(kText, "\"inputs\": [\"x\"], \"output\": \"b\"", "\"inputs\": [\"a\"], \"output\": \"b\"")).ok());
}

TEST(GraphJson, WeightsCannotBeMultiplied) {
  // Many constants over overlapping ranges of a small file must not cost their sum in memory.
  const std::string weights(1024, '\0');
  std::string tensors;
  for (int i = 0; i < 15; ++i) {
    tensors += StrCat(i > 0 ? "," : "", "{\"name\":\"t", i, "\",\"dtype\":\"f32\",\"shape\":[", 16 * (i + 1),
                      "],\"offset\":0}");
  }
  const std::string text = StrCat(
      R"({"format":"plait-graph","version":1,"inputs":[],"outputs":[],"operators":[],"weights":{"file":"w","checksum":"fnv1a64:)",
      "%\"},\"tensors\":[", tensors, "]}");
  // The right checksum is in the message about the wrong one.
  const std::string message = ImportGraphJson(text, Giving(weights)).status().message();
  const std::string right = message.substr(message.rfind("fnv1a64:") + 8, 16);
  const Result<Graph> graph = ImportGraphJson(Replaced(text, "%", right), Giving(weights));
  EXPECT_NE(graph.status().message().find("overlap"), std::string::npos) << graph.status().message();
}

TEST(Base64, RoundTripsAndRefusesTheRest) {
  std::string bytes;
  for (int i = 0; i < 70; ++i) {
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)), bytes) << i;
    bytes += static_cast<char>(i * 37);
  }
  EXPECT_EQ(EncodeBase64("fooba"), "Zm9vYmE=");
  for (const char* bad :
       {"A", "AB=", "A===", "AB=C", "=AAA", "AA==AA==", "AAA*", "AB==" /* the last bits are not zero */}) {
    EXPECT_FALSE(DecodeBase64(bad)) << bad;
  }
}

}  // namespace
}  // namespace plait
