// Concat, Slice, Reshape, Transpose and Pad: the elements' places change, their values do not.
#include <cstring>

#include "backends/reference/kernels.h"

namespace plait::reference {
namespace {

void CopyRow(const float* from, int64_t count, float* to) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

// The coordinate of the element with the row-major number `index`.
Dims Unflatten(int64_t index, const Dims& shape) {
  Dims at = Dims::Filled(shape.rank(), 0);
  for (int i = shape.rank() - 1; i >= 0; --i) {
    at[i] = index % shape[i];
    index /= shape[i];
  }
  return at;
}

}  // namespace

std::unique_ptr<CpuKernel> MakeConcat(KernelArgs args) {
  const int axis = args.op->as<ConcatAttrs>().axis;
  return MakeKernel([args = std::move(args), axis] {
    int64_t offset = 0;
    for (size_t i = 0; i < args.in.size(); ++i) {
      Region piece = Region::Whole(args.in_shape(static_cast<int>(i)));
      piece.begin[axis] = offset;
      piece = Intersect(piece, args.region);
      ForEachRow(piece, [&](const Dims& at) {
        Dims from = at;
        from[axis] -= offset;
        CopyRow(args.in[i].At(from), RowLength(piece), args.out.At(at));
      });
      offset += args.in_shape(static_cast<int>(i))[axis];
    }
  });
}

std::unique_ptr<CpuKernel> MakeSlice(KernelArgs args) {
  const Dims begin = args.op->as<SliceAttrs>().begin;
  return MakeKernel([args = std::move(args), begin] {
    ForEachRow(args.region, [&](const Dims& at) {
      Dims from = at;
      for (int i = 0; i < at.rank(); ++i) from[i] += begin[i];
      CopyRow(args.in[0].At(from), RowLength(args.region), args.out.At(at));
    });
  });
}

std::unique_ptr<CpuKernel> MakeReshape(KernelArgs args) {
  return MakeKernel([args = std::move(args)] {
    const Dims &in_shape = args.in_shape(0), &out_shape = args.out_shape();
    const Dims strides = DenseStrides(out_shape);
    const int64_t count = RowLength(args.region);
    const int64_t in_row = in_shape.rank() == 0 ? 1 : in_shape.back();
    ForEachRow(args.region, [&](const Dims& at) {
      int64_t index = 0;
      for (int i = 0; i < at.rank(); ++i) index += at[i] * strides[i];
      float* to = args.out.At(at);
      for (int64_t done = 0; done < count;) {
        const Dims from = Unflatten(index + done, in_shape);
        const int64_t run = std::min(count - done, in_row - (from.rank() == 0 ? 0 : from.back()));
        CopyRow(args.in[0].At(from), run, to + done);
        done += run;
      }
    });
  });
}

std::unique_ptr<CpuKernel> MakeTranspose(KernelArgs args) {
  const std::vector<int32_t> perm = args.op->as<TransposeAttrs>().perm;
  return MakeKernel([args = std::move(args), perm] {
    const int64_t count = RowLength(args.region);
    const int64_t stride = perm.empty() ? 1 : args.in[0].strides[perm.back()];
    ForEachRow(args.region, [&](const Dims& at) {
      Dims source = at;
      for (int i = 0; i < at.rank(); ++i) source[perm[static_cast<size_t>(i)]] = at[i];
      const float* from = args.in[0].At(source);
      float* to = args.out.At(at);
      for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
    });
  });
}

std::unique_ptr<CpuKernel> MakePad(KernelArgs args) {
  const PadAttrs attrs = args.op->as<PadAttrs>();
  return MakeKernel([args = std::move(args), attrs] {
    Region inside = Region::Whole(args.in_shape(0));
    inside.begin = attrs.before;
    inside = Intersect(inside, args.region);
    ForEachRow(args.region, [&](const Dims& at) {
      float* to = args.out.At(at);
      std::fill(to, to + RowLength(args.region), attrs.value);
    });
    ForEachRow(inside, [&](const Dims& at) {
      Dims from = at;
      for (int i = 0; i < at.rank(); ++i) from[i] -= attrs.before[i];
      CopyRow(args.in[0].At(from), RowLength(inside), args.out.At(at));
    });
  });
}

}  // namespace plait::reference
