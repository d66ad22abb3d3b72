// Real plans of real kernels: random cuts, lanes and orders give what one lane gives, bit for bit, since all lanes have one backend.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "backends/reference/reference.h"
#include "src/graph/builder.h"
#include "src/graph/passes.h"
#include "src/partition/storage.h"
#include "src/plan/plan.h"
#include "src/runtime/session.h"

namespace plait {
namespace {

// Convolutions with halo, depthwise, a concat and a residual: every kind of handoff between parts.
Result<Graph> MakeNetwork() {
  GraphBuilder b("net");
  std::minstd_rand random(3);
  const auto weights = [&](const std::string& name, Dims shape) {
    std::vector<float> values(static_cast<size_t>(shape.Count()));
    for (float& v : values) v = static_cast<float>(random() % 256) / 512.0f - 0.25f;
    return b.Constant(name, shape, values);
  };
  const auto conv = [&](const std::string& name, TensorId in, int64_t to, int32_t kernel) {
    Conv2DAttrs attrs;
    attrs.clamp = kRelu;
    const int32_t pad = kernel / 2;
    attrs.pad = {pad, pad, pad, pad};
    return b.Add(name, OpKind::kConv2D, {in, weights(name + ".w", {to, kernel, kernel, b.shape(in).back()}), kNoTensor}, attrs);
  };
  const TensorId x = b.Input("x", {1, 12, 12, 8});
  const TensorId a = conv("a", x, 16, 3);
  const TensorId left = conv("left", a, 8, 1), right = conv("right", a, 24, 3);
  const TensorId joined = b.Add("joined", OpKind::kConcat, {left, right}, ConcatAttrs{3});
  Conv2DAttrs depthwise;
  depthwise.pad = {1, 1, 1, 1};
  const TensorId dw = b.Add("dw", OpKind::kDepthwiseConv2D, {joined, weights("dw.w", {3, 3, 32}), kNoTensor}, depthwise);
  const TensorId sum = b.Add("sum", OpKind::kBinary, {joined, dw}, BinaryAttrs{});
  b.Output(conv("last", sum, 16, 1));
  PLAIT_ASSIGN_OR_RETURN(const Graph graph, b.Build());
  PLAIT_ASSIGN_OR_RETURN(const Graph optimized, Optimize(graph));
  return PlaceCopies(optimized, [](const Graph&, OpId, int) { return true; });
}

std::vector<float> RunPlan(const std::shared_ptr<const Graph>& graph, const Plan& plan, const std::vector<std::shared_ptr<Lane>>& lanes) {
  Result<std::unique_ptr<Session>> session = Session::Create(graph, std::make_shared<Plan>(plan), lanes, {});
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!session.ok()) return {};
  const std::span<std::byte> input = (*session)->input(0);
  std::vector<float> last;
  for (int run = 0; run < 3; ++run) {
    for (size_t i = 0; i < input.size() / 4; ++i) {
      const float value = static_cast<float>((i * 37) % 101) / 50.0f - 1.0f;
      std::memcpy(input.data() + i * 4, &value, 4);
    }
    EXPECT_TRUE((*session)->Run().ok());
    const std::span<const std::byte> output = (*session)->output(0);
    std::vector<float> values(output.size() / 4);
    std::memcpy(values.data(), output.data(), output.size());
    if (run > 0) {
      EXPECT_EQ(values, last) << "run " << run << " differs from the one before";
    }
    last = std::move(values);
  }
  return last;
}

TEST(Plans, RandomOnesOverThreeLanesEqualOneLane) {
  Result<Graph> made = MakeNetwork();
  ASSERT_TRUE(made.ok()) << made.status().message();
  const auto graph = std::make_shared<const Graph>(std::move(made).value());
  std::vector<std::shared_ptr<Lane>> lanes;
  std::vector<PlanningLane> planning;
  for (int l = 0; l < 3; ++l) {
    CpuLaneConfig config;
    config.name = "cpu" + std::to_string(l);
    config.backends = {CreateReferenceBackend()};
    lanes.push_back(std::move(CreateCpuLane(config)).value());
    planning.emplace_back();
    planning.back().spec.name = config.name;
    planning.back().rules = &lanes.back()->rules();
  }
  const Result<Schedule> alone = SingleLaneSchedule(*graph, planning, 0);
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  const std::vector<float> expected = RunPlan(graph, *Lower(*graph, planning, *alone), lanes);
  ASSERT_FALSE(expected.empty());
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Result<Schedule> schedule = RandomSchedule(*graph, planning, seed);
    ASSERT_TRUE(schedule.ok()) << schedule.status().message();
    const Result<Plan> plan = Lower(*graph, planning, *schedule);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    ASSERT_EQ(RunPlan(graph, *plan, lanes), expected);
  }
}

}  // namespace
}  // namespace plait
