// Conv2D, FullyConnected and MatMul: tiles of a few rows by a few packed columns.
#include <cstring>

#include "backends/reference/kernels.h"

namespace plait::reference {
namespace {

// Writes the tile's first `rows` rows and `columns` columns to the addresses, clamped.
void StoreTile(const float tile[kTileRows][kTileColumns], int64_t rows, int64_t columns, const Clamp& clamp,
               float* const to[kTileRows]) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[r][c] = Apply(clamp, tile[r][c]);
  }
}

// All packed columns for up to kTileRows rows. `bias` may be nullptr.
void MultiplyRows(const float* const rows[kTileRows], int64_t row_count, const Packed& packed, int64_t columns,
                  int64_t depth, const float* bias, const Clamp& clamp, float* const to[kTileRows]) {
  for (int64_t column = 0; column < columns; column += kTileColumns) {
    const int64_t count = std::min(kTileColumns, columns - column);
    float start[kTileColumns] = {};
    if (bias != nullptr) std::memcpy(start, bias + column, static_cast<size_t>(count) * sizeof(float));
    float tile[kTileRows][kTileColumns];
    MultiplyTile(rows, packed.data() + column * depth, depth, start, tile);
    float* shifted[kTileRows];
    for (int64_t r = 0; r < row_count; ++r) shifted[r] = to[r] + column;
    StoreTile(tile, row_count, count, clamp, shifted);
  }
}

// Packs rows [first, first + columns) of a weight tensor whose innermost elements are contiguous: w[Co, ..., Ci].
void PackRows(const Operand& w, int64_t first, int64_t columns, Packed* packed) {
  Region box = w.region;
  box.begin[0] = first;
  box.size[0] = 1;
  const int64_t run = RowLength(box);
  const int64_t depth = box.Count();
  for (int64_t column = 0; column < columns; ++column) {
    box.begin[0] = first + column;
    float* to = packed->data() + column / kTileColumns * kTileColumns * depth + column % kTileColumns;
    ForEachRow(box, [&](const Dims& at) {
      const float* from = w.At(at);
      for (int64_t i = 0; i < run; ++i, to += kTileColumns) *to = from[i];
    });
  }
}

// The packed rows of a weight operand: once, shared, for constants; else into memory of the kernel's own at each run.
class PackedWeights {
 public:
  PackedWeights(const KernelArgs& args, const Operand& w, int64_t first, int64_t columns)
      : w_(w), first_(first), columns_(columns) {
    int64_t depth = 1;
    for (int i = 1; i < w.region.size.rank(); ++i) depth *= w.region.size[i];
    const auto pack = [&] {
      Packed packed(static_cast<size_t>(PackedSize(columns, depth)), 0.0f);
      if (w.constant) PackRows(w, first, columns, &packed);
      return packed;
    };
    if (w.constant) {
      Dims at = w.region.begin;
      at[0] = first;
      shared_ = args.packed->Get({w.At(at), columns, depth}, pack);
    } else {
      own_ = pack();
    }
  }

  const Packed& Prepare() {
    if (shared_) return *shared_;
    PackRows(w_, first_, columns_, &own_);
    return own_;
  }

 private:
  Operand w_;
  int64_t first_, columns_;
  std::shared_ptr<const Packed> shared_;
  Packed own_;
};

// The channels of one group that the region wants.
struct ConvGroup {
  int64_t first = 0, channels = 0;  // output channels, in the tensor's coordinates
  int64_t input_first = 0;          // the group's first input channel
  PackedWeights weights;
};

class Conv2DKernel final : public CpuKernel {
 public:
  explicit Conv2DKernel(KernelArgs args) : args_(std::move(args)), attrs_(args_.op->as<Conv2DAttrs>()) {
    const Dims& w = args_.in_shape(1);
    kernel_h_ = w[1];
    kernel_w_ = w[2];
    input_channels_ = w[3];
    const int64_t per_group = w[0] / attrs_.groups;
    const int64_t begin = args_.region.begin[3], end = begin + args_.region.size[3];
    for (int64_t at = begin; at < end;) {
      const int64_t group = at / per_group;
      const int64_t count = std::min(end, (group + 1) * per_group) - at;
      groups_.push_back({at, count, group * input_channels_, PackedWeights(args_, args_.in[1], at, count)});
      at += count;
    }
    if (!IsPointwise()) patches_.resize(static_cast<size_t>(kTileRows * depth()));
  }

  Status Run() noexcept override {
    for (ConvGroup& group : groups_) RunGroup(group);
    return Status();
  }

 private:
  int64_t depth() const { return kernel_h_ * kernel_w_ * input_channels_; }
  bool IsPointwise() const { return kernel_h_ == 1 && kernel_w_ == 1 && attrs_.pad == Padding{}; }
  bool has_bias() const { return args_.in.size() > 2 && args_.in[2].data != nullptr; }

  void RunGroup(ConvGroup& group) {
    const Packed& packed = group.weights.Prepare();
    const float* bias = has_bias() ? args_.in[2].At(group.first) : nullptr;
    const Region& region = args_.region;
    const int64_t height = region.size[1], width = region.size[2];
    const int64_t pixels = region.size[0] * height * width;
    for (int64_t pixel = 0; pixel < pixels; pixel += kTileRows) {
      const int64_t count = std::min(kTileRows, pixels - pixel);
      const float* rows[kTileRows];
      float* to[kTileRows];
      for (int64_t r = 0; r < kTileRows; ++r) {
        // A short tile repeats its last pixel rather than to read beyond the region.
        const int64_t p = pixel + std::min(r, count - 1);
        const Dims at{region.begin[0] + p / (height * width), region.begin[1] + p / width % height,
                      region.begin[2] + p % width, group.first};
        to[r] = args_.out.At(at);
        rows[r] = Patch(at, group.input_first, r);
      }
      MultiplyRows(rows, count, packed, group.channels, depth(), bias, attrs_.clamp, to);
    }
  }

  // The inputs of one output pixel in the order of the weights; padding is zero.
  const float* Patch(const Dims& out, int64_t channel, int64_t slot) {
    const Operand& x = args_.in[0];
    if (IsPointwise()) return x.At(Dims{out[0], out[1] * attrs_.stride_h, out[2] * attrs_.stride_w, channel});
    const Dims& shape = args_.in_shape(0);
    float* patch = patches_.data() + slot * depth();
    float* to = patch;
    const size_t bytes = static_cast<size_t>(input_channels_) * sizeof(float);
    for (int64_t ky = 0; ky < kernel_h_; ++ky) {
      const int64_t y = out[1] * attrs_.stride_h - attrs_.pad.top + ky * attrs_.dilation_h;
      for (int64_t kx = 0; kx < kernel_w_; ++kx, to += input_channels_) {
        const int64_t column = out[2] * attrs_.stride_w - attrs_.pad.left + kx * attrs_.dilation_w;
        if (y < 0 || y >= shape[1] || column < 0 || column >= shape[2]) {
          std::memset(to, 0, bytes);
        } else {
          std::memcpy(to, x.At(Dims{out[0], y, column, channel}), bytes);
        }
      }
    }
    return patch;
  }

  KernelArgs args_;
  Conv2DAttrs attrs_;
  int64_t kernel_h_ = 1, kernel_w_ = 1, input_channels_ = 1;  // input channels of one group
  std::vector<ConvGroup> groups_;
  std::vector<float> patches_;
};

// Calls MultiplyRows for all rows of `region` but its innermost axis: out[..., columns] = a[..., depth] * packed.
void MultiplyAllRows(const Operand& a, const Operand& out, const Region& region, const Packed& packed, int64_t depth,
                     const float* bias, const Clamp& clamp) {
  const float* rows[kTileRows];
  float* to[kTileRows];
  int64_t count = 0;
  const auto flush = [&] {
    if (count == 0) return;
    for (int64_t r = count; r < kTileRows; ++r) rows[r] = rows[count - 1];
    MultiplyRows(rows, count, packed, RowLength(region), depth, bias, clamp, to);
    count = 0;
  };
  ForEachRow(region, [&](const Dims& at) {
    Dims from = at;
    from[at.rank() - 1] = 0;
    rows[count] = a.At(from);
    to[count] = out.At(at);
    if (++count == kTileRows) flush();
  });
  flush();
}

// One matrix of b as packed columns [first, first + columns). `matrix` addresses b[first row, first column] of the
// whole depth.
void PackMatrix(const Operand& b, const Dims& matrix, bool transposed, int64_t first, int64_t columns, int64_t depth,
                Packed* packed) {
  const int rank = matrix.rank();
  Dims at = matrix;
  at[rank - 2] = transposed ? first : 0;
  at[rank - 1] = transposed ? 0 : first;
  const float* origin = b.At(at);
  const int64_t column_stride = transposed ? b.strides[rank - 2] : b.strides[rank - 1];
  const int64_t depth_stride = transposed ? b.strides[rank - 1] : b.strides[rank - 2];
  for (int64_t column = 0; column < columns; ++column) {
    float* to = packed->data() + column / kTileColumns * kTileColumns * depth + column % kTileColumns;
    const float* from = origin + column * column_stride;
    for (int64_t k = 0; k < depth; ++k) to[k * kTileColumns] = from[k * depth_stride];
  }
}

}  // namespace

std::unique_ptr<CpuKernel> MakeConv2D(KernelArgs args) { return std::make_unique<Conv2DKernel>(std::move(args)); }

std::unique_ptr<CpuKernel> MakeFullyConnected(KernelArgs args) {
  const int64_t first = args.region.begin.back(), columns = args.region.size.back();
  PackedWeights weights(args, args.in[1], first, columns);
  const Clamp clamp = args.op->as<FullyConnectedAttrs>().clamp;
  return MakeKernel([args = std::move(args), weights = std::move(weights), first, clamp]() mutable {
    const float* bias = args.in.size() > 2 && args.in[2].data != nullptr ? args.in[2].At(first) : nullptr;
    MultiplyAllRows(args.in[0], args.out, args.region, weights.Prepare(), args.in_shape(1)[1], bias, clamp);
  });
}

std::unique_ptr<CpuKernel> MakeMatMul(KernelArgs args) {
  const int64_t depth = args.in_shape(0).back();
  const bool transposed = args.op->as<MatMulAttrs>().transpose_b;
  Packed packed(static_cast<size_t>(PackedSize(args.region.size.back(), depth)), 0.0f);
  return MakeKernel([args = std::move(args), packed = std::move(packed), depth, transposed]() mutable {
    const int rank = args.region.size.rank();
    Region batches = args.region;  // one element per matrix
    batches.size[rank - 1] = batches.size[rank - 2] = 1;
    ForEachRow(batches, [&](const Dims& at) {
      Region matrix = args.region;
      for (int i = 0; i < rank - 2; ++i) {
        matrix.begin[i] = at[i];
        matrix.size[i] = 1;
      }
      PackMatrix(args.in[1], at, transposed, matrix.begin.back(), matrix.size.back(), depth, &packed);
      MultiplyAllRows(args.in[0], args.out, matrix, packed, depth, nullptr, Clamp{});
    });
  });
}

}  // namespace plait::reference
