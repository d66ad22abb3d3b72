#include <gtest/gtest.h>

#include "src/graph/builder.h"
#include "src/graph/operators.h"

namespace plait {
namespace {

TEST(Declarations, EveryKindHasItsOwn) {
  for (int k = 0; k < kOpKindCount; ++k) {
    const auto kind = static_cast<OpKind>(k);
    const OperatorDecl& decl = Declaration(kind);
    EXPECT_EQ(decl.kind, kind);
    EXPECT_EQ(decl.name, Name(kind));
    EXPECT_LE(decl.min_inputs, decl.max_inputs);
    EXPECT_NE(decl.infer_shape, nullptr);
    EXPECT_NE(decl.input_region, nullptr);
    EXPECT_NE(decl.split_axes, nullptr);
    EXPECT_NE(decl.work, nullptr);
  }
}

TEST(Conv2D, ShapeAndHalo) {
  GraphBuilder b("g");
  const TensorId x = b.Input("x", {1, 10, 12, 4});
  const TensorId w = b.Constant("w", {8, 3, 3, 4}, std::vector<float>(8 * 9 * 4));
  const TensorId y = b.Add("conv", OpKind::kConv2D, {x, w}, Conv2DAttrs{.stride_h = 2, .stride_w = 2, .pad = {1, 1, 1, 1}});
  b.Output(y);
  EXPECT_EQ(b.shape(y), (Dims{1, 5, 6, 8}));
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Operator& conv = graph->op(0);
  EXPECT_EQ(InputRegion(*graph, conv, 0, {{0, 1, 0, 0}, {1, 2, 6, 8}}), (Region{{0, 1, 0, 0}, {1, 5, 12, 4}}));
  EXPECT_EQ(InputRegion(*graph, conv, 0, {{0, 0, 0, 2}, {1, 1, 1, 3}}), (Region{{0, 0, 0, 0}, {1, 2, 2, 4}}));
  EXPECT_EQ(InputRegion(*graph, conv, 1, {{0, 0, 0, 2}, {1, 1, 1, 3}}), (Region{{2, 0, 0, 0}, {3, 3, 3, 4}}));
  EXPECT_EQ(WorkOf(*graph, conv).macs, 5 * 6 * 8 * 9 * 4);
}

}  // namespace
}  // namespace plait
