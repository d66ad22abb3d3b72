#include "backends/xnnpack/packed_weights.h"

#include <cstring>
#include <limits>
#include <vector>

#include "src/base/checked.h"

namespace plait::xnn {
namespace {

// XNNPACK sets operators up only from a cache that is final, and asks nothing of that kind before.
bool AlwaysFinal(void*) { return true; }
void* OffsetIsAddress(void*, size_t offset) { return reinterpret_cast<void*>(offset); }
xnn_status KeepCache(void*) { return xnn_status_success; }

xnn_status CreateSlice(const Layer& layer, const LayerSlice& slice, const Clamp& clamp, const float* weights, const float* bias,
                       xnn_weights_cache_t cache, xnn_operator_t* op) {
  const auto size = [](int64_t v) { return static_cast<size_t>(v); };
  const auto u32 = [](int64_t v) { return static_cast<uint32_t>(v); };
  if (layer.kind == LayerKind::kFullyConnected) {
    return xnn_create_fully_connected_nc_f32(size(layer.group_in), size(slice.count), size(slice.input_stride), size(slice.output_stride),
                                             weights, bias, clamp.min, clamp.max, 0, nullptr, cache, op);
  }
  const bool depthwise = layer.kind == LayerKind::kDepthwise;
  const Conv2DAttrs& a = layer.attrs;
  // One group is cut inside, several are cut between groups.
  const int64_t group_out = layer.groups() == 1 ? slice.count : layer.group_out();
  return xnn_create_convolution2d_nhwc_f32(
      u32(slice.pad.top), u32(slice.pad.right), u32(slice.pad.bottom), u32(slice.pad.left), u32(layer.kernel_h), u32(layer.kernel_w),
      u32(a.stride_h), u32(a.stride_w), u32(a.dilation_h), u32(a.dilation_w), u32(slice.count / group_out), size(layer.group_in),
      size(group_out), size(slice.input_stride), size(slice.output_stride), weights, bias, clamp.min, clamp.max,
      depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0, nullptr, cache, op);
}

// The slice of all channels in [begin, begin + count) as it would be for the whole layer, with dense operands.
LayerSlice DenseSlice(const Layer& layer, int64_t begin, int64_t count) {
  const int64_t inputs = layer.groups() == 1 ? layer.group_in : layer.group_in * (count / layer.group_out());
  return {begin, count, inputs, count, layer.attrs.pad};
}

// Weights and bias of the channels in [begin, begin + count), contiguous. Depthwise weights have channels innermost and are
// gathered into `gathered`.
struct SliceData {
  const float* weights;
  const float* bias;
};
SliceData DataOf(const Layer& layer, int64_t begin, int64_t count, std::vector<float>* gathered) {
  const float* weights = layer.weights->as<float>();
  const float* bias = layer.bias == nullptr ? nullptr : layer.bias->as<float>() + begin;
  const int64_t taps = layer.kernel_h * layer.kernel_w;
  if (layer.kind != LayerKind::kDepthwise) return {weights + begin * taps * layer.group_in, bias};
  if (count == layer.channels) return {weights, bias};
  gathered->resize(static_cast<size_t>(taps * count));
  for (int64_t t = 0; t < taps; ++t) {
    std::memcpy(gathered->data() + t * count, weights + t * layer.channels + begin, static_cast<size_t>(count) * sizeof(float));
  }
  return {gathered->data(), bias};
}

Status Pack(const Layer& layer, int64_t begin, int64_t count, PackedImage* image) {
  std::vector<float> gathered;
  const SliceData data = DataOf(layer, begin, count, &gathered);
  const std::lock_guard<std::mutex> lock(CreationMutex());
  image->ExpectPacking();
  xnn_operator_t op = nullptr;
  const xnn_status status = CreateSlice(layer, DenseSlice(layer, begin, count), Clamp{}, data.weights, data.bias, image->provider(), &op);
  if (op != nullptr) xnn_delete_operator(op);
  PLAIT_RETURN_IF_ERROR(ToStatus(status, "packing weights"));
  if (image->bytes() == 0) return Internal("XNNPACK packed weights without asking for memory");
  return Status();
}

// Divides the image into units and checks the division against XNNPACK's own packing of a slice; leaves unit_channels 0 if they differ.
Status FindUnits(const Layer& layer, int64_t tile, PackedImage* image) {
  const int64_t unit = layer.kind == LayerKind::kConvolution && layer.groups() > 1 ? layer.group_out() : tile;
  if (unit <= 0 || layer.channels < 2 * unit) return Status();
  // XNNPACK rounds the image's size up to a cache line, less than a tile's row of channels for each of two or more tiles.
  const int64_t row = tile * static_cast<int64_t>(sizeof(float));
  const int64_t unit_bytes = image->bytes() / CeilDiv(layer.channels, unit) / row * row;
  const int64_t begin = (layer.channels / unit - 1) * unit;
  PackedImage slice;
  PLAIT_RETURN_IF_ERROR(Pack(layer, begin, layer.channels - begin, &slice));
  const int64_t offset = begin / unit * unit_bytes;
  const int64_t compared = (layer.channels - begin) / unit * unit_bytes;
  if (unit_bytes == 0 || offset + compared > image->bytes() || compared > slice.bytes()) return Status();
  if (std::memcmp(image->data() + offset, slice.data(), static_cast<size_t>(compared)) != 0) return Status();
  image->unit_channels = unit;
  image->unit_bytes = unit_bytes;
  return Status();
}

}  // namespace

PackedImage::PackedImage() : provider_{this, LookUp, ReserveSpace, LookUpOrInsert, AlwaysFinal, OffsetIsAddress, KeepCache} {}

size_t PackedImage::LookUp(void* context, const xnn_weights_cache_look_up_key*) {
  const PackedImage& image = *static_cast<PackedImage*>(context);
  if (image.offset_ == kPack) return std::numeric_limits<size_t>::max();
  return reinterpret_cast<size_t>(image.data() + image.offset_);
}

void* PackedImage::ReserveSpace(void* context, size_t bytes) {
  PackedImage& image = *static_cast<PackedImage*>(context);
  // Depthwise operators pack before they look up: into scratch, if the image has the weights already.
  AlignedBuffer& target = image.offset_ == kPack ? image.memory_ : image.scratch_;
  target = AlignedBuffer::Allocate(static_cast<int64_t>(bytes));
  return target.data();
}

size_t PackedImage::LookUpOrInsert(void* context, const xnn_weights_cache_look_up_key*, void* data, size_t bytes) {
  PackedImage& image = *static_cast<PackedImage*>(context);
  if (image.offset_ != kPack) return reinterpret_cast<size_t>(image.data() + image.offset_);
  image.bytes_ = static_cast<int64_t>(bytes);
  return reinterpret_cast<size_t>(data);
}

Result<std::shared_ptr<PackedImage>> WeightStore::ImageFor(const Layer& layer, int64_t begin, int64_t count, int64_t tile) {
  const Conv2DAttrs& a = layer.attrs;
  const bool plain = a.stride_h == 1 && a.stride_w == 1 && a.pad == Padding{};
  const bool whole = begin == 0 && count == layer.channels;
  const Key key{layer.weights.get(), layer.bias.get(), layer.kind, plain, layer.kernel_h, layer.kernel_w, layer.groups(),
                layer.group_in, layer.channels, begin, count};
  const auto found = images_.find(key);
  if (found != images_.end() && found->second.IsCurrent()) {
    ++stats_.slices_served;
    return found->second.image;
  }
  auto image = std::make_shared<PackedImage>();
  PLAIT_RETURN_IF_ERROR(Pack(layer, begin, count, image.get()));
  if (whole) PLAIT_RETURN_IF_ERROR(FindUnits(layer, tile, image.get()));
  ++stats_.layers_packed;
  if (images_.size() >= purge_at_) Purge();
  images_[key] = Entry{layer.weights, layer.bias, layer.bias != nullptr, image};
  return image;
}

void WeightStore::Purge() {
  std::erase_if(images_, [](const auto& item) { return !item.second.IsCurrent(); });
  purge_at_ = 2 * images_.size() + 64;
}

Result<LayerOperator> WeightStore::Make(const Layer& layer, const LayerSlice& slice, const Clamp& clamp, int64_t tile) {
  const std::lock_guard<std::mutex> lock(mutex_);
  PLAIT_ASSIGN_OR_RETURN(std::shared_ptr<PackedImage> image, ImageFor(layer, 0, layer.channels, tile));
  int64_t offset = 0;
  if (slice.begin != 0 || slice.count != layer.channels) {
    if (image->unit_channels > 0 && slice.begin % image->unit_channels == 0) {
      offset = slice.begin / image->unit_channels * image->unit_bytes;
    } else {
      PLAIT_ASSIGN_OR_RETURN(image, ImageFor(layer, slice.begin, slice.count, tile));
    }
  }
  // Served operators read no weights, but XNNPACK wants the pointers; depthwise ones pack what they point at into scratch.
  const float* weights = layer.weights->as<float>();
  const float* bias = layer.bias == nullptr ? nullptr : layer.bias->as<float>();
  PLAIT_ASSIGN_OR_RETURN(XnnOperator op, MakeOperator("creating a layer's operator", [&](xnn_operator_t* out) {
    image->ExpectServing(offset);
    const xnn_status status = CreateSlice(layer, slice, clamp, weights, bias, image->provider(), out);
    image->DropScratch();
    return status;
  }));
  ++stats_.operators_made;
  return LayerOperator{std::move(op), std::move(image)};
}

XnnpackStats WeightStore::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  XnnpackStats out = stats_;
  for (const auto& [key, entry] : images_) out.packed_bytes += entry.image->bytes();
  return out;
}

void WeightStore::CountOperator() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.operators_made;
}

Result<int64_t> PackedBytes(const Layer& layer) {
  PackedImage image;
  PLAIT_RETURN_IF_ERROR(Pack(layer, 0, layer.channels, &image));
  return image.bytes();
}

}  // namespace plait::xnn
