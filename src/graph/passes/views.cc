// Views that show nothing new, operators that stand twice, and operators that are others in disguise.
#include <algorithm>
#include <map>
#include <optional>

#include "src/graph/operators.h"
#include "src/graph/passes/constants.h"
#include "src/graph/passes/editor.h"
#include "src/graph/passes/permutation.h"

namespace plait {
namespace {

bool IsNothing(const Editor& editor, OpId id) {
  const Operator& op = editor.op(id);
  switch (op.kind) {
    case OpKind::kReshape:
    case OpKind::kSlice: return editor.input(id, 0).shape == editor.output(id).shape;
    case OpKind::kTranspose: return IsIdentity(op.as<TransposeAttrs>().perm);
    case OpKind::kConcat: return op.inputs.size() == 1;
    case OpKind::kPad: return editor.input(id, 0).shape == editor.output(id).shape;
    case OpKind::kUnary: {
      const auto& attrs = op.as<UnaryAttrs>();
      return attrs.kind == UnaryKind::kCopy || (attrs.kind == UnaryKind::kClamp && attrs.clamp.IsNone());
    }
    default: return false;
  }
}

// A Reshape of a Reshape, a Slice of a Slice.
void JoinChain(Editor& editor, OpId id) {
  const Operator op = editor.op(id);
  const OpId before = editor.ProducerOfKind(op.inputs[0], op.kind);
  if (before == kNoOp) return;
  if (op.kind == OpKind::kReshape) {
    editor.SetInput(id, 0, editor.op(before).inputs[0]);
  } else if (op.kind == OpKind::kSlice) {
    SliceAttrs joined = op.as<SliceAttrs>();
    for (int i = 0; i < joined.begin.rank(); ++i) joined.begin[i] += editor.op(before).as<SliceAttrs>().begin[i];
    editor.Become(id, OpKind::kSlice, {editor.op(before).inputs[0]}, joined);
  }
}

// A Slice that lies inside one operand of a Concat reads that operand.
void SliceConcatOperand(Editor& editor, OpId id) {
  const Operator op = editor.op(id);
  const OpId concat = editor.ProducerOfKind(op.inputs[0], OpKind::kConcat);
  if (concat == kNoOp) return;
  const int axis = editor.op(concat).as<ConcatAttrs>().axis;
  SliceAttrs attrs = op.as<SliceAttrs>();
  for (const TensorId operand : editor.op(concat).inputs) {
    const int64_t extent = editor.tensor(operand).shape[axis];
    if (attrs.begin[axis] < extent) {
      if (attrs.begin[axis] + attrs.size[axis] <= extent) editor.Become(id, OpKind::kSlice, {operand}, attrs);
      return;
    }
    attrs.begin[axis] -= extent;
  }
}

bool LeadingOnes(const Dims& shape, int count) {
  for (int i = 0; i < count; ++i) {
    if (shape[i] != 1) return false;
  }
  return true;
}

// A MatMul whose right operand is one constant matrix is a FullyConnected.
void MatMulOfConstant(Editor& editor, OpId id) {
  const Operator op = editor.op(id);
  const Tensor& b = editor.input(id, 1);
  const int rank = b.shape.rank();
  if (Floats(editor, op.inputs[1]) == nullptr || !LeadingOnes(b.shape, rank - 2)) return;
  const bool transposed = op.as<MatMulAttrs>().transpose_b;
  const Dims matrix{b.shape.back(1), b.shape.back()};
  const Perm perm = transposed ? Perm{0, 1} : Perm{1, 0};
  const std::string name = b.name;
  const TensorId weights = editor.AddConstant(name, Permuted(matrix, perm), TransposedData(b, matrix, perm));
  if (weights != kNoTensor) editor.Become(id, OpKind::kFullyConnected, {op.inputs[0], weights}, FullyConnectedAttrs{});
}

// A MatMul whose right operand is a Transpose that moves its innermost axis reads the operand transposed instead, so that the Transpose
// moves whole rows, or nothing.
void MatMulOfTranspose(Editor& editor, OpId id) {
  const Operator op = editor.op(id);
  const OpId transpose = editor.ProducerOfKind(op.inputs[1], OpKind::kTranspose);
  if (transpose == kNoOp) return;
  Perm perm = editor.op(transpose).as<TransposeAttrs>().perm;
  const auto last = static_cast<int32_t>(perm.size()) - 1;
  if (perm[perm.size() - 2] != last) return;
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  TensorId b = editor.op(transpose).inputs[0];
  if (!IsIdentity(perm)) b = editor.AddOp(editor.op(transpose).name, transpose, OpKind::kTranspose, {b}, TransposeAttrs{perm});
  editor.Become(id, OpKind::kMatMul, {op.inputs[0], b}, MatMulAttrs{!op.as<MatMulAttrs>().transpose_b});
}

void SimplifyOne(Editor& editor, OpId id) {
  const OpKind kind = editor.op(id).kind;
  if (kind == OpKind::kReshape || kind == OpKind::kSlice) JoinChain(editor, id);
  if (kind == OpKind::kSlice) SliceConcatOperand(editor, id);
  if (kind == OpKind::kMatMul) {
    MatMulOfTranspose(editor, id);
    MatMulOfConstant(editor, id);
  }
  if (editor.op(id).kind == OpKind::kTranspose && MovesNoByte(editor.input(id, 0).shape, editor.op(id).as<TransposeAttrs>().perm)) {
    editor.Become(id, OpKind::kReshape, {editor.op(id).inputs[0]}, ReshapeAttrs{editor.output(id).shape});
    JoinChain(editor, id);
  }
  if (IsNothing(editor, id)) editor.Replace(editor.op(id).output, editor.op(id).inputs[0]);
}

// Operators that compute the same from the same operands become one.
void MergeEqualReaders(Editor& editor, TensorId x) {
  std::vector<OpId> seen;
  const std::set<Use> readers = editor.uses(x);
  constexpr size_t kMostKinds = 16;  // keeps a wide fan-out linear
  for (const Use& use : readers) {
    if (!editor.alive(use.first) || use.second != 0) continue;
    const Operator op = editor.op(use.first);
    const auto same = std::find_if(seen.begin(), seen.end(), [&](OpId o) {
      const Operator& other = editor.op(o);
      return other.kind == op.kind && other.inputs == op.inputs && other.attrs == op.attrs;
    });
    if (same == seen.end()) {
      if (seen.size() < kMostKinds) seen.push_back(use.first);
    } else if (!editor.is_output(op.output)) {
      editor.Replace(op.output, editor.op(*same).output);
    }
  }
}

// Concat(f0 .. fk) whose first operands are those of an earlier Concat reads that one's output in their place. Where each block appends to
// what all blocks before it appended, every Concat becomes a longer view of one tensor.
class PrefixConcats {
 public:
  void Visit(Editor& editor, OpId id) {
    const Operator op = editor.op(id);
    const int axis = op.as<ConcatAttrs>().axis;
    uint64_t hash = static_cast<uint64_t>(axis);
    OpId longest = kNoOp;
    for (size_t n = 1; n <= op.inputs.size(); ++n) {
      hash = (hash ^ static_cast<uint64_t>(op.inputs[n - 1])) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 31;
      if (n == 1) continue;
      const auto found = by_operands_.find(hash);
      if (found != by_operands_.end() && IsPrefix(editor, found->second, op, n)) longest = found->second;
    }
    by_operands_.emplace(hash, id);
    operands_.emplace(id, op.inputs);
    if (longest == kNoOp) return;
    const size_t shared = operands_.at(longest).size();
    if (shared == op.inputs.size()) {
      if (!editor.is_output(op.output)) editor.Replace(op.output, editor.op(longest).output);
      return;
    }
    std::vector<TensorId> inputs = {editor.op(longest).output};
    inputs.insert(inputs.end(), op.inputs.begin() + static_cast<std::ptrdiff_t>(shared), op.inputs.end());
    editor.Become(id, OpKind::kConcat, std::move(inputs), ConcatAttrs{axis});
  }

 private:
  bool IsPrefix(const Editor& editor, OpId earlier, const Operator& op, size_t n) const {
    const std::vector<TensorId>& inputs = operands_.at(earlier);
    return editor.alive(earlier) && inputs.size() == n && editor.op(earlier).as<ConcatAttrs>().axis == op.as<ConcatAttrs>().axis &&
           std::equal(inputs.begin(), inputs.end(), op.inputs.begin());
  }

  std::map<uint64_t, OpId> by_operands_;
  std::map<OpId, std::vector<TensorId>> operands_;  // as they stood before the rewrite
};

}  // namespace

void SimplifyViews(Editor& editor) {
  PrefixConcats concats;
  for (const TensorId t : editor.graph().inputs) MergeEqualReaders(editor, t);
  for (const OpId id : editor.Order()) {
    if (!editor.alive(id)) continue;
    SimplifyOne(editor, id);
    if (!editor.alive(id)) continue;
    MergeEqualReaders(editor, editor.op(id).output);
    if ( editor.op(id).kind == OpKind::kConcat) concats.Visit(editor, id);
  }
}

}  // namespace plait
