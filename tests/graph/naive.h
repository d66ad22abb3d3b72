// A naive evaluator for tests: every operator, element by element, in double precision, written straight from the
// definitions. It shares no code with the library. Reads go through a function, so that a test can see what is read.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "src/graph/graph.h"

namespace plait::naive {

// The element of input `i` at `index`.
using Reader = std::function<double(int i, const Dims& index)>;

inline int64_t Offset(const Dims& shape, const Dims& index) {
  int64_t offset = 0;
  for (int i = 0; i < shape.rank(); ++i) offset = offset * shape[i] + index[i];
  return offset;
}

// Calls visit(index) for every index inside `region`, row-major.
template <typename Visit>
void ForEachIndex(const Region& region, const Visit& visit) {
  if (region.IsEmpty()) return;
  Dims index = region.begin;
  while (true) {
    visit(index);
    int i = region.size.rank() - 1;
    for (; i >= 0; --i) {
      if (++index[i] < region.begin[i] + region.size[i]) break;
      index[i] = region.begin[i];
    }
    if (i < 0) return;
  }
}

inline double Clamped(const Clamp& clamp, double v) { return std::min<double>(std::max<double>(v, clamp.min), clamp.max); }

inline double UnaryValue(const UnaryAttrs& a, double x) {
  const auto hard_sigmoid = [](double v) { return std::min(std::max(v / 6 + 0.5, 0.0), 1.0); };
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  switch (a.kind) {
    case UnaryKind::kCopy: return x;
    case UnaryKind::kClamp: return Clamped(a.clamp, x);
    case UnaryKind::kSigmoid: return sigmoid(x);
    case UnaryKind::kHardSigmoid: return hard_sigmoid(x);
    case UnaryKind::kHardSwish: return x * hard_sigmoid(x);
    case UnaryKind::kSilu: return x * sigmoid(x);
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
  return NAN;
}

inline double BinaryValue(BinaryKind kind, double a, double b) {
  switch (kind) {
    case BinaryKind::kAdd: return a + b;
    case BinaryKind::kSub: return a - b;
    case BinaryKind::kMul: return a * b;
    case BinaryKind::kDiv: return a / b;
    case BinaryKind::kMax: return std::max(a, b);
    case BinaryKind::kMin: return std::min(a, b);
  }
  return NAN;
}

inline double Convolution(const Graph& g, const Operator& op, const Dims& o, const Reader& read) {
  const auto& a = op.as<Conv2DAttrs>();
  const Dims &x = g.input(op, 0).shape, &w = g.input(op, 1).shape;
  const bool depthwise = op.kind == OpKind::kDepthwiseConv2D;
  const int64_t kh = w[depthwise ? 0 : 1], kw = w[depthwise ? 1 : 2], depth = depthwise ? 1 : w[3];
  const int64_t first = depthwise ? o[3] : o[3] / (w[0] / a.groups) * depth;
  double sum = op.inputs.size() > 2 && op.inputs[2] != kNoTensor ? read(2, {o[3]}) : 0;
  for (int64_t i = 0; i < kh; ++i) {
    for (int64_t j = 0; j < kw; ++j) {
      const int64_t row = o[1] * a.stride_h - a.pad.top + i * a.dilation_h, column = o[2] * a.stride_w - a.pad.left + j * a.dilation_w;
      if (row < 0 || row >= x[1] || column < 0 || column >= x[2]) continue;
      for (int64_t c = 0; c < depth; ++c) {
        sum += read(0, {o[0], row, column, first + c}) * read(1, depthwise ? Dims{i, j, o[3]} : Dims{o[3], i, j, c});
      }
    }
  }
  return Clamped(a.clamp, sum);
}

inline double Pool(const Graph& g, const Operator& op, const Dims& o, const Reader& read) {
  const auto& a = op.as<Pool2DAttrs>();
  const Dims& x = g.input(op, 0).shape;
  double sum = 0, most = -INFINITY;
  int64_t count = 0;
  for (int64_t i = 0; i < a.kernel_h; ++i) {
    for (int64_t j = 0; j < a.kernel_w; ++j) {
      const int64_t row = o[1] * a.stride_h - a.pad.top + i, column = o[2] * a.stride_w - a.pad.left + j;
      if (row < 0 || row >= x[1] || column < 0 || column >= x[2]) continue;
      const double v = read(0, {o[0], row, column, o[3]});
      sum += v;
      most = std::max(most, v);
      ++count;
    }
  }
  if (op.kind == OpKind::kMaxPool2D) return Clamped(a.clamp, most);
  return Clamped(a.clamp, sum / static_cast<double>(a.count_include_pad ? int64_t{a.kernel_h} * a.kernel_w : count));
}

// Input 1 or 0 of a Binary at an index of the output.
inline double Broadcast(const Graph& g, const Operator& op, int i, const Dims& o, const Reader& read) {
  const Dims& shape = g.input(op, i).shape;
  Dims index;
  for (int d = 0; d < shape.rank(); ++d) index.push_back(shape[d] == 1 ? 0 : o[d + o.rank() - shape.rank()]);
  return read(i, index);
}

inline double Mean(const Graph& g, const Operator& op, const Dims& o, const Reader& read) {
  const auto& a = op.as<ReduceAttrs>();
  Region box = Region::Whole(g.input(op, 0).shape);
  int next = 0;
  for (int i = 0; i < box.size.rank(); ++i) {
    const bool reduced = std::count(a.axes.begin(), a.axes.end(), i) > 0;
    if (!reduced) {
      box.begin[i] = o[next];
      box.size[i] = 1;
    }
    next += !reduced || a.keep_dims;
  }
  double sum = 0;
  ForEachIndex(box, [&](const Dims& index) { sum += read(0, index); });
  return sum / static_cast<double>(box.Count());
}

// The innermost axis of input 0 at o.
inline std::vector<double> InnermostRow(const Graph& g, const Operator& op, const Dims& o, const Reader& read) {
  std::vector<double> row;
  Dims index = o;
  for (int64_t c = 0; c < g.input(op, 0).shape.back(); ++c) {
    index[index.rank() - 1] = c;
    row.push_back(read(0, index));
  }
  return row;
}

inline double Norm(const Graph& g, const Operator& op, const Dims& o, const Reader& read) {
  const double epsilon = op.as<NormAttrs>().epsilon;
  if (op.kind == OpKind::kBatchNorm) {
    const Dims c{o.back()};
    return (read(0, o) - read(3, c)) / std::sqrt(read(4, c) + epsilon) * read(1, c) + read(2, c);
  }
  const std::vector<double> row = InnermostRow(g, op, o, read);
  double mean = 0, variance = 0;
  for (const double v : row) mean += v / static_cast<double>(row.size());
  for (const double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(row.size());
  return (row[static_cast<size_t>(o.back())] - mean) / std::sqrt(variance + epsilon) * read(1, {o.back()}) + read(2, {o.back()});
}

inline double Product(const Graph& g, const Operator& op, const Dims& o, const Reader& read) {
  const int64_t depth = g.input(op, 0).shape.back();
  const int n = o.rank() - 1, m = n - 1;
  Dims a = o, b = o;
  double sum = 0;
  if (op.kind == OpKind::kFullyConnected) {
    sum = op.inputs.size() > 2 && op.inputs[2] != kNoTensor ? read(2, {o.back()}) : 0;
    for (a[n] = 0; a[n] < depth; ++a[n]) sum += read(0, a) * read(1, {o.back(), a[n]});
    return Clamped(op.as<FullyConnectedAttrs>().clamp, sum);
  }
  const bool transposed = op.as<MatMulAttrs>().transpose_b;
  for (int64_t k = 0; k < depth; ++k) {
    a[n] = k;
    b[m] = transposed ? o[n] : k;
    b[n] = transposed ? k : o[n];
    sum += read(0, a) * read(1, b);
  }
  return sum;
}

inline double Moved(const Graph& g, const Operator& op, const Dims& o, const Reader& read) {
  const Dims& x = g.input(op, 0).shape;
  Dims index = o;
  if (op.kind == OpKind::kConcat) {
    const int axis = op.as<ConcatAttrs>().axis;
    int i = 0;
    for (; index[axis] >= g.input(op, i).shape[axis]; ++i) index[axis] -= g.input(op, i).shape[axis];
    return read(i, index);
  }
  if (op.kind == OpKind::kSlice) {
    for (int i = 0; i < o.rank(); ++i) index[i] += op.as<SliceAttrs>().begin[i];
  } else if (op.kind == OpKind::kTranspose) {
    for (int i = 0; i < o.rank(); ++i) index[op.as<TransposeAttrs>().perm[static_cast<size_t>(i)]] = o[i];
  } else if (op.kind == OpKind::kPad) {
    for (int i = 0; i < o.rank(); ++i) {
      index[i] -= op.as<PadAttrs>().before[i];
      if (index[i] < 0 || index[i] >= x[i]) return op.as<PadAttrs>().value;
    }
  } else {  // Reshape
    int64_t offset = Offset(g.output(op).shape, o);
    index = x;
    for (int i = x.rank() - 1; i >= 0; --i) {
      index[i] = offset % x[i];
      offset /= x[i];
    }
  }
  return read(0, index);
}

// One element of the operator's output.
inline double Element(const Graph& g, const Operator& op, const Dims& o, const Reader& read) {
  switch (op.kind) {
    case OpKind::kConv2D:
    case OpKind::kDepthwiseConv2D: return Convolution(g, op, o, read);
    case OpKind::kFullyConnected:
    case OpKind::kMatMul: return Product(g, op, o, read);
    case OpKind::kBinary: {
      const auto& a = op.as<BinaryAttrs>();
      return Clamped(a.clamp, BinaryValue(a.kind, Broadcast(g, op, 0, o, read), Broadcast(g, op, 1, o, read)));
    }
    case OpKind::kUnary: return UnaryValue(op.as<UnaryAttrs>(), read(0, o));
    case OpKind::kMaxPool2D:
    case OpKind::kAveragePool2D: return Pool(g, op, o, read);
    case OpKind::kReduceMean: return Mean(g, op, o, read);
    case OpKind::kSoftmax: {
      const std::vector<double> row = InnermostRow(g, op, o, read);
      const double most = *std::max_element(row.begin(), row.end());
      double sum = 0;
      for (const double v : row) sum += std::exp(v - most);
      return std::exp(row[static_cast<size_t>(o.back())] - most) / sum;
    }
    case OpKind::kLayerNorm:
    case OpKind::kBatchNorm: return Norm(g, op, o, read);
    case OpKind::kConcat:
    case OpKind::kSlice:
    case OpKind::kReshape:
    case OpKind::kTranspose:
    case OpKind::kPad: return Moved(g, op, o, read);
  }
  return NAN;
}

// All tensors of a graph of f32 tensors: `values` holds the graph inputs by name. Returns the graph outputs by name, flat.
using Values = std::map<std::string, std::vector<float>>;
inline Values Run(const Graph& g, const Values& values) {
  std::vector<std::vector<float>> data(g.tensors.size());
  for (TensorId t = 0; t < g.tensor_count(); ++t) {
    const Tensor& tensor = g.tensor(t);
    if (tensor.is_constant()) {
      const float* f = tensor.data->as<float>();
      data[static_cast<size_t>(t)].assign(f, f + tensor.shape.Count());
    }
  }
  for (const TensorId t : g.inputs) data[static_cast<size_t>(t)] = values.at(g.tensor(t).name);
  for (const Operator& op : g.ops) {
    const Reader read = [&](int i, const Dims& index) {
      return data[static_cast<size_t>(op.inputs[static_cast<size_t>(i)])][static_cast<size_t>(Offset(g.input(op, i).shape, index))];
    };
    std::vector<float>& out = data[static_cast<size_t>(op.output)];
    ForEachIndex(Region::Whole(g.output(op).shape), [&](const Dims& o) { out.push_back(static_cast<float>(Element(g, op, o, read))); });
    if (g.output(op).shape.rank() == 0) out.assign(1, static_cast<float>(Element(g, op, {}, read)));
  }
  Values out;
  for (const TensorId t : g.outputs) out[g.tensor(t).name] = data[static_cast<size_t>(t)];
  return out;
}

inline std::vector<float> RandomValues(std::mt19937& random, int64_t count, float low = -1, float high = 1) {
  std::vector<float> out(static_cast<size_t>(count));
  for (float& v : out) v = low + (high - low) * static_cast<float>(random() >> 8) / static_cast<float>(1 << 24);
  return out;
}

inline Values RandomInputs(const Graph& g, uint32_t seed) {
  std::mt19937 random(seed);
  Values out;
  for (const TensorId t : g.inputs) out[g.tensor(t).name] = RandomValues(random, g.tensor(t).shape.Count());
  return out;
}

// The largest difference between two sets of outputs, relative to the largest magnitude; infinity if names or sizes differ.
inline double RelativeError(const Values& a, const Values& b) {
  double difference = 0, magnitude = 1e-30;
  if (a.size() != b.size()) return INFINITY;
  for (const auto& [name, values] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second.size() != values.size()) return INFINITY;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i]) || !std::isfinite(other->second[i])) return INFINITY;
      difference = std::max<double>(difference, std::abs(values[i] - other->second[i]));
      magnitude = std::max<double>(magnitude, std::abs(values[i]));
    }
  }
  return difference / magnitude;
}

}  // namespace plait::naive
