// Kernels of the real lanes that write over what they read give the bits that they give elsewhere.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "src/api/lanes.h"
#include "src/api/planning.h"
#include "src/graph/builder.h"
#include "src/platform/affinity.h"
#include "tests/lanes/devices.h"

namespace plait {
namespace {

const Dims kShape{1, 13, 11, 21};  // no multiple of any vector, so that tails are met

// Every unary function, every binary one and softmax, each over the last one's output. With `keep_all` each is an output of the graph, too, and none is written over.
Graph Chain(bool keep_all) {
  GraphBuilder b("chain");
  TensorId t = b.Input("x", kShape);
  std::vector<float> values(21);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.5f + 0.07f * static_cast<float>(i);
  const TensorId row = b.Constant("row", {21}, values);
  int n = 0;
  auto then = [&](OpKind kind, std::vector<TensorId> operands, OpAttrs attrs) {
    t = b.Add(StrCat("t", n++), kind, std::move(operands), std::move(attrs));
    if (keep_all) b.Output(t);
  };
  auto unary = [&](UnaryKind kind) {
    UnaryAttrs attrs;
    attrs.kind = kind;
    then(OpKind::kUnary, {t}, attrs);
  };
  auto binary = [&](BinaryKind kind, bool row_first) {
    BinaryAttrs attrs;
    attrs.kind = kind;
    then(OpKind::kBinary, row_first ? std::vector<TensorId>{row, t} : std::vector<TensorId>{t, row}, attrs);
  };
  for (UnaryKind kind : {UnaryKind::kGelu, UnaryKind::kHardSwish, UnaryKind::kSilu, UnaryKind::kTanh, UnaryKind::kExp, UnaryKind::kLog, UnaryKind::kErf,
                         UnaryKind::kNegate, UnaryKind::kSquare, UnaryKind::kSigmoid, UnaryKind::kSqrt, UnaryKind::kReciprocal, UnaryKind::kHardSigmoid}) {
    unary(kind);
    binary(BinaryKind::kSub, false);
  }
  for (BinaryKind kind : {BinaryKind::kAdd, BinaryKind::kSub, BinaryKind::kMul, BinaryKind::kMax, BinaryKind::kMin, BinaryKind::kDiv}) {
    binary(kind, true);
    binary(kind, false);
  }
  then(OpKind::kBinary, {t, t}, BinaryAttrs{});
  then(OpKind::kSoftmax, {t}, SoftmaxAttrs{});
  unary(UnaryKind::kAbs);
  then(OpKind::kSoftmax, {t}, SoftmaxAttrs{});
  if (!keep_all) b.Output(t);
  return b.Build().value();
}

std::vector<float> LastOutput(const PlannedModel& model, const LaneSet& lanes) {
  const auto session = OpenSession(model, lanes, {});
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!session.ok()) return {};
  std::mt19937 random(5);
  std::uniform_real_distribution<float> draw(-2, 2);
  const std::span<std::byte> in = (*session)->input(0);
  for (size_t i = 0; i < in.size() / sizeof(float); ++i) {
    const float value = draw(random);
    std::memcpy(in.data() + i * sizeof(float), &value, sizeof value);
  }
  const Status status = (*session)->Run();
  EXPECT_TRUE(status.ok()) << status.message();
  const std::span<const std::byte> out = (*session)->output(static_cast<int>(model.graph->outputs.size()) - 1);
  std::vector<float> values(out.size() / sizeof(float));
  std::memcpy(values.data(), out.data(), out.size());
  return values;
}

size_t Places(const PlannedModel& model) {
  std::set<int64_t> offsets;
  for (const BufferSpec& buffer : model.plan->program.buffers) offsets.insert(buffer.offset);
  return offsets.size();
}

void ExpectSame(const Result<PlannedModel>& over, const Result<PlannedModel>& apart, const LaneSet& lanes) {
  ASSERT_TRUE(over.ok()) << over.status().message();
  ASSERT_TRUE(apart.ok()) << apart.status().message();
  EXPECT_LE(Places(*over), 4u);
  EXPECT_GT(Places(*apart), 30u);
  const std::vector<float> a = LastOutput(*over, lanes), b = LastOutput(*apart, lanes);
  ASSERT_EQ(a.size(), b.size());
  for (float v : a) ASSERT_TRUE(v >= 0 && v <= 1) << v;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

TEST(InPlace, ChangesNoBitOnAnyLane) {
  const std::vector<int> cores = ThreadAffinity();
  LaneOptions options;
  options.clusters = {{cores.front()}, {cores.front(), cores.back()}};
  options.opencl_cpus = {cores.back()};
  options.gpu = true;
  options.owns_process = true;
  Result<LaneSet> lanes = OpenLanes(options);
  if (!lanes.ok() && !HasOpenClDevice()) {  // the CPU lanes alone
    options.opencl_cpus.clear();
    options.gpu = false;
    lanes = OpenLanes(options);
  }
  ASSERT_TRUE(lanes.ok()) << lanes.status().message();
  const Graph over = Chain(false), apart = Chain(true);
  for (LaneId lane = 0; lane < static_cast<LaneId>(lanes->lanes.size()); ++lane) {
    SCOPED_TRACE(lanes->lanes[static_cast<size_t>(lane)]->name());
    ExpectSame(SingleLanePlan(over, *lanes, lane), SingleLanePlan(apart, *lanes, lane), *lanes);
  }
}

TEST(InPlace, ChangesNoBitHoweverOperatorsAreCut) {
  const std::vector<int> cores = ThreadAffinity();
  LaneOptions options;
  options.clusters = {{cores.front()}, {cores.back()}};
  options.gpu = false;
  Result<LaneSet> lanes = OpenLanes(options);
  ASSERT_TRUE(lanes.ok()) << lanes.status().message();
  const Graph over = Chain(false);
  const Result<PlannedModel> whole = SingleLanePlan(Chain(true), *lanes, 0);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const std::vector<float> expected = LastOutput(*whole, *lanes);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    const Result<PlannedModel> plan = RandomPlan(over, *lanes, seed);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const std::vector<float> got = LastOutput(*plan, *lanes);
    ASSERT_EQ(got.size(), expected.size());
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace plait
