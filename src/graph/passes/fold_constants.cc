// Operators over constants, computed once at load with loops of fixed order.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/graph/operators.h"
#include "src/graph/passes/editor.h"
#include "src/graph/passes/permutation.h"

namespace plait {
namespace {

using Data = std::shared_ptr<ConstData>;

// Calls visit(a, b) for every element of `size` in row-major order with its offsets under two sets of strides.
template <typename Visit>
void ForEach(const Dims& size, const Dims& a_strides, const Dims& b_strides, const Visit& visit) {
  Dims index = Dims::Filled(size.rank(), 0);
  int64_t a = 0, b = 0;
  for (int64_t n = size.Count(); n > 0; --n) {
    visit(a, b);
    for (int i = size.rank() - 1; i >= 0; --i) {
      a += a_strides[i];
      b += b_strides[i];
      if (++index[i] < size[i]) break;
      a -= size[i] * a_strides[i];
      b -= size[i] * b_strides[i];
      index[i] = 0;
    }
  }
}

int64_t OffsetOf(const Dims& index, const Dims& strides) {
  int64_t offset = 0;
  for (int i = 0; i < index.rank(); ++i) offset += index[i] * strides[i];
  return offset;
}

// Copies a box of `size` from one dense tensor into another.
void CopyBox(const Tensor& from, const Dims& from_begin, ConstData* to, const Dims& to_shape, const Dims& to_begin, const Dims& size) {
  const Dims from_strides = DenseStrides(from.shape), to_strides = DenseStrides(to_shape);
  const int64_t element = SizeOf(from.dtype);
  const char* source = from.data->as<char>() + OffsetOf(from_begin, from_strides) * element;
  char* target = to->as<char>() + OffsetOf(to_begin, to_strides) * element;
  ForEach(size, from_strides, to_strides, [&](int64_t a, int64_t b) {
    std::memcpy(target + b * element, source + a * element, static_cast<size_t>(element));
  });
}

// Strides that read `shape` as if it were broadcast to `out`: 0 on broadcast axes.
Dims BroadcastStrides(const Dims& shape, const Dims& out) {
  const Dims dense = DenseStrides(shape);
  Dims strides = Dims::Filled(out.rank(), 0);
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != 1) strides[i + out.rank() - shape.rank()] = dense[i];
  }
  return strides;
}

float Apply(const UnaryAttrs& attrs, float x) {
  switch (attrs.kind) {
    case UnaryKind::kCopy: return x;
    case UnaryKind::kClamp: return std::min(std::max(x, attrs.clamp.min), attrs.clamp.max);
    case UnaryKind::kSigmoid: return 1.0f / (1.0f + std::exp(-x));
    case UnaryKind::kHardSigmoid: return std::min(std::max(x / 6.0f + 0.5f, 0.0f), 1.0f);
    case UnaryKind::kHardSwish: return x * std::min(std::max(x / 6.0f + 0.5f, 0.0f), 1.0f);
    case UnaryKind::kSilu: return x / (1.0f + std::exp(-x));
    case UnaryKind::kGelu: return 0.5f * x * (1.0f + std::erf(x * 0.70710678118654752f));
    case UnaryKind::kTanh: return std::tanh(x);
    case UnaryKind::kExp: return std::exp(x);
    case UnaryKind::kSqrt: return std::sqrt(x);
    case UnaryKind::kErf: return std::erf(x);
    case UnaryKind::kNegate: return -x;
    case UnaryKind::kAbs: return std::abs(x);
    case UnaryKind::kSquare: return x * x;
    case UnaryKind::kReciprocal: return 1.0f / x;
    case UnaryKind::kLog: return std::log(x);
  }
  return x;
}

float Apply(BinaryKind kind, float a, float b) {
  switch (kind) {
    case BinaryKind::kAdd: return a + b;
    case BinaryKind::kSub: return a - b;
    case BinaryKind::kMul: return a * b;
    case BinaryKind::kDiv: return a / b;
    case BinaryKind::kMax: return std::max(a, b);
    case BinaryKind::kMin: return std::min(a, b);
  }
  return a;
}

void EvaluateBinary(const Graph& graph, const Operator& op, float* out) {
  const auto& attrs = op.as<BinaryAttrs>();
  const Dims& shape = graph.output(op).shape;
  const float* a = graph.input(op, 0).data->as<float>();
  const float* b = graph.input(op, 1).data->as<float>();
  ForEach(shape, BroadcastStrides(graph.input(op, 0).shape, shape), BroadcastStrides(graph.input(op, 1).shape, shape),
          [&](int64_t i, int64_t j) { *out++ = std::min(std::max(Apply(attrs.kind, a[i], b[j]), attrs.clamp.min), attrs.clamp.max); });
}

void EvaluateReduce(const Graph& graph, const Operator& op, float* out) {
  const Tensor& x = graph.input(op, 0);
  Dims kept = x.shape;
  for (const int32_t axis : op.as<ReduceAttrs>().axes) kept[axis] = 1;
  const int64_t outputs = kept.Count();
  std::vector<double> sums(static_cast<size_t>(outputs), 0.0);
  const float* values = x.data->as<float>();
  ForEach(x.shape, DenseStrides(x.shape), BroadcastStrides(kept, x.shape),
          [&](int64_t i, int64_t j) { sums[static_cast<size_t>(j)] += values[i]; });
  const double scale = static_cast<double>(outputs) / static_cast<double>(x.shape.Count());
  for (const double sum : sums) *out++ = static_cast<float>(sum * scale);
}

void EvaluateMatMul(const Graph& graph, const Operator& op, float* out) {
  const bool transposed = op.as<MatMulAttrs>().transpose_b;
  const Dims& shape = graph.output(op).shape;
  const int64_t rows = shape.back(1), columns = shape.back(), depth = graph.input(op, 0).shape.back();
  const float* a = graph.input(op, 0).data->as<float>();
  const float* b = graph.input(op, 1).data->as<float>();
  for (int64_t batch = shape.Count() / (rows * columns); batch > 0; --batch, a += rows * depth, b += depth * columns) {
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t n = 0; n < columns; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) sum += double{a[m * depth + k]} * b[transposed ? n * depth + k : k * columns + n];
        *out++ = static_cast<float>(sum);
      }
    }
  }
}

// Operators that move elements of any type.
void EvaluateMove(const Graph& graph, const Operator& op, ConstData* out) {
  const Tensor& x = graph.input(op, 0);
  const Dims& shape = graph.output(op).shape;
  const Dims zero = Dims::Filled(shape.rank(), 0);
  if (op.kind == OpKind::kSlice) {
    CopyBox(x, op.as<SliceAttrs>().begin, out, shape, zero, shape);
  } else if (op.kind == OpKind::kPad) {
    std::fill_n(out->as<float>(), shape.Count(), op.as<PadAttrs>().value);
    CopyBox(x, Dims::Filled(shape.rank(), 0), out, shape, op.as<PadAttrs>().before, x.shape);
  } else if (op.kind == OpKind::kConcat) {
    Dims begin = zero;
    for (int i = 0; i < static_cast<int>(op.inputs.size()); ++i) {
      const Tensor& part = graph.input(op, i);
      CopyBox(part, zero, out, shape, begin, part.shape);
      begin[op.as<ConcatAttrs>().axis] += part.shape[op.as<ConcatAttrs>().axis];
    }
  } else {
    std::memcpy(out->mutable_data(), x.data->data(), static_cast<size_t>(out->bytes()));  // Reshape, Unary copy
  }
}

bool IsMove(const Operator& op) {
  return IsView(op.kind) || op.kind == OpKind::kPad || (op.kind == OpKind::kUnary && op.as<UnaryAttrs>().kind == UnaryKind::kCopy);
}

// Convolutions, pools and normalisations of constants are not what exporters write; they stay for the backends.
bool CanEvaluate(const Graph& graph, const Operator& op) {
  const bool f32 = graph.output(op).dtype == DType::kF32;
  if (op.kind == OpKind::kPad) return f32;
  if (IsMove(op) || op.kind == OpKind::kTranspose) return true;
  if (op.kind == OpKind::kMatMul) {
    constexpr int64_t kMostMacs = int64_t{1} << 28;  // below a second at load
    return f32 && WorkOf(graph, op).macs <= kMostMacs;
  }
  return f32 && (op.kind == OpKind::kUnary || op.kind == OpKind::kBinary || op.kind == OpKind::kReduceMean);
}

std::shared_ptr<const ConstData> Evaluate(const Graph& graph, const Operator& op) {
  if (op.kind == OpKind::kTranspose) {
    return TransposedData(graph.input(op, 0), graph.input(op, 0).shape, op.as<TransposeAttrs>().perm);
  }
  Data out = ConstData::Allocate(graph.output(op).bytes());
  if (out == nullptr) return nullptr;
  if (IsMove(op)) {
    EvaluateMove(graph, op, out.get());
  } else if (op.kind == OpKind::kBinary) {
    EvaluateBinary(graph, op, out->as<float>());
  } else if (op.kind == OpKind::kReduceMean) {
    EvaluateReduce(graph, op, out->as<float>());
  } else if (op.kind == OpKind::kMatMul) {
    EvaluateMatMul(graph, op, out->as<float>());
  } else {
    const float* x = graph.input(op, 0).data->as<float>();
    float* y = out->as<float>();
    for (int64_t i = 0; i < graph.output(op).shape.Count(); ++i) y[i] = Apply(op.as<UnaryAttrs>(), x[i]);
  }
  return out;
}

// A small file must not blow up in memory: results stay below a bound unless the operands are as large.
bool SizeAllowed(const Graph& graph, const Operator& op) {
  constexpr int64_t kAlwaysAllowedBytes = int64_t{64} << 20;
  int64_t operand_bytes = 0;
  for (const TensorId t : op.inputs) operand_bytes += graph.tensor(t).bytes();
  return graph.output(op).bytes() <= std::max(kAlwaysAllowedBytes, operand_bytes);
}

}  // namespace

void FoldConstants(Editor& editor) {
  for (const OpId id : editor.Order()) {
    if (!editor.alive(id)) continue;
    const Operator& op = editor.op(id);
    const bool constant = std::all_of(op.inputs.begin(), op.inputs.end(),
                                      [&](TensorId t) { return t != kNoTensor && editor.tensor(t).is_constant(); });
    if (!constant || editor.is_output(op.output) || !CanEvaluate(editor.graph(), op) || !SizeAllowed(editor.graph(), op)) continue;
    const Tensor out = editor.tensor(op.output);
    const TensorId value = editor.AddConstant(out.name, out.shape, Evaluate(editor.graph(), op), out.dtype);
    if (value != kNoTensor) editor.Replace(op.output, value);
  }
}

}  // namespace plait
