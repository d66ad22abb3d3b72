#include "src/partition/storage.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "src/graph/operators.h"
#include "src/partition/reshape.h"

namespace plait {
namespace {

size_t Index(int32_t id) { return static_cast<size_t>(id); }

bool Has(const std::optional<TensorStorage>& storage) { return storage.has_value(); }

TensorStorage DenseRoot(const Graph& graph, TensorId tensor) {
  return {tensor, 0, DenseStrides(graph.tensor(tensor).shape)};
}

bool IsDense(const Graph& graph, TensorId tensor, const TensorStorage& storage) {
  return IsDense(graph.tensor(tensor).shape, storage.strides);
}

// Where operand `slot` of a Concat lies, given where the Concat's output lies.
TensorStorage SlotStorage(const Graph& graph, const Operator& concat, size_t slot, const TensorStorage& output) {
  const int axis = concat.as<ConcatAttrs>().axis;
  TensorStorage out = output;
  for (size_t i = 0; i < slot; ++i) out.offset += graph.tensor(concat.inputs[i]).shape[axis] * output.strides[axis];
  return out;
}

TensorStorage SliceStorage(const Operator& slice, const TensorStorage& input) {
  TensorStorage out = input;
  const Dims& begin = slice.as<SliceAttrs>().begin;
  for (int i = 0; i < begin.rank(); ++i) out.offset += begin[i] * input.strides[i];
  return out;
}

// The same elements seen as another tensor of the same group; nullopt if its strides cannot say that.
std::optional<TensorStorage> Reshaped(const Graph& graph, TensorId from, const TensorStorage& storage, TensorId to) {
  std::optional<Dims> strides = ReshapeStrides(graph.tensor(from).shape, storage.strides, graph.tensor(to).shape);
  if (!strides) return std::nullopt;
  return TensorStorage{storage.root, storage.offset, *strides};
}

// Tensors that Reshapes connect hold the same elements, so where one of them lies decides for all. Such a group is named
// after its origin, the one tensor that no Reshape computes.
class Groups {
 public:
  explicit Groups(const Graph& graph) : graph_(graph), producers_(graph.Producers()), origin_(graph.tensors.size()), members_(graph.tensors.size()) {
    std::vector<bool> known(graph.tensors.size(), false);
    auto add = [&](TensorId t, TensorId origin) {
      origin_[Index(t)] = origin;
      members_[Index(origin)].push_back(t);
      known[Index(t)] = true;
    };
    for (TensorId t = 0; t < graph.tensor_count(); ++t) {
      if (producers_[Index(t)] == kNoOp) add(t, t);
    }
    for (const Operator& op : graph.ops) {
      add(op.output, op.kind == OpKind::kReshape ? origin_[Index(op.inputs[0])] : op.output);
    }
  }

  TensorId Origin(TensorId t) const { return origin_[Index(t)]; }
  const std::vector<TensorId>& Members(TensorId t) const { return members_[Index(Origin(t))]; }
  OpId Producer(TensorId t) const { return producers_[Index(t)]; }
  // The operator that computes the group's elements; nullptr for graph inputs and constants.
  const Operator* Source(TensorId t) const {
    const OpId op = Producer(Origin(t));
    return op == kNoOp ? nullptr : &graph_.op(op);
  }
  // Whether the group may lie wherever others want it: its elements are written by an operator (a Concat is filled by
  // its operands).
  bool IsMovable(TensorId t) const {
    const Operator* source = Source(t);
    return source != nullptr && source->kind != OpKind::kSlice;
  }

 private:
  const Graph& graph_;
  std::vector<OpId> producers_;
  std::vector<TensorId> origin_;
  std::vector<std::vector<TensorId>> members_;
};

// An operand that has to be read through a copy.
using Edge = std::pair<OpId, size_t>;

class CopyPlacement {
 public:
  CopyPlacement(const Graph& graph, const StrideSupport& strided)
      : graph_(graph), strided_(strided), consumers_(graph.Consumers()), groups_(graph), storage_(graph.tensors.size()) {}

  // Decides every copy, then builds the graph that has them.
  Result<Graph> Run() {
    PinOutputs();
    PlaceConcats();
    PlaceTheRest();
    ServeDenseReaders();
    return Rebuild();
  }

 private:
  // A graph output has memory of its own: it becomes its group's root, or a copy.
  void PinOutputs() {
    for (TensorId t : graph_.outputs) {
      if (!groups_.IsMovable(t)) {
        copied_outputs_.insert(t);
        continue;
      }
      const auto [at, is_new] = pinned_.emplace(groups_.Origin(t), t);
      if (!is_new && at->second != t) copied_outputs_.insert(t);
    }
    for (const auto& [origin, root] : pinned_) PlaceGroup(root, DenseRoot(graph_, root));
  }

  // Last Concats first, so that a Concat inside another knows where it lies before its own operands ask.
  void PlaceConcats() {
    for (OpId c = graph_.op_count() - 1; c >= 0; --c) {
      const Operator& concat = graph_.op(c);
      if (concat.kind != OpKind::kConcat) continue;
      if (!Has(storage_[Index(concat.output)])) PlaceGroup(concat.output, DenseRoot(graph_, concat.output));
      for (size_t slot = 0; slot < concat.inputs.size(); ++slot) {
        const TensorId x = concat.inputs[slot];
        const TensorStorage place = SlotStorage(graph_, concat, slot, *storage_[Index(concat.output)]);
        if (groups_.IsMovable(x) && !Has(storage_[Index(x)]) && FitsInPlace(x, place)) {
          PlaceGroup(x, place);
        } else {
          slot_copies_.insert({c, slot});
        }
      }
    }
  }

  // Whether all who write or read the group of `x` can do so when it lies at `place`.
  bool FitsInPlace(TensorId x, const TensorStorage& place) const {
    const Operator& source = *groups_.Source(x);
    std::vector<std::pair<TensorId, TensorStorage>> to_check;
    for (TensorId m : groups_.Members(x)) {
      std::optional<TensorStorage> at = Reshaped(graph_, x, place, m);
      if (!at) return false;
      to_check.emplace_back(m, *at);
    }
    if (source.kind != OpKind::kConcat) {
      std::optional<TensorStorage> at = Reshaped(graph_, x, place, source.output);
      if (!IsDense(graph_, source.output, *at) && !strided_(graph_, groups_.Producer(source.output), kOutputOperand)) {
        return false;
      }
    }
    while (!to_check.empty()) {
      const auto [t, at] = to_check.back();
      to_check.pop_back();
      if (IsDense(graph_, t, at)) continue;
      for (OpId reader : consumers_[Index(t)]) {
        const Operator& op = graph_.op(reader);
        if (op.kind == OpKind::kSlice) {
          // A slice that has gaps even in a dense tensor is served in either case.
          if (IsDense(graph_, op.output, SliceStorage(op, DenseRoot(graph_, t)))) {
            to_check.emplace_back(op.output, SliceStorage(op, at));
          }
        } else if (op.kind == OpKind::kReshape) {
          // Members of the group are in the list already; behind a Slice a copy would be needed.
          if (groups_.Origin(op.output) != groups_.Origin(x)) return false;
        } else if (op.kind != OpKind::kConcat && !ReadsStrided(reader, t)) {
          return false;
        }
      }
    }
    return true;
  }

  bool ReadsStrided(OpId reader, TensorId t) const {
    const Operator& op = graph_.op(reader);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] == t && !strided_(graph_, reader, static_cast<int>(i))) return false;
    }
    return true;
  }

  void PlaceGroup(TensorId anchor, const TensorStorage& place) {
    for (TensorId m : groups_.Members(anchor)) storage_[Index(m)] = Reshaped(graph_, anchor, place, m);
  }

  void PlaceTheRest() {
    for (TensorId t = 0; t < graph_.tensor_count(); ++t) {
      if (groups_.Producer(t) == kNoOp) storage_[Index(t)] = DenseRoot(graph_, t);
    }
    for (OpId o = 0; o < graph_.op_count(); ++o) {
      const Operator& op = graph_.op(o);
      std::optional<TensorStorage>& out = storage_[Index(op.output)];
      const bool is_view = op.kind == OpKind::kReshape || op.kind == OpKind::kSlice;
      // Constants keep their own memory outside the arena; only kernels read them there.
      if (is_view && graph_.tensor(op.inputs[0]).is_constant()) {
        slot_copies_.insert({o, 0});
        out = DenseRoot(graph_, op.output);
      }
      if (Has(out)) continue;
      if (op.kind == OpKind::kSlice) {
        out = SliceStorage(op, *storage_[Index(op.inputs[0])]);
      } else if (op.kind == OpKind::kReshape) {
        out = Reshaped(graph_, op.inputs[0], *storage_[Index(op.inputs[0])], op.output);
        if (!Has(out)) dense_copies_.insert({o, 0});
      }
      if (!Has(out)) out = DenseRoot(graph_, op.output);
    }
  }

  void ServeDenseReaders() {
    for (OpId o = 0; o < graph_.op_count(); ++o) {
      const Operator& op = graph_.op(o);
      if (IsView(op.kind)) continue;
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        const TensorId t = op.inputs[i];
        if (t == kNoTensor || IsDense(graph_, t, *storage_[Index(t)])) continue;
        if (!strided_(graph_, o, static_cast<int>(i))) dense_copies_.insert({o, i});
      }
    }
  }

  Result<Graph> Rebuild() {
    out_.name = graph_.name;
    out_.tensors = graph_.tensors;
    out_.inputs = graph_.inputs;
    out_.outputs = graph_.outputs;
    for (const Tensor& t : graph_.tensors) tensor_names_.insert(t.name);
    for (const Operator& op : graph_.ops) op_names_.insert(op.name);
    // An output that becomes a copy keeps its name: what it was is another tensor from here on.
    std::map<TensorId, TensorId> renamed;
    for (TensorId t : copied_outputs_) renamed[t] = NewTensor(t, ".view");
    auto current = [&](TensorId t) {
      auto at = renamed.find(t);
      return at == renamed.end() ? t : at->second;
    };
    std::map<TensorId, TensorId> dense;  // copies that readers share
    for (OpId o = 0; o < graph_.op_count(); ++o) {
      Operator op = graph_.op(o);
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        if (op.inputs[i] == kNoTensor) continue;
        const TensorId from = current(op.inputs[i]);
        op.inputs[i] = from;
        if (slot_copies_.count({o, i}) != 0) {
          op.inputs[i] = AddCopy(from, NewTensor(from, ".copy"));
        } else if (dense_copies_.count({o, i}) != 0) {
          auto [at, is_new] = dense.emplace(from, kNoTensor);
          if (is_new) at->second = AddCopy(from, NewTensor(from, ".dense"));
          op.inputs[i] = at->second;
        }
      }
      op.output = current(op.output);
      out_.ops.push_back(std::move(op));
    }
    for (const auto& [t, view] : renamed) AddCopy(view, t);
    PLAIT_RETURN_IF_ERROR(Validate(out_));
    PLAIT_RETURN_IF_ERROR(CheckStrides());
    return std::move(out_);
  }

  // Copies, too, are kernels with rules; what they cannot do is not hidden.
  Status CheckStrides() const {
    PLAIT_ASSIGN_OR_RETURN(const std::vector<TensorStorage> storage, AssignStorage(out_));
    for (OpId o = 0; o < out_.op_count(); ++o) {
      const Operator& op = out_.op(o);
      if (IsView(op.kind)) continue;
      for (size_t i = 0; i <= op.inputs.size(); ++i) {
        const bool is_output = i == op.inputs.size();
        const TensorId t = is_output ? op.output : op.inputs[i];
        if (t == kNoTensor || IsDense(out_, t, storage[Index(t)])) continue;
        const int operand = is_output ? kOutputOperand : static_cast<int>(i);
        if (!strided_(out_, o, operand)) {
          return Unsupported("operator '", op.name, "' (", Name(op.kind), ") has to ", is_output ? "write" : "read",
                             " tensor '", out_.tensor(t).name,
                             "' with gaps between its rows, and a lane in use has no kernel for that; leave that lane out");
        }
      }
    }
    return Status();
  }

  static std::string Fresh(const std::string& wanted, std::unordered_set<std::string>* taken) {
    std::string name = wanted;
    for (int n = 2; !taken->insert(name).second; ++n) name = wanted + std::to_string(n);
    return name;
  }
  TensorId NewTensor(TensorId like, const char* suffix) {
    Tensor tensor = out_.tensor(like);
    tensor.name = Fresh(tensor.name + suffix, &tensor_names_);
    tensor.data = nullptr;
    out_.tensors.push_back(std::move(tensor));
    return out_.tensor_count() - 1;
  }
  TensorId AddCopy(TensorId from, TensorId to) {
    Operator copy;
    copy.name = Fresh(out_.tensor(to).name, &op_names_);
    copy.kind = OpKind::kUnary;
    copy.inputs = {from};
    copy.output = to;
    copy.attrs = UnaryAttrs{UnaryKind::kCopy, {}};
    out_.ops.push_back(std::move(copy));
    return to;
  }

  const Graph& graph_;
  const StrideSupport& strided_;
  const std::vector<std::vector<OpId>> consumers_;
  const Groups groups_;
  std::vector<std::optional<TensorStorage>> storage_;  // as it will be, copies included
  std::map<TensorId, TensorId> pinned_;                // origin -> the output that is the group's root
  std::set<TensorId> copied_outputs_;
  std::set<Edge> slot_copies_;                         // each gets a copy of its own, placed where the reader wants it
  std::set<Edge> dense_copies_;                        // readers of one tensor share a copy
  std::unordered_set<std::string> tensor_names_, op_names_;
  Graph out_;
};

}  // namespace

Result<Graph> PlaceCopies(const Graph& graph, const StrideSupport& strided) { return CopyPlacement(graph, strided).Run(); }

Result<std::vector<TensorStorage>> AssignStorage(const Graph& graph) {
  const Groups groups(graph);
  std::vector<std::optional<TensorStorage>> storage(graph.tensors.size());
  auto needs_copy = [&](TensorId t, const char* why) {
    return InvalidArgument("tensor '", graph.tensor(t).name, "' ", why, ": the graph has to go through PlaceCopies first");
  };
  auto place = [&](TensorId anchor, const TensorStorage& at) {
    for (TensorId m : groups.Members(anchor)) {
      storage[Index(m)] = Reshaped(graph, anchor, at, m);
      if (!Has(storage[Index(m)])) return needs_copy(m, "cannot be a view of where its elements lie");
    }
    return Status();
  };
  for (TensorId t : graph.outputs) {
    if (Has(storage[Index(t)]) && storage[Index(t)]->root == t) continue;
    if (!groups.IsMovable(t) || Has(storage[Index(t)])) return needs_copy(t, "is a graph output without memory of its own");
    PLAIT_RETURN_IF_ERROR(place(t, DenseRoot(graph, t)));
  }
  for (OpId c = graph.op_count() - 1; c >= 0; --c) {
    const Operator& concat = graph.op(c);
    if (concat.kind != OpKind::kConcat) continue;
    if (!Has(storage[Index(concat.output)])) PLAIT_RETURN_IF_ERROR(place(concat.output, DenseRoot(graph, concat.output)));
    for (size_t slot = 0; slot < concat.inputs.size(); ++slot) {
      const TensorId x = concat.inputs[slot];
      if (!groups.IsMovable(x) || Has(storage[Index(x)])) return needs_copy(x, "cannot lie inside a Concat's output");
      PLAIT_RETURN_IF_ERROR(place(x, SlotStorage(graph, concat, slot, *storage[Index(concat.output)])));
    }
  }
  for (TensorId t = 0; t < graph.tensor_count(); ++t) {
    if (groups.Producer(t) == kNoOp) storage[Index(t)] = DenseRoot(graph, t);
  }
  for (const Operator& op : graph.ops) {
    std::optional<TensorStorage>& out = storage[Index(op.output)];
    if (Has(out)) continue;
    const bool is_view = op.kind == OpKind::kReshape || op.kind == OpKind::kSlice;
    if (is_view && graph.tensor(op.inputs[0]).is_constant()) return needs_copy(op.output, "is a view of a constant");
    if (op.kind == OpKind::kSlice) {
      out = SliceStorage(op, *storage[Index(op.inputs[0])]);
    } else if (op.kind == OpKind::kReshape) {
      out = Reshaped(graph, op.inputs[0], *storage[Index(op.inputs[0])], op.output);
      if (!Has(out)) return needs_copy(op.output, "cannot be a view of where its elements lie");
    } else {
      out = DenseRoot(graph, op.output);
    }
  }
  std::vector<TensorStorage> result;
  result.reserve(storage.size());
  for (std::optional<TensorStorage>& s : storage) result.push_back(std::move(*s));
  return result;
}

}  // namespace plait
