// Copies, Transpose and Pad: loops of our own, because XNNPACK's have no strides and parts are rarely dense.
#include <algorithm>
#include <cstring>

#include "backends/xnnpack/kernels.h"
#include "backends/xnnpack/loops.h"
#include "backends/xnnpack/operands.h"

namespace plait::xnn {
namespace {

constexpr int64_t kTileElements = 8192;  // what a thread takes at a time

struct CopyLoop {
  LoopNest<2> nest;
  const float* x = nullptr;
  float* y = nullptr;

  void operator()(pthreadpool_t pool) const noexcept {
    const size_t bytes = static_cast<size_t>(nest.inner()) * sizeof(float);
    if (nest.rows() == 1) {
      ParallelRanges(pool, nest.inner(), kTileElements, [this](int64_t begin, int64_t count) {
        std::memcpy(y + begin, x + begin, static_cast<size_t>(count) * sizeof(float));
      });
      return;
    }
    ParallelRanges(pool, nest.rows(), kTileElements / nest.inner(), [&](int64_t begin, int64_t count) {
      RowCursor<2> cursor(nest, begin);
      for (int64_t i = 0; i < count; ++i, cursor.Next()) std::memcpy(y + cursor.offset(1), x + cursor.offset(0), bytes);
    });
  }
};

// Copies whose innermost axes differ: a stack of matrices, each transposed in tiles.
struct TransposeLoop {
  LoopNest<2> outer;             // all axes but the two of the matrix; innermost of size 1
  int64_t rows = 0, cols = 0;    // of the input's matrix: cols contiguous there, rows contiguous in the output
  int64_t row_stride = 0;        // of the input
  int64_t col_stride = 0;        // of the output
  const float* x = nullptr;
  float* y = nullptr;
  static constexpr int64_t kSide = 64;

  void operator()(pthreadpool_t pool) const noexcept {
    const int64_t bands = (rows + kSide - 1) / kSide;
    ParallelRanges(pool, outer.rows() * bands, 1, [&](int64_t begin, int64_t count) {
      for (int64_t i = begin; i < begin + count; ++i) {
        const RowCursor<2> matrix(outer, i / bands);
        const int64_t r = i % bands * kSide;
        TransposeTile(x + matrix.offset(0) + r * row_stride, row_stride, std::min(kSide, rows - r), cols, y + matrix.offset(1) + r, col_stride);
      }
    });
  }
};

struct PadLoop {
  Dims extent, y_strides;        // of the part
  Dims inner_begin, inner_size;  // the box inside the part that the input fills; may be empty
  Dims x_strides;
  const float* x = nullptr;      // the element for inner_begin
  float* y = nullptr;
  float value = 0;

  void operator()(pthreadpool_t pool) const noexcept {
    LoopNest<1> nest{extent, {y_strides}};
    const int64_t n = extent.back();
    const bool empty = inner_size.Count() == 0;
    ParallelRanges(pool, nest.rows(), std::max<int64_t>(1, kTileElements / n), [&](int64_t begin, int64_t count) {
      RowCursor<1> cursor(nest, begin);
      for (int64_t row = begin; row < begin + count; ++row, cursor.Next()) {
        float* to = y + cursor.offset(0);
        int64_t from = 0;
        if (empty || !FindInput(row, &from)) {
          std::fill(to, to + n, value);
          continue;
        }
        const int64_t before = inner_begin.back(), size = inner_size.back();
        std::fill(to, to + before, value);
        std::memcpy(to + before, x + from, static_cast<size_t>(size) * sizeof(float));
        std::fill(to + before + size, to + n, value);
      }
    });
  }

 private:
  // The offset of the input row that fills output row `row`; false if that row is all padding.
  bool FindInput(int64_t row, int64_t* offset) const {
    *offset = 0;
    for (int axis = extent.rank() - 2; axis >= 0; --axis) {
      const int64_t i = row % extent[axis] - inner_begin[axis];
      row /= extent[axis];
      if (i < 0 || i >= inner_size[axis]) return false;
      *offset += i * x_strides[axis];
    }
    return true;
  }
};

Dims Without(const Dims& dims, int a, int b) {
  Dims out;
  for (int i = 0; i < dims.rank(); ++i) {
    if (i != a && i != b) out.push_back(dims[i]);
  }
  return out;
}

}  // namespace

std::unique_ptr<CpuKernel> MakeCopy(const KernelEnv& env, const Dims& extent, const float* from, const Dims& from_strides, float* to,
                                    const Dims& to_strides) {
  return MakeLoop(env.PoolFor(0, extent.Count() * 4), CopyLoop{Collapse<2>(extent, {from_strides, to_strides}), from, to});
}

KernelResult MakeTranspose(const KernelEnv& env, const KernelRequest& request) {
  const auto& perm = request.graph->op(request.op).as<TransposeAttrs>().perm;
  const Dims& read_strides = request.reads[0].view->strides;
  Dims in_strides;  // by output axis
  for (const int32_t axis : perm) in_strides.push_back(read_strides[axis]);
  const View& write = *request.write.view;
  const float* x = Floats(request.reads[0]);
  float* y = Floats(request.write);
  const LoopNest<2> nest = MergeAxes<2>(write.extent(), {in_strides, write.strides});
  const int last = nest.size.rank() - 1;
  int contiguous = last;  // the axis along which the input is contiguous
  for (int axis = last; axis >= 0; --axis) {
    if (nest.strides[0][axis] == 1) {
      contiguous = axis;
      break;
    }
  }
  if (contiguous == last || nest.strides[1][last] != 1) return MakeCopy(env, write.extent(), x, in_strides, y, write.strides);
  TransposeLoop loop;
  loop.outer = {Without(nest.size, contiguous, last), {Without(nest.strides[0], contiguous, last), Without(nest.strides[1], contiguous, last)}};
  loop.outer.size.push_back(1);
  for (Dims& s : loop.outer.strides) s.push_back(1);
  loop.rows = nest.size[last];
  loop.cols = nest.size[contiguous];
  loop.row_stride = nest.strides[0][last];
  loop.col_stride = nest.strides[1][contiguous];
  loop.x = x;
  loop.y = y;
  return MakeLoop(env.PoolFor(0, write.extent().Count() * 4), std::move(loop));
}

KernelResult MakePad(const KernelEnv& env, const KernelRequest& request) {
  const Operator& op = request.graph->op(request.op);
  const PadAttrs& a = op.as<PadAttrs>();
  const Dims& in_shape = request.graph->input(op, 0).shape;
  const View& read = *request.reads[0].view;
  PadLoop loop;
  loop.extent = request.region.size;
  loop.y_strides = request.write.view->strides;
  loop.x_strides = read.strides;
  loop.value = a.value;
  loop.y = Floats(request.write);
  loop.x = Floats(request.reads[0]);
  for (int axis = 0; axis < loop.extent.rank(); ++axis) {
    // The input's first and one past last element in this part, in the input's coordinates.
    const int64_t origin = request.region.begin[axis] - a.before[axis];
    const int64_t first = std::clamp<int64_t>(origin, 0, in_shape[axis]);
    const int64_t end = std::clamp<int64_t>(origin + loop.extent[axis], 0, in_shape[axis]);
    loop.inner_begin.push_back(first - origin);
    loop.inner_size.push_back(std::max<int64_t>(0, end - first));
    if (end > first) loop.x += (first - read.region.begin[axis]) * read.strides[axis];
  }
  return MakeLoop(env.PoolFor(0, loop.extent.Count() * 4), std::move(loop));
}

}  // namespace plait::xnn
