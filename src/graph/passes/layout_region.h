// Private to the passes: a set of tensors that can be stored with permuted axes at once.
//
// Elementwise operators, Concat, Slice, Pad, means, and Reshapes that keep axes together compute the same whatever the order of
// their tensors' axes. A layout region is the largest connected set of such operators around one tensor; giving all its tensors another order
// of axes removes the Transposes on some of its borders and needs new ones on others.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/graph/passes/editor.h"
#include "src/graph/passes/permutation.h"

namespace plait {

// Elements moved by Transposes, then their number: compared in this order.
struct TransposeCost {
  int64_t moved = 0;
  int64_t count = 0;
  void Add(const Dims& shape, const Perm& perm);
  friend auto operator<=>(const TransposeCost&, const TransposeCost&) = default;
};

class LayoutRegion {
 public:
  // Grows the region in which `seed` is stored transposed by `perm`.
  LayoutRegion(const Editor& editor, TensorId seed, const Perm& perm);

  bool empty() const { return ops_.empty(); }
  const std::vector<TensorId>& tensors() const { return tensors_; }
  const Perm& perm(TensorId tensor) const { return perms_.at(tensor); }

  // Whether storing the region's tensors so makes the Transposes on its borders cheaper.
  bool Pays(const Editor& editor) const;
  // Rewrites the graph. False, and nothing changed, if there is no memory for constants.
  bool Apply(Editor& editor) const;

 private:
  // A tensor computed inside, and what reads it outside.
  struct Border {
    TensorId tensor, stored;    // stored: in the new order
    Perm back;                  // from the new order to the old
    std::vector<Use> readers;
  };
  using TensorPerms = std::vector<std::pair<TensorId, Perm>>;
  // What storing `tensor` transposed by `perm` means for the other tensors of an operator that computes the same then; nullopt if it does not.
  static std::optional<TensorPerms> Consequences(const Editor& editor, OpId op, TensorId tensor, const Perm& perm);
  void Visit(const Editor& editor, OpId op, TensorId tensor);
  bool IsInside(OpId op) const;
  std::optional<Perm> Assigned(TensorId tensor) const;  // nullopt for none or the identity
  void CountBorder(const Editor& editor, TensorId tensor, TransposeCost* before, TransposeCost* after) const;
  OpAttrs RewrittenAttrs(const Editor& editor, OpId op) const;
  // By operand: the transposed constants that an operator reads instead of its own; false if memory is short.
  bool RewriteConstants(Editor& editor, OpId op, std::vector<std::pair<Use, TensorId>>* replaced) const;
  // The steps of Apply(), in this order: FindTranspose() must not meet a Transpose whose operand has changed and which has not.
  std::vector<Border> ChangeComputedTensors(Editor& editor, std::unordered_map<TensorId, TensorId>* stored) const;
  std::vector<OpId> RewriteTransposesBehind(Editor& editor, const std::vector<Border>& borders) const;  // those that became the identity
  void ServeOldReaders(Editor& editor, const std::vector<Border>& borders) const;

  std::vector<TensorId> tensors_;  // stored otherwise than before, in the order in which they were met
  std::unordered_map<TensorId, Perm> perms_;
  std::vector<OpId> ops_;
  std::unordered_map<OpId, bool> inside_;  // operators that were looked at
};

// The Transpose of `tensor` by `perm` that exists already; kNoOp if there is none.
OpId FindTranspose(const Editor& editor, TensorId tensor, const Perm& perm);

// Whether `reader`, a Reshape of `tensor`, only serves FullyConnected operators with constant weights, and storing `tensor` transposed by
// `perm` only permutes the columns of these. Rewriting does it: the Reshape reads `transposed` then.
bool CanAbsorb(const Editor& editor, TensorId tensor, OpId reader, const Perm& perm);
bool Absorb(Editor& editor, TensorId tensor, OpId reader, const Perm& perm, TensorId transposed);

}  // namespace plait
