#include "src/graph/passes/layout_region.h"

#include <algorithm>

#include "src/graph/passes/constants.h"

namespace plait {
namespace {

bool IsElementwiseLike(const Editor& editor, OpId id, const Perm& perm) {
  switch (editor.op(id).kind) {
    case OpKind::kUnary:
    case OpKind::kBinary:
    case OpKind::kConcat:
    case OpKind::kSlice:
    case OpKind::kPad: return true;
    case OpKind::kReduceMean: return editor.op(id).as<ReduceAttrs>().keep_dims;
    case OpKind::kSoftmax:
    case OpKind::kLayerNorm:
    case OpKind::kBatchNorm: return perm.back() == static_cast<int32_t>(perm.size()) - 1;
    default: return false;
  }
}

// Operands beyond the first of normalisations are vectors over the innermost axis, which stays.
bool IsVectorOperand(const Operator& op, size_t input) {
  return input > 0 && (op.kind == OpKind::kLayerNorm || op.kind == OpKind::kBatchNorm);
}

// For a mean that drops its axes: how the output's axes stand when the input is transposed by `perm`.
Perm DropAxes(const std::vector<int32_t>& axes, const Perm& perm) {
  Perm out;
  for (const int32_t axis : perm) {
    if (std::binary_search(axes.begin(), axes.end(), axis)) continue;
    out.push_back(axis - static_cast<int32_t>(std::lower_bound(axes.begin(), axes.end(), axis) - axes.begin()));
  }
  return out;
}

TensorId TransposedTensor(Editor& editor, TensorId tensor, const Perm& perm) {
  if (IsIdentity(perm)) return tensor;
  const OpId existing = FindTranspose(editor, tensor, perm);
  if (existing != kNoOp) return editor.op(existing).output;
  constexpr char kSuffix[] = ".transposed";
  const std::string& name = editor.tensor(tensor).name;
  return editor.AddOp(name.substr(0, name.find(kSuffix)) + kSuffix, editor.producer(tensor), OpKind::kTranspose, {tensor}, TransposeAttrs{perm});
}

}  // namespace

void TransposeCost::Add(const Dims& shape, const Perm& perm) {
  if (IsIdentity(perm)) return;
  if (!MovesNoByte(shape, perm)) moved += shape.Count();
  ++count;
}

OpId FindTranspose(const Editor& editor, TensorId tensor, const Perm& perm) {
  for (const Use& use : editor.uses(tensor)) {
    const Operator& op = editor.op(use.first);
    if (op.kind == OpKind::kTranspose && op.as<TransposeAttrs>().perm == perm) return use.first;
  }
  return kNoOp;
}

LayoutRegion::LayoutRegion(const Editor& editor, TensorId seed, const Perm& perm) {
  perms_.emplace(seed, perm);
  tensors_.push_back(seed);
  for (size_t next = 0; next < tensors_.size(); ++next) {
    const TensorId t = tensors_[next];
    if (editor.producer(t) != kNoOp) Visit(editor, editor.producer(t), t);
    for (const Use& use : editor.uses(t)) Visit(editor, use.first, t);
  }
}

void LayoutRegion::Visit(const Editor& editor, OpId op, TensorId tensor) {
  if (inside_.count(op) > 0) return;
  const std::optional<TensorPerms> wanted = Consequences(editor, op, tensor, perms_.at(tensor));
  bool fits = wanted.has_value();
  for (size_t i = 0; fits && i < wanted->size(); ++i) {
    const auto assigned = perms_.find((*wanted)[i].first);
    fits = assigned == perms_.end() || assigned->second == (*wanted)[i].second;
  }
  inside_.emplace(op, fits);
  if (!fits) return;
  ops_.push_back(op);
  for (const auto& [t, perm] : *wanted) {
    if (perms_.emplace(t, perm).second && !IsIdentity(perm)) tensors_.push_back(t);
  }
}

std::optional<LayoutRegion::TensorPerms> LayoutRegion::Consequences(const Editor& editor, OpId id, TensorId tensor, const Perm& perm) {
  const Operator& op = editor.op(id);
  TensorPerms out;
  if (op.kind == OpKind::kReshape) {
    const Dims &x = editor.input(id, 0).shape, &y = editor.output(id).shape;
    const bool forward = tensor == op.inputs[0];
    const std::optional<Perm> other = forward ? ThroughReshape(x, y, perm) : ThroughReshape(y, x, perm);
    if (!other) return std::nullopt;
    return TensorPerms{{op.inputs[0], forward ? perm : *other}, {op.output, forward ? *other : perm}};
  }
  if (op.kind == OpKind::kReduceMean && !op.as<ReduceAttrs>().keep_dims) {
    if (tensor != op.inputs[0]) return std::nullopt;  // where the dropped axes should stand is open
    return TensorPerms{{tensor, perm}, {op.output, DropAxes(op.as<ReduceAttrs>().axes, perm)}};
  }
  if (!IsElementwiseLike(editor, id, perm)) return std::nullopt;
  const int rank = editor.output(id).shape.rank();
  if (static_cast<int>(perm.size()) != rank) return std::nullopt;
  out.emplace_back(op.output, perm);
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const Tensor& x = editor.tensor(op.inputs[i]);
    const bool broadcast_scalar = op.kind == OpKind::kBinary && x.shape.Count() == 1;
    if (IsVectorOperand(op, i)) {
      if (op.inputs[i] == tensor) return std::nullopt;
    } else if (x.is_constant()) {
      if (op.kind != OpKind::kBinary && op.kind != OpKind::kConcat) return std::nullopt;
    } else if (!broadcast_scalar) {
      if (x.shape.rank() != rank) return std::nullopt;
      out.emplace_back(op.inputs[i], perm);
    }
  }
  return out;
}

bool LayoutRegion::IsInside(OpId op) const {
  const auto found = inside_.find(op);
  return found != inside_.end() && found->second;
}

std::optional<Perm> LayoutRegion::Assigned(TensorId tensor) const {
  const auto found = perms_.find(tensor);
  if (found == perms_.end() || IsIdentity(found->second)) return std::nullopt;
  return found->second;
}

void LayoutRegion::CountBorder(const Editor& editor, TensorId t, TransposeCost* before, TransposeCost* after) const {
  const Perm& perm = perms_.at(t);
  const Dims& shape = editor.tensor(t).shape;
  const OpId p = editor.producer(t);
  const bool computed_inside = p != kNoOp && IsInside(p);
  bool old_needed = editor.is_output(t);
  for (const Use& use : editor.uses(t)) {
    if (IsInside(use.first)) continue;
    const Operator& reader = editor.op(use.first);
    if (reader.kind == OpKind::kTranspose) {
      if (!computed_inside || Assigned(reader.output)) continue;  // in the latter case it counts where its output is looked at
      const Perm& own = reader.as<TransposeAttrs>().perm;
      before->Add(shape, own);
      after->Add(Permuted(shape, perm), Compose(Inverse(perm), own));
    } else if (!computed_inside || !CanAbsorb(editor, t, use.first, perm)) {
      old_needed = true;
    }
  }
  if (computed_inside) {
    if (old_needed) after->Add(shape, perm);
    return;
  }
  const bool from_transpose = p != kNoOp && editor.op(p).kind == OpKind::kTranspose;
  if (!from_transpose) {
    if (FindTranspose(editor, t, perm) == kNoOp) after->Add(shape, perm);
    return;
  }
  const TensorId source = editor.op(p).inputs[0];
  const Perm& own = editor.op(p).as<TransposeAttrs>().perm;
  before->Add(editor.tensor(source).shape, own);
  // The Transpose may read another tensor of the region, which changes, too.
  const bool source_changes = Assigned(source) && editor.producer(source) != kNoOp && IsInside(editor.producer(source));
  const Dims source_shape = source_changes ? Permuted(editor.tensor(source).shape, perms_.at(source)) : editor.tensor(source).shape;
  const Perm now = source_changes ? Compose(Inverse(perms_.at(source)), own) : own;
  const Perm total = Compose(now, perm);
  if (old_needed) after->Add(source_shape, now);
  if (source_changes || FindTranspose(editor, source, total) == kNoOp) after->Add(source_shape, total);
}

bool LayoutRegion::Pays(const Editor& editor) const {
  TransposeCost before, after;
  for (const TensorId t : tensors_) CountBorder(editor, t, &before, &after);
  return after < before;
}

OpAttrs LayoutRegion::RewrittenAttrs(const Editor& editor, OpId id) const {
  const Operator& op = editor.op(id);
  const TensorId carrier = op.kind == OpKind::kReduceMean ? op.inputs[0] : op.output;
  const std::optional<Perm> perm = Assigned(carrier);
  if (!perm) return op.attrs;
  const Perm inverse = Inverse(*perm);
  OpAttrs attrs = op.attrs;
  if (auto* concat = std::get_if<ConcatAttrs>(&attrs)) concat->axis = inverse[static_cast<size_t>(concat->axis)];
  if (auto* slice = std::get_if<SliceAttrs>(&attrs)) *slice = {Permuted(slice->begin, *perm), Permuted(slice->size, *perm)};
  if (auto* pad = std::get_if<PadAttrs>(&attrs)) *pad = {Permuted(pad->before, *perm), Permuted(pad->after, *perm), pad->value};
  if (auto* reshape = std::get_if<ReshapeAttrs>(&attrs)) reshape->shape = Permuted(reshape->shape, *perm);
  if (auto* reduce = std::get_if<ReduceAttrs>(&attrs)) {
    for (int32_t& axis : reduce->axes) axis = inverse[static_cast<size_t>(axis)];
    std::sort(reduce->axes.begin(), reduce->axes.end());
  }
  return attrs;
}

bool LayoutRegion::RewriteConstants(Editor& editor, OpId id, std::vector<std::pair<Use, TensorId>>* replaced) const {
  const OpKind kind = editor.op(id).kind;
  if (kind != OpKind::kBinary && kind != OpKind::kConcat) return true;
  const std::optional<Perm> perm = Assigned(editor.op(id).output);
  for (size_t i = 0; perm && i < editor.op(id).inputs.size(); ++i) {
    const TensorId operand = editor.op(id).inputs[i];
    if (!editor.tensor(operand).is_constant() || (kind == OpKind::kBinary && editor.tensor(operand).shape.Count() == 1)) continue;
    const Tensor constant = editor.tensor(operand);
    Dims shape;
    for (int missing = constant.shape.rank(); missing < static_cast<int>(perm->size()); ++missing) shape.push_back(1);
    for (const int64_t d : constant.shape) shape.push_back(d);
    const TensorId transposed =
        editor.AddConstant(constant.name, Permuted(shape, *perm), TransposedData(constant, shape, *perm), constant.dtype);
    if (transposed == kNoTensor) return false;
    replaced->push_back({{id, static_cast<int>(i)}, transposed});
  }
  return true;
}

bool LayoutRegion::Apply(Editor& editor) const {
  const Editor::Hold hold(editor);
  std::vector<std::pair<Use, TensorId>> inputs;  // what region operators read instead
  for (const OpId id : ops_) {
    if (!RewriteConstants(editor, id, &inputs)) return false;
  }
  std::vector<std::pair<OpId, OpAttrs>> attrs;
  for (const OpId id : ops_) {
    const OpKind kind = editor.op(id).kind;
    if (kind != OpKind::kUnary && kind != OpKind::kBinary) attrs.emplace_back(id, RewrittenAttrs(editor, id));
  }

  std::unordered_map<TensorId, TensorId> stored;  // by tensor: the one that holds it in the new order
  const std::vector<Border> borders = ChangeComputedTensors(editor, &stored);
  const std::vector<OpId> inverse = RewriteTransposesBehind(editor, borders);
  for (const TensorId t : tensors_) {
    if (stored.count(t) > 0) continue;
    const OpId transpose = editor.ProducerOfKind(t, OpKind::kTranspose);
    stored[t] = transpose == kNoOp ? TransposedTensor(editor, t, perms_.at(t))
                                   : TransposedTensor(editor, editor.op(transpose).inputs[0],
                                                      Compose(editor.op(transpose).as<TransposeAttrs>().perm, perms_.at(t)));
  }
  for (const OpId id : ops_) {
    for (int i = 0; i < static_cast<int>(editor.op(id).inputs.size()); ++i) {
      const auto found = stored.find(editor.op(id).inputs[static_cast<size_t>(i)]);
      if (found != stored.end()) inputs.push_back({{id, i}, found->second});
    }
  }
  for (const auto& [use, tensor] : inputs) editor.SetInput(use.first, use.second, tensor);
  for (auto& [id, changed] : attrs) editor.SetAttrs(id, std::move(changed));
  ServeOldReaders(editor, borders);
  // Last, because it renames tensors.
  for (const OpId id : inverse) editor.Replace(editor.op(id).output, editor.op(id).inputs[0]);
  return true;
}

std::vector<LayoutRegion::Border> LayoutRegion::ChangeComputedTensors(Editor& editor, std::unordered_map<TensorId, TensorId>* stored) const {
  std::vector<Border> borders;
  for (const TensorId t : tensors_) {
    const OpId p = editor.producer(t);
    if (p == kNoOp || !IsInside(p)) continue;
    const Dims shape = Permuted(editor.tensor(t).shape, perms_.at(t));
    Border border{t, t, Inverse(perms_.at(t)), {}};
    for (const Use& use : editor.uses(t)) {
      if (!IsInside(use.first)) border.readers.push_back(use);
    }
    if (editor.is_output(t)) {
      border.stored = editor.DetachOutput(p, shape);
      editor.AddOpFor(t, editor.tensor(t).name + ".transposed", p, OpKind::kTranspose, {border.stored}, TransposeAttrs{border.back});
    } else {
      editor.SetShape(t, shape);
    }
    (*stored)[t] = border.stored;
    borders.push_back(std::move(border));
  }
  return borders;
}

std::vector<OpId> LayoutRegion::RewriteTransposesBehind(Editor& editor, const std::vector<Border>& borders) const {
  std::vector<OpId> inverse;
  for (const Border& border : borders) {
    for (const Use& use : border.readers) {
      if (editor.op(use.first).kind != OpKind::kTranspose) continue;
      const Perm total = Compose(border.back, editor.op(use.first).as<TransposeAttrs>().perm);
      editor.Become(use.first, OpKind::kTranspose, {border.stored}, TransposeAttrs{total});
      if (IsIdentity(total)) inverse.push_back(use.first);
    }
  }
  return inverse;
}

void LayoutRegion::ServeOldReaders(Editor& editor, const std::vector<Border>& borders) const {
  for (const Border& border : borders) {
    for (const Use& use : border.readers) {
      if (editor.op(use.first).kind == OpKind::kTranspose) continue;
      const TensorId old = editor.is_output(border.tensor) ? border.tensor : TransposedTensor(editor, border.stored, border.back);
      editor.SetInput(use.first, use.second, old);
    }
  }
}

}  // namespace plait
