#include "src/partition/storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "src/partition/dependencies.h"
#include "src/partition/reshape.h"
#include "tests/partition/random_graph.h"

namespace plait {
namespace {

// Which value an element holds: the tensor that some kernel (or the caller) wrote and the element's number there.
// Copies are looked through, so that graphs with and without them can be compared.
using Element = std::pair<std::string, int64_t>;

template <typename F>
void ForEach(const Region& region, const F& f) {
  Dims at = region.begin;
  for (int64_t i = 0; i < region.Count(); ++i) {
    int64_t rest = i;
    for (int axis = region.size.rank() - 1; axis >= 0; --axis) {
      at[axis] = region.begin[axis] + rest % region.size[axis];
      rest /= region.size[axis];
    }
    f(at);
  }
}

int64_t Dot(const Dims& at, const Dims& strides) {
  int64_t sum = 0;
  for (int i = 0; i < at.rank(); ++i) sum += at[i] * strides[i];
  return sum;
}

bool IsCopy(const Operator& op) { return op.kind == OpKind::kUnary && op.as<UnaryAttrs>().kind == UnaryKind::kCopy; }

// [tensor][row-major element]; `see_through_copies`: a Copy holds what it copied.
std::vector<std::vector<Element>> ElementMaps(const Graph& graph, bool see_through_copies) {
  std::vector<std::vector<Element>> maps(graph.tensors.size());
  auto own = [&](TensorId t, const std::string& name) {
    for (int64_t i = 0; i < graph.tensor(t).shape.Count(); ++i) maps[static_cast<size_t>(t)].emplace_back(name, i);
  };
  const std::vector<OpId> producers = graph.Producers();
  for (TensorId t = 0; t < graph.tensor_count(); ++t) {
    if (producers[static_cast<size_t>(t)] == kNoOp) own(t, graph.tensor(t).name);
  }
  for (const Operator& op : graph.ops) {
    std::vector<Element>& out = maps[static_cast<size_t>(op.output)];
    const std::vector<Element>& first = maps[static_cast<size_t>(op.inputs[0])];
    if (op.kind == OpKind::kReshape || (see_through_copies && IsCopy(op))) {
      out = first;
    } else if (op.kind == OpKind::kSlice) {
      const Dims strides = DenseStrides(graph.input(op, 0).shape);
      const SliceAttrs& attrs = op.as<SliceAttrs>();
      ForEach({attrs.begin, attrs.size},
              [&](const Dims& at) { out.push_back(first[static_cast<size_t>(Dot(at, strides))]); });
    } else if (op.kind == OpKind::kConcat) {
      const int axis = op.as<ConcatAttrs>().axis;
      ForEach(Region::Whole(graph.output(op).shape), [&](Dims at) {
        size_t slot = 0;
        while (at[axis] >= graph.tensor(op.inputs[slot]).shape[axis]) {
          at[axis] -= graph.tensor(op.inputs[slot++]).shape[axis];
        }
        const TensorId x = op.inputs[slot];
        out.push_back(maps[static_cast<size_t>(x)][static_cast<size_t>(Dot(at, DenseStrides(graph.tensor(x).shape)))]);
      });
    } else {
      own(op.output, op.name);
    }
  }
  return maps;
}

StrideSupport Everything() {
  return [](const Graph&, OpId, int) { return true; };
}
// As XNNPACK: no strides in Binary, Transpose and Softmax here.
StrideSupport Some() {
  return [](const Graph& g, OpId op, int) {
    const OpKind kind = g.op(op).kind;
    return kind != OpKind::kBinary && kind != OpKind::kTranspose && kind != OpKind::kSoftmax;
  };
}
// Only copies know strides: everything that is concatenated has to be copied.
StrideSupport CopiesOnly() {
  return [](const Graph& g, OpId op, int) { return IsCopy(g.op(op)); };
}

int Copies(const Graph& graph) { return static_cast<int>(std::count_if(graph.ops.begin(), graph.ops.end(), IsCopy)); }

Graph Placed(const Graph& graph, const StrideSupport& strided) {
  Result<Graph> placed = PlaceCopies(graph, strided);
  EXPECT_TRUE(placed.ok()) << placed.status().message();
  return placed.ok() ? *placed : Graph();
}

TEST(PlaceCopies, KeepsEveryValueAndMakesEveryStorageSound) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = MakeRandomGraph(seed,
                                        {.ops = 4 + static_cast<int>(seed % 25),
                                         .channel_multiple = 1 + static_cast<int>(seed % 2)});
    const StrideSupport strided = seed % 3 == 0 ? Everything() : seed % 3 == 1 ? Some() : CopiesOnly();
    const Graph placed = Placed(graph, strided);
    ASSERT_TRUE(Validate(placed).ok());

    // The same inputs and outputs by name, and every operator reads what it read before.
    ASSERT_EQ(placed.outputs.size(), graph.outputs.size());
    const auto before = ElementMaps(graph, true), after = ElementMaps(placed, true);
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      EXPECT_EQ(placed.tensor(placed.outputs[i]).name, graph.tensor(graph.outputs[i]).name);
      EXPECT_EQ(after[static_cast<size_t>(placed.outputs[i])], before[static_cast<size_t>(graph.outputs[i])]);
    }
    std::map<std::string, const Operator*> by_name;
    for (const Operator& op : placed.ops) by_name[op.name] = &op;
    for (const Operator& op : graph.ops) {
      const Operator* now = by_name.at(op.name);
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        if (op.inputs[i] == kNoTensor) continue;
        EXPECT_EQ(after[static_cast<size_t>(now->inputs[i])], before[static_cast<size_t>(op.inputs[i])]) << op.name;
      }
    }

    // Storage: equal elements at equal places and different ones at different places, inside the root.
    Result<std::vector<TensorStorage>> storage = AssignStorage(placed);
    ASSERT_TRUE(storage.ok()) << storage.status().message();
    const auto elements = ElementMaps(placed, false);
    std::map<std::pair<TensorId, int64_t>, Element> at_place;
    std::map<Element, std::pair<TensorId, int64_t>> place_of;
    for (TensorId t = 0; t < placed.tensor_count(); ++t) {
      const TensorStorage& s = (*storage)[static_cast<size_t>(t)];
      const Dims& shape = placed.tensor(t).shape;
      size_t n = 0;
      ForEach(Region::Whole(shape), [&](const Dims& at) {
        const std::pair<TensorId, int64_t> place{s.root, s.offset + Dot(at, s.strides)};
        const Element& element = elements[static_cast<size_t>(t)][n++];
        ASSERT_GE(place.second, 0);
        ASSERT_LT(place.second, placed.tensor(s.root).shape.Count());
        ASSERT_EQ(at_place.emplace(place, element).first->second, element) << placed.tensor(t).name;
        ASSERT_EQ(place_of.emplace(element, place).first->second, place) << placed.tensor(t).name;
      });
      if (s.root == t) {
        EXPECT_TRUE(IsDense(shape, s.strides));
        EXPECT_EQ(s.offset, 0);
      }
    }
    for (TensorId t : placed.outputs) EXPECT_EQ((*storage)[static_cast<size_t>(t)].root, t);
    for (const Operator& op : placed.ops) {
      if (IsView(op.kind)) continue;
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        const TensorId t = op.inputs[i];
        if (t == kNoTensor || IsDense(placed.tensor(t).shape, (*storage)[static_cast<size_t>(t)].strides)) continue;
        EXPECT_TRUE(strided(placed, static_cast<OpId>(&op - placed.ops.data()), static_cast<int>(i))) << op.name;
      }
      if (!IsDense(placed.tensor(op.output).shape, (*storage)[static_cast<size_t>(op.output)].strides)) {
        EXPECT_TRUE(strided(placed, static_cast<OpId>(&op - placed.ops.data()), kOutputOperand)) << op.name;
      }
    }
    // Once is enough.
    EXPECT_EQ(Copies(Placed(placed, strided)), Copies(placed));
  }
}

TEST(TraceRegion, FindsExactlyTheElementsOfTheRegion) {
  std::mt19937 random(3);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = MakeRandomGraph(seed, {.ops = 15, .max_extent = 4, .view_percent = 70});
    const std::vector<OpId> producers = graph.Producers();
    const auto elements = ElementMaps(graph, false);
    for (TensorId t = 0; t < graph.tensor_count(); ++t) {
      const Dims& shape = graph.tensor(t).shape;
      Region region = Region::Whole(shape);
      for (int i = 0; i < shape.rank(); ++i) {
        if (random() % 2 == 0) continue;
        region.begin[i] = static_cast<int64_t>(random() % static_cast<uint64_t>(shape[i]));
        region.size[i] = static_cast<int64_t>(1 + random() % static_cast<uint64_t>(shape[i] - region.begin[i]));
      }
      std::set<Element> expected, found;
      const Dims dense = DenseStrides(shape);
      const std::vector<Element>& own = elements[static_cast<size_t>(t)];
      ForEach(region, [&](const Dims& at) { expected.insert(own[static_cast<size_t>(Dot(at, dense))]); });
      for (const Source& source : TraceRegion(graph, producers, t, region)) {
        const OpId op = producers[static_cast<size_t>(source.tensor)];
        ASSERT_TRUE(op == kNoOp || !IsView(graph.op(op).kind));
        const Dims strides = DenseStrides(graph.tensor(source.tensor).shape);
        const std::vector<Element>& from = elements[static_cast<size_t>(source.tensor)];
        ForEach(source.region, [&](const Dims& at) { found.insert(from[static_cast<size_t>(Dot(at, strides))]); });
      }
      ASSERT_EQ(found, expected) << graph.tensor(t).name << ToString(region);
    }
  }
}

TEST(ReadsOf, GivesOneBoxATensor) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Graph graph = MakeRandomGraph(seed);
    const std::vector<OpId> producers = graph.Producers();
    for (OpId o = 0; o < graph.op_count(); ++o) {
      if (IsView(graph.op(o).kind)) continue;
      std::set<TensorId> seen;
      for (const Source& source : ReadsOf(graph, producers, o, Region::Whole(graph.output(graph.op(o)).shape))) {
        EXPECT_TRUE(seen.insert(source.tensor).second);
        EXPECT_FALSE(graph.tensor(source.tensor).is_constant());
      }
    }
  }
}

TEST(TraceRegion, LaddersOfViewsTakeLittleTime) {
  GraphBuilder b("ladder");
  TensorId t = b.Input("x", {1, 64});
  for (int i = 0; i < 2000; ++i) {
    const TensorId both = b.Add(StrCat("c", i), OpKind::kConcat, {t, t}, ConcatAttrs{1});
    t = b.Add(StrCat("s", i), OpKind::kSlice, {both}, SliceAttrs{{0, 17}, {1, 64}});
  }
  b.Output(t);
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(TraceRegion(*graph, graph->Producers(), t, Region::Whole({1, 64})).front().tensor, graph->inputs[0]);
}

TensorId Conv(GraphBuilder* b, const std::string& name, TensorId x, int64_t channels) {
  const TensorId w = b->Constant(name + "_w", {channels, 1, 1, b->shape(x).back()},
                                 std::vector<float>(static_cast<size_t>(channels * b->shape(x).back()), 1.0f));
  return b->Add(name, OpKind::kConv2D, {x, w, kNoTensor}, Conv2DAttrs{});
}

TEST(PlaceCopies, BranchesOfAConcatAreWrittenInPlace) {
  GraphBuilder b("inception");
  const TensorId x = b.Input("x", {1, 4, 4, 8});
  const TensorId inner = b.Add("inner", OpKind::kConcat, {Conv(&b, "c0", x, 8), Conv(&b, "c1", x, 16)}, ConcatAttrs{3});
  const TensorId outer = b.Add("outer", OpKind::kConcat, {Conv(&b, "c2", x, 4), inner, Conv(&b, "c3", x, 4)},
                               ConcatAttrs{3});
  const TensorId y = Conv(&b, "y", outer, 8);
  b.Output(y);
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok());
  const Graph placed = Placed(*graph, Everything());
  EXPECT_EQ(Copies(placed), 0);
  const auto storage = AssignStorage(placed);
  ASSERT_TRUE(storage.ok());
  EXPECT_EQ((*storage)[static_cast<size_t>(inner)].root, outer);
  EXPECT_EQ((*storage)[static_cast<size_t>(inner)].offset, 4);
  EXPECT_EQ((*storage)[static_cast<size_t>(inner - 1)].offset, 4 + 8);  // c1
}

TEST(PlaceCopies, CopiesOnlyTheOperandThatNeedsIt) {
  GraphBuilder b("needs");
  const TensorId x = b.Input("x", {1, 4, 4, 8});
  const TensorId a = Conv(&b, "a", x, 8), c = Conv(&b, "c", x, 8);
  const TensorId sum = b.Add("sum", OpKind::kBinary, {a, a}, BinaryAttrs{});  // reads `a` and needs it dense
  const TensorId cat = b.Add("cat", OpKind::kConcat, {a, c, x}, ConcatAttrs{3});
  b.Output(b.Add("y", OpKind::kUnary, {cat}, UnaryAttrs{UnaryKind::kTanh, {}}));
  b.Output(sum);
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(Copies(Placed(*graph, Some())), 2);        // a, and the graph input
  EXPECT_EQ(Copies(Placed(*graph, Everything())), 1);  // the graph input
}

TEST(PlaceCopies, TokensAreWrittenThroughTheirReshape) {
  GraphBuilder b("tokens");
  const TensorId x = b.Input("x", {1, 4, 4, 8});
  const TensorId flat = b.Add("flat", OpKind::kReshape, {Conv(&b, "patches", x, 8)}, ReshapeAttrs{{1, 16, 8}});
  const TensorId token = b.Constant("token", {1, 1, 8}, std::vector<float>(8, 1.0f));
  const TensorId cat = b.Add("cat", OpKind::kConcat, {token, flat}, ConcatAttrs{1});
  b.Output(b.Add("y", OpKind::kSoftmax, {cat}, SoftmaxAttrs{}));
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok());
  const Graph placed = Placed(*graph, CopiesOnly());
  EXPECT_EQ(Copies(placed), 1) << "the constant token alone";
}

TEST(PlaceCopies, SaysWhichKernelHasNoStrides) {
  GraphBuilder b("none");
  const TensorId x = b.Input("x", {1, 4, 4, 8});
  b.Output(b.Add("cat", OpKind::kConcat, {x, x}, ConcatAttrs{3}));
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok());
  const Result<Graph> placed = PlaceCopies(*graph, [](const Graph&, OpId, int) { return false; });
  ASSERT_FALSE(placed.ok());
  EXPECT_EQ(placed.status().code(), PLAIT_UNSUPPORTED);
  EXPECT_NE(placed.status().message().find("x.copy"), std::string::npos) << placed.status().message();
}

TEST(AssignStorage, RefusesAGraphWithoutItsCopies) {
  GraphBuilder b("raw");
  const TensorId x = b.Input("x", {1, 4, 4, 8});
  b.Output(b.Add("cat", OpKind::kConcat, {x, x}, ConcatAttrs{3}));
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(AssignStorage(*graph).status().code(), PLAIT_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace plait
