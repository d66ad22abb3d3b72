#include "predictors/soc_profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "src/base/file_io.h"
#include "src/graph/builder.h"

namespace plait {
namespace {

using nlohmann::json;

// conv: 1x8x8x16 -> 1x8x8x64, 1x1; add: 1x8x8x64.
Graph MakeGraph(const std::string& prefix = "") {
  GraphBuilder b("g");
  const TensorId x = b.Input("x", {1, 8, 8, 16});
  const TensorId w = b.Constant(prefix + "w", {64, 1, 1, 16}, std::vector<float>(64 * 16, 0.5f));
  const TensorId conv = b.Add(prefix + "conv", OpKind::kConv2D, {x, w, kNoTensor}, Conv2DAttrs{});
  b.Output(b.Add(prefix + "add", OpKind::kBinary, {conv, conv}, BinaryAttrs{}));
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return std::move(graph).value();
}

Region Cut(const Graph& graph, OpId op, int axis, int64_t extent) {
  Region region = Region::Whole(graph.output(graph.op(op)).shape);
  region.size[axis] = extent;
  return region;
}

SocProfile MakeProfile(const Graph& graph) {
  SocProfile profile;
  profile.soc = "a test chip";
  profile.plait_version = "0.1.0";
  for (const char* name : {"cpu0", "gpu0"}) {
    LaneProfile lane;
    lane.name = name;
    lane.kind = name[0] == 'g' ? LaneKind::kGpu : LaneKind::kCpu;
    lane.device = "core";
    lane.cpus = {0, 3};
    lane.host_segment_us = 2.5;
    lane.measurements[OpSignature(graph, graph.op(0))] = {{-1, 0, 100.0, 0.01, 9}, {3, 16, 40.0, 0.02, 5}, {3, 32, 60.0, 0.02, 5}};
    profile.lanes.push_back(lane);
  }
  profile.lanes[1].measurements[OpSignature(graph, graph.op(1))] = {{-1, 0, 8.0, 0.0, 3}};
  profile.handoffs = {{{0, 0}, {30.5, 0.001}}, {{17.25, 0}, {0, 0}}};
  return profile;
}

class TempFile {
 public:
  TempFile() {
    char name[] = "/tmp/plait_profile_XXXXXX";
    ::close(::mkstemp(name));
    path_ = name;
  }
  ~TempFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }
  void Write(const std::string& text) const { std::ofstream(path_) << text; }

 private:
  std::string path_;
};

TEST(Signature, HoldsWhatTimeDependsOnAndNoNames) {
  const Graph a = MakeGraph(), b = MakeGraph("other");
  EXPECT_EQ(OpSignature(a, a.op(0)), OpSignature(b, b.op(0)));
  EXPECT_NE(OpSignature(a, a.op(0)), OpSignature(a, a.op(1)));
  const std::string base = OpSignature(a, a.op(0));
  for (char c : base) EXPECT_TRUE(c > ' ' && c <= '~') << base;
  const auto differs = [&](const std::function<void(Conv2DAttrs*)>& change) {
    Graph g = a;
    Conv2DAttrs attrs = g.ops[0].as<Conv2DAttrs>();
    change(&attrs);
    g.ops[0].attrs = attrs;
    return OpSignature(g, g.op(0)) != base;
  };
  EXPECT_TRUE(differs([](Conv2DAttrs* c) { c->stride_w = 2; }));
  EXPECT_TRUE(differs([](Conv2DAttrs* c) { c->dilation_h = 2; }));
  EXPECT_TRUE(differs([](Conv2DAttrs* c) { c->groups = 2; }));
  EXPECT_TRUE(differs([](Conv2DAttrs* c) { c->pad.left = 1; }));
  EXPECT_TRUE(differs([](Conv2DAttrs* c) { c->clamp = kRelu6; }));
  Graph g = a;
  g.tensors[static_cast<size_t>(g.op(0).output)].shape = {1, 8, 8, 32};
  EXPECT_NE(OpSignature(g, g.op(0)), base);
}

TEST(MeasuredLatency, AnswersFromMeasurements) {
  const Graph graph = MakeGraph();
  const SocProfile profile = MakeProfile(graph);
  const MeasuredLatency plain(profile), indexed(profile, graph);
  for (const LatencySource* source : std::initializer_list<const LatencySource*>{&plain, &indexed}) {
    const auto us = [&](int axis, int64_t extent) { return source->PartLatency(graph, 0, "cpu0", Cut(graph, 0, axis, extent)).us; };
    EXPECT_DOUBLE_EQ(us(3, 64), 100.0) << "whole";
    EXPECT_DOUBLE_EQ(us(3, 16), 40.0) << "measured";
    EXPECT_DOUBLE_EQ(us(3, 24), 50.0) << "between two cuts";
    EXPECT_DOUBLE_EQ(us(3, 48), 80.0) << "between a cut and the whole";
    EXPECT_DOUBLE_EQ(us(3, 8), 30.0) << "along the line through the smallest two";
    EXPECT_DOUBLE_EQ(us(1, 2), 25.0) << "an axis never measured: by work";
    Region corner = Cut(graph, 0, 3, 32);
    corner.size[1] = 4;
    EXPECT_DOUBLE_EQ(source->PartLatency(graph, 0, "cpu0", corner).us, 25.0) << "two axes: by work";
    EXPECT_FALSE(source->PartLatency(graph, 1, "cpu0", Cut(graph, 1, 3, 64)).known) << "never measured on this lane";
    EXPECT_TRUE(source->PartLatency(graph, 1, "gpu0", Cut(graph, 1, 3, 64)).known);
    EXPECT_FALSE(source->PartLatency(graph, 0, "npu0", Cut(graph, 0, 3, 64)).known);
    EXPECT_LT(source->PartLatency(graph, 0, "cpu0", Cut(graph, 0, 3, 16)).relative_error,
              source->PartLatency(graph, 0, "cpu0", Cut(graph, 0, 1, 2)).relative_error);
  }
}

TEST(MeasuredLatency, NoiseGivesNoNegativeTimes) {
  const Graph graph = MakeGraph();
  SocProfile profile = MakeProfile(graph);
  // A steep line whose intercept is negative, and a falling one.
  for (double second : {90.0, 20.0}) {
    profile.lanes[0].measurements[OpSignature(graph, graph.op(0))] = {{-1, 0, 100, 0, 1}, {3, 16, 30, 0, 1}, {3, 32, second, 0, 1}};
    const MeasuredLatency source(profile);
    double last = 0;
    for (int64_t extent = 1; extent < 16; ++extent) {
      const double us = source.PartLatency(graph, 0, "cpu0", Cut(graph, 0, 3, extent)).us;
      EXPECT_GT(us, 0);
      EXPECT_LE(us, 30.0);
      EXPECT_GE(us, last);
      last = us;
    }
  }
}

TEST(MeasuredLatency, AppliesTheNetworkFactor) {
  const Graph graph = MakeGraph();
  SocProfile profile = MakeProfile(graph);
  profile.lanes[0].network_factor = 1.5;
  EXPECT_DOUBLE_EQ(MeasuredLatency(profile).PartLatency(graph, 0, "cpu0", Cut(graph, 0, 3, 64)).us, 150.0);
}

TEST(SocProfileFile, RoundTrip) {
  const Graph graph = MakeGraph();
  const SocProfile profile = MakeProfile(graph);
  const TempFile file;
  ASSERT_TRUE(SaveSocProfile(profile, file.path()).ok());
  const Result<SocProfile> loaded = LoadSocProfile(file.path());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->soc, profile.soc);
  ASSERT_EQ(loaded->lanes.size(), 2u);
  EXPECT_EQ(loaded->lanes[1].kind, LaneKind::kGpu);
  EXPECT_EQ(loaded->lanes[0].cpus, profile.lanes[0].cpus);
  EXPECT_EQ(loaded->lanes[0].host_segment_us, 2.5);
  EXPECT_EQ(loaded->handoffs[0][1].sync_us, 30.5);
  EXPECT_EQ(loaded->handoffs[0][1].us_per_byte, 0.001);
  const auto& rows = loaded->lanes[0].measurements.at(OpSignature(graph, graph.op(0)));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2].extent, 32);
  EXPECT_EQ(rows[2].us, 60.0);
  // What is loaded is saved again byte for byte.
  const std::string first = *ReadFile(file.path());
  ASSERT_TRUE(SaveSocProfile(*loaded, file.path()).ok());
  EXPECT_EQ(*ReadFile(file.path()), first);
}

TEST(SocProfileFile, DamagedFilesAreRefusedWithTheField) {
  const Graph graph = MakeGraph();
  const TempFile file;
  ASSERT_TRUE(SaveSocProfile(MakeProfile(graph), file.path()).ok());
  const json good = json::parse(*ReadFile(file.path()));
  const std::string signature = OpSignature(graph, graph.op(0));
  const auto refuse = [&](const std::function<void(json*)>& spoil, const std::string& named) {
    json bad = good;
    spoil(&bad);
    file.Write(bad.dump());
    const Result<SocProfile> loaded = LoadSocProfile(file.path());
    ASSERT_FALSE(loaded.ok()) << named;
    EXPECT_EQ(loaded.status().code(), PLAIT_CORRUPT);
    EXPECT_NE(loaded.status().message().find(named), std::string::npos) << loaded.status().message();
    EXPECT_NE(loaded.status().message().find(file.path()), std::string::npos) << loaded.status().message();
  };
  refuse([](json* j) { (*j)["format"] = "plait-plan"; }, "format");
  refuse([](json* j) { (*j)["version"] = 2; }, "version 2");
  refuse([](json* j) { (*j)["version"] = 0; }, "version");
  refuse([](json* j) { j->erase("soc"); }, "soc");
  refuse([](json* j) { *j = json::array(); }, "not an object");
  refuse([](json* j) { (*j)["lanes"] = 3; }, "lanes");
  refuse([](json* j) { (*j)["lanes"][1]["name"] = "cpu0"; }, "lanes[1].name");
  refuse([](json* j) { (*j)["lanes"][0]["kind"] = "npu"; }, "lanes[0].kind");
  refuse([](json* j) { (*j)["lanes"][0]["cpus"] = {-1}; }, "lanes[0].cpus");
  refuse([](json* j) { (*j)["lanes"][0]["network_factor"] = 0; }, "network_factor");
  refuse([](json* j) { (*j)["lanes"][0]["dispatch_us"] = -1; }, "dispatch_us");
  refuse([](json* j) { (*j)["lanes"][0]["coherent"] = 1; }, "coherent");
  refuse([&](json* j) { (*j)["lanes"][0]["measurements"][signature][0][2] = -5; }, "(us)");
  refuse([&](json* j) { (*j)["lanes"][0]["measurements"][signature][0][2] = "5"; }, "(us)");
  refuse([&](json* j) { (*j)["lanes"][0]["measurements"][signature][0][0] = 8; }, "(axis)");
  refuse([&](json* j) { (*j)["lanes"][0]["measurements"][signature][1][1] = 0; }, "axis without an extent");
  refuse([&](json* j) { (*j)["lanes"][0]["measurements"][signature][1][1] = 18446744073709551615u; }, "(extent)");
  refuse([&](json* j) { (*j)["lanes"][0]["measurements"][signature][1] = {1, 2}; }, "[axis, extent");
  refuse([&](json* j) { (*j)["lanes"][0]["measurements"][signature][2][1] = 16; }, "twice");
  refuse([](json* j) { (*j)["handoffs"].erase(0); }, "handoffs");
  refuse([](json* j) { (*j)["handoffs"][1].push_back({{"sync_us", 0}, {"us_per_byte", 0}}); }, "handoffs[1]");
  refuse([](json* j) { (*j)["handoffs"][0][0]["sync_us"] = 1; }, "handoffs[0][0]");
  refuse([](json* j) { (*j)["handoffs"][0][1].erase("sync_us"); }, "handoffs[0][1].sync_us");
}

TEST(SocProfileFile, TruncatedFilesAreRefused) {
  const TempFile file;
  ASSERT_TRUE(SaveSocProfile(MakeProfile(MakeGraph()), file.path()).ok());
  const std::string text = *ReadFile(file.path());
  for (size_t length = 0; length + 2 < text.size(); length += 7) {
    file.Write(text.substr(0, length));
    EXPECT_FALSE(LoadSocProfile(file.path()).ok()) << length;
  }
  EXPECT_EQ(LoadSocProfile("/nonexistent/profile.json").status().code(), PLAIT_NOT_FOUND);
}

}  // namespace
}  // namespace plait
