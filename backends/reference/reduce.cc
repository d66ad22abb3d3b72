// ReduceMean, Softmax and LayerNorm; sums in double, in row-major order of the reduced elements.
#include <cmath>

#include "backends/reference/kernels.h"

namespace plait::reference {
namespace {

bool IsReduced(const ReduceAttrs& attrs, int axis) {
  return std::find(attrs.axes.begin(), attrs.axes.end(), axis) != attrs.axes.end();
}

// The box of the input that one row of the output averages. Without keep_dims the output lacks the reduced axes.
Region ReducedBox(const ReduceAttrs& attrs, const Dims& in_shape, const Dims& at, int64_t row) {
  Region box = Region::Whole(in_shape);
  int out_axis = 0;
  const int last = at.rank() - 1;
  for (int axis = 0; axis < in_shape.rank(); ++axis) {
    const bool reduced = IsReduced(attrs, axis);
    if (!reduced) {
      box.begin[axis] = at[out_axis];
      box.size[axis] = out_axis == last ? row : 1;
    }
    if (!reduced || attrs.keep_dims) ++out_axis;
  }
  return box;
}

// The mean of every element of an output row whose innermost axis is the input's innermost axis, too.
void MeanOfColumns(const Operand& in, const Region& box, int64_t terms, std::vector<double>* sums, float* to) {
  std::fill(sums->begin(), sums->end(), 0.0);
  double* sum = sums->data();
  const int64_t count = RowLength(box);
  ForEachRow(box, [&](const Dims& from) {
    const float* x = in.At(from);
    for (int64_t c = 0; c < count; ++c) sum[c] += x[c];
  });
  for (int64_t c = 0; c < count; ++c) to[c] = static_cast<float>(sum[c] / static_cast<double>(terms));
}

float MeanOfBox(const Operand& in, const Region& box) {
  double sum = 0;
  const int64_t count = RowLength(box);
  ForEachRow(box, [&](const Dims& from) {
    const float* x = in.At(from);
    for (int64_t c = 0; c < count; ++c) sum += x[c];
  });
  return static_cast<float>(sum / static_cast<double>(box.Count()));
}

}  // namespace

std::unique_ptr<CpuKernel> MakeReduceMean(KernelArgs args) {
  const ReduceAttrs attrs = args.op->as<ReduceAttrs>();
  const Dims& in_shape = args.in_shape(0);
  const bool keeps_innermost = in_shape.rank() > 0 && !IsReduced(attrs, in_shape.rank() - 1);
  int64_t terms = 1;
  for (int axis : attrs.axes) terms *= in_shape[axis];
  const int64_t count = RowLength(args.region);
  std::vector<double> sums(static_cast<size_t>(count));
  return MakeKernel([args = std::move(args), attrs, keeps_innermost, terms, count, sums = std::move(sums)]() mutable {
    const Dims& shape = args.in_shape(0);
    ForEachRow(args.region, [&](const Dims& at) {
      float* to = args.out.At(at);
      if (keeps_innermost) {
        MeanOfColumns(args.in[0], ReducedBox(attrs, shape, at, count), terms, &sums, to);
        return;
      }
      Dims element = at;
      for (int64_t i = 0; i < count; ++i) {
        if (at.rank() > 0) element[at.rank() - 1] = at.back() + i;
        to[i] = MeanOfBox(args.in[0], ReducedBox(attrs, shape, element, 1));
      }
    });
  });
}

std::unique_ptr<CpuKernel> MakeSoftmax(KernelArgs args) {
  return MakeKernel([args = std::move(args)] {
    // Every element of a row needs the whole row, also where only some of it is wanted.
    const int last = args.region.size.rank() - 1;
    const int64_t length = args.out_shape()[last], count = args.region.size[last];
    ForEachRow(args.region, [&](const Dims& at) {
      Dims row = at;
      row[last] = 0;
      const float* x = args.in[0].At(row);
      const float largest = *std::max_element(x, x + length);
      double sum = 0;
      for (int64_t i = 0; i < length; ++i) sum += std::exp(x[i] - largest);
      const float scale = static_cast<float>(1.0 / sum);
      float* to = args.out.At(at);  // may be x: MayWriteOver
      for (int64_t i = 0; i < count; ++i) to[i] = std::exp(x[at[last] + i] - largest) * scale;
    });
  });
}

std::unique_ptr<CpuKernel> MakeLayerNorm(KernelArgs args) {
  const float epsilon = args.op->as<NormAttrs>().epsilon;
  return MakeKernel([args = std::move(args), epsilon] {
    const int last = args.region.size.rank() - 1;
    const int64_t length = args.out_shape()[last], first = args.region.begin[last], count = args.region.size[last];
    const float *gamma = args.in[1].At(first), *beta = args.in[2].At(first);
    ForEachRow(args.region, [&](const Dims& at) {
      Dims row = at;
      row[last] = 0;
      const float* x = args.in[0].At(row);
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < length; ++i) sum += x[i];
      const double mean = sum / static_cast<double>(length);
      for (int64_t i = 0; i < length; ++i) squares += (x[i] - mean) * (x[i] - mean);
      const double scale = 1.0 / std::sqrt(squares / static_cast<double>(length) + epsilon);
      float* to = args.out.At(at);
      for (int64_t i = 0; i < count; ++i) {
        to[i] = static_cast<float>((x[first + i] - mean) * scale) * gamma[i] + beta[i];
      }
    });
  });
}

}  // namespace plait::reference
