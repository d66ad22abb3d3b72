// Per-channel scales and shifts (BatchNorm and what exporters write for it) into the weights before them.
#include <cmath>

#include "src/graph/passes/constants.h"
#include "src/graph/passes/editor.h"

namespace plait {
namespace {

using Channels = std::vector<float>;

// y = x * scale + shift per channel (innermost axis).
struct Affine {
  TensorId x = kNoTensor;
  Channels scale, shift;
  Clamp clamp;
};

std::optional<Affine> BatchNormAffine(const Editor& editor, const Operator& op) {
  const float* gamma = Floats(editor, op.inputs[1]);
  const float* beta = Floats(editor, op.inputs[2]);
  const float* mean = Floats(editor, op.inputs[3]);
  const float* variance = Floats(editor, op.inputs[4]);
  if (gamma == nullptr || beta == nullptr || mean == nullptr || variance == nullptr) return std::nullopt;
  Affine out{op.inputs[0]};
  const double epsilon = op.as<NormAttrs>().epsilon;
  for (int64_t c = 0; c < editor.tensor(op.inputs[0]).shape.back(); ++c) {
    const double scale = gamma[c] / std::sqrt(variance[c] + epsilon);
    out.scale.push_back(static_cast<float>(scale));
    out.shift.push_back(static_cast<float>(beta[c] - mean[c] * scale));
  }
  return out;
}

std::optional<Affine> BinaryAffine(const Editor& editor, const Operator& op) {
  const auto& attrs = op.as<BinaryAttrs>();
  const Dims& shape = editor.tensor(op.output).shape;
  for (const size_t x : {size_t{0}, size_t{1}}) {
    const std::optional<Channels> c = ChannelValues(editor, op.inputs[1 - x], shape);
    if (!c || !(editor.tensor(op.inputs[x]).shape == shape)) continue;
    Affine out{op.inputs[x], Channels(c->size(), 1.0f), Channels(c->size(), 0.0f), attrs.clamp};
    const bool x_first = x == 0;
    for (size_t i = 0; i < c->size(); ++i) {
      const float value = (*c)[i];
      switch (attrs.kind) {
        case BinaryKind::kAdd: out.shift[i] = value; break;
        case BinaryKind::kMul: out.scale[i] = value; break;
        case BinaryKind::kSub:
          out.scale[i] = x_first ? 1.0f : -1.0f;
          out.shift[i] = x_first ? -value : value;
          break;
        case BinaryKind::kDiv:
          if (!x_first || value == 0) return std::nullopt;
          out.scale[i] = 1.0f / value;
          break;
        default: return std::nullopt;
      }
    }
    return out;
  }
  return std::nullopt;
}

// A 1x1 DepthwiseConv2D, which is what a BatchNorm became that found nothing to fold into before.
std::optional<Affine> DepthwiseAffine(const Editor& editor, const Operator& op) {
  const auto& attrs = op.as<Conv2DAttrs>();
  const float* weights = Floats(editor, op.inputs[1]);
  const bool has_bias = op.inputs.size() > 2 && op.inputs[2] != kNoTensor;
  const float* bias = has_bias ? Floats(editor, op.inputs[2]) : nullptr;
  const int64_t channels = editor.tensor(op.output).shape.back();
  const bool pointwise = editor.tensor(op.inputs[1]).shape == Dims{1, 1, channels} && attrs.stride_h == 1 && attrs.stride_w == 1 &&
                         attrs.pad == Padding{};
  if (!pointwise || weights == nullptr || (has_bias && bias == nullptr)) return std::nullopt;
  Affine out{op.inputs[0], Channels(weights, weights + channels), Channels(static_cast<size_t>(channels), 0.0f), attrs.clamp};
  if (has_bias) out.shift.assign(bias, bias + channels);
  return out;
}

Clamp* ClampOf(OpAttrs* attrs) {
  if (auto* conv = std::get_if<Conv2DAttrs>(attrs)) return &conv->clamp;
  if (auto* fc = std::get_if<FullyConnectedAttrs>(attrs)) return &fc->clamp;
  return nullptr;
}

// Output channels are outermost in the weights of Conv2D and FullyConnected and innermost in those of DepthwiseConv2D.
std::shared_ptr<ConstData> ScaledWeights(const Tensor& weights, const Channels& scale, bool innermost) {
  std::shared_ptr<ConstData> data = ConstData::Allocate(weights.bytes());
  if (data == nullptr) return nullptr;
  const float* from = weights.data->as<float>();
  float* to = data->as<float>();
  const int64_t count = weights.shape.Count(), channels = static_cast<int64_t>(scale.size()), inner = count / channels;
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] * scale[static_cast<size_t>(innermost ? i % channels : i / inner)];
  return data;
}

bool IsOne(const Channels& scale) {
  for (const float s : scale) {
    if (s != 1.0f) return false;
  }
  return true;
}

// The operator that computes `x`, if only `reader` reads it, and it has constant weights and does nothing to its sums yet; else kNoOp.
OpId FoldTarget(const Editor& editor, TensorId x, OpId reader) {
  const OpId target = editor.producer(x);
  if (target == kNoOp || editor.OnlyReader(x) != reader) return kNoOp;
  const Operator& op = editor.op(target);
  if (op.kind != OpKind::kConv2D && op.kind != OpKind::kDepthwiseConv2D && op.kind != OpKind::kFullyConnected) return kNoOp;
  OpAttrs attrs = op.attrs;
  const bool has_bias = op.inputs.size() > 2 && op.inputs[2] != kNoTensor;
  const bool constant = Floats(editor, op.inputs[1]) != nullptr && (!has_bias || Floats(editor, op.inputs[2]) != nullptr);
  return constant && ClampOf(&attrs)->IsNone() ? target : kNoOp;
}

// Gives a FoldTarget() the weights, bias and clamp with which it computes affine(its result). False if memory is short.
bool FoldInto(Editor& editor, OpId target, const Affine& affine) {
  const Operator op = editor.op(target);
  OpAttrs attrs = op.attrs;
  *ClampOf(&attrs) = affine.clamp;
  const bool has_bias = op.inputs.size() > 2 && op.inputs[2] != kNoTensor;
  const float* bias = has_bias ? Floats(editor, op.inputs[2]) : nullptr;
  Channels shifted = affine.shift;
  for (size_t c = 0; bias != nullptr && c < shifted.size(); ++c) {
    shifted[c] = static_cast<float>(double{bias[c]} * affine.scale[c] + affine.shift[c]);
  }
  const auto channels = static_cast<int64_t>(shifted.size());
  TensorId weights = op.inputs[1];
  if (!IsOne(affine.scale)) {
    const Tensor old = editor.tensor(weights);
    weights = editor.AddConstant(old.name, old.shape, ScaledWeights(old, affine.scale, op.kind == OpKind::kDepthwiseConv2D));
  }
  const TensorId new_bias = editor.AddConstant(has_bias ? editor.tensor(op.inputs[2]).name : op.name + ".bias", {channels}, shifted);
  if (weights == kNoTensor || new_bias == kNoTensor) return false;
  editor.Become(target, op.kind, {op.inputs[0], weights, new_bias}, std::move(attrs));
  return true;
}

// The part of `affine` for one operand of a Concat of channels.
Affine ChannelRange(const Affine& affine, TensorId x, size_t begin, size_t count) {
  const auto range = [&](const Channels& c) {
    const auto first = c.begin() + static_cast<std::ptrdiff_t>(begin);
    return Channels(first, first + static_cast<std::ptrdiff_t>(count));
  };
  return {x, range(affine.scale), range(affine.shift), affine.clamp};
}

// Folds `affine`, computed by `last`, into the operator that computes its x, or into all whose results a Concat of channels joins to x.
bool FoldIntoProducer(Editor& editor, OpId last, const Affine& affine) {
  OpId producer = editor.producer(affine.x);
  std::vector<std::pair<OpId, Affine>> parts;
  if (producer != kNoOp && editor.op(producer).kind == OpKind::kConcat && editor.OnlyReader(affine.x) == last) {
    if (editor.op(producer).as<ConcatAttrs>().axis != editor.output(producer).shape.rank() - 1) return false;
    size_t begin = 0;
    for (const TensorId operand : editor.op(producer).inputs) {
      const auto count = static_cast<size_t>(editor.tensor(operand).shape.back());
      parts.emplace_back(FoldTarget(editor, operand, producer), ChannelRange(affine, operand, begin, count));
      begin += count;
    }
  } else {
    parts.emplace_back(FoldTarget(editor, affine.x, last), affine);
  }
  for (const auto& [target, part] : parts) {
    if (target == kNoOp) return false;
  }
  // One after another; should memory end in between, the parts done so far are undone.
  std::vector<Operator> before;
  for (const auto& [target, part] : parts) {
    before.push_back(editor.op(target));
    if (FoldInto(editor, target, part)) continue;
    for (size_t i = 0; i < before.size(); ++i) editor.Become(parts[i].first, before[i].kind, before[i].inputs, before[i].attrs);
    return false;
  }
  editor.TakeOver(producer, last);
  return true;
}

// A BatchNorm over constants that nothing before takes up: a 1x1 depthwise convolution, or a product and a sum.
void LowerConstantBatchNorm(Editor& editor, OpId id, const Affine& affine) {
  const Operator op = editor.op(id);
  const auto channels = static_cast<int64_t>(affine.scale.size());
  const bool image = editor.tensor(affine.x).shape.rank() == 4;
  const Dims scale_shape = image ? Dims{1, 1, channels} : Dims{channels};
  const TensorId scale = editor.AddConstant(op.name + ".scale", scale_shape, affine.scale);
  const TensorId shift = editor.AddConstant(op.name + ".shift", {channels}, affine.shift);
  if (scale == kNoTensor || shift == kNoTensor) return;
  if (image) {
    editor.Become(id, OpKind::kDepthwiseConv2D, {affine.x, scale, shift}, Conv2DAttrs{});
    return;
  }
  const TensorId product = editor.AddOp(op.name + ".mul", id, OpKind::kBinary, {affine.x, scale}, BinaryAttrs{BinaryKind::kMul});
  editor.Become(id, OpKind::kBinary, {product, shift}, BinaryAttrs{BinaryKind::kAdd});
}

// Statistics or scales that are computed: (x - mean) * (gamma / sqrt(variance + epsilon)) + beta.
void LowerComputedBatchNorm(Editor& editor, OpId id) {
  const Operator op = editor.op(id);
  const TensorId epsilon = editor.AddConstant(op.name + ".epsilon", {1}, {op.as<NormAttrs>().epsilon});
  if (epsilon == kNoTensor) return;
  const auto binary = [&](const char* part, BinaryKind kind, TensorId a, TensorId b) {
    return editor.AddOp(op.name + part, id, OpKind::kBinary, {a, b}, BinaryAttrs{kind});
  };
  const TensorId variance = binary(".variance", BinaryKind::kAdd, op.inputs[4], epsilon);
  const TensorId deviation = editor.AddOp(op.name + ".deviation", id, OpKind::kUnary, {variance}, UnaryAttrs{UnaryKind::kSqrt});
  const TensorId scale = binary(".scale", BinaryKind::kDiv, op.inputs[1], deviation);
  const TensorId centred = binary(".centred", BinaryKind::kSub, op.inputs[0], op.inputs[3]);
  const TensorId scaled = binary(".scaled", BinaryKind::kMul, centred, scale);
  editor.Become(id, OpKind::kBinary, {scaled, op.inputs[2]}, BinaryAttrs{BinaryKind::kAdd});
}

}  // namespace

void FoldBatchNorm(Editor& editor) {
  for (const OpId id : editor.Order()) {
    if (!editor.alive(id)) continue;
    const Operator& op = editor.op(id);
    std::optional<Affine> affine;
    if (op.kind == OpKind::kBatchNorm) {
      affine = BatchNormAffine(editor, op);
      if (!affine) {
        LowerComputedBatchNorm(editor, id);
      } else if (!FoldIntoProducer(editor, id, *affine)) {
        LowerConstantBatchNorm(editor, id, *affine);
      }
      continue;
    }
    if (op.kind == OpKind::kDepthwiseConv2D) affine = DepthwiseAffine(editor, op);
    if (op.kind == OpKind::kBinary) affine = BinaryAffine(editor, op);
    if (affine && !IsOne(affine->scale)) FoldIntoProducer(editor, id, *affine);
  }
}

void FuseBias(Editor& editor) {
  for (const OpId id : editor.Order()) {
    if (!editor.alive(id) || editor.op(id).kind != OpKind::kBinary) continue;
    const std::optional<Affine> affine = BinaryAffine(editor, editor.op(id));
    if (affine && IsOne(affine->scale)) FoldIntoProducer(editor, id, *affine);
  }
}

}  // namespace plait
