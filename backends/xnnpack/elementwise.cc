// Unary, Binary and BatchNorm. XNNPACK's binary operator has neither strides nor a clamp, so those are loops of our own.
#include <algorithm>
#include <cmath>
#include <optional>

#include "backends/xnnpack/kernels.h"
#include "backends/xnnpack/loops.h"
#include "backends/xnnpack/operands.h"

namespace plait::xnn {
namespace {

constexpr int64_t kTileBytes = 16 << 10;  // what a thread takes at a time: fits L1
constexpr int64_t kMostOperators = 256;   // more pieces than this are gathered into dense memory instead

int64_t RowsPerTile(int64_t inner) { return inner <= 0 ? 1 : kTileBytes / 4 / inner; }

// A nest whose rows are short enough to share among threads: a single long row becomes several.
template <size_t kOperands>
LoopNest<kOperands> SplitLongRows(LoopNest<kOperands> nest) {
  constexpr int64_t kPiece = kTileBytes / 4;
  if (nest.inner() < 2 * kPiece || nest.size.rank() >= kMaxRank) return nest;
  int64_t piece = kPiece;
  while (piece > kPiece / 4 && nest.inner() % piece != 0) piece -= 16;
  if (nest.inner() % piece != 0) return nest;
  const int last = nest.size.rank() - 1;
  nest.size.push_back(piece);
  nest.size[last] /= piece;
  for (Dims& s : nest.strides) {
    const int64_t inner = s[last];
    s.push_back(inner);
    s[last] = inner * piece;
  }
  return nest;
}

struct UnaryLoop {
  UnaryKind kind = UnaryKind::kCopy;
  LoopNest<2> nest;
  const float* x = nullptr;
  float* y = nullptr;

  void operator()(pthreadpool_t pool) const noexcept {
    ParallelRanges(pool, nest.rows(), RowsPerTile(nest.inner()), [this](int64_t begin, int64_t count) {
      RowCursor<2> cursor(nest, begin);
      for (int64_t i = 0; i < count; ++i, cursor.Next()) UnaryRow(kind, x + cursor.offset(0), y + cursor.offset(1), nest.inner());
    });
  }
};

struct BinaryLoop {
  BinaryAttrs attrs;
  LoopNest<3> nest;
  const float* a = nullptr;
  const float* b = nullptr;
  float* y = nullptr;

  void operator()(pthreadpool_t pool) const noexcept {
    // The axis outside the rows runs inside the loop: rows may be short.
    const bool single = nest.size.rank() == 1;
    const int64_t group = single ? 1 : nest.size.back(1);
    BinaryRowsArgs args;
    args.n = nest.inner();
    args.a.constant = nest.strides[0].back() == 0;
    args.b.constant = nest.strides[1].back() == 0;
    args.a.row_stride = single ? 0 : nest.strides[0].back(1);
    args.b.row_stride = single ? 0 : nest.strides[1].back(1);
    args.y_row_stride = single ? 0 : nest.strides[2].back(1);
    ParallelRanges(pool, nest.rows(), RowsPerTile(nest.inner()), [&](int64_t begin, int64_t count) {
      BinaryRowsArgs piece = args;
      for (int64_t row = begin; row < begin + count; row += piece.rows) {
        const RowCursor<3> cursor(nest, row);
        piece.rows = std::min(begin + count - row, group - row % group);
        piece.a.data = a + cursor.offset(0);
        piece.b.data = b + cursor.offset(1);
        piece.y = y + cursor.offset(2);
        BinaryRows(attrs.kind, piece, attrs.clamp);
      }
    });
  }
};

struct BatchNormLoop {
  LoopNest<2> nest;
  const float* x = nullptr;
  float* y = nullptr;
  AlignedBuffer scale, shift;

  void operator()(pthreadpool_t pool) const noexcept {
    ParallelRanges(pool, nest.rows(), RowsPerTile(nest.inner()), [this](int64_t begin, int64_t count) {
      RowCursor<2> cursor(nest, begin);
      for (int64_t i = 0; i < count; ++i, cursor.Next()) {
        ScaleShiftRow(x + cursor.offset(0), scale.floats(), shift.floats(), y + cursor.offset(1), nest.inner());
      }
    });
  }
};

std::optional<xnn_unary_operator> XnnUnary(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::kClamp: return xnn_unary_clamp;
    case UnaryKind::kSigmoid: return xnn_unary_sigmoid;
    case UnaryKind::kHardSwish: return xnn_unary_hardswish;
    case UnaryKind::kGelu: return xnn_unary_gelu;
    case UnaryKind::kTanh: return xnn_unary_tanh;
    case UnaryKind::kExp: return xnn_unary_exp;
    case UnaryKind::kSqrt: return xnn_unary_square_root;
    case UnaryKind::kNegate: return xnn_unary_negate;
    case UnaryKind::kAbs: return xnn_unary_abs;
    case UnaryKind::kSquare: return xnn_unary_square;
    case UnaryKind::kLog: return xnn_unary_log;
    default: return std::nullopt;
  }
}

// A matrix per operator: `rows` rows of `cols` elements at the given strides.
struct Matrix {
  int64_t rows = 1, cols = 1, in_stride = 1, out_stride = 1;
};

Result<XnnOperator> MakeXnnUnary(xnn_unary_operator type, const UnaryAttrs& attrs, const Matrix& m, pthreadpool_t pool) {
  xnn_unary_params params{};
  params.clamp.min = attrs.clamp.min;
  params.clamp.max = attrs.clamp.max;
  PLAIT_ASSIGN_OR_RETURN(XnnOperator op, MakeOperator("xnn_create_unary_elementwise_nc", [&](xnn_operator_t* out) {
    return xnn_create_unary_elementwise_nc(type, xnn_datatype_fp32, xnn_datatype_fp32, type == xnn_unary_clamp ? &params : nullptr,
                                           nullptr, nullptr, 0, out);
  }));
  PLAIT_RETURN_IF_ERROR(ToStatus(
      xnn_reshape_unary_elementwise_nc(op.get(), static_cast<size_t>(m.rows), static_cast<size_t>(m.cols),
                                       static_cast<size_t>(m.in_stride), static_cast<size_t>(m.out_stride), pool),
      "xnn_reshape_unary_elementwise_nc"));
  return op;
}

}  // namespace

KernelResult MakeUnary(const KernelEnv& env, const KernelRequest& request) {
  const UnaryAttrs& attrs = request.graph->op(request.op).as<UnaryAttrs>();
  const View& read = *request.reads[0].view;
  const View& write = *request.write.view;
  const float* x = Floats(request.reads[0]);
  float* y = Floats(request.write);
  if (attrs.kind == UnaryKind::kCopy) return MakeCopy(env, write.extent(), x, read.strides, y, write.strides);
  LoopNest<2> nest = Collapse<2>(write.extent(), {read.strides, write.strides});
  const pthreadpool_t pool = env.PoolFor(0, nest.size.Count() * 4);
  if (HasUnaryRow(attrs.kind)) return MakeLoop(pool, UnaryLoop{attrs.kind, SplitLongRows(nest), x, y});
  const std::optional<xnn_unary_operator> type = XnnUnary(attrs.kind);
  if (!type.has_value()) return Unsupported("unary function ", static_cast<int>(attrs.kind));

  // The two innermost axes are one operator; axes outside of them are operators of their own.
  Matrix matrix{1, nest.inner(), nest.inner(), nest.inner()};
  const int rank = nest.size.rank();
  if (rank > 1) matrix = {nest.size.back(1), nest.inner(), nest.strides[0].back(1), nest.strides[1].back(1)};
  if (matrix.in_stride < matrix.cols || matrix.out_stride < matrix.cols) return std::unique_ptr<CpuKernel>();
  LoopNest<2> pieces{OuterAxes(nest.size), {OuterAxes(nest.strides[0]), OuterAxes(nest.strides[1])}};
  if (rank == 1) pieces = {Dims{1}, {Dims{1}, Dims{1}}};
  if (pieces.rows() > kMostOperators) return std::unique_ptr<CpuKernel>();
  auto kernel = std::make_unique<OperatorListKernel>(pool);
  RowCursor<2> cursor(pieces, 0);
  for (int64_t i = 0; i < pieces.rows(); ++i, cursor.Next()) {
    PLAIT_ASSIGN_OR_RETURN(XnnOperator op, MakeXnnUnary(*type, attrs, matrix, pool));
    env.store->CountOperator();
    PLAIT_RETURN_IF_ERROR(ToStatus(xnn_setup_unary_elementwise_nc(op.get(), x + cursor.offset(0), y + cursor.offset(1)),
                                   "xnn_setup_unary_elementwise_nc"));
    kernel->Add(std::move(op));
  }
  return std::unique_ptr<CpuKernel>(std::move(kernel));
}

KernelResult MakeBinary(const KernelEnv& env, const KernelRequest& request) {
  const View& write = *request.write.view;
  std::array<Dims, 3> strides;
  strides[2] = write.strides;
  for (size_t k = 0; k < 2; ++k) {
    // Broadcast: missing leading axes and axes of size 1 do not move.
    const View& read = *request.reads[k].view;
    const int missing = write.extent().rank() - read.extent().rank();
    for (int axis = 0; axis < write.extent().rank(); ++axis) {
      const bool moves = axis >= missing && (read.extent()[axis - missing] != 1 || write.extent()[axis] == 1);
      strides[k].push_back(moves ? read.strides[axis - missing] : 0);
    }
  }
  BinaryLoop loop;
  loop.attrs = request.graph->op(request.op).as<BinaryAttrs>();
  loop.nest = SplitLongRows(Collapse<3>(write.extent(), strides));
  loop.a = Floats(request.reads[0]);
  loop.b = Floats(request.reads[1]);
  loop.y = Floats(request.write);
  return MakeLoop(env.PoolFor(0, write.extent().Count() * 4), std::move(loop));
}

KernelResult MakeBatchNorm(const KernelEnv& env, const KernelRequest& request) {
  const Operator& op = request.graph->op(request.op);
  const View& write = *request.write.view;
  const int64_t begin = request.region.begin.back(), channels = request.region.size.back();
  const float epsilon = op.as<NormAttrs>().epsilon;
  BatchNormLoop loop;
  loop.scale = AlignedBuffer::Allocate(channels * 4);
  loop.shift = AlignedBuffer::Allocate(channels * 4);
  if (loop.scale.data() == nullptr || loop.shift.data() == nullptr) return OutOfMemory("no memory for ", channels, " channels");
  const auto constant = [&](int i) { return request.graph->input(op, i).data->as<float>() + begin; };
  for (int64_t c = 0; c < channels; ++c) {
    const float scale = constant(1)[c] / std::sqrt(constant(4)[c] + epsilon);
    loop.scale.floats()[c] = scale;
    loop.shift.floats()[c] = constant(2)[c] - constant(3)[c] * scale;
  }
  // Rows are the innermost axis alone: it must not be merged with others.
  loop.nest = MergeAxes<2>(OuterAxes(write.extent()), {OuterAxes(request.reads[0].view->strides), OuterAxes(write.strides)});
  loop.nest.size.push_back(channels);
  for (Dims& s : loop.nest.strides) s.push_back(1);
  loop.x = Floats(request.reads[0]);
  loop.y = Floats(request.write);
  return MakeLoop(env.PoolFor(0, write.extent().Count() * 4), std::move(loop));
}

}  // namespace plait::xnn
