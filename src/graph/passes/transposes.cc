// Transposes: chains joined, absorbed by weights, and removed by storing whole regions of the graph in another order of axes.
#include <set>

#include "src/graph/passes/constants.h"
#include "src/graph/passes/editor.h"
#include "src/graph/passes/layout_region.h"
#include "src/graph/passes/permutation.h"

namespace plait {
namespace {

// The first axis of `shape` from which on a Reshape to [..., last] flattens, such that `perm` leaves the axes before in place; -1 if there is none.
int FlattenedFrom(const Dims& shape, int64_t last, const Perm& perm) {
  int64_t count = 1;
  for (int axis = shape.rank() - 1; axis >= 0 && count <= last; --axis) {
    count *= shape[axis];
    bool fixed = count == last;
    for (int i = 0; fixed && i < axis; ++i) fixed = perm[static_cast<size_t>(i)] == i;
    if (fixed && shape.rank() - axis < kMaxRank) return axis;  // the weights unfold to one axis more
  }
  return -1;
}

bool IsFoldableFullyConnected(const Editor& editor, const Use& use) {
  const Operator& op = editor.op(use.first);
  return op.kind == OpKind::kFullyConnected && use.second == 0 && Floats(editor, op.inputs[1]) != nullptr;
}

void JoinTransposes(Editor& editor, OpId id) {
  const OpId before = editor.ProducerOfKind(editor.op(id).inputs[0], OpKind::kTranspose);
  if (before == kNoOp) return;
  const Perm total = Compose(editor.op(before).as<TransposeAttrs>().perm, editor.op(id).as<TransposeAttrs>().perm);
  editor.Become(id, OpKind::kTranspose, {editor.op(before).inputs[0]}, TransposeAttrs{total});
}

// Removes a Transpose that is the identity or the double of another. True if it is gone.
bool RemoveTranspose(Editor& editor, OpId id) {
  const Perm perm = editor.op(id).as<TransposeAttrs>().perm;
  const TensorId x = editor.op(id).inputs[0], y = editor.op(id).output;
  if (IsIdentity(perm)) {
    editor.Replace(y, x);
    return true;
  }
  const OpId twin = FindTranspose(editor, x, perm);
  if (twin == id || editor.is_output(y)) return false;
  editor.Replace(y, editor.op(twin).output);
  return true;
}

void AbsorbReaders(Editor& editor, OpId id) {
  const TensorId x = editor.op(id).inputs[0], y = editor.op(id).output;
  const Perm back = Inverse(editor.op(id).as<TransposeAttrs>().perm);
  const std::set<Use> readers = editor.uses(y);
  for (const Use& use : readers) {
    if (CanAbsorb(editor, y, use.first, back)) Absorb(editor, y, use.first, back, x);
  }
}

class Canceller {
 public:
  // One look at every Transpose. Whether a region was rewritten.
  bool Run(Editor& editor) {
    bool rewritten = false;
    for (const OpId id : editor.Order()) {
      if (!IsTranspose(editor, id)) continue;
      JoinTransposes(editor, id);
      if (RemoveTranspose(editor, id)) continue;
      AbsorbReaders(editor, id);
      if (!IsTranspose(editor, id)) continue;
      const Perm perm = editor.op(id).as<TransposeAttrs>().perm;
      // Everything behind it takes the order of axes before it; or everything before it takes the one behind it.
      rewritten |= Try(editor, editor.op(id).output, Inverse(perm));
      if (IsTranspose(editor, id)) rewritten |= Try(editor, editor.op(id).inputs[0], editor.op(id).as<TransposeAttrs>().perm);
    }
    return rewritten;
  }

 private:
  static bool IsTranspose(const Editor& editor, OpId id) { return editor.alive(id) && editor.op(id).kind == OpKind::kTranspose; }

  bool Try(Editor& editor, TensorId seed, const Perm& perm) {
    if (editor.layout_visits_left <= 0 || rejected_.count({seed, perm}) > 0) return false;
    const LayoutRegion region(editor, seed, perm);
    editor.layout_visits_left -= static_cast<int64_t>(region.tensors().size());
    if (!region.empty() && region.Pays(editor)) return region.Apply(editor);
    // The same region would grow from any of its tensors.
    for (const TensorId t : region.tensors()) rejected_.insert({t, region.perm(t)});
    return false;
  }

  std::set<std::pair<TensorId, Perm>> rejected_;
};

}  // namespace

bool CanAbsorb(const Editor& editor, TensorId tensor, OpId reader, const Perm& perm) {
  const Operator& reshape = editor.op(reader);
  if (reshape.kind != OpKind::kReshape || editor.is_output(reshape.output)) return false;
  const Dims& flat = editor.output(reader).shape;
  if (flat.rank() == 0 || FlattenedFrom(editor.tensor(tensor).shape, flat.back(), perm) < 0) return false;
  const std::set<Use>& readers = editor.uses(reshape.output);
  for (const Use& use : readers) {
    if (!IsFoldableFullyConnected(editor, use)) return false;
  }
  return !readers.empty();
}

bool Absorb(Editor& editor, TensorId tensor, OpId reader, const Perm& perm, TensorId transposed) {
  const TensorId flat = editor.op(reader).output;
  const Dims shape = editor.tensor(tensor).shape;
  const int64_t columns = editor.tensor(flat).shape.back();
  const int first = FlattenedFrom(shape, columns, perm);
  std::vector<std::pair<OpId, TensorId>> weights;
  for (const Use& use : editor.uses(flat)) {
    const Tensor old = editor.input(use.first, 1);
    Dims unfolded{old.shape[0]};
    Perm column_perm{0};
    for (int i = first; i < shape.rank(); ++i) {
      unfolded.push_back(shape[i]);
      column_perm.push_back(perm[static_cast<size_t>(i)] - first + 1);
    }
    const TensorId permuted = editor.AddConstant(old.name, old.shape, TransposedData(old, unfolded, column_perm));
    if (permuted == kNoTensor) return false;
    weights.emplace_back(use.first, permuted);
  }
  for (const auto& [fc, permuted] : weights) editor.SetInput(fc, 1, permuted);
  editor.SetInput(reader, 0, transposed);
  return true;
}

void CancelTransposes(Editor& editor) {
  constexpr int kMostRounds = 8;  // each round takes what the one before made possible; more than three were never seen
  for (int round = 0; round < kMostRounds; ++round) {
    if (!Canceller().Run(editor)) return;
  }
}

}  // namespace plait
