// Graphs that are wrong in one way each.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "src/graph/builder.h"
#include "src/graph/operators.h"
#include "src/graph/passes.h"

namespace plait {
namespace {

// conv -> relu -> add(conv) -> output, valid as it is.
Graph Good() {
  GraphBuilder b("good");
  const TensorId x = b.Input("x", {1, 8, 8, 3});
  const TensorId w = b.Constant("w", {4, 3, 3, 3}, std::vector<float>(4 * 27, 0.5f));
  const TensorId conv = b.Add("conv", OpKind::kConv2D, {x, w}, Conv2DAttrs{});
  const TensorId relu = b.Add("relu", OpKind::kUnary, {conv}, UnaryAttrs{UnaryKind::kClamp, kRelu});
  b.Output(b.Add("add", OpKind::kBinary, {relu, conv}, BinaryAttrs{}));
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *graph;
}

struct Fault {
  const char* name;
  void (*damage)(Graph&);
  const char* message;  // what the Status must name
};

const Fault kFaults[] = {
    {"NoOutputs", [](Graph& g) { g.outputs.clear(); }, "no outputs"},
    {"NoOperators", [](Graph& g) { g.ops.clear(); }, "computed by no operator"},
    {"OutputIsInput", [](Graph& g) { g.outputs = {g.inputs[0]}; }, "'x'"},
    {"OutputIsConstant", [](Graph& g) { g.outputs = {1}; }, "'w'"},
    {"OutputTwice", [](Graph& g) { g.outputs.push_back(g.outputs[0]); }, "listed twice"},
    {"OutputOutOfRange", [](Graph& g) { g.outputs[0] = 99; }, "99"},
    {"InputOutOfRange", [](Graph& g) { g.inputs[0] = -7; }, "-7"},
    {"InputTwice", [](Graph& g) { g.inputs.push_back(g.inputs[0]); }, "listed twice"},
    {"InputIsConstant", [](Graph& g) { g.inputs.push_back(1); }, "'w'"},
    {"NobodysTensor", [](Graph& g) { g.tensors.push_back({"stray", DType::kF32, {1}, nullptr}); }, "'stray'"},
    {"OperandOutOfRange", [](Graph& g) { g.ops[1].inputs[0] = g.tensor_count(); }, "operator 'relu'"},
    {"OperandSmallest", [](Graph& g) { g.ops[1].inputs[0] = std::numeric_limits<int32_t>::min(); }, "operator 'relu'"},
    {"RequiredOperandAbsent", [](Graph& g) { g.ops[1].inputs[0] = kNoTensor; }, "operator 'relu'"},
    {"TooFewOperands", [](Graph& g) { g.ops[2].inputs.pop_back(); }, "1 inputs"},
    {"TooManyOperands", [](Graph& g) { g.ops[1].inputs.push_back(0); }, "2 inputs"},
    {"SelfLoop", [](Graph& g) { g.ops[1].inputs[0] = g.ops[1].output; }, "cycle"},
    {"TwoLoop", [](Graph& g) { g.ops[1].inputs[0] = g.ops[2].output; }, "cycle"},
    {"OutOfOrder", [](Graph& g) { std::swap(g.ops[0], g.ops[1]); }, "out of order"},
    {"WrittenTwice", [](Graph& g) { g.ops[1].output = g.ops[0].output; }, "another operator's output"},
    {"WritesInput", [](Graph& g) { g.ops[0].output = g.inputs[0]; }, "a graph input"},
    {"WritesNothing", [](Graph& g) { g.ops[0].output = kNoTensor; }, "operator 'conv'"},
    {"EmptyTensorName", [](Graph& g) { g.tensors[0].name.clear(); }, "no name"},
    {"TensorNameTwice", [](Graph& g) { g.tensors[0].name = g.tensors[1].name; }, "'w'"},
    {"OperatorNameTwice", [](Graph& g) { g.ops[0].name = g.ops[1].name; }, "'relu'"},
    {"HugeName", [](Graph& g) { g.ops[0].name.assign(1 << 20, 'n'); }, "1048576 bytes"},
    {"ZeroSize", [](Graph& g) { g.tensors[0].shape[1] = 0; }, "size 0"},
    {"NegativeSize", [](Graph& g) { g.tensors[0].shape[1] = -1; }, "size -1"},
    {"HugeSize", [](Graph& g) { g.tensors[0].shape[1] = (int64_t{1} << 31) + 1; }, "2147483649"},
    {"HugeProduct", [](Graph& g) { g.tensors[0].shape = Dims::Filled(8, int64_t{1} << 31); }, "2^40"},
    {"ConstantTooShort", [](Graph& g) { g.tensors[1].data = ConstData::Allocate(4); }, "4 bytes"},
    {"WrongOutputShape", [](Graph& g) { g.tensors[2].shape[1] = 7; }, "should be 1x6x6x4"},
    {"WrongOutputType", [](Graph& g) { g.tensors[2].dtype = DType::kF16; }, "should be"},
    {"MixedTypes", [](Graph& g) { g.tensors[0].dtype = DType::kF16; }, "f16"},
    {"IntegerArithmetic", [](Graph& g) { for (Tensor& t : g.tensors) t.dtype = DType::kI32; }, "only f32 and f16"},
    {"OtherAttributes", [](Graph& g) { g.ops[1].attrs = BinaryAttrs{}; }, "attributes"},
    {"NoAttributes", [](Graph& g) { g.ops[1].attrs = {}; }, "attributes"},
    {"UnknownKind", [](Graph& g) { g.ops[1].kind = static_cast<OpKind>(200); }, "unknown kind 200"},
    {"UnknownUnary", [](Graph& g) { std::get_if<UnaryAttrs>(&g.ops[1].attrs)->kind = static_cast<UnaryKind>(99); }, "unknown kind 99"},
    {"UnknownBinary", [](Graph& g) { std::get_if<BinaryAttrs>(&g.ops[2].attrs)->kind = static_cast<BinaryKind>(99); }, "unknown kind 99"},
    {"StrideZero", [](Graph& g) { std::get_if<Conv2DAttrs>(&g.ops[0].attrs)->stride_h = 0; }, "stride 0"},
    {"StrideNegative", [](Graph& g) { std::get_if<Conv2DAttrs>(&g.ops[0].attrs)->stride_w = -1; }, "stride -1"},
    {"DilationZero", [](Graph& g) { std::get_if<Conv2DAttrs>(&g.ops[0].attrs)->dilation_h = 0; }, "dilation 0"},
    {"DilationHuge", [](Graph& g) { std::get_if<Conv2DAttrs>(&g.ops[0].attrs)->dilation_h = std::numeric_limits<int32_t>::max(); }, "does not fit"},
    {"PadNegative", [](Graph& g) { std::get_if<Conv2DAttrs>(&g.ops[0].attrs)->pad.top = -1; }, "must not be negative"},
    {"GroupsZero", [](Graph& g) { std::get_if<Conv2DAttrs>(&g.ops[0].attrs)->groups = 0; }, "0 groups"},
    {"GroupsNotDividing", [](Graph& g) { std::get_if<Conv2DAttrs>(&g.ops[0].attrs)->groups = 3; }, "3 groups"},
    {"GroupsWithoutChannels", [](Graph& g) { std::get_if<Conv2DAttrs>(&g.ops[0].attrs)->groups = 2; }, "has 3 channels"},
    {"ClampNotANumber", [](Graph& g) { std::get_if<UnaryAttrs>(&g.ops[1].attrs)->clamp.max = NAN; }, "not a number"},
    {"ClampEmpty", [](Graph& g) { std::get_if<UnaryAttrs>(&g.ops[1].attrs)->clamp = {2, 1}; }, "2..1"},
};

TEST(Validate, AcceptsTheGoodGraph) { EXPECT_TRUE(Validate(Good()).ok()); }

TEST(Validate, RefusesEachFaultAndNamesIt) {
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.name);
    Graph graph = Good();
    fault.damage(graph);
    const Status status = Validate(graph);
    EXPECT_EQ(status.code(), PLAIT_INVALID_ARGUMENT);
    EXPECT_NE(status.message().find(fault.message), std::string::npos) << status.message();
    EXPECT_LT(status.message().size(), 500u);
    EXPECT_FALSE(Optimize(graph).ok());
  }
}

TEST(Validate, AMillionOperatorsInAChainAndFullFanOut) {
  Graph graph;
  graph.name = "chain";
  graph.tensors.push_back({"x", DType::kF32, {1}, nullptr});
  graph.inputs = {0};
  constexpr int kOps = 1000000;
  for (int i = 0; i < kOps; ++i) {
    graph.tensors.push_back({StrCat("t", i), DType::kF32, {1}, nullptr});
    const TensorId from = i < kOps / 2 ? i : kOps / 2;  // a chain, then a fan
    graph.ops.push_back({StrCat("o", i), OpKind::kUnary, {from}, i + 1, UnaryAttrs{UnaryKind::kTanh}});
  }
  graph.outputs = {kOps};
  EXPECT_TRUE(Validate(graph).ok());
  EXPECT_EQ(graph.Consumers()[kOps / 2].size(), static_cast<size_t>(kOps / 2));
  EXPECT_TRUE(RemoveDeadCode(&graph));
  EXPECT_EQ(graph.op_count(), kOps / 2 + 1);
  EXPECT_NE(Hash(graph), 0u);
}

// An operator that the builder must refuse: shapes of activations, kind, attributes, and what the message names.
struct Refused {
  const char* name;
  std::vector<Dims> inputs;
  OpKind kind;
  OpAttrs attrs;
  const char* message;
};

TEST(Builder, RefusesAttributesThatDoNotFit) {
  constexpr int32_t kHuge = std::numeric_limits<int32_t>::max();
  const std::vector<Refused> all = {
      {"PoolAllPadding", {{1, 4, 4, 1}}, OpKind::kMaxPool2D, Pool2DAttrs{.kernel_h = 2, .kernel_w = 2, .pad = {2, 0, 0, 0}}, "less than the kernel"},
      {"PoolKernelTooLarge", {{1, 4, 4, 1}}, OpKind::kAveragePool2D, Pool2DAttrs{.kernel_h = 9, .kernel_w = 2}, "does not fit"},
      {"PoolKernelZero", {{1, 4, 4, 1}}, OpKind::kAveragePool2D, Pool2DAttrs{.kernel_h = 0, .kernel_w = 2}, "kernel 0"},
      {"PoolHuge", {{1, 4, 4, 1}}, OpKind::kMaxPool2D, Pool2DAttrs{.kernel_h = kHuge, .kernel_w = kHuge, .pad = {kHuge, kHuge, kHuge, kHuge}}, "less than"},
      {"PoolRank", {{4, 4, 1}}, OpKind::kMaxPool2D, Pool2DAttrs{}, "rank 4"},
      {"ReduceAxisOutOfRange", {{2, 3}}, OpKind::kReduceMean, ReduceAttrs{{2}, true}, "axis 2"},
      {"ReduceAxisTwice", {{2, 3}}, OpKind::kReduceMean, ReduceAttrs{{1, 1}, true}, "ascending"},
      {"ReduceNegative", {{2, 3}}, OpKind::kReduceMean, ReduceAttrs{{-1}, true}, "axis -1"},
      {"ReduceNothing", {{2, 3}}, OpKind::kReduceMean, ReduceAttrs{{}, true}, "no axes"},
      {"SoftmaxOfScalar", {{}}, OpKind::kSoftmax, SoftmaxAttrs{}, "rank 1"},
      {"NormEpsilon", {{2, 3}, {3}, {3}}, OpKind::kLayerNorm, NormAttrs{NAN}, "epsilon"},
      {"NormVector", {{2, 3}, {3}, {2}}, OpKind::kLayerNorm, NormAttrs{}, "vector of 3"},
      {"ConcatAxis", {{2, 3}, {2, 3}}, OpKind::kConcat, ConcatAttrs{2}, "axis 2"},
      {"ConcatSizes", {{2, 3}, {3, 3}}, OpKind::kConcat, ConcatAttrs{1}, "outside axis 1"},
      {"ConcatRanks", {{2, 3}, {2, 3, 1}}, OpKind::kConcat, ConcatAttrs{1}, "outside axis 1"},
      {"SliceOutside", {{4, 4}}, OpKind::kSlice, SliceAttrs{{0, 3}, {4, 2}}, "leave"},
      {"SliceOverflow", {{4, 4}}, OpKind::kSlice, SliceAttrs{{0, std::numeric_limits<int64_t>::max()}, {4, 2}}, "leave"},
      {"SliceEmpty", {{4, 4}}, OpKind::kSlice, SliceAttrs{{0, 0}, {4, 0}}, "leave"},
      {"SliceRank", {{4, 4}}, OpKind::kSlice, SliceAttrs{{0}, {4}}, "leave"},
      {"ReshapeCount", {{4, 4}}, OpKind::kReshape, ReshapeAttrs{{3, 5}}, "as many elements"},
      {"ReshapeNegative", {{4, 4}}, OpKind::kReshape, ReshapeAttrs{{-4, -4}}, "below 1"},
      {"ReshapeOverflow", {{4, 4}}, OpKind::kReshape, ReshapeAttrs{Dims::Filled(8, int64_t{1} << 40)}, "as many elements"},
      {"PermTwice", {{4, 4}}, OpKind::kTranspose, TransposeAttrs{{0, 0}}, "no permutation"},
      {"PermOutOfRange", {{4, 4}}, OpKind::kTranspose, TransposeAttrs{{0, 40}}, "no permutation"},
      {"PermShort", {{4, 4}}, OpKind::kTranspose, TransposeAttrs{{0}}, "1 entries"},
      {"PadNegative", {{4, 4}}, OpKind::kPad, PadAttrs{{0, -1}, {0, 0}}, "negative"},
      {"PadHuge", {{4, 4}}, OpKind::kPad, PadAttrs{{0, std::numeric_limits<int64_t>::max()}, {0, 9}}, "not within"},
      {"BinaryShapes", {{4, 3}, {4, 2}}, OpKind::kBinary, BinaryAttrs{}, "broadcast"},
      {"MatMulInner", {{4, 3}, {4, 2}}, OpKind::kMatMul, MatMulAttrs{}, "inner sizes"},
      {"MatMulBatch", {{2, 4, 3}, {3, 3, 2}}, OpKind::kMatMul, MatMulAttrs{}, "batch axis 0"},
      {"FullyConnectedChannels", {{4, 3}, {5, 2}}, OpKind::kFullyConnected, FullyConnectedAttrs{}, "reads 2"},
      {"DepthwiseChannels", {{1, 4, 4, 3}, {3, 3, 2}}, OpKind::kDepthwiseConv2D, Conv2DAttrs{}, "has 3 channels"},
  };
  for (const Refused& r : all) {
    SCOPED_TRACE(r.name);
    GraphBuilder b("g");
    std::vector<TensorId> inputs;
    for (const Dims& shape : r.inputs) inputs.push_back(b.Input(StrCat("x", inputs.size()), shape));
    EXPECT_EQ(b.Add("op", r.kind, inputs, r.attrs), kNoTensor);
    EXPECT_FALSE(b.ok());
    EXPECT_EQ(b.Add("next", OpKind::kUnary, {0}, UnaryAttrs{}), kNoTensor) << "calls after a mistake change nothing";
    const Result<Graph> graph = b.Build();
    EXPECT_EQ(graph.status().code(), PLAIT_INVALID_ARGUMENT);
    EXPECT_NE(graph.status().message().find(r.message), std::string::npos) << graph.status().message();
  }
}

TEST(Builder, KeepsTheFirstMistakeAndIsEmptyAfterBuild) {
  GraphBuilder b("g");
  const TensorId x = b.Input("x", {2, -3});
  EXPECT_EQ(x, kNoTensor);
  EXPECT_EQ(b.shape(x).rank(), 0);
  b.Constant("short", {2}, std::vector<float>{1});
  b.Output(x);
  const Result<Graph> graph = b.Build();
  EXPECT_NE(graph.status().message().find("size -3"), std::string::npos) << graph.status().message();
  EXPECT_TRUE(b.ok());
  EXPECT_EQ(b.graph().tensor_count(), 0);
}

TEST(Builder, RefusesConstantsOfTheWrongLength) {
  GraphBuilder b("g");
  EXPECT_EQ(b.Constant("w", {2, 3}, std::vector<float>(5)), kNoTensor);
  EXPECT_NE(b.status().message().find("20 bytes"), std::string::npos) << b.status().message();
  GraphBuilder c("g");
  EXPECT_EQ(c.Constant("w", {2, 3}, std::shared_ptr<const ConstData>()), kNoTensor);
  EXPECT_FALSE(c.ok());
}

TEST(ConstData, IsAlignedZeroedAndBounded) {
  for (const int64_t bytes : {0, 1, 63, 64, 65, 4096}) {
    const std::shared_ptr<ConstData> data = ConstData::Allocate(bytes);
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data->data()) % 64, 0u);
    EXPECT_EQ(data->bytes(), bytes);
    for (int64_t i = 0; i < bytes + 16; ++i) EXPECT_EQ(data->as<char>()[i], 0);
  }
  EXPECT_EQ(ConstData::Allocate(-1), nullptr);
  EXPECT_EQ(ConstData::Allocate(std::numeric_limits<int64_t>::max()), nullptr);
}

TEST(Hash, IgnoresNamesAndNumbersButNothingElse) {
  const Graph good = Good();
  Graph renamed = good;
  for (Tensor& t : renamed.tensors) t.name += "_";
  for (Operator& op : renamed.ops) op.name += "_";
  renamed.name = "other";
  EXPECT_EQ(Hash(good), Hash(renamed));

  Graph renumbered = good;  // the constant's tensor moves to the end
  renumbered.tensors.push_back(renumbered.tensors[1]);
  renumbered.tensors.back().name = "moved";
  renumbered.ops[0].inputs[1] = renumbered.tensor_count() - 1;
  EXPECT_EQ(Hash(good), Hash(renumbered));

  Graph other_weights = good;
  const std::shared_ptr<ConstData> data = ConstData::Allocate(good.tensors[1].bytes());
  std::memcpy(data->mutable_data(), good.tensors[1].data->data(), static_cast<size_t>(data->bytes()));
  data->as<float>()[100] = 0.75f;
  other_weights.tensors[1].data = data;
  EXPECT_NE(Hash(good), Hash(other_weights));
  EXPECT_EQ(StructureHash(good), StructureHash(other_weights));

  Graph other_clamp = good;
  std::get_if<UnaryAttrs>(&other_clamp.ops[1].attrs)->clamp = kRelu6;
  EXPECT_NE(Hash(good), Hash(other_clamp));
  EXPECT_NE(StructureHash(good), StructureHash(other_clamp));

  Graph other_wiring = good;
  std::swap(other_wiring.ops[2].inputs[0], other_wiring.ops[2].inputs[1]);
  EXPECT_NE(StructureHash(good), StructureHash(other_wiring));
}

// Plans name the hash of their graph in files, so that it must not change between versions and machines.
TEST(Hash, IsAFixedNumber) {
  EXPECT_EQ(Hash(Good()), 3518972709765628531u);
  EXPECT_EQ(StructureHash(Good()), 12707505982939313552u);
}

TEST(Graph, ProducersAndConsumers) {
  const Graph g = Good();
  const std::vector<OpId> producers = g.Producers();
  EXPECT_EQ(producers[static_cast<size_t>(g.inputs[0])], kNoOp);
  EXPECT_EQ(producers[static_cast<size_t>(g.op(1).output)], 1);
  const std::vector<std::vector<OpId>> consumers = g.Consumers();
  EXPECT_EQ(consumers[static_cast<size_t>(g.op(0).output)], (std::vector<OpId>{1, 2}));
  EXPECT_TRUE(consumers[static_cast<size_t>(g.outputs[0])].empty());
}

}  // namespace
}  // namespace plait
