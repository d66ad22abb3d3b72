// Clamps into the operators before them, padding into the operators after it.
#include <algorithm>
#include <limits>

#include "src/graph/passes/editor.h"

namespace plait {
namespace {

// The clamp that an operator applies to its result; nullptr for kinds without one.
Clamp* MutableClamp(OpKind kind, OpAttrs* attrs) {
  switch (kind) {
    case OpKind::kConv2D:
    case OpKind::kDepthwiseConv2D: return &std::get_if<Conv2DAttrs>(attrs)->clamp;
    case OpKind::kFullyConnected: return &std::get_if<FullyConnectedAttrs>(attrs)->clamp;
    case OpKind::kBinary: return &std::get_if<BinaryAttrs>(attrs)->clamp;
    case OpKind::kMaxPool2D:
    case OpKind::kAveragePool2D: return &std::get_if<Pool2DAttrs>(attrs)->clamp;
    case OpKind::kUnary: {
      auto* unary = std::get_if<UnaryAttrs>(attrs);
      return unary->kind == UnaryKind::kClamp ? &unary->clamp : nullptr;
    }
    default: return nullptr;
  }
}

// One clamp for `first` and then `second`.
Clamp Chained(const Clamp& first, const Clamp& second) {
  return {std::clamp(first.min, second.min, second.max), std::clamp(first.max, second.min, second.max)};
}

// The operator that computes `tensor`, through Reshapes, if only `reader` reads it and it can apply a clamp; else kNoOp.
OpId ClampTarget(const Editor& editor, TensorId tensor, OpId reader) {
  constexpr int kMostReshapes = 4;  // exporters write one or two
  for (int i = 0; i <= kMostReshapes; ++i) {
    const OpId p = editor.producer(tensor);
    if (p == kNoOp || editor.OnlyReader(tensor) != reader) return kNoOp;
    if (editor.op(p).kind != OpKind::kReshape) {
      OpAttrs attrs = editor.op(p).attrs;
      return MutableClamp(editor.op(p).kind, &attrs) != nullptr ? p : kNoOp;
    }
    reader = p;
    tensor = editor.op(p).inputs[0];
  }
  return kNoOp;
}

void FuseClamp(Editor& editor, OpId id) {
  const Clamp clamp = editor.op(id).as<UnaryAttrs>().clamp;
  const OpId before = editor.producer(editor.op(id).inputs[0]);
  std::vector<OpId> targets;
  if (before != kNoOp && editor.op(before).kind == OpKind::kConcat && editor.OnlyReader(editor.op(before).output) == id) {
    for (const TensorId operand : editor.op(before).inputs) targets.push_back(ClampTarget(editor, operand, before));
  } else {
    targets.push_back(ClampTarget(editor, editor.op(id).inputs[0], id));
  }
  if (std::find(targets.begin(), targets.end(), kNoOp) != targets.end()) return;
  for (const OpId target : targets) {
    OpAttrs attrs = editor.op(target).attrs;
    Clamp* fused = MutableClamp(editor.op(target).kind, &attrs);
    *fused = Chained(*fused, clamp);
    editor.SetAttrs(target, std::move(attrs));
  }
  editor.TakeOver(before, id);
}

// Padding of the image axes only, as 32-bit numbers.
bool ImagePadding(const PadAttrs& pad, Padding* out) {
  if (pad.before.rank() != 4 || pad.before[0] != 0 || pad.after[0] != 0 || pad.before[3] != 0 || pad.after[3] != 0) return false;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  for (const int axis : {1, 2}) {
    if (pad.before[axis] > kMost || pad.after[axis] > kMost) return false;
  }
  *out = {static_cast<int32_t>(pad.before[1]), static_cast<int32_t>(pad.before[2]), static_cast<int32_t>(pad.after[1]),
          static_cast<int32_t>(pad.after[2])};
  return true;
}

bool AddPadding(const Padding& more, Padding* pad) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max() / 2;
  if (std::max({pad->top, pad->left, pad->bottom, pad->right}) > kMost) return false;
  *pad = {pad->top + more.top, pad->left + more.left, pad->bottom + more.bottom, pad->right + more.right};
  return true;
}

bool PadPool(const PadAttrs& pad, const Padding& more, OpKind kind, Pool2DAttrs* pool) {
  const bool max = kind == OpKind::kMaxPool2D;
  if (max) {
    if (pad.value > std::numeric_limits<float>::lowest()) return false;  // absent elements lose every comparison
  } else {
    // Padded zeros count in the average; absent ones of the pool's own must then not exist, or count as well.
    if (pad.value != 0 || (!pool->count_include_pad && !(pool->pad == Padding{}))) return false;
    pool->count_include_pad = true;
  }
  if (!AddPadding(more, &pool->pad)) return false;
  return std::max(pool->pad.top, pool->pad.bottom) < pool->kernel_h && std::max(pool->pad.left, pool->pad.right) < pool->kernel_w;
}

bool FusePadInto(Editor& editor, OpId pad_id, OpId reader) {
  const auto& pad = editor.op(pad_id).as<PadAttrs>();
  const Operator& op = editor.op(reader);
  Padding more;
  if (!ImagePadding(pad, &more)) return false;
  OpAttrs attrs = op.attrs;
  if (op.kind == OpKind::kConv2D || op.kind == OpKind::kDepthwiseConv2D) {
    if (op.inputs[0] != editor.op(pad_id).output || pad.value != 0) return false;
    if (!AddPadding(more, &std::get_if<Conv2DAttrs>(&attrs)->pad)) return false;
  } else if (op.kind == OpKind::kMaxPool2D || op.kind == OpKind::kAveragePool2D) {
    if (!PadPool(pad, more, op.kind, std::get_if<Pool2DAttrs>(&attrs))) return false;
  } else {
    return false;
  }
  editor.SetAttrs(reader, std::move(attrs));
  editor.SetInput(reader, 0, editor.op(pad_id).inputs[0]);
  return true;
}

}  // namespace

void FuseClamps(Editor& editor) {
  for (const OpId id : editor.Order()) {
    if (!editor.alive(id) || editor.op(id).kind != OpKind::kUnary || editor.op(id).as<UnaryAttrs>().kind != UnaryKind::kClamp) continue;
    FuseClamp(editor, id);
  }
}

void FusePadding(Editor& editor) {
  for (const OpId id : editor.Order()) {
    if (!editor.alive(id) || editor.op(id).kind != OpKind::kPad) continue;
    const std::set<Use> readers = editor.uses(editor.op(id).output);
    for (const Use& use : readers) {
      if (use.second == 0) FusePadInto(editor, id, use.first);
    }
  }
}

}  // namespace plait
