// Operators that work along rows: Softmax, LayerNorm, ReduceMean.
#include <algorithm>

#include "backends/xnnpack/kernels.h"
#include "backends/xnnpack/loops.h"
#include "backends/xnnpack/operands.h"

namespace plait::xnn {
namespace {

constexpr int64_t kTileElements = 4096;  // what a thread takes at a time
constexpr int64_t kMostOperators = 256;

// All axes but the innermost, merged; rows of `length`.
LoopNest<2> RowsOf(const View& read, const View& write) {
  return MergeAxes<2>(OuterAxes(write.extent()), {OuterAxes(read.strides), OuterAxes(write.strides)});
}

struct LayerNormLoop {
  LoopNest<2> nest;  // innermost: the row
  const float* x = nullptr;
  const float* gamma = nullptr;
  const float* beta = nullptr;
  float epsilon = 0;
  float* y = nullptr;
  std::shared_ptr<const ConstData> gamma_owner, beta_owner;

  void operator()(pthreadpool_t pool) const noexcept {
    ParallelRanges(pool, nest.rows(), kTileElements / nest.inner(), [this](int64_t begin, int64_t count) {
      RowCursor<2> cursor(nest, begin);
      for (int64_t i = 0; i < count; ++i, cursor.Next()) {
        NormalizeRow(x + cursor.offset(0), gamma, beta, epsilon, y + cursor.offset(1), nest.inner());
      }
    });
  }
};

// The mean over some axes while the innermost stays: each kept position sums rectangles of pixels.
struct MeanOverPixels {
  LoopNest<2> kept;      // kept axes; the innermost is the row of channels
  LoopNest<1> reduced;   // reduced axes, unmerged so that sums stay short; the two innermost are the rectangle
  const float* x = nullptr;
  float* y = nullptr;
  float scale = 1;
  int64_t channel_tile = 0;

  void operator()(pthreadpool_t pool) const noexcept {
    const int64_t tiles = (kept.inner() + channel_tile - 1) / channel_tile;
    ParallelRanges(pool, kept.rows() * tiles, 1, [&](int64_t begin, int64_t count) {
      for (int64_t i = begin; i < begin + count; ++i) {
        const RowCursor<2> position(kept, i / tiles);
        const int64_t c = i % tiles * channel_tile;
        Mean(x + position.offset(0) + c, y + position.offset(1) + c, std::min(channel_tile, kept.inner() - c));
      }
    });
  }

 private:
  void Mean(const float* from, float* to, int64_t channels) const {
    const int rank = reduced.size.rank();
    const Pixels shape{from, rank > 1 ? reduced.size.back(1) : 1, reduced.size.back(0), rank > 1 ? reduced.strides[0].back(1) : 0,
                       reduced.strides[0].back(0)};
    if (rank <= 2) return SumPixels(shape, scale, Clamp{}, to, channels);
    // Rarely are there more than two: sum the rectangles one by one, then scale.
    LoopNest<1> rectangles{OuterAxes(reduced.size), {OuterAxes(reduced.strides[0])}};
    std::fill(to, to + channels, 0.0f);
    RowCursor<1> cursor(rectangles, 0);
    float sum[kChunk];
    for (int64_t i = 0; i < rectangles.rows(); ++i, cursor.Next()) {
      for (int64_t c = 0; c < channels; c += kChunk) {
        const int64_t n = std::min(kChunk, channels - c);
        Pixels rectangle = shape;
        rectangle.data = from + cursor.offset(0) + c;
        SumPixels(rectangle, 1.0f, Clamp{}, sum, n);
        for (int64_t k = 0; k < n; ++k) to[c + k] += sum[k];
      }
    }
    for (int64_t c = 0; c < channels; ++c) to[c] *= scale;
  }
  static constexpr int64_t kChunk = 256;
};

// The mean over axes that include the innermost.
struct MeanOverRows {
  LoopNest<2> kept;
  LoopNest<1> reduced;  // innermost: contiguous
  const float* x = nullptr;
  float* y = nullptr;
  float scale = 1;

  void operator()(pthreadpool_t pool) const noexcept {
    ParallelRanges(pool, kept.size.Count(), std::max<int64_t>(1, kTileElements / reduced.size.Count()), [&](int64_t begin, int64_t count) {
      RowCursor<2> position(kept, begin);
      for (int64_t i = 0; i < count; ++i, position.Next()) {
        RowCursor<1> cursor(reduced, 0);
        float sum = 0;
        for (int64_t row = 0; row < reduced.rows(); ++row, cursor.Next()) sum += SumRow(x + position.offset(0) + cursor.offset(0), reduced.inner());
        y[position.offset(1)] = sum * scale;
      }
    });
  }
};

}  // namespace

KernelResult MakeSoftmax(const KernelEnv& env, const KernelRequest& request) {
  const View& read = *request.reads[0].view;
  const View& write = *request.write.view;
  const LoopNest<2> rows = RowsOf(read, write);
  const int64_t channels = write.extent().back();
  const int64_t in_stride = rows.inner() > 1 ? rows.strides[0].back() : channels;
  const int64_t out_stride = rows.inner() > 1 ? rows.strides[1].back() : channels;
  if (in_stride < channels || out_stride < channels || rows.rows() > kMostOperators) return std::unique_ptr<CpuKernel>();
  const auto size = [](int64_t v) { return static_cast<size_t>(v); };
  auto kernel = std::make_unique<OperatorListKernel>(env.PoolFor(0, write.extent().Count() * 8));
  RowCursor<2> cursor(rows, 0);
  for (int64_t i = 0; i < rows.rows(); ++i, cursor.Next()) {
    PLAIT_ASSIGN_OR_RETURN(XnnOperator op, MakeOperator("xnn_create_softmax_nc_f32", [](xnn_operator_t* out) {
      return xnn_create_softmax_nc_f32(0, out);
    }));
    env.store->CountOperator();
    PLAIT_RETURN_IF_ERROR(ToStatus(xnn_reshape_softmax_nc_f32(op.get(), size(channels), size(in_stride), size(out_stride), size(rows.inner()),
                                                              kernel->pool()), "xnn_reshape_softmax_nc_f32"));
    PLAIT_RETURN_IF_ERROR(ToStatus(xnn_setup_softmax_nc_f32(op.get(), Floats(request.reads[0]) + cursor.offset(0),
                                                            Floats(request.write) + cursor.offset(1)), "xnn_setup_softmax_nc_f32"));
    kernel->Add(std::move(op));
  }
  return std::unique_ptr<CpuKernel>(std::move(kernel));
}

KernelResult MakeLayerNorm(const KernelEnv& env, const KernelRequest& request) {
  const Operator& op = request.graph->op(request.op);
  const View& write = *request.write.view;
  LayerNormLoop loop;
  loop.nest = RowsOf(*request.reads[0].view, write);
  loop.nest.size.push_back(write.extent().back());
  for (Dims& s : loop.nest.strides) s.push_back(1);
  loop.x = Floats(request.reads[0]);
  loop.y = Floats(request.write);
  loop.gamma_owner = request.graph->input(op, 1).data;
  loop.beta_owner = request.graph->input(op, 2).data;
  loop.gamma = loop.gamma_owner->as<float>();
  loop.beta = loop.beta_owner->as<float>();
  loop.epsilon = op.as<NormAttrs>().epsilon;
  return MakeLoop(env.PoolFor(0, write.extent().Count() * 8), std::move(loop));
}

KernelResult MakeReduceMean(const KernelEnv& env, const KernelRequest& request) {
  const Operator& op = request.graph->op(request.op);
  const ReduceAttrs& a = op.as<ReduceAttrs>();
  const View& read = *request.reads[0].view;
  const View& write = *request.write.view;
  const int rank = read.extent().rank();
  Dims kept_size, kept_in, kept_out, reduced_size, reduced_in;
  int out_axis = 0;
  for (int axis = 0; axis < rank; ++axis) {
    const bool is_reduced = std::find(a.axes.begin(), a.axes.end(), axis) != a.axes.end();
    if (is_reduced) {
      reduced_size.push_back(read.extent()[axis]);
      reduced_in.push_back(read.strides[axis]);
      if (a.keep_dims) ++out_axis;
      continue;
    }
    kept_size.push_back(read.extent()[axis]);
    kept_in.push_back(read.strides[axis]);
    kept_out.push_back(write.strides[out_axis++]);
  }
  const float scale = 1.0f / static_cast<float>(reduced_size.Count());
  const float* x = Floats(request.reads[0]);
  float* y = Floats(request.write);
  const pthreadpool_t pool = env.PoolFor(0, read.extent().Count() * 4);
  const bool keeps_innermost = std::find(a.axes.begin(), a.axes.end(), rank - 1) == a.axes.end();
  if (keeps_innermost) {
    MeanOverPixels loop{Collapse<2>(kept_size, {kept_in, kept_out}), LoopNest<1>{reduced_size, {reduced_in}}, x, y, scale, 0};
    loop.channel_tile = pool == nullptr ? loop.kept.inner() : 64;
    return MakeLoop(pool, std::move(loop));
  }
  LoopNest<2> kept = MergeAxes<2>(kept_size, {kept_in, kept_out});
  kept.size.push_back(1);
  for (Dims& s : kept.strides) s.push_back(1);
  return MakeLoop(pool, MeanOverRows{kept, Collapse<1>(reduced_size, {reduced_in}), x, y, scale});
}

}  // namespace plait::xnn
