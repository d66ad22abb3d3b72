// Convolution, fully connected and matmul operators: all one register-tiled kernel over packed column tiles.
#include <algorithm>
#include <array>
#include <cmath>

#include "backends/opencl/operand.h"
#include "backends/opencl/rules.h"
#include "src/base/checked.h"

namespace plait::opencl {
namespace {

// Weights [Co][K] as tiles [group][tile][K][kTileColumns], groups padded with zeros to whole tiles. `groups` divides Co.
std::vector<float> PackTiles(const Tensor& tensor, int64_t groups) {
  const int64_t co = tensor.shape[0], depth = tensor.shape.Count() / co, columns = co / groups;
  const int64_t tiles = CeilDiv(columns, kTileColumns);
  std::vector<float> packed(static_cast<size_t>(groups * tiles * depth * kTileColumns), 0.0f);
  const float* weights = tensor.data->as<float>();
  for (int64_t c = 0; c < co; ++c) {
    const int64_t tile = c / columns * tiles + c % columns / kTileColumns;
    float* to = packed.data() + tile * depth * kTileColumns + c % columns % kTileColumns;
    const float* from = weights + c * depth;
    for (int64_t k = 0; k < depth; ++k) to[k * kTileColumns] = from[k];
  }
  return packed;
}

// Names a packed form. One constant may be seen with several shapes.
std::string TileForm(const char* what, int64_t columns, int64_t groups) {
  return StrCat(what, "/", columns, "/", groups, "x", kTileColumns);
}

// Rows an item of the tiled kernel: few items on a CPU, one register tile on a GPU.
int64_t TileRows(const Device& device, int64_t rows, int64_t column_items) {
  const int64_t tile = device.tuning().row_tile;
  if (!device.tuning().single_item_groups) return tile;
  const int64_t units = device.info().compute_units;
  const int64_t items = units == 1 ? 1 : CeilDiv(4 * units, column_items);
  return std::max(tile, RoundUp(CeilDiv(rows, items), tile));
}

}  // namespace

Status StepLowering::Pointwise(const Operand& x, const Operand& y, const Memory& tiles, const Memory& bias, int64_t depth, Clamp clamp) {
  const int last = out().size.rank() - 1;
  const int64_t channel = out().begin[last];
  if (channel % kTileColumns != 0) {
    return InvalidArgument("the part begins at channel ", channel, ", which is no multiple of ", kTileColumns);
  }
  Dims rows = out().size, begin = out().begin;
  rows[last] = 1;
  begin[last] = 0;
  const int64_t channels = out().size[last], columns = CeilDiv(channels, kTileColumns), first_tile = channel / kTileColumns;
  return ForEachOuter(MergedAxes(rows, {x.strides, y.strides}), 3, [&](const Axes& axes, const auto& offsets) -> Status {
    const int64_t m = axes[2].extent, batches = axes[0].extent * axes[1].extent;
    const bool one = m == 1;
    const int64_t gemv_tiles = device().tuning().gemv_tiles;
    const int64_t column_items = one ? CeilDiv(columns, gemv_tiles) : columns;
    const int64_t tile_rows = TileRows(device(), m, column_items * batches);
    LaunchBuilder launch(device(), Family::kGemm, one ? "gemv" : "gemm");
    launch.Arg(x.memory)
        .Arg({x.At(begin) + offsets[0], axes[2].strides[0], axes[0].strides[0], axes[1].strides[0]})
        .Arg(tiles)
        .Arg({first_tile * depth * kTileColumns, kTileColumns, depth * kTileColumns, 0, 0, 0, 0, 0})
        .Arg(bias)
        .Arg({first_tile * kTileColumns})
        .Arg(y.memory)
        .Arg({y.At(out().begin) + offsets[1], axes[2].strides[1], axes[0].strides[1], axes[1].strides[1]})
        .Arg({m, channels, depth, tile_rows})
        .Arg({axes[1].extent})
        .Arg(clamp.min, clamp.max);
    return Add(launch.Finish(one ? 1 : CeilDiv(m, tile_rows), column_items, batches));
  });
}

Status StepLowering::FullyConnected() {
  PLAIT_ASSIGN_OR_RETURN(const Operand x, Read(0));
  PLAIT_ASSIGN_OR_RETURN(const Operand y, Write());
  const Tensor& weights = input(1);
  PLAIT_ASSIGN_OR_RETURN(const Memory tiles, Packed(weights, TileForm("tiles", weights.shape[0], 1), PackTiles, 1));
  const int64_t padded = RoundUp(weights.shape[0], kTileColumns);
  Result<Memory> bias = has_input(2) ? Packed(input(2), TileForm("bias", weights.shape[0], 1), PackTiles, 1) : Zeros(padded);
  PLAIT_RETURN_IF_ERROR(bias.status());
  return Pointwise(x, y, tiles, *bias, weights.shape[1], op_.as<FullyConnectedAttrs>().clamp);
}

Status StepLowering::Conv() {
  PLAIT_ASSIGN_OR_RETURN(const Operand x, Read(0));
  PLAIT_ASSIGN_OR_RETURN(const Operand y, Write());
  const auto& attrs = op_.as<Conv2DAttrs>();
  const Tensor& weights = input(1);
  const int64_t co = weights.shape[0], kh = weights.shape[1], kw = weights.shape[2], ci = weights.shape[3];
  const int64_t depth = kh * kw * ci, group_channels = co / attrs.groups, group_tiles = CeilDiv(group_channels, kTileColumns);
  PLAIT_ASSIGN_OR_RETURN(const Memory tiles, Packed(weights, TileForm("tiles", co, attrs.groups), PackTiles, attrs.groups));
  const int64_t padded = attrs.groups * group_tiles * kTileColumns;
  Result<Memory> bias = has_input(2) ? Packed(input(2), TileForm("bias", co, attrs.groups), PackTiles, attrs.groups) : Zeros(padded);
  PLAIT_RETURN_IF_ERROR(bias.status());
  const bool pointwise = kh == 1 && kw == 1 && attrs.stride_h == 1 && attrs.stride_w == 1 && attrs.groups == 1 && attrs.pad == Padding{};
  if (pointwise) return Pointwise(x, y, tiles, *bias, ci, attrs.clamp);

  const Dims& begin = out().begin;
  const Dims& size = out().size;
  const int64_t c_end = begin[3] + size[3];
  if (begin[3] % group_channels % kTileColumns != 0) {
    return InvalidArgument("the part begins at channel ", begin[3], ", which is no border of a tile of ", kTileColumns);
  }
  const auto tile_of = [&](int64_t c) { return c / group_channels * group_tiles + c % group_channels / kTileColumns; };
  const int64_t first_tile = tile_of(begin[3]), column_items = tile_of(c_end - 1) + 1 - first_tile;
  const int64_t pixels = size[0] * size[1] * size[2];
  const int64_t rows = TileRows(device(), pixels, column_items);
  // Within the image, a window's row is one run of memory if columns follow each other without gaps.
  const bool merge = attrs.dilation_w == 1 && x.strides[2] == ci && attrs.groups == 1;
  PLAIT_ASSIGN_OR_RETURN(const Memory zeros, Zeros(ci));
  LaunchBuilder launch(device(), Family::kGemm, "conv");
  launch.Arg(x.memory)
      .Arg({x.At({begin[0], 0, 0, 0}), x.strides[0], x.strides[1], x.strides[2]})
      .Arg(tiles)
      .Arg({0, depth * kTileColumns})
      .Arg(*bias)
      .Arg(y.memory)
      .Arg({y.At({begin[0], begin[1], begin[2], 0}), y.strides[0], y.strides[1], y.strides[2]})
      .Arg(zeros)
      .Arg({pixels, group_channels, rows, group_tiles})
      .Arg({input(0).shape[1], input(0).shape[2], size[1], size[2]})
      .Arg({begin[1] * attrs.stride_h - attrs.pad.top, begin[2] * attrs.stride_w - attrs.pad.left})
      .Arg({kh, kw, ci, merge})
      .Arg({attrs.stride_h, attrs.stride_w, attrs.dilation_h, attrs.dilation_w})
      .Arg({ci, first_tile, c_end, 0})
      .Arg(attrs.clamp.min, attrs.clamp.max);
  return Add(launch.Finish(CeilDiv(pixels, rows), column_items));
}

int64_t ScratchElements(const Graph& graph, const Step& step) {
  if (step.kind != StepKind::kCompute || step.op == kNoOp) return 0;
  const Operator& op = graph.op(step.op);
  if (op.kind != OpKind::kMatMul || !op.as<MatMulAttrs>().transpose_b) return 0;
  const int64_t depth = graph.input(op, 0).shape.back(), columns = step.region.size.back();
  const int64_t batches = step.region.Count() / (columns * step.region.size.back(1));
  return batches * RoundUp(columns, kTileColumns) * depth;
}

Status StepLowering::MatMul() {
  PLAIT_ASSIGN_OR_RETURN(const Operand a, Read(0));
  PLAIT_ASSIGN_OR_RETURN(const Operand b, Read(1));
  PLAIT_ASSIGN_OR_RETURN(const Operand y, Write());
  const bool transposed = op_.as<MatMulAttrs>().transpose_b;
  const int rank = out().size.rank(), row = rank - 2, column = rank - 1;
  const int64_t m = out().size[row], n = out().size[column], depth = input(0).shape.back();
  Dims a_begin = out().begin, b_begin = out().begin, batch = out().size;
  a_begin[column] = 0;
  b_begin[row] = transposed ? out().begin[column] : 0;
  b_begin[column] = transposed ? 0 : out().begin[column];
  batch[row] = batch[column] = 1;
  const int64_t columns = CeilDiv(n, kTileColumns), packed = columns * kTileColumns * depth;
  int64_t scratch = 0;
  return ForEachOuter(MergedAxes(batch, {a.strides, b.strides, y.strides}), 2, [&](const Axes& axes, const auto& offsets) -> Status {
    const int64_t inner = axes[1].extent, batches = axes[0].extent * inner;
    Memory right = b.memory;
    std::array<int64_t, 5> right_at = {b.At(b_begin) + offsets[1], b.strides[row], kTileColumns, axes[0].strides[1], axes[1].strides[1]};
    if (transposed) {
      LaunchBuilder pack(device(), Family::kGemm, "pack_transposed");
      pack.Arg(b.memory).Arg({right_at[0], b.strides[row], axes[0].strides[1], axes[1].strides[1]}).Arg(context_.scratch).Arg({n, depth, packed, inner});
      // Each place of further axes has its own scratch, behind the others.
      right = context_.scratch;
      right_at = {scratch, kTileColumns, kTileColumns * depth, packed * inner, packed};
      scratch += packed * batches;
      PLAIT_RETURN_IF_ERROR(Add(pack.Arg({right_at[0]}).Finish(columns, batches)));
    }
    const int64_t rows = TileRows(device(), m, columns * batches);
    LaunchBuilder launch(device(), Family::kGemm, transposed ? "gemm" : "gemm_strided");
    launch.Arg(a.memory)
        .Arg({a.At(a_begin) + offsets[0], a.strides[row], axes[0].strides[0], axes[1].strides[0]})
        .Arg(right)
        .Arg({right_at[0], right_at[1], right_at[2], right_at[3], right_at[4], 0, 0, 0})
        .Arg(right)
        .Arg({-1})
        .Arg(y.memory)
        .Arg({y.At(out().begin) + offsets[2], y.strides[row], axes[0].strides[2], axes[1].strides[2]})
        .Arg({m, n, depth, rows})
        .Arg({inner})
        .Arg(-INFINITY, INFINITY);
    return Add(launch.Finish(CeilDiv(m, rows), columns, batches));
  });
}

}  // namespace plait::opencl
