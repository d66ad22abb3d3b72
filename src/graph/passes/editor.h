// Private to the passes: a graph under change, with producers and uses kept up to date.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/graph/graph.h"

namespace plait {

// One operand slot that reads a tensor: operator and input index.
using Use = std::pair<OpId, int>;

// Ids stay valid while the editor lives: erased operators keep their number, new ones get the next. Graph inputs and outputs
// keep their tensors. Operators that nothing reads any more are erased as soon as a change makes them so.
class Editor {
 public:
  // `graph` has passed Validate().
  explicit Editor(Graph graph);

  const Operator& op(OpId id) const { return graph_.op(id); }
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  const Graph& graph() const { return graph_; }
  bool alive(OpId id) const { return alive_[static_cast<size_t>(id)]; }
  OpId producer(TensorId id) const { return producers_[static_cast<size_t>(id)]; }
  const std::set<Use>& uses(TensorId id) const { return uses_[static_cast<size_t>(id)]; }
  bool is_output(TensorId id) const { return is_output_[static_cast<size_t>(id)]; }
  bool changed() const { return changed_; }  // since the beginning, or since ClearChanged()
  void ClearChanged() { changed_ = false; }

  const Tensor& input(OpId id, int i) const { return graph_.input(op(id), i); }
  const Tensor& output(OpId id) const { return graph_.output(op(id)); }
  // The operator that alone reads the tensor, through one operand; kNoOp if there is none or the tensor is a graph output.
  OpId OnlyReader(TensorId id) const;
  // The operator that computes the tensor if it is of `kind`; else kNoOp.
  OpId ProducerOfKind(TensorId id, OpKind kind) const;

  // Operators that are alive, each after those that it reads from, otherwise as they stood.
  std::vector<OpId> Order() const;

  // A new constant, named after `hint`. kNoTensor if there is no memory.
  TensorId AddConstant(const std::string& hint, const Dims& shape, std::shared_ptr<const ConstData> data, DType dtype = DType::kF32);
  TensorId AddConstant(const std::string& hint, const Dims& shape, const std::vector<float>& values);
  // A new operator that stands near `near`; returns its output. The operands must fit.
  TensorId AddOp(const std::string& hint, OpId near, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs);
  // The same, writing an existing tensor that nothing computes at the moment.
  void AddOpFor(TensorId output, const std::string& hint, OpId near, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs);

  // Changes an operator in place; its output tensor stays.
  void Become(OpId id, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs);
  void SetInput(OpId id, int i, TensorId tensor);
  void SetAttrs(OpId id, OpAttrs attrs);
  // For rewrites that change layouts: the caller changes producer and readers to fit.
  void SetShape(TensorId id, const Dims& shape);
  // The operator writes a new tensor of `shape`; the old one has no producer afterwards.
  TensorId DetachOutput(OpId id, const Dims& shape);

  // `op` computes what `last` computed: it writes `last`'s output, and `last` is erased.
  void TakeOver(OpId id, OpId last);
  // Everything that read `old` reads `with`, an equal tensor. A graph output stays one: `with`'s producer writes it, or, where that cannot be,
  // a Copy does. False if nothing could be changed.
  bool Replace(TensorId old, TensorId with);
  void Erase(OpId id);
  void DropUnreadConstants();

  // While one lives, operators that nothing reads stay: rewrites of many operators at once pass tensors from hand to hand.
  class Hold {
   public:
    explicit Hold(Editor& editor) : editor_(editor) { ++editor_.holds_; }
    ~Hold() {
      if (--editor_.holds_ == 0) editor_.EraseUnread(std::exchange(editor_.held_, {}));
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Editor& editor_;
  };

  // What CancelTransposes may still spend on looking at layouts of this graph, in tensors visited: a graph can be made whose regions
  // all grow over the whole graph and pay one Transpose at a time. Networks use a few visits an operator.
  int64_t layout_visits_left = 0;

  // The edited graph without what was erased. The editor is empty afterwards.
  Graph Finish();

 private:
  TensorId AddTensor(const std::string& hint, DType dtype, const Dims& shape, std::shared_ptr<const ConstData> data);
  std::string UniqueName(const std::string& hint, std::unordered_set<std::string>* names);
  void LinkInputs(OpId id);
  void UnlinkInputs(OpId id);
  void EraseUnread(std::vector<TensorId> candidates);

  Graph graph_;
  std::vector<bool> alive_;
  std::vector<int64_t> position_;  // of operators, for Order
  std::vector<OpId> producers_;
  std::deque<std::set<Use>> uses_;  // references stay valid when tensors are added
  std::vector<bool> is_output_;
  std::unordered_set<std::string> tensor_names_, op_names_;
  int64_t name_counter_ = 0;
  int holds_ = 0;
  std::vector<TensorId> held_;  // what may have become unread meanwhile
  bool changed_ = false;
};

// Runs one pass on a graph: what the public pass functions do.
bool RunPass(Graph* graph, void (*pass)(Editor&));

// The passes on an editor, so that Optimize() builds it once.
void FoldConstants(Editor& editor);
void FoldBatchNorm(Editor& editor);
void FoldScales(Editor& editor);
void FuseClamps(Editor& editor);
void FusePadding(Editor& editor);
void FuseBias(Editor& editor);
void RecognizeGelu(Editor& editor);
void RecognizeLayerNorm(Editor& editor);
void RecognizeActivations(Editor& editor);
void CancelTransposes(Editor& editor);
void SimplifyViews(Editor& editor);
void RemoveDeadCode(Editor& editor);

}  // namespace plait
