// Packed weights: one image per layer, made once and served to every operator that computes a slice of the layer's channels.
//
// XNNPACK asks a weights-cache provider for packed weights before it packs. Ours answers with an address inside the image of
// the whole layer: the image is a row of tiles of equal size, so the slice that starts at tile t lies at t * tile bytes.
// Whether that holds is checked for each layer: the packing that XNNPACK makes for a slice must have the image's bytes;
// otherwise the layer's slices are packed one by one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "backends/xnnpack/aligned_buffer.h"
#include "backends/xnnpack/xnn_operator.h"
#include "backends/xnnpack/xnnpack.h"
#include "src/graph/graph.h"

namespace plait::xnn {

enum class LayerKind : uint8_t { kConvolution, kDepthwise, kFullyConnected };

// A convolution, depthwise convolution or fully connected layer: all that decides how its weights are packed.
struct Layer {
  LayerKind kind = LayerKind::kConvolution;
  Conv2DAttrs attrs;                // groups: of a convolution; a depthwise layer ignores it
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t group_in = 1;             // input channels a group; 1 for depthwise
  int64_t channels = 1;             // output channels, all groups
  std::shared_ptr<const ConstData> weights, bias;  // as the operator's inputs; bias may be absent

  int64_t groups() const { return kind == LayerKind::kConvolution ? attrs.groups : kind == LayerKind::kDepthwise ? channels : 1; }
  int64_t group_out() const { return channels / groups(); }
};

// One operator of a layer: a range of output channels, and what may differ between parts.
struct LayerSlice {
  int64_t begin = 0, count = 0;     // output channels; whole groups if the layer has several
  int64_t input_stride = 0;         // elements between pixels or rows
  int64_t output_stride = 0;
  Padding pad;
};

// Bytes of packed weights, with the provider that serves them. Outlives the operators that use it.
class PackedImage {
 public:
  PackedImage();
  PackedImage(const PackedImage&) = delete;
  PackedImage& operator=(const PackedImage&) = delete;

  // Both under CreationMutex(). What the next operator created with provider() does: pack into this image...
  void ExpectPacking() { offset_ = kPack; }
  // ... or take the weights at `offset` bytes.
  void ExpectServing(int64_t offset) { offset_ = offset; }
  void DropScratch() { scratch_ = AlignedBuffer(); }

  xnn_weights_cache_t provider() { return &provider_; }
  int64_t bytes() const { return bytes_; }
  const char* data() const { return static_cast<const char*>(memory_.data()); }

  int64_t unit_channels = 0;        // slices begin at multiples of this; 0: the image serves only the whole of what was packed
  int64_t unit_bytes = 0;

 private:
  static constexpr int64_t kPack = -1;
  static size_t LookUp(void* context, const xnn_weights_cache_look_up_key* key);
  static void* ReserveSpace(void* context, size_t bytes);
  static size_t LookUpOrInsert(void* context, const xnn_weights_cache_look_up_key* key, void* data, size_t bytes);

  xnn_weights_cache_provider provider_;
  AlignedBuffer memory_, scratch_;
  int64_t bytes_ = 0;
  int64_t offset_ = kPack;
};

struct LayerOperator {
  XnnOperator op;
  std::shared_ptr<PackedImage> image;
};

// Thread-safe.
class WeightStore {
 public:
  // An operator for `slice`. `tile`: channels of one packed tile of this layer's kernel (see tiles.h); group_out() with groups.
  Result<LayerOperator> Make(const Layer& layer, const LayerSlice& slice, const Clamp& clamp, int64_t tile);
  XnnpackStats stats() const;
  void CountOperator();

 private:
  using Key = std::tuple<const void*, const void*, LayerKind, bool, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;
  struct Entry {
    std::weak_ptr<const ConstData> weights, bias;  // alive: the addresses in the key still mean this layer
    bool has_bias = false;
    std::shared_ptr<PackedImage> image;
    bool IsCurrent() const { return !weights.expired() && !(has_bias && bias.expired()); }
  };

  Result<std::shared_ptr<PackedImage>> ImageFor(const Layer& layer, int64_t begin, int64_t count, int64_t tile);
  void Purge();

  mutable std::mutex mutex_;
  std::map<Key, Entry> images_;
  size_t purge_at_ = 64;
  XnnpackStats stats_;
};

// Bytes that XNNPACK reserves for the packed weights of `layer`; reads weights and bias. For probing.
Result<int64_t> PackedBytes(const Layer& layer);

}  // namespace plait::xnn
