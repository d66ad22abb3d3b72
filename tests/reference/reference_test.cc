// The reference backend: parts against the whole bit for bit, and what it refuses.
#include "backends/reference/reference.h"

#include <gtest/gtest.h>

#include <cstring>

#include "src/graph/operators.h"
#include "tests/reference/random_operators.h"

namespace plait {
namespace {

// The graph's tensors as dense values: random inputs, constants, and what EvaluateReference computes.
struct Evaluated {
  std::vector<std::vector<float>> values;  // by tensor
  Status status;
};

Evaluated Evaluate(const Graph& graph, RandomOperators& random) {
  Evaluated e;
  e.values.resize(graph.tensors.size());
  std::vector<const void*> inputs;
  for (TensorId id : graph.inputs) {
    auto& values = e.values[static_cast<size_t>(id)];
    values = random.Values(graph.tensor(id).shape.Count());
    if (NeedsPositive(graph.op(0))) {
      for (float& v : values) v = std::abs(v) + 0.01f;
    }
    inputs.push_back(values.data());
  }
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    if (!graph.tensors[i].is_constant()) continue;
    const auto* data = graph.tensors[i].data->as<float>();
    e.values[i].assign(data, data + graph.tensors[i].shape.Count());
  }
  std::vector<std::vector<std::byte>> outputs;
  e.status = EvaluateReference(graph, inputs, &outputs);
  if (!e.status.ok()) return e;
  auto& out = e.values[static_cast<size_t>(graph.outputs[0])];
  out.resize(outputs[0].size() / sizeof(float));
  std::memcpy(out.data(), outputs[0].data(), outputs[0].size());
  return e;
}

std::string KindName(const ::testing::TestParamInfo<int>& param) {
  return std::string(Name(static_cast<OpKind>(param.param)));
}

class EveryOperatorTest : public ::testing::TestWithParam<int> {
 protected:
  OpKind kind() const { return static_cast<OpKind>(GetParam()); }
};

// A part reads nothing but what InputRegion declares, from views with gaps, and writes its own elements alone.
TEST_P(EveryOperatorTest, PartsEqualTheWholeBitForBit) {
  const auto backend = CreateReferenceBackend();
  const auto context = backend->CreateContext(1);
  ASSERT_TRUE(context.ok());
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << Name(kind()) << " seed " << seed);
    RandomOperators random(seed * 31 + static_cast<unsigned>(GetParam()));
    Result<Graph> graph = random.Make(kind());
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    const Operator& op = graph->op(0);
    const Evaluated whole = Evaluate(*graph, random);
    ASSERT_TRUE(whole.status.ok()) << whole.status.message();
    KernelRequest request;
    request.graph = &*graph;
    request.op = 0;
    request.region = random.Box(graph->output(op).shape);
    request.kernel = backend->rules().Supports(*graph, 0).kernel;
    std::vector<StridedCopy> copies;
    copies.reserve(op.inputs.size());
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const Tensor& tensor = graph->tensor(op.inputs[i]);
      copies.emplace_back(op.inputs[i], InputRegion(*graph, op, static_cast<int>(i), request.region), random);
      copies.back().ForEach(tensor.shape, [&](size_t there, float& here) {
        here = whole.values[static_cast<size_t>(op.inputs[i])][there];
      });
      request.reads.push_back(copies.back().bound());
    }
    StridedCopy out(op.output, request.region, random);
    request.write = out.bound();
    auto kernel = backend->CreateKernel(context->get(), request);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    for (int run = 0; run < 2; ++run) ASSERT_TRUE((*kernel)->Run().ok());
    const std::vector<float>& expected = whole.values[static_cast<size_t>(op.output)];
    int64_t different = 0;
    out.ForEach(graph->output(op).shape, [&](size_t there, float& here) {
      if (std::memcmp(&here, &expected[there], sizeof(float)) != 0) ++different;
    });
    ASSERT_EQ(different, 0) << "region " << ToString(request.region) << " of " << ToString(graph->output(op).shape);
    ASSERT_EQ(out.Written(), request.region.Count());
  }
}

TEST_P(EveryOperatorTest, HasAKernelNamedAfterItAndCutsAnywhere) {
  const auto backend = CreateReferenceBackend();
  RandomOperators random(3);
  const Result<Graph> graph = random.Make(kind());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const KernelSupport support = backend->rules().Supports(*graph, 0);
  EXPECT_TRUE(support.supported) << support.reason;
  std::string expected = "reference.";
  for (char c : Name(kind())) expected += static_cast<char>(std::tolower(c));
  EXPECT_EQ(support.kernel, expected);
  for (const SplitAxis& axis : SplitAxes(*graph, graph->op(0))) {
    EXPECT_EQ(backend->rules().Cut(*graph, 0, axis).alignment, 1);
    EXPECT_EQ(backend->rules().Cut(*graph, 0, axis).minimum, 1);
  }
  EXPECT_TRUE(backend->rules().Strided(*graph, 0, 0));
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryOperatorTest, ::testing::Range(0, kOpKindCount), KindName);

// What a kernel of a 2x3 + 2x3 addition says to a wrong request.
class RefusalTest : public ::testing::Test {
 protected:
  RefusalTest() {
    GraphBuilder b("sum");
    const TensorId x = b.Input("x", {2, 3}), y = b.Input("y", {2, 3});
    b.Output(b.Add("sum", OpKind::kBinary, {x, y}, BinaryAttrs{}));
    graph_ = std::move(b.Build()).value();
    for (TensorId id : {x, y, graph_.outputs[0]}) copies_.emplace_back(id, Region::Whole({2, 3}), random_);
    request_.graph = &graph_;
    request_.op = 0;
    request_.region = Region::Whole({2, 3});
    request_.reads = {copies_[0].bound(), copies_[1].bound()};
    request_.write = copies_[2].bound();
  }
  Status Try() { return backend_->CreateKernel(context_->get(), request_).status(); }

  RandomOperators random_{1};
  Graph graph_;
  std::vector<StridedCopy> copies_;
  KernelRequest request_;
  std::shared_ptr<CpuBackend> backend_ = CreateReferenceBackend();
  Result<std::unique_ptr<CpuContext>> context_ = backend_->CreateContext(2);
};

TEST_F(RefusalTest, AcceptsTheRightRequest) { EXPECT_TRUE(Try().ok()) << Try().message(); }

TEST_F(RefusalTest, AnotherBackendsKernel) {
  request_.kernel = "xnnpack.add";
  EXPECT_EQ(Try().code(), PLAIT_UNSUPPORTED);
  EXPECT_NE(Try().message().find("xnnpack.add"), std::string::npos);
}

TEST_F(RefusalTest, AMissingRead) {
  request_.reads.pop_back();
  EXPECT_EQ(Try().code(), PLAIT_INVALID_ARGUMENT);
}

TEST_F(RefusalTest, AViewThatHoldsTooLittle) {
  copies_[1].view().region.size[0] = 1;
  EXPECT_EQ(Try().code(), PLAIT_INVALID_ARGUMENT);
  EXPECT_NE(Try().message().find("'y'"), std::string::npos) << Try().message();
}

TEST_F(RefusalTest, ARegionOutsideTheOutput) {
  request_.region.begin[1] = 1;
  EXPECT_EQ(Try().code(), PLAIT_INVALID_ARGUMENT);
}

TEST_F(RefusalTest, AnInnermostStride) {
  copies_[0].view().strides[1] = 2;
  EXPECT_EQ(Try().code(), PLAIT_INVALID_ARGUMENT);
}

TEST_F(RefusalTest, NoMemory) {
  request_.write.data = nullptr;
  EXPECT_EQ(Try().code(), PLAIT_INVALID_ARGUMENT);
}

TEST_F(RefusalTest, NoThreads) { EXPECT_EQ(backend_->CreateContext(0).status().code(), PLAIT_INVALID_ARGUMENT); }

TEST_F(RefusalTest, AnotherDataType) {
  for (Tensor& tensor : graph_.tensors) tensor.dtype = DType::kF16;
  EXPECT_FALSE(backend_->rules().Supports(graph_, 0).supported);
  EXPECT_EQ(Try().code(), PLAIT_UNSUPPORTED);
  EXPECT_NE(Try().message().find("f16"), std::string::npos) << Try().message();
}

TEST_F(RefusalTest, TooFewInputs) {
  std::vector<std::vector<std::byte>> outputs;
  EXPECT_EQ(EvaluateReference(graph_, {}, &outputs).code(), PLAIT_INVALID_ARGUMENT);
}

TEST(EvaluateReference, ShowsEveryTensorInOrderAndReturnsTheOutputsInTheirs) {
  GraphBuilder b("chain");
  const TensorId x = b.Input("x", {3});
  const TensorId c = b.Constant("c", {3}, {10, 20, 30});
  const TensorId sum = b.Add("sum", OpKind::kBinary, {x, c}, BinaryAttrs{});
  const TensorId unused = b.Add("unused", OpKind::kUnary, {sum}, UnaryAttrs{UnaryKind::kSquare, {}});
  const TensorId negated = b.Add("negated", OpKind::kUnary, {sum}, UnaryAttrs{UnaryKind::kNegate, {}});
  b.Output(negated);
  b.Output(sum);
  const Result<Graph> graph = b.Build();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const std::vector<float> values{1, 2, 3};
  const void* input = values.data();
  std::vector<std::vector<std::byte>> outputs;
  std::vector<TensorId> seen;
  const Status status = EvaluateReference(*graph, {&input, 1}, &outputs, [&](TensorId id, std::span<const float> v) {
    seen.push_back(id);
    EXPECT_EQ(v.size(), 3u);
    if (id == unused) {
      EXPECT_EQ(v[2], 33.0f * 33.0f);
    }
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(seen, (std::vector<TensorId>{sum, unused, negated}));
  ASSERT_EQ(outputs.size(), 2u);
  const auto at = [&](size_t output, size_t i) { return reinterpret_cast<const float*>(outputs[output].data())[i]; };
  EXPECT_EQ(at(0, 1), -22.0f);
  EXPECT_EQ(at(1, 1), 22.0f);
}

}  // namespace
}  // namespace plait
