#include "tests/opencl/cases.h"

namespace plait {
namespace {

class KernelTest : public OpenClTest {};

// Random positions for parts along `axis`, at the granularity that the rules ask for.
std::vector<int64_t> RandomCuts(Rng& rng, int64_t extent, const CutRule& rule) {
  std::vector<int64_t> cuts;
  for (int64_t at = 0; at + rule.alignment < extent;) {
    at += rule.alignment * Uniform(rng, 1, std::max<int64_t>(1, extent / rule.alignment / 2));
    if (at >= rule.minimum && at < extent) cuts.push_back(at);
  }
  return cuts;
}

TEST_F(KernelTest, WholeEqualsReference) {
  for (const KernelCase& c : KernelCases()) {
    for (const bool dense : {true, false}) {
      for (uint32_t seed = 0; seed < 2; ++seed) {
        SCOPED_TRACE(StrCat(c.name, dense ? " dense" : " strided", " seed ", seed));
        Rng rng(seed);
        const OperatorCase op(c.make(rng), rng, dense);
        ASSERT_TRUE(OpenClKernelRules().Supports(op.graph(), 0).supported) << OpenClKernelRules().Supports(op.graph(), 0).reason;
        const std::vector<float> out = op.Run(*lane_, op.ProgramOf({Region::Whole(op.output_shape())}));
        EXPECT_LE(RelativeError(out, op.Reference()), 1e-5);
      }
    }
  }
}

TEST_F(KernelTest, PartsEqualTheWholeBitForBit) {
  int cut_cases = 0;
  for (const KernelCase& c : KernelCases()) {
    for (uint32_t seed = 0; seed < 3; ++seed) {
      Rng rng(seed);
      const OperatorCase whole(c.make(rng), rng, seed % 2 == 0);
      const std::vector<float> expected = whole.Run(*lane_, whole.ProgramOf({Region::Whole(whole.output_shape())}));
      for (const SplitAxis& axis : SplitAxes(whole.graph(), whole.op())) {
        const CutRule rule = OpenClKernelRules().Cut(whole.graph(), 0, axis);
        if (rule.alignment == 0) continue;
        const std::vector<int64_t> cuts = RandomCuts(rng, whole.output_shape()[axis.axis], rule);
        if (cuts.empty()) continue;
        SCOPED_TRACE(StrCat(c.name, " axis ", axis.axis, " in ", cuts.size() + 1, " parts, seed ", seed));
        EXPECT_TRUE(SameBits(whole.Run(*lane_, whole.ProgramOf(CutAt(whole.output_shape(), axis.axis, cuts))), expected));
        ++cut_cases;
      }
    }
  }
  EXPECT_GT(cut_cases, 100);
}

TEST_F(KernelTest, StridesChangeNoBit) {
  for (const KernelCase& c : KernelCases()) {
    SCOPED_TRACE(c.name);
    Rng rng(7);
    const Graph graph = c.make(rng);
    const OperatorCase dense(graph, rng, true);
    OperatorCase strided(graph, rng, false);
    strided.CopyInputsFrom(dense);
    const std::vector<float> expected = dense.Run(*lane_, dense.ProgramOf({Region::Whole(dense.output_shape())}));
    EXPECT_TRUE(SameBits(strided.Run(*lane_, strided.ProgramOf({Region::Whole(strided.output_shape())})), expected));
  }
}

TEST_F(KernelTest, PositiveFunctionsEqualReference) {
  for (const UnaryKind kind : {UnaryKind::kSqrt, UnaryKind::kReciprocal, UnaryKind::kLog}) {
    SCOPED_TRACE(static_cast<int>(kind));
    Rng rng(3);
    OperatorCase op(UnaryGraph(kind), rng, false);
    op.DrawInputs(rng, 0.1f, 10.0f);
    EXPECT_LE(RelativeError(op.Run(*lane_, op.ProgramOf({Region::Whole(op.output_shape())})), op.Reference()), 1e-5);
  }
}

TEST_F(KernelTest, WideRangesStayFinite) {
  for (const UnaryKind kind : {UnaryKind::kSigmoid, UnaryKind::kSilu, UnaryKind::kGelu, UnaryKind::kTanh, UnaryKind::kErf, UnaryKind::kHardSwish}) {
    SCOPED_TRACE(static_cast<int>(kind));
    Rng rng(5);
    OperatorCase op(UnaryGraph(kind), rng, true);
    op.DrawInputs(rng, -200.0f, 200.0f);
    EXPECT_LE(RelativeError(op.Run(*lane_, op.ProgramOf({Region::Whole(op.output_shape())})), op.Reference()), 1e-5);
  }
  Rng rng(6);
  OperatorCase softmax(OneInput({6, 41}, OpKind::kSoftmax, SoftmaxAttrs{}), rng, true);
  softmax.DrawInputs(rng, -300.0f, 300.0f);
  EXPECT_LE(RelativeError(softmax.Run(*lane_, softmax.ProgramOf({Region::Whole(softmax.output_shape())})), softmax.Reference()), 1e-5);
}

TEST_F(KernelTest, ANanStaysANan) {
  Rng rng(1);
  OperatorCase op(ConvGraph(rng, {1, 4, 4, 8, 16, 1, 1, {.clamp = kRelu}}), rng, true);
  op.DrawInputs(rng, NAN, NAN);
  for (const float v : op.Run(*lane_, op.ProgramOf({Region::Whole(op.output_shape())}))) EXPECT_TRUE(std::isnan(v));
}

TEST_F(KernelTest, WrongKernelsAndCutsAreRefusedByName) {
  Rng rng(2);
  const OperatorCase op(ConvGraph(rng, {1, 4, 4, 8, 64, 1, 1, {}}), rng, true);
  std::vector<LaneCounter> counters(1);
  Arena arena(*lane_, op.arena_bytes());
  const auto refusal = [&](const std::function<void(Step&)>& change) {
    auto program = op.ProgramOf({Region::Whole(op.output_shape())});
    change(program->steps[0][1]);
    const auto bound = lane_->Bind({op.shared_graph(), program, 0, arena.host(), counters, {}});
    return bound.ok() ? std::string() : bound.status().message();
  };
  EXPECT_NE(refusal([](Step& s) { s.kernel = "xnnpack.gemm"; }).find("xnnpack.gemm"), std::string::npos);
  EXPECT_NE(refusal([](Step& s) { s.region.begin[3] = 8, s.region.size[3] = 16; }).find("channel 8"), std::string::npos);
  EXPECT_NE(refusal([](Step& s) { s.kind = StepKind::kGang; }).find(Name(StepKind::kGang)), std::string::npos);
  EXPECT_EQ(refusal([](Step& s) { s.kernel = "opencl.conv2d.gemm"; }), "");
}

TEST(OpenClRules, SayWhatIsMissing) {
  Rng rng(1);
  GraphBuilder b("computed weights");
  const TensorId x = b.Input("x", {4, 8});
  const TensorId w = b.Input("w", {16, 8});
  const Graph graph = Built(b, b.Add("fc", OpKind::kFullyConnected, {x, w, kNoTensor}, FullyConnectedAttrs{}));
  if (graph.op_count() == 1) {
    const KernelSupport support = OpenClKernelRules().Supports(graph, 0);
    EXPECT_FALSE(support.supported);
    EXPECT_NE(support.reason.find("w"), std::string::npos);
  }
}

}  // namespace
}  // namespace plait
