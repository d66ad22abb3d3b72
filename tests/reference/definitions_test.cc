// The reference kernels against the definitions of the operators, element by element in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "backends/reference/reference.h"
#include "tests/reference/random_operators.h"

namespace plait {
namespace {

// A dense tensor that can be read at any coordinate.
struct Values {
  Dims shape;
  std::vector<float> data;
  double operator()(const Dims& at) const {
    const Dims strides = DenseStrides(shape);
    int64_t index = 0;
    for (int i = 0; i < at.rank(); ++i) index += at[i] * strides[i];
    return data[static_cast<size_t>(index)];
  }
};

Dims Coordinate(int64_t index, const Dims& shape) {
  Dims at = Dims::Filled(shape.rank(), 0);
  for (int i = shape.rank() - 1; i >= 0; --i) {
    at[i] = index % shape[i];
    index /= shape[i];
  }
  return at;
}

using Inputs = std::vector<Values>;
using Definition = std::function<double(const Graph&, const Inputs&, const Dims& at)>;

double Clamped(const Clamp& clamp, double v) { return std::min<double>(std::max<double>(v, clamp.min), clamp.max); }

double Convolution(const Graph& graph, const Inputs& in, const Dims& at) {
  const auto& a = graph.op(0).as<Conv2DAttrs>();
  const bool depthwise = graph.op(0).kind == OpKind::kDepthwiseConv2D;
  const Dims &x = in[0].shape, &w = in[1].shape;
  const int64_t kh = depthwise ? w[0] : w[1], kw = depthwise ? w[1] : w[2], channels = depthwise ? 1 : w[3];
  const int64_t first = depthwise ? at[3] : at[3] / (w[0] / a.groups) * channels;
  double sum = in.size() > 2 ? in[2]({at[3]}) : 0;
  for (int64_t ky = 0; ky < kh; ++ky) {
    for (int64_t kx = 0; kx < kw; ++kx) {
      const int64_t row = at[1] * a.stride_h - a.pad.top + ky * a.dilation_h,
                    column = at[2] * a.stride_w - a.pad.left + kx * a.dilation_w;
      if (row < 0 || row >= x[1] || column < 0 || column >= x[2]) continue;
      for (int64_t c = 0; c < channels; ++c) {
        sum += in[0]({at[0], row, column, first + c}) * (depthwise ? in[1]({ky, kx, at[3]}) : in[1]({at[3], ky, kx, c}));
      }
    }
  }
  return Clamped(a.clamp, sum);
}

double Pool(const Graph& graph, const Inputs& in, const Dims& at) {
  const auto& a = graph.op(0).as<Pool2DAttrs>();
  double sum = 0, largest = -1e30, count = 0;
  for (int64_t ky = 0; ky < a.kernel_h; ++ky) {
    for (int64_t kx = 0; kx < a.kernel_w; ++kx) {
      const int64_t row = at[1] * a.stride_h - a.pad.top + ky, column = at[2] * a.stride_w - a.pad.left + kx;
      if (row < 0 || row >= in[0].shape[1] || column < 0 || column >= in[0].shape[2]) continue;
      const double v = in[0]({at[0], row, column, at[3]});
      sum += v;
      largest = std::max(largest, v);
      ++count;
    }
  }
  if (graph.op(0).kind == OpKind::kMaxPool2D) return Clamped(a.clamp, largest);
  return Clamped(a.clamp, sum / (a.count_include_pad ? a.kernel_h * a.kernel_w : count));
}

double FullyConnected(const Graph& graph, const Inputs& in, const Dims& at) {
  double sum = in.size() > 2 ? in[2]({at.back()}) : 0;
  Dims from = at;
  for (int64_t k = 0; k < in[0].shape.back(); ++k) {
    from[at.rank() - 1] = k;
    sum += in[0](from) * in[1]({at.back(), k});
  }
  return Clamped(graph.op(0).as<FullyConnectedAttrs>().clamp, sum);
}

double Multiply(const Graph& graph, const Inputs& in, const Dims& at) {
  const int row = at.rank() - 2, column = at.rank() - 1;
  const bool transposed = graph.op(0).as<MatMulAttrs>().transpose_b;
  Dims a = at, b = at;
  double sum = 0;
  for (int64_t k = 0; k < in[0].shape.back(); ++k) {
    a[column] = k;
    b[row] = transposed ? at[column] : k;
    b[column] = transposed ? k : at[column];
    sum += in[0](a) * in[1](b);
  }
  return sum;
}

double Broadcast(const Values& v, const Dims& at) {
  Dims from = Dims::Filled(v.shape.rank(), 0);
  for (int i = 0; i < v.shape.rank(); ++i) from[i] = v.shape[i] == 1 ? 0 : at[at.rank() - v.shape.rank() + i];
  return v(from);
}

double Binary(const Graph& graph, const Inputs& in, const Dims& at) {
  const auto& attrs = graph.op(0).as<BinaryAttrs>();
  const double a = Broadcast(in[0], at), b = Broadcast(in[1], at);
  double v = 0;
  switch (attrs.kind) {
    case BinaryKind::kAdd: v = a + b; break;
    case BinaryKind::kSub: v = a - b; break;
    case BinaryKind::kMul: v = a * b; break;
    case BinaryKind::kDiv: v = a / b; break;
    case BinaryKind::kMax: v = std::max(a, b); break;
    case BinaryKind::kMin: v = std::min(a, b); break;
  }
  return Clamped(attrs.clamp, v);
}

double Unary(const Graph& graph, const Inputs& in, const Dims& at) {
  const auto& attrs = graph.op(0).as<UnaryAttrs>();
  const double x = in[0](at), sigmoid = 1 / (1 + std::exp(-x)), hard = std::min(std::max(x / 6 + 0.5, 0.0), 1.0);
  switch (attrs.kind) {
    case UnaryKind::kCopy: return x;
    case UnaryKind::kClamp: return Clamped(attrs.clamp, x);
    case UnaryKind::kSigmoid: return sigmoid;
    case UnaryKind::kHardSigmoid: return hard;
    case UnaryKind::kHardSwish: return x * hard;
    case UnaryKind::kSilu: return x * sigmoid;
    case UnaryKind::kGelu: return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case UnaryKind::kTanh: return std::tanh(x);
    case UnaryKind::kExp: return std::exp(x);
    case UnaryKind::kSqrt: return std::sqrt(x);
    case UnaryKind::kErf: return std::erf(x);
    case UnaryKind::kNegate: return -x;
    case UnaryKind::kAbs: return std::abs(x);
    case UnaryKind::kSquare: return x * x;
    case UnaryKind::kReciprocal: return 1 / x;
    case UnaryKind::kLog: return std::log(x);
  }
  return 0;
}

double Mean(const Graph& graph, const Inputs& in, const Dims& at) {
  const auto& attrs = graph.op(0).as<ReduceAttrs>();
  double sum = 0, count = 0;
  for (int64_t n = 0; n < in[0].shape.Count(); ++n) {
    const Dims from = Coordinate(n, in[0].shape);
    Dims to;
    for (int i = 0; i < from.rank(); ++i) {
      const bool reduced = std::find(attrs.axes.begin(), attrs.axes.end(), i) != attrs.axes.end();
      if (!reduced) to.push_back(from[i]);
      else if (attrs.keep_dims) to.push_back(0);
    }
    if (!(to == at)) continue;
    sum += in[0](from);
    ++count;
  }
  return sum / count;
}

double Softmax(const Graph&, const Inputs& in, const Dims& at) {
  double sum = 0;
  Dims from = at;
  for (int64_t k = 0; k < in[0].shape.back(); ++k) {
    from[at.rank() - 1] = k;
    sum += std::exp(in[0](from));
  }
  return std::exp(in[0](at)) / sum;
}

double Norm(const Graph& graph, const Inputs& in, const Dims& at) {
  const double epsilon = graph.op(0).as<NormAttrs>().epsilon;
  const Dims channel{at.back()};
  double mean = 0, variance = 0;
  if (graph.op(0).kind == OpKind::kBatchNorm) {
    mean = in[3](channel);
    variance = in[4](channel);
  } else {
    const auto count = static_cast<double>(in[0].shape.back());
    Dims from = at;
    for (int64_t k = 0; k < in[0].shape.back(); ++k) {
      from[at.rank() - 1] = k;
      mean += in[0](from) / count;
    }
    for (int64_t k = 0; k < in[0].shape.back(); ++k) {
      from[at.rank() - 1] = k;
      variance += (in[0](from) - mean) * (in[0](from) - mean) / count;
    }
  }
  return (in[0](at) - mean) / std::sqrt(variance + epsilon) * in[1](channel) + in[2](channel);
}

double Move(const Graph& graph, const Inputs& in, const Dims& at) {
  const Operator& op = graph.op(0);
  Dims from = at;
  switch (op.kind) {
    case OpKind::kConcat: {
      const int axis = op.as<ConcatAttrs>().axis;
      size_t part = 0;
      while (from[axis] >= in[part].shape[axis]) from[axis] -= in[part++].shape[axis];
      return in[part](from);
    }
    case OpKind::kSlice:
      for (int i = 0; i < at.rank(); ++i) from[i] += op.as<SliceAttrs>().begin[i];
      return in[0](from);
    case OpKind::kTranspose:
      for (int i = 0; i < at.rank(); ++i) from[op.as<TransposeAttrs>().perm[static_cast<size_t>(i)]] = at[i];
      return in[0](from);
    case OpKind::kPad:
      for (int i = 0; i < at.rank(); ++i) {
        from[i] -= op.as<PadAttrs>().before[i];
        if (from[i] < 0 || from[i] >= in[0].shape[i]) return op.as<PadAttrs>().value;
      }
      return in[0](from);
    default: {  // Reshape: the same row-major number
      const Dims& shape = graph.output(op).shape;
      int64_t index = 0;
      for (int i = 0; i < at.rank(); ++i) index = index * shape[i] + at[i];
      return in[0].data[static_cast<size_t>(index)];
    }
  }
}

Definition DefinitionOf(OpKind kind) {
  switch (kind) {
    case OpKind::kConv2D:
    case OpKind::kDepthwiseConv2D: return Convolution;
    case OpKind::kFullyConnected: return FullyConnected;
    case OpKind::kMatMul: return Multiply;
    case OpKind::kBinary: return Binary;
    case OpKind::kUnary: return Unary;
    case OpKind::kMaxPool2D:
    case OpKind::kAveragePool2D: return Pool;
    case OpKind::kReduceMean: return Mean;
    case OpKind::kSoftmax: return Softmax;
    case OpKind::kLayerNorm:
    case OpKind::kBatchNorm: return Norm;
    case OpKind::kConcat:
    case OpKind::kSlice:
    case OpKind::kReshape:
    case OpKind::kTranspose:
    case OpKind::kPad: return Move;
  }
  return nullptr;
}

class DefinitionTest : public ::testing::TestWithParam<int> {};

TEST_P(DefinitionTest, HoldsForEveryElement) {
  const auto kind = static_cast<OpKind>(GetParam());
  const Definition definition = DefinitionOf(kind);
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << Name(kind) << " seed " << seed);
    RandomOperators random(seed * 17 + static_cast<unsigned>(GetParam()));
    const Result<Graph> graph = random.Make(kind);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    Inputs inputs;
    std::vector<const void*> buffers(graph->inputs.size());
    inputs.reserve(graph->op(0).inputs.size());
    for (TensorId id : graph->op(0).inputs) {
      const Tensor& tensor = graph->tensor(id);
      inputs.push_back({tensor.shape, random.Values(tensor.shape.Count())});
      std::vector<float>& data = inputs.back().data;
      if (tensor.is_constant()) data.assign(tensor.data->as<float>(), tensor.data->as<float>() + data.size());
      for (float& v : data) v = NeedsPositive(graph->op(0)) ? std::abs(v) + 0.01f : v;
      for (size_t i = 0; i < buffers.size(); ++i) {
        if (graph->inputs[i] == id) buffers[i] = data.data();
      }
    }
    std::vector<std::vector<std::byte>> outputs;
    const Status status = EvaluateReference(*graph, buffers, &outputs);
    ASSERT_TRUE(status.ok()) << status.message();
    const auto* out = reinterpret_cast<const float*>(outputs[0].data());
    const Dims& shape = graph->tensor(graph->outputs[0]).shape;
    for (int64_t n = 0; n < shape.Count(); ++n) {
      const double expected = definition(*graph, inputs, Coordinate(n, shape));
      ASSERT_NEAR(out[n], expected, 2e-5 * std::max(1.0, std::abs(expected)))
          << ToString(Coordinate(n, shape)) << " of " << ToString(shape);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DefinitionTest, ::testing::Range(0, kOpKindCount), [](const auto& param) {
  return std::string(Name(static_cast<OpKind>(param.param)));
});

}  // namespace
}  // namespace plait
