// The zoo's networks against the figures of their publishers (ZooEntry::source says where each figure stands).
#include "src/zoo/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backends/reference/reference.h"
#include "src/graph/operators.h"

namespace plait {
namespace {

class ZooTest : public ::testing::TestWithParam<ZooEntry> {
 protected:
  static Graph Build(uint64_t seed = 1) {
    Result<Graph> graph = BuildZooModel(GetParam().name, seed);
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return graph.ok() ? std::move(graph).value() : Graph();
  }
};

// BatchNorm's moving means and variances, which ParameterCount leaves out and Keras counts.
int64_t StatisticsCount(const Graph& graph) {
  int64_t count = 0;
  for (const Operator& op : graph.ops) {
    if (op.kind == OpKind::kBatchNorm) count += graph.input(op, 3).shape.Count() + graph.input(op, 4).shape.Count();
  }
  return count;
}

TEST_P(ZooTest, HasThePublishedParametersAndWork) {
  const ZooEntry& entry = GetParam();
  const Graph graph = Build();
  const int64_t statistics = entry.counts_statistics ? StatisticsCount(graph) : 0;
  EXPECT_EQ(ParameterCount(graph) + statistics, entry.parameters) << entry.source;
  EXPECT_NEAR(static_cast<double>(TotalMacs(graph)), static_cast<double>(entry.macs),
              0.01 * static_cast<double>(entry.macs))
      << entry.source;
}

TEST_P(ZooTest, IsValidWithOneInputAndOneOutputOfAThousandClasses) {
  const Graph graph = Build();
  const Status status = Validate(graph);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(graph.name, GetParam().name);
  ASSERT_EQ(graph.inputs.size(), 1u);
  const Tensor& input = graph.tensor(graph.inputs[0]);
  EXPECT_EQ(input.name, "input");
  EXPECT_EQ(GetParam().input_layout.substr(0, ToString(input.shape).size()), ToString(input.shape));
  ASSERT_EQ(graph.outputs.size(), 1u);
  const Tensor& output = graph.tensor(graph.outputs[0]);
  EXPECT_EQ(output.name, "output");
  EXPECT_EQ(output.shape, (Dims{1, 1000}));
}

TEST_P(ZooTest, DependsOnTheSeedAlone) {
  const Graph first = Build(), again = Build();
  EXPECT_EQ(Hash(first), Hash(again));
  if (GetParam().name == "vit_b_16") return;  // the rest is the same code, and a third copy of its weights is slow
  const Graph other = Build(2);
  EXPECT_NE(Hash(first), Hash(other));
  EXPECT_EQ(StructureHash(first), StructureHash(other));
}

INSTANTIATE_TEST_SUITE_P(Networks, ZooTest, ::testing::ValuesIn(ZooEntries().begin(), ZooEntries().end()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Zoo, OffersTheTenNetworks) {
  std::set<std::string_view> names;
  for (const ZooEntry& entry : ZooEntries()) names.insert(entry.name);
  EXPECT_EQ(names, (std::set<std::string_view>{"mobilenet_v2", "mobilenet_v3_large", "resnet50", "inception_v3",
                                               "squeezenet1_1", "efficientnet_b0", "densenet121", "vit_ti_16",
                                               "vit_b_16", "nasnet_mobile"}));
}

TEST(Zoo, ListsItsNetworksWhenAskedForAnother) {
  for (const std::string_view name : {"resnet51", "", "RESNET50", "resnet50 "}) {
    const Result<Graph> graph = BuildZooModel(name);
    ASSERT_FALSE(graph.ok()) << name;
    EXPECT_EQ(graph.status().code(), PLAIT_NOT_FOUND);
    for (const ZooEntry& entry : ZooEntries()) {
      EXPECT_NE(graph.status().message().find(entry.name), std::string::npos) << graph.status().message();
    }
  }
}

// A few weights of one network, written down: another machine or compiler has to make the same bytes.
TEST(Zoo, MakesTheSameWeightsEverywhere) {
  const Result<Graph> graph = BuildZooModel("mobilenet_v2", 7);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto value = [&](std::string_view name, size_t i) {
    for (const Tensor& tensor : graph->tensors) {
      if (tensor.name == name) return tensor.data->as<float>()[i];
    }
    ADD_FAILURE() << "no tensor " << name;
    return 0.0f;
  };
  EXPECT_EQ(value("features.0.conv.weight", 5), 0x1.35d8p-3f);
  EXPECT_EQ(value("features.0.bn.weight", 5), 0x1.d97a9ep-1f);
  EXPECT_EQ(value("features.17.project.bn.running_var", 5), 0x1.ac545p-1f);
  EXPECT_EQ(value("classifier.weight", 5), 0x1.133ede0p-4f);
  EXPECT_EQ(value("classifier.bias", 5), -0x1.4a31ap-4f);
}

struct Spread {
  double deviation = 0, largest = 0;
  bool finite = true;
};
Spread SpreadOf(std::span<const float> values) {
  Spread spread;
  double sum = 0, squares = 0;
  for (float v : values) {
    spread.finite = spread.finite && std::isfinite(v);
    spread.largest = std::max(spread.largest, std::abs(static_cast<double>(v)));
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  const auto count = static_cast<double>(values.size());
  spread.deviation = std::sqrt(std::max(0.0, squares / count - sum / count * (sum / count)));
  return spread;
}

// Evaluated here are networks that take a fraction of a second; the scaling of the others' weights is the same code.
class ZooActivationsTest : public ::testing::TestWithParam<std::string_view> {
 protected:
  static constexpr unsigned kSeed = 5;

  void SetUp() override {
    Result<Graph> graph = BuildZooModel(GetParam());
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    graph_ = std::move(graph).value();
  }
  std::vector<float> Image() {
    std::vector<float> image(static_cast<size_t>(graph_.tensor(graph_.inputs[0]).shape.Count()));
    for (float& v : image) v = normal_(random_);
    return image;
  }
  std::vector<float> Logits(const std::vector<float>& image, const TensorObserver& observe = {}) {
    const void* input = image.data();
    std::vector<std::vector<std::byte>> outputs;
    const Status status = EvaluateReference(graph_, {&input, 1}, &outputs, observe);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<float> logits(1000);
    if (status.ok()) std::memcpy(logits.data(), outputs[0].data(), outputs[0].size());
    return logits;
  }

  Graph graph_;
  std::mt19937 random_{kSeed};
  std::normal_distribution<float> normal_;
};

TEST_P(ZooActivationsTest, KeepAHealthyRange) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const std::vector<float> logits = Logits(Image(), [&](TensorId id, std::span<const float> values) {
    const Spread spread = SpreadOf(values);
    EXPECT_TRUE(spread.finite) << graph_.tensor(id).name;
    EXPECT_LT(spread.largest, 1e3) << graph_.tensor(id).name;
    EXPECT_GT(spread.deviation, 1e-3) << graph_.tensor(id).name;
  });
  const Spread spread = SpreadOf(logits);
  EXPECT_GT(spread.deviation, 0.1);
  EXPECT_LT(spread.deviation, 100);
}

// A fault in some part of a network must show in the logits, and rounding must not.
TEST_P(ZooActivationsTest, LogitsDependOnTheImageButNotOnItsRounding) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const std::vector<float> image = Image(), other = Image();
  std::vector<float> patched = image, rounded = image;
  for (size_t i = 0; i < 16; ++i) patched[image.size() / 2 + i] += 1.0f;
  for (float& v : rounded) v *= 1.0f + 1e-6f * normal_(random_);
  const std::vector<float> logits = Logits(image);
  const double largest = SpreadOf(logits).largest;
  const auto difference = [&](const std::vector<float>& to) {
    std::vector<float> delta = Logits(to);
    for (size_t i = 0; i < delta.size(); ++i) delta[i] -= logits[i];
    return SpreadOf(delta).largest / largest;
  };
  EXPECT_GT(difference(other), 1e-2);
  EXPECT_GT(difference(patched), 1e-4);
  EXPECT_LT(difference(rounded), 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Networks, ZooActivationsTest,
                         ::testing::Values("mobilenet_v2", "mobilenet_v3_large", "squeezenet1_1", "efficientnet_b0"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace plait
