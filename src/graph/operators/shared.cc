#include <algorithm>
#include <cmath>

#include "src/graph/operators/declarations.h"

namespace plait {

std::string Quoted(const std::string& name) {
  constexpr size_t kLongest = 80;
  std::string out = name.substr(0, kLongest);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return StrCat('\'', out, name.size() > kLongest ? "..." : "", '\'');
}

std::string Describe(const Operator& op) { return StrCat("operator ", Quoted(op.name), " (", Name(op.kind), ")"); }

std::string DescribeInput(const Graph& graph, const Operator& op, int i) {
  const Tensor& tensor = graph.input(op, i);
  return StrCat("input ", i, " ", Quoted(tensor.name), " (", ToString(tensor.shape), ")");
}

Status CheckRank(const Graph& graph, const Operator& op, int input, int rank) {
  if (graph.input(op, input).shape.rank() == rank) return Status();
  return OpError(op, DescribeInput(graph, op, input), " must have rank ", rank);
}

Status CheckVector(const Graph& graph, const Operator& op, int input, int64_t length) {
  if (!HasInput(op, input) || graph.input(op, input).shape == Dims{length}) return Status();
  return OpError(op, DescribeInput(graph, op, input), " must be a vector of ", length, " elements");
}

Status CheckClamp(const Operator& op, const Clamp& clamp) {
  if (clamp.min <= clamp.max) return Status();  // false for NaN, too
  return OpError(op, "clamp ", clamp.min, "..", clamp.max, " is empty or not a number");
}

Result<int64_t> WindowPositions(const Operator& op, const char* axis, const Window& w) {
  if (w.kernel < 1 || w.stride < 1 || w.dilation < 1) {
    return OpError(op, "kernel ", w.kernel, ", stride ", w.stride, " and dilation ", w.dilation, " of ", axis, " must be at least 1");
  }
  if (w.pad_before < 0 || w.pad_after < 0) {
    return OpError(op, "padding ", w.pad_before, " and ", w.pad_after, " of ", axis, " must not be negative");
  }
  // Kernel extents (dimensions up to 2^31) times dilations (32 bits) stay below 2^63.
  const int64_t padded = w.input + w.pad_before + w.pad_after;
  if (w.EffectiveKernel() > padded) {
    return OpError(op, "kernel ", w.kernel, " with dilation ", w.dilation, " does not fit ", padded, " padded ", axis);
  }
  return (padded - w.EffectiveKernel()) / w.stride + 1;
}

void SetWindowRange(Region* region, int axis, const Window& w, int64_t out_begin, int64_t out_size) {
  const int64_t first = out_begin * w.stride - w.pad_before;
  const int64_t end = first + (out_size - 1) * w.stride + w.EffectiveKernel();
  const int64_t begin = std::clamp<int64_t>(first, 0, w.input);
  region->begin[axis] = begin;
  region->size[axis] = out_size == 0 ? 0 : std::max<int64_t>(0, std::min(end, w.input) - begin);
}

std::vector<SplitAxis> ImageSplitAxes(const Dims& shape) {
  std::vector<SplitAxis> axes;
  if (shape[0] > 1) axes.push_back({0, AxisRole::kBatch});
  if (shape[1] > 1) axes.push_back({1, AxisRole::kRows});
  if (shape[3] > 1) axes.push_back({3, AxisRole::kChannels});
  return axes;
}

std::vector<SplitAxis> ElementwiseSplitAxes(const Dims& shape) {
  std::vector<SplitAxis> axes;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] <= 1) continue;
    const AxisRole inner = i + 1 == shape.rank() ? AxisRole::kChannels : AxisRole::kColumns;
    axes.push_back({i, axes.empty() && i + 1 < shape.rank() ? AxisRole::kRows : inner});
  }
  return axes;
}

int64_t SaturatingMul(int64_t a, int64_t b) { return CheckedMul(a, b).value_or(std::numeric_limits<int64_t>::max()); }
int64_t SaturatingAdd(int64_t a, int64_t b) { return CheckedAdd(a, b).value_or(std::numeric_limits<int64_t>::max()); }

Work MeasureWork(const Graph& graph, const Operator& op, const Region& out, int64_t macs_per_element) {
  Work work;
  work.macs = SaturatingMul(out.Count(), macs_per_element);
  work.output_bytes = out.Count() * SizeOf(graph.output(op).dtype);
  for (int i = 0; i < static_cast<int>(op.inputs.size()); ++i) {
    if (!HasInput(op, i)) continue;
    const Tensor& tensor = graph.input(op, i);
    const int64_t bytes = InputRegion(graph, op, i, out).Count() * SizeOf(tensor.dtype);
    int64_t& total = tensor.is_constant() ? work.weight_bytes : work.input_bytes;
    total = SaturatingAdd(total, bytes);
  }
  return work;
}

Work MoveWork(const Graph& graph, const Operator& op, const Region& out) { return MeasureWork(graph, op, out, 0); }

}  // namespace plait
