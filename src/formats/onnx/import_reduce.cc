// Reductions. Sums are means times the number of terms, which every backend computes; extremes are max pools and products trees of
// multiplications, both over a tensor of shape (outer, reduced, inner).
#include <algorithm>
#include <limits>

#include "src/formats/onnx/lowering.h"

namespace plait {

namespace {

enum class Reduction : uint8_t { kMean, kSum, kSumSquare, kL1, kL2, kLogSum, kLogSumExp, kMax, kMin, kProd };

TensorId Unary(OnnxLowering& n, const char* hint, TensorId x, UnaryKind kind) {
  return n.Emit(hint, OpKind::kUnary, {x}, UnaryAttrs{kind, {}});
}
TensorId Binary(OnnxLowering& n, const char* hint, TensorId a, TensorId b, BinaryKind kind) {
  return n.Emit(hint, OpKind::kBinary, {a, b}, BinaryAttrs{kind, {}});
}

// What is reduced of a tensor of the graph, in that tensor's own axes.
struct Reduced {
  std::vector<int32_t> axes;  // ascending
  bool keep = true;
  Dims shape;  // of the result
};

Dims ReducedShape(const Dims& shape, const std::vector<int32_t>& axes, bool keep) {
  Dims out;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), i);
    if (!reduced || keep) out.push_back(reduced ? 1 : shape[i]);
  }
  return out;
}

// `x` as (outer, reduced, inner): axes that are no neighbours are moved innermost.
TensorId Grouped(OnnxLowering& n, TensorId x, const std::vector<int32_t>& axes) {
  const Dims shape = n.Shape(x);
  const bool together = axes.back() - axes.front() + 1 == static_cast<int32_t>(axes.size());
  Dims groups{1, 1, 1};
  std::vector<int32_t> perm;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), i);
    groups[reduced ? 1 : together && i > axes.back() ? 2 : 0] *= shape[i];
    if (!reduced) perm.push_back(i);
  }
  if (!together) {
    perm.insert(perm.end(), axes.begin(), axes.end());
    x = n.Emit("grouped", OpKind::kTranspose, {x}, TransposeAttrs{perm});
  }
  return n.Emit("groups", OpKind::kReshape, {x}, ReshapeAttrs{groups});
}

TensorId MaxOf(OnnxLowering& n, TensorId x, const Reduced& r) {
  x = Grouped(n, x, r.axes);
  if (!n.ok()) return kNoTensor;
  const Dims g = n.Shape(x);
  if (g[1] > std::numeric_limits<int32_t>::max()) {
    n.Fail(Unsupported("reduces ", g[1], " elements at once"));
    return kNoTensor;
  }
  if (g[1] > 1) {
    x = n.Emit("column", OpKind::kReshape, {x}, ReshapeAttrs{Dims{g[0], g[1], 1, g[2]}});
    Pool2DAttrs pool;
    pool.kernel_h = static_cast<int32_t>(g[1]);
    x = n.Emit("largest", OpKind::kMaxPool2D, {x}, pool);
  }
  return n.Emit("shaped", OpKind::kReshape, {x}, ReshapeAttrs{r.shape});
}

// Halves the reduced axis until one element is left.
TensorId ProductOf(OnnxLowering& n, TensorId x, const Reduced& r) {
  x = Grouped(n, x, r.axes);
  while (n.ok() && n.Shape(x)[1] > 1) {
    const Dims g = n.Shape(x);
    const int64_t half = g[1] / 2;
    const Dims size{g[0], half, g[2]};
    const TensorId low = n.Emit("low", OpKind::kSlice, {x}, SliceAttrs{Dims{0, 0, 0}, size});
    const TensorId high = n.Emit("high", OpKind::kSlice, {x}, SliceAttrs{Dims{0, half, 0}, size});
    TensorId product = Binary(n, "product", low, high, BinaryKind::kMul);
    if (g[1] % 2 != 0) {
      const TensorId rest =
          n.Emit("rest", OpKind::kSlice, {x}, SliceAttrs{Dims{0, 2 * half, 0}, Dims{g[0], 1, g[2]}});
      product = n.Emit("products", OpKind::kConcat, {product, rest}, ConcatAttrs{1});
    }
    x = product;
  }
  return n.Emit("shaped", OpKind::kReshape, {x}, ReshapeAttrs{r.shape});
}

TensorId MeanOf(OnnxLowering& n, TensorId x, const Reduced& r) {
  return n.Emit("mean", OpKind::kReduceMean, {x}, ReduceAttrs{r.axes, r.keep});
}

TensorId SumOf(OnnxLowering& n, TensorId x, const Reduced& r) {
  if (!n.ok()) return kNoTensor;
  float count = 1;
  for (const int32_t a : r.axes) count *= static_cast<float>(n.Shape(x)[a]);
  const TensorId sum = Binary(n, "sum", MeanOf(n, x, r), n.ScalarConstant(count), BinaryKind::kMul);
  // The factor is a vector of one element, which a scalar would grow to.
  return n.ok() && !(n.Shape(sum) == r.shape) ? n.Emit("scalar", OpKind::kReshape, {sum}, ReshapeAttrs{r.shape}) : sum;
}

// The largest element is taken off before the exponentials, so that none overflows.
TensorId LogSumExpOf(OnnxLowering& n, TensorId x, const Reduced& r) {
  if (!n.ok()) return kNoTensor;
  const Reduced kept{r.axes, true, ReducedShape(n.Shape(x), r.axes, true)};
  const TensorId largest = MaxOf(n, x, kept);
  const TensorId exp = Unary(n, "exp", Binary(n, "shifted", x, largest, BinaryKind::kSub), UnaryKind::kExp);
  const TensorId log = Unary(n, "log", SumOf(n, exp, kept), UnaryKind::kLog);
  const TensorId sum = Binary(n, "unshifted", log, largest, BinaryKind::kAdd);
  return n.Emit("shaped", OpKind::kReshape, {sum}, ReshapeAttrs{r.shape});
}

TensorId Reduce(OnnxLowering& n, Reduction what, TensorId x, const Reduced& r) {
  switch (what) {
    case Reduction::kMean: return MeanOf(n, x, r);
    case Reduction::kSum: return SumOf(n, x, r);
    case Reduction::kSumSquare: return SumOf(n, Unary(n, "square", x, UnaryKind::kSquare), r);
    case Reduction::kL1: return SumOf(n, Unary(n, "abs", x, UnaryKind::kAbs), r);
    case Reduction::kL2:
      return Unary(n, "root", SumOf(n, Unary(n, "square", x, UnaryKind::kSquare), r), UnaryKind::kSqrt);
    case Reduction::kLogSum: return Unary(n, "log", SumOf(n, x, r), UnaryKind::kLog);
    case Reduction::kLogSumExp: return LogSumExpOf(n, x, r);
    case Reduction::kMax: return MaxOf(n, x, r);
    case Reduction::kMin:
      return Unary(n, "negated", MaxOf(n, Unary(n, "negative", x, UnaryKind::kNegate), r), UnaryKind::kNegate);
    case Reduction::kProd: return ProductOf(n, x, r);
  }
  return kNoTensor;
}

// log(softmax(x)) along one axis: x - log(sum(exp(x))).
void ImportLogSoftmax(OnnxLowering& n) {
  const OnnxValuePtr x = n.In(0);
  if (!n.ok()) return;
  const int rank = x->shape.rank();
  const SoftmaxAxes reduced = ReadSoftmaxAxes(n, rank);
  if (!n.ok()) return;
  std::vector<int32_t> axes;
  for (int i = reduced.axis; i < reduced.end; ++i) axes.push_back(i);
  const TensorId plain = n.Plain(x);
  if (!n.ok()) return;
  const TensorId sum = LogSumExpOf(n, plain, {axes, true, ReducedShape(x->shape, axes, true)});
  n.EmitPlain(0, OpKind::kBinary, {plain, sum}, BinaryAttrs{BinaryKind::kSub, {}});
}

// `opset_with_input`: from which on the axes are an input.
void ImportReduce(OnnxLowering& n, Reduction what, int64_t opset_with_input) {
  const OnnxValuePtr x = n.In(0);
  if (!n.ok()) return;
  const int rank = x->shape.rank();
  const bool as_input = n.opset() >= opset_with_input;
  std::vector<int32_t> axes =
      n.Axes(as_input ? (n.Has(1) ? n.IntsIn(1) : std::vector<int64_t>()) : n.Ints("axes"), rank);
  const bool keep = n.Int("keepdims", 1) != 0;
  if (!n.ok()) return;
  if (axes.empty()) {
    if (n.Int("noop_with_empty_axes", 0) != 0 || rank == 0) return n.SetAlias(0, x);
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  }
  // Channels-last works as well if the result keeps its rank, or if what remains stands in the same order: (N, C).
  const bool all_spatial = axes.front() == 2 && static_cast<int>(axes.size()) == rank - 2;
  const bool last = OnnxLowering::PreferLast({x}) && (keep || all_spatial);
  if (last) {
    for (int32_t& a : axes) a = LastAxis(a, rank);
    std::sort(axes.begin(), axes.end());
  }
  const TensorId input = last ? n.Last(x) : n.Plain(x);
  if (!n.ok()) return;
  const Reduced reduced{axes, keep, ReducedShape(n.Shape(input), axes, keep)};
  if (what == Reduction::kMean) {
    return n.EmitIn(last && keep, 0, OpKind::kReduceMean, {input}, ReduceAttrs{axes, keep});
  }
  const TensorId result = Reduce(n, what, input, reduced);
  if (n.ok()) n.SetTensor(0, result, last && keep);
}

template <Reduction kWhat>
void Import(OnnxLowering& n) {
  ImportReduce(n, kWhat, kWhat == Reduction::kSum ? 13 : 18);
}

}  // namespace

void ImportReduceProduct(OnnxLowering& n) { ImportReduce(n, Reduction::kProd, 18); }

const OnnxHandlerTable& OnnxReduceHandlers() {
  static const OnnxHandlerTable table = {
      {"LogSoftmax", ImportLogSoftmax},
      {"ReduceL1", Import<Reduction::kL1>},
      {"ReduceL2", Import<Reduction::kL2>},
      {"ReduceLogSum", Import<Reduction::kLogSum>},
      {"ReduceLogSumExp", Import<Reduction::kLogSumExp>},
      {"ReduceMax", Import<Reduction::kMax>},
      {"ReduceMean", Import<Reduction::kMean>},
      {"ReduceMin", Import<Reduction::kMin>},
      {"ReduceSum", Import<Reduction::kSum>},
      {"ReduceSumSquare", Import<Reduction::kSumSquare>},
  };
  return table;
}

}  // namespace plait
