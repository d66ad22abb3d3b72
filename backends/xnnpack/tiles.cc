#include "backends/xnnpack/tiles.h"

#include "backends/xnnpack/packed_weights.h"

namespace plait::xnn {
namespace {

constexpr int64_t kBase = 64;       // channels from which the staircase is climbed: above the narrow kernels of small layers
constexpr int64_t kMaxTile = 256;
constexpr int64_t kInputs = 64;

// The distance between two steps of the packed size of `layer` as its channels grow.
Result<int64_t> StepWidth(Layer layer) {
  int64_t first_step = 0, previous = 0;
  for (int64_t c = kBase; c <= kBase + 2 * kMaxTile; ++c) {
    layer.channels = c;
    PLAIT_ASSIGN_OR_RETURN(const int64_t bytes, PackedBytes(layer));
    if (previous != 0 && bytes != previous) {
      if (first_step != 0) return c - first_step;
      first_step = c;
    }
    previous = bytes;
  }
  return Unsupported("the channel tile of XNNPACK's kernels could not be found");
}

Result<int64_t> DepthwiseTile(Layer layer) {
  layer.channels = kBase;
  PLAIT_ASSIGN_OR_RETURN(const int64_t bytes, PackedBytes(layer));
  // A depthwise kernel keeps a few more weights a channel than there are taps; without one, XNNPACK takes a grouped
  // convolution that pads every channel to a whole tile.
  const int64_t taps = layer.kernel_h * layer.kernel_w;
  if (bytes > kBase * (1 + 4 * taps) * static_cast<int64_t>(sizeof(float))) return 0;
  return StepWidth(layer);
}

Result<Tiles> Probe() {
  const int64_t most_channels = kBase + 2 * kMaxTile + 1;
  Layer layer;
  layer.weights = ConstData::Allocate(most_channels * kInputs * static_cast<int64_t>(sizeof(float)));
  layer.bias = ConstData::Allocate(most_channels * static_cast<int64_t>(sizeof(float)));
  if (layer.weights == nullptr || layer.bias == nullptr) return OutOfMemory("no memory to probe XNNPACK's kernels");
  Tiles tiles;
  layer.group_in = kInputs;
  PLAIT_ASSIGN_OR_RETURN(tiles.convolution, StepWidth(layer));
  layer.kind = LayerKind::kFullyConnected;
  PLAIT_ASSIGN_OR_RETURN(tiles.fully_connected, StepWidth(layer));
  layer.kind = LayerKind::kDepthwise;
  layer.group_in = 1;
  PLAIT_ASSIGN_OR_RETURN(tiles.scale_shift, StepWidth(layer));
  layer.attrs.stride_h = layer.attrs.stride_w = 2;
  for (int64_t taps = 1; taps <= kMaxProbedTaps; ++taps) {
    layer.kernel_w = taps;
    PLAIT_ASSIGN_OR_RETURN(tiles.depthwise[static_cast<size_t>(taps)], DepthwiseTile(layer));
  }
  return tiles;
}

}  // namespace

const Result<Tiles>& ProbedTiles() {
  static const Result<Tiles>* tiles = new Result<Tiles>(Probe());
  return *tiles;
}

}  // namespace plait::xnn
