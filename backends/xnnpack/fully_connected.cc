// FullyConnected and MatMul.
#include <algorithm>

#include "backends/xnnpack/channel_blocks.h"
#include "backends/xnnpack/kernels.h"
#include "backends/xnnpack/operands.h"

namespace plait::xnn {
namespace {

size_t Size(int64_t v) { return static_cast<size_t>(v); }

// One fully connected operator: `rows` rows at the slice's strides.
Status AddFullyConnected(const KernelEnv& env, const Layer& layer, const LayerSlice& slice, const Clamp& clamp, int64_t rows,
                         const float* input, float* output, OperatorListKernel* kernel) {
  PLAIT_ASSIGN_OR_RETURN(LayerOperator made, env.store->Make(layer, slice, clamp, env.tiles->fully_connected));
  PLAIT_RETURN_IF_ERROR(ToStatus(xnn_reshape_fully_connected_nc_f32(made.op.get(), Size(rows), kernel->pool()),
                                 "xnn_reshape_fully_connected_nc_f32"));
  PLAIT_RETURN_IF_ERROR(ToStatus(xnn_setup_fully_connected_nc_f32(made.op.get(), input, output), "xnn_setup_fully_connected_nc_f32"));
  kernel->Add(std::move(made.op));
  kernel->KeepAlive(std::move(made.image));
  return Status();
}

// Matrices [rows, inner] x [inner, cols] of one request.
struct MatMulShape {
  int64_t batch = 1, rows = 1, inner = 1, cols = 1;
  Dims batch_extent, a_batch, b_batch, out_batch;   // batch axes: sizes and strides
  int64_t a_row = 0, out_row = 0;                   // strides of rows
  const float* a = nullptr;
  const float* b = nullptr;
  float* out = nullptr;
  bool transpose_b = false;
};

// All axes but the last two.
Dims BatchAxes(const Dims& dims) { return OuterAxes(OuterAxes(dims)); }

MatMulShape ShapeOf(const KernelRequest& request) {
  const View& a = *request.reads[0].view;
  const View& out = *request.write.view;
  MatMulShape s;
  s.transpose_b = request.graph->op(request.op).as<MatMulAttrs>().transpose_b;
  s.batch_extent = BatchAxes(out.extent());
  s.batch = s.batch_extent.Count();
  s.rows = out.extent().back(1);
  s.cols = out.extent().back(0);
  s.inner = a.extent().back(0);
  s.a_batch = BatchAxes(a.strides);
  s.b_batch = BatchAxes(request.reads[1].view->strides);
  s.out_batch = BatchAxes(out.strides);
  s.a_row = s.rows > 1 ? a.strides.back(1) : s.inner;
  s.out_row = s.rows > 1 ? out.strides.back(1) : s.cols;
  s.a = Floats(request.reads[0]);
  s.b = Floats(request.reads[1]);
  s.out = Floats(request.write);
  return s;
}

// One batch_matrix_multiply for everything; all operands dense.
KernelResult MakeBatched(const KernelEnv& env, const MatMulShape& s) {
  auto kernel = std::make_unique<OperatorListKernel>(env.PoolFor(s.batch * s.rows * s.inner * s.cols, 0));
  PLAIT_ASSIGN_OR_RETURN(XnnOperator op, MakeOperator("xnn_create_batch_matrix_multiply_nc_f32", [&](xnn_operator_t* out) {
    return xnn_create_batch_matrix_multiply_nc_f32(s.transpose_b ? XNN_FLAG_TRANSPOSE_B : 0, out);
  }));
  env.store->CountOperator();
  const size_t batch = Size(s.batch);
  size_t workspace_bytes = 0, alignment = 0;
  PLAIT_RETURN_IF_ERROR(ToStatus(
      xnn_reshape_batch_matrix_multiply_nc_f32(op.get(), 1, &batch, &batch, Size(s.rows), Size(s.inner), Size(s.cols), &workspace_bytes,
                                               &alignment, kernel->pool()), "xnn_reshape_batch_matrix_multiply_nc_f32"));
  void* workspace = workspace_bytes == 0 ? nullptr : kernel->ReserveWorkspace(static_cast<int64_t>(workspace_bytes));
  if (workspace_bytes > 0 && workspace == nullptr) return OutOfMemory("no memory for a workspace of ", workspace_bytes, " bytes");
  PLAIT_RETURN_IF_ERROR(ToStatus(xnn_setup_batch_matrix_multiply_nc_f32(op.get(), workspace, s.a, s.b, s.out),
                                 "xnn_setup_batch_matrix_multiply_nc_f32"));
  kernel->Add(std::move(op));
  return std::unique_ptr<CpuKernel>(std::move(kernel));
}

// A dynamic_fully_connected per matrix: rows may have strides; each matrix b is dense.
KernelResult MakePerMatrix(const KernelEnv& env, const MatMulShape& s) {
  auto kernel = std::make_unique<OperatorListKernel>(env.PoolFor(s.rows * s.inner * s.cols, 0));
  LoopNest<3> nest{s.batch_extent, {s.a_batch, s.b_batch, s.out_batch}};
  nest.size.push_back(1);
  for (Dims& strides : nest.strides) strides.push_back(1);
  RowCursor<3> cursor(nest, 0);
  void* workspace = nullptr;
  for (int64_t i = 0; i < s.batch; ++i, cursor.Next()) {
    PLAIT_ASSIGN_OR_RETURN(XnnOperator op, MakeOperator("xnn_create_dynamic_fully_connected_nc_f32", [&](xnn_operator_t* out) {
      return xnn_create_dynamic_fully_connected_nc_f32(Clamp{}.min, Clamp{}.max, s.transpose_b ? 0 : XNN_FLAG_TRANSPOSE_WEIGHTS, out);
    }));
    env.store->CountOperator();
    size_t workspace_bytes = 0, alignment = 0;
    PLAIT_RETURN_IF_ERROR(ToStatus(
        xnn_reshape_dynamic_fully_connected_nc_f32(op.get(), Size(s.rows), Size(s.inner), Size(s.cols), Size(s.a_row), Size(s.out_row),
                                                   &workspace_bytes, &alignment, kernel->pool()),
        "xnn_reshape_dynamic_fully_connected_nc_f32"));
    // The operators run one after another and are alike: they share one workspace.
    if (workspace == nullptr && workspace_bytes > 0) {
      workspace = kernel->ReserveWorkspace(static_cast<int64_t>(workspace_bytes));
      if (workspace == nullptr) return OutOfMemory("no memory for a workspace of ", workspace_bytes, " bytes");
    }
    PLAIT_RETURN_IF_ERROR(ToStatus(
        xnn_setup_dynamic_fully_connected_nc_f32(op.get(), workspace, s.a + cursor.offset(0), s.b + cursor.offset(1), nullptr,
                                                 s.out + cursor.offset(2)), "xnn_setup_dynamic_fully_connected_nc_f32"));
    kernel->Add(std::move(op));
  }
  return std::unique_ptr<CpuKernel>(std::move(kernel));
}

}  // namespace

KernelResult MakeFullyConnected(const KernelEnv& env, const KernelRequest& request) {
  const Operator& op = request.graph->op(request.op);
  const Tensor& weights = request.graph->input(op, 1);
  Layer layer;
  layer.kind = LayerKind::kFullyConnected;
  layer.channels = weights.shape[0];
  layer.group_in = weights.shape[1];
  layer.weights = weights.data;
  if (op.inputs.size() > 2 && op.inputs[2] != kNoTensor) layer.bias = request.graph->input(op, 2).data;

  const View& read = *request.reads[0].view;
  const View& write = *request.write.view;
  const LoopNest<2> rows = MergeAxes<2>(OuterAxes(write.extent()), {OuterAxes(read.strides), OuterAxes(write.strides)});
  const int64_t begin = request.region.begin.back(), count = request.region.size.back();
  const int64_t in_stride = rows.inner() > 1 ? rows.strides[0].back() : layer.group_in;
  const int64_t out_stride = rows.inner() > 1 ? rows.strides[1].back() : count;
  if (in_stride < layer.group_in || out_stride < count) return std::unique_ptr<CpuKernel>();
  auto kernel = std::make_unique<OperatorListKernel>(env.PoolFor(rows.size.Count() * count * layer.group_in, 0));
  const int64_t tile = env.tiles->fully_connected;
  const int64_t block = ChannelBlock(count, layer.group_in * 4, rows.inner(), tile, env.l2_bytes);
  RowCursor<2> cursor(rows, 0);
  for (int64_t group = 0; group < rows.rows(); ++group, cursor.Next()) {
    for (int64_t done = 0; done < count;) {
      const int64_t now = NextBlock(count - done, block, tile);
      const LayerSlice slice{begin + done, now, in_stride, out_stride, Padding{}};
      PLAIT_RETURN_IF_ERROR(AddFullyConnected(env, layer, slice, op.as<FullyConnectedAttrs>().clamp, rows.inner(),
                                              Floats(request.reads[0]) + cursor.offset(0), Floats(request.write) + cursor.offset(1) + done,
                                              kernel.get()));
      done += now;
    }
  }
  return std::unique_ptr<CpuKernel>(std::move(kernel));
}

KernelResult MakeMatMul(const KernelEnv& env, const KernelRequest& request) {
  const MatMulShape s = ShapeOf(request);
  const View& b = *request.reads[1].view;
  if (IsDense(*request.reads[0].view) && IsDense(b) && IsDense(*request.write.view)) return MakeBatched(env, s);
  const int64_t b_rows = b.extent().back(1), b_cols = b.extent().back(0);
  const bool b_dense = b_rows == 1 || b.strides.back(1) == b_cols;
  if (!b_dense || s.a_row < s.inner || s.out_row < s.cols) return std::unique_ptr<CpuKernel>();
  return MakePerMatrix(env, s);
}

}  // namespace plait::xnn
