// What the exporter writes, as ONNX Runtime reads it.
#include <gtest/gtest.h>

#include "src/formats/onnx/model.h"
#include "src/formats/onnx_export.h"
#include "src/formats/onnx_import.h"
#include "tests/formats/sample_graphs.h"
#include "tests/oracle/oracle.h"

namespace plait {
namespace {

constexpr double kTolerance = 1e-4;  // of the largest magnitude

int CountNodes(const std::string& bytes, const std::string& type) {
  const Result<OnnxModel> model = DecodeOnnx(bytes);
  int count = 0;
  for (const OnnxNode& n : model->nodes) count += n.op_type == type;
  return count;
}

void ExpectSameEverywhere(const Graph& graph) {
  const Result<std::string> bytes = ExportOnnx(graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const std::vector<OracleTensor> inputs = RandomInputs(graph, 3);
  const auto here = RunReference(graph, inputs);
  ASSERT_TRUE(here.ok()) << here.status().message();
  const Result<Graph> back = ImportOnnx(*bytes);
  ASSERT_TRUE(back.ok()) << back.status().message();
  const auto returned = RunReference(*back, inputs);
  ASSERT_TRUE(returned.ok()) << returned.status().message();
  EXPECT_LE(RelativeError(*here, *returned), kTolerance);
  for (size_t i = 0; i < here->size(); ++i) EXPECT_EQ((*here)[i].name, (*returned)[i].name);
  if (!HasOracle()) return;
  const auto judged = RunOracle(*bytes, inputs);
  ASSERT_TRUE(judged.ok()) << judged.status().message();
  EXPECT_LE(RelativeError(*judged, *here), kTolerance);
  for (size_t i = 0; i < here->size(); ++i) EXPECT_EQ((*here)[i].name, (*judged)[i].name);
}

TEST(OnnxExport, EveryOperatorKindComputesTheSame) { ExpectSameEverywhere(*EveryOperator()); }

// y = f(x) for x[1, 4, 5, 3] positive where f needs it.
Graph OneUnary(UnaryKind kind) {
  GraphBuilder b("unary");
  const TensorId x = b.Input("x", {1, 4, 5, 3});
  const TensorId positive = b.Add(
      "positive", OpKind::kBinary,
      {b.Add("abs", OpKind::kUnary, {x}, UnaryAttrs{UnaryKind::kAbs, {}}), b.Constant("c", {}, {0.1f})}, BinaryAttrs{});
  const bool needs_positive = kind == UnaryKind::kSqrt || kind == UnaryKind::kLog || kind == UnaryKind::kReciprocal;
  b.Output(b.Add("y", OpKind::kUnary, {needs_positive ? positive : x},
                 UnaryAttrs{kind, kind == UnaryKind::kClamp ? Clamp{-0.5f, 0.25f} : Clamp{}}));
  if (!needs_positive) b.Output(positive);
  return *b.Build();
}

TEST(OnnxExport, EveryUnaryFunctionComputesTheSame) {
  for (int kind = 0; kind <= static_cast<int>(UnaryKind::kLog); ++kind) {
    SCOPED_TRACE(kind);
    ExpectSameEverywhere(OneUnary(static_cast<UnaryKind>(kind)));
  }
}

TEST(OnnxExport, EveryBinaryFunctionAndBroadcastComputesTheSame) {
  const std::vector<std::pair<Dims, Dims>> shapes = {{{1, 4, 5, 3}, {1, 4, 5, 3}}, {{1, 4, 5, 3}, {3}},
                                                     {{1, 4, 5, 3}, {5, 3}},       {{2, 1}, {3}},
                                                     {{1, 4, 1, 3}, {1, 1, 5, 1}}, {{4}, {}}};
  for (const auto& [sa, sb] : shapes) {
    for (int kind = 0; kind <= static_cast<int>(BinaryKind::kMin); ++kind) {
      SCOPED_TRACE(StrCat(ToString(sa), " ", ToString(sb), " ", kind));
      GraphBuilder b("binary");
      const TensorId x = b.Input("x", sa), y = b.Input("y", sb);
      const TensorId divisor =
          b.Add("divisor", OpKind::kUnary, {b.Add("small", OpKind::kUnary, {y}, UnaryAttrs{UnaryKind::kSigmoid, {}})},
                UnaryAttrs{UnaryKind::kExp, {}});
      const BinaryAttrs attrs{static_cast<BinaryKind>(kind), {}};
      b.Output(b.Add("ab", OpKind::kBinary, {x, divisor}, attrs));
      b.Output(b.Add("ba", OpKind::kBinary, {divisor, b.Constant("c", {3}, {1, 2, 3})}, attrs));
      const Result<Graph> graph = b.Build();
      if (!graph.ok()) continue;  // y does not broadcast with the constant
      ExpectSameEverywhere(*graph);
    }
  }
}

TEST(OnnxExport, AnNchwInterfaceCostsNoTranspose) {
  GraphBuilder b("nchw");
  const TensorId x = b.Add("nhwc", OpKind::kTranspose, {b.Input("x", {1, 3, 8, 8})}, TransposeAttrs{{0, 2, 3, 1}});
  const TensorId c =
      b.Add("conv", OpKind::kConv2D, {x, b.Constant("w", {4, 3, 3, 3}, Ramp(108, -0.3f, 0.1f))}, Conv2DAttrs{});
  const TensorId r = b.Add("relu", OpKind::kUnary, {c}, UnaryAttrs{UnaryKind::kClamp, kRelu});
  const TensorId s =
      b.Add("scaled", OpKind::kBinary, {r, b.Constant("s", {4}, {1, 2, 3, 4})}, BinaryAttrs{BinaryKind::kMul, {}});
  const TensorId m = b.Add("mean", OpKind::kReduceMean, {s}, ReduceAttrs{{1, 2}, true});
  const TensorId gated = b.Add("gated", OpKind::kBinary, {s, m}, BinaryAttrs{BinaryKind::kMul, {}});
  b.Output(b.Add("y", OpKind::kTranspose, {gated}, TransposeAttrs{{0, 3, 1, 2}}));
  b.Output(b.Add("flat", OpKind::kReshape, {m}, ReshapeAttrs{{1, 4}}));
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  ExpectSameEverywhere(*graph);
  const Result<std::string> bytes = ExportOnnx(*graph);
  EXPECT_EQ(CountNodes(*bytes, "Transpose"), 0);
  EXPECT_EQ(CountNodes(*bytes, "Relu"), 1);
  EXPECT_EQ(DecodeOnnx(*bytes)->opset, 17);
}

TEST(OnnxExport, AnNhwcInterfaceCostsOneTransposeEachWay) {
  GraphBuilder b("nhwc");
  TensorId x = b.Input("x", {1, 8, 8, 4});
  for (int i = 0; i < 3; ++i) {
    x = b.Add(StrCat("conv", i), OpKind::kConv2D, {x, b.Constant(StrCat("w", i), {4, 1, 1, 4}, Ramp(16, -0.3f, 0.1f))},
              Conv2DAttrs{});
  }
  b.Output(x);
  const Result<Graph> graph = b.Build();
  ExpectSameEverywhere(*graph);
  EXPECT_EQ(CountNodes(*ExportOnnx(*graph), "Transpose"), 2);
}

TEST(OnnxExport, TheSameTensorMayBeReadAndReturnedInBothLayouts) {
  GraphBuilder b("both");
  const TensorId x = b.Input("x", {1, 3, 4, 5});
  const TensorId t = b.Add("t", OpKind::kTranspose, {x}, TransposeAttrs{{0, 2, 3, 1}});
  b.Output(t);
  b.Output(b.Add("back", OpKind::kTranspose, {t}, TransposeAttrs{{0, 3, 1, 2}}));
  b.Output(b.Add("copy", OpKind::kUnary, {t}, UnaryAttrs{}));
  b.Output(b.Add("odd", OpKind::kTranspose, {t}, TransposeAttrs{{3, 0, 2, 1}}));
  b.Output(b.Add("constant", OpKind::kTranspose, {b.Constant("c", {1, 2, 2, 2}, Ramp(8, 0, 1))},
                 TransposeAttrs{{0, 3, 1, 2}}));
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  ExpectSameEverywhere(*graph);
}

TEST(OnnxExport, OtherTypesAreRefusedByName) {
  GraphBuilder b("half");
  b.Output(b.Add("y", OpKind::kUnary, {b.Input("x", {4}, DType::kF16)}, UnaryAttrs{}));
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Result<std::string> bytes = ExportOnnx(*graph);
  EXPECT_EQ(bytes.status().code(), PLAIT_UNSUPPORTED);
  EXPECT_NE(bytes.status().message().find("f16"), std::string::npos);
}

}  // namespace
}  // namespace plait
