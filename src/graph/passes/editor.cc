#include "src/graph/passes/editor.h"

#include <cstring>
#include <queue>

#include "src/graph/operators.h"

namespace plait {

Editor::Editor(Graph graph) : graph_(std::move(graph)) {
  const size_t tensors = graph_.tensors.size();
  constexpr int64_t kVisitsPerOperator = 4, kLeastVisits = 100000;
  layout_visits_left = kVisitsPerOperator * graph_.op_count() + kLeastVisits;
  alive_.assign(graph_.ops.size(), true);
  producers_ = graph_.Producers();
  uses_.resize(tensors);
  is_output_.assign(tensors, false);
  for (const TensorId t : graph_.outputs) is_output_[static_cast<size_t>(t)] = true;
  tensor_names_.reserve(tensors);
  op_names_.reserve(graph_.ops.size());
  for (const Tensor& t : graph_.tensors) tensor_names_.insert(t.name);
  for (OpId o = 0; o < graph_.op_count(); ++o) {
    position_.push_back(o);
    op_names_.insert(op(o).name);
    LinkInputs(o);
  }
}

OpId Editor::OnlyReader(TensorId id) const {
  const std::set<Use>& readers = uses(id);
  return readers.size() == 1 && !is_output(id) ? readers.begin()->first : kNoOp;
}

OpId Editor::ProducerOfKind(TensorId id, OpKind kind) const {
  const OpId p = id == kNoTensor ? kNoOp : producer(id);
  return p != kNoOp && op(p).kind == kind ? p : kNoOp;
}

std::vector<OpId> Editor::Order() const {
  std::vector<int> missing(graph_.ops.size(), 0);
  using Entry = std::pair<int64_t, OpId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (OpId o = 0; o < graph_.op_count(); ++o) {
    if (!alive(o)) continue;
    int& count = missing[static_cast<size_t>(o)];
    for (const TensorId t : op(o).inputs) count += t != kNoTensor && producer(t) != kNoOp;
    if (count == 0) ready.push({position_[static_cast<size_t>(o)], o});
  }
  std::vector<OpId> order;
  order.reserve(graph_.ops.size());
  while (!ready.empty()) {
    const OpId o = ready.top().second;
    ready.pop();
    order.push_back(o);
    for (const Use& use : uses(op(o).output)) {
      if (--missing[static_cast<size_t>(use.first)] == 0) ready.push({position_[static_cast<size_t>(use.first)], use.first});
    }
  }
  return order;
}

std::string Editor::UniqueName(const std::string& hint, std::unordered_set<std::string>* names) {
  // A number that an earlier call appended is dropped first, and very long names are cut, so that names do not grow with every rewrite.
  constexpr size_t kLongest = 1 << 15;
  std::string base = hint.substr(0, kLongest);
  if (names->insert(base).second) return base;
  const size_t dot = base.find_last_not_of("0123456789");
  if (dot != std::string::npos && dot > 0 && dot + 1 < base.size() && base[dot] == '.') base.resize(dot);
  std::string name;
  do {
    name = base + "." + std::to_string(++name_counter_);
  } while (!names->insert(name).second);
  return name;
}

TensorId Editor::AddTensor(const std::string& hint, DType dtype, const Dims& shape, std::shared_ptr<const ConstData> data) {
  changed_ = true;
  graph_.tensors.push_back({UniqueName(hint, &tensor_names_), dtype, shape, std::move(data)});
  producers_.push_back(kNoOp);
  uses_.emplace_back();
  is_output_.push_back(false);
  return graph_.tensor_count() - 1;
}

TensorId Editor::AddConstant(const std::string& hint, const Dims& shape, std::shared_ptr<const ConstData> data, DType dtype) {
  return data == nullptr ? kNoTensor : AddTensor(hint, dtype, shape, std::move(data));
}

TensorId Editor::AddConstant(const std::string& hint, const Dims& shape, const std::vector<float>& values) {
  const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
  std::shared_ptr<ConstData> data = ConstData::Allocate(bytes);
  if (data != nullptr) std::memcpy(data->mutable_data(), values.data(), static_cast<size_t>(bytes));
  return AddConstant(hint, shape, std::move(data), DType::kF32);
}

void Editor::AddOpFor(TensorId output, const std::string& hint, OpId near, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
  changed_ = true;
  graph_.ops.push_back({UniqueName(hint, &op_names_), kind, std::move(inputs), output, std::move(attrs)});
  const OpId id = graph_.op_count() - 1;
  alive_.push_back(true);
  position_.push_back(near == kNoOp ? 0 : position_[static_cast<size_t>(near)]);
  producers_[static_cast<size_t>(output)] = id;
  LinkInputs(id);
}

TensorId Editor::AddOp(const std::string& hint, OpId near, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
  const Operator shaped{hint, kind, inputs, kNoTensor, attrs};
  const Dims shape = Declaration(kind).infer_shape(graph_, shaped).value();
  const TensorId output = AddTensor(hint, tensor(inputs[0]).dtype, shape, nullptr);
  AddOpFor(output, hint, near, kind, std::move(inputs), std::move(attrs));
  return output;
}

void Editor::LinkInputs(OpId id) {
  for (int i = 0; i < static_cast<int>(op(id).inputs.size()); ++i) {
    const TensorId t = op(id).inputs[static_cast<size_t>(i)];
    if (t != kNoTensor) uses_[static_cast<size_t>(t)].insert({id, i});
  }
}

void Editor::UnlinkInputs(OpId id) {
  for (int i = 0; i < static_cast<int>(op(id).inputs.size()); ++i) {
    const TensorId t = op(id).inputs[static_cast<size_t>(i)];
    if (t != kNoTensor) uses_[static_cast<size_t>(t)].erase({id, i});
  }
}

void Editor::Become(OpId id, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
  changed_ = true;
  UnlinkInputs(id);
  Operator& o = graph_.ops[static_cast<size_t>(id)];
  std::vector<TensorId> before = std::exchange(o.inputs, std::move(inputs));
  o.kind = kind;
  o.attrs = std::move(attrs);
  LinkInputs(id);
  EraseUnread(std::move(before));
}

void Editor::SetInput(OpId id, int i, TensorId t) {
  TensorId& slot = graph_.ops[static_cast<size_t>(id)].inputs[static_cast<size_t>(i)];
  if (slot == t) return;
  changed_ = true;
  const TensorId before = std::exchange(slot, t);
  if (t != kNoTensor) uses_[static_cast<size_t>(t)].insert({id, i});
  if (before == kNoTensor) return;
  uses_[static_cast<size_t>(before)].erase({id, i});
  EraseUnread({before});
}

void Editor::SetAttrs(OpId id, OpAttrs attrs) {
  Operator& o = graph_.ops[static_cast<size_t>(id)];
  if (o.attrs == attrs) return;
  changed_ = true;
  o.attrs = std::move(attrs);
}

void Editor::SetShape(TensorId id, const Dims& shape) {
  changed_ = true;
  graph_.tensors[static_cast<size_t>(id)].shape = shape;
}

TensorId Editor::DetachOutput(OpId id, const Dims& shape) {
  const TensorId old = op(id).output;
  const TensorId fresh = AddTensor(tensor(old).name, tensor(old).dtype, shape, nullptr);
  graph_.ops[static_cast<size_t>(id)].output = fresh;
  producers_[static_cast<size_t>(fresh)] = id;
  producers_[static_cast<size_t>(old)] = kNoOp;
  return fresh;
}

void Editor::TakeOver(OpId id, OpId last) {
  changed_ = true;
  const TensorId out = op(last).output;
  UnlinkInputs(last);
  alive_[static_cast<size_t>(last)] = false;
  std::vector<TensorId> read = op(last).inputs;
  const TensorId before = std::exchange(graph_.ops[static_cast<size_t>(id)].output, out);
  producers_[static_cast<size_t>(out)] = id;
  producers_[static_cast<size_t>(before)] = kNoOp;
  std::erase(read, before);
  EraseUnread(std::move(read));
}

bool Editor::Replace(TensorId old, TensorId with) {
  const OpId identity = producer(old), source = producer(with);
  if (is_output(old) && (source == kNoOp || is_output(with))) {
    const Operator& o = op(identity);
    const bool is_copy = o.kind == OpKind::kUnary && o.as<UnaryAttrs>().kind == UnaryKind::kCopy && o.inputs[0] == with;
    if (!is_copy) Become(identity, OpKind::kUnary, {with}, UnaryAttrs{UnaryKind::kCopy});
    return !is_copy;
  }
  changed_ = true;
  if (is_output(old)) {
    // `with`'s producer writes the output instead, and everything that read `with` reads the output.
    UnlinkInputs(identity);
    alive_[static_cast<size_t>(identity)] = false;
    std::vector<TensorId> read = op(identity).inputs;
    graph_.ops[static_cast<size_t>(source)].output = old;
    producers_[static_cast<size_t>(old)] = source;
    producers_[static_cast<size_t>(with)] = kNoOp;
    const std::set<Use> readers = uses(with);
    for (const Use& use : readers) SetInput(use.first, use.second, old);
    std::erase(read, with);
    EraseUnread(std::move(read));
    return true;
  }
  const std::set<Use> readers = uses(old);
  for (const Use& use : readers) SetInput(use.first, use.second, with);
  EraseUnread({old});
  return true;
}

void Editor::Erase(OpId id) {
  changed_ = true;
  alive_[static_cast<size_t>(id)] = false;
  producers_[static_cast<size_t>(op(id).output)] = kNoOp;
  UnlinkInputs(id);
  EraseUnread(op(id).inputs);
}

// Finish() leaves them out; their memory is given back at once.
void Editor::DropUnreadConstants() {
  for (size_t t = 0; t < graph_.tensors.size(); ++t) {
    if (graph_.tensors[t].data == nullptr || !uses_[t].empty()) continue;
    changed_ = true;
    graph_.tensors[t].data = nullptr;
  }
}

void Editor::EraseUnread(std::vector<TensorId> candidates) {
  if (holds_ > 0) {
    held_.insert(held_.end(), candidates.begin(), candidates.end());
    return;
  }
  while (!candidates.empty()) {
    const TensorId t = candidates.back();
    candidates.pop_back();
    if (t == kNoTensor || !uses(t).empty() || is_output(t)) continue;
    const OpId p = producer(t);
    if (p == kNoOp || !alive(p)) continue;
    changed_ = true;
    alive_[static_cast<size_t>(p)] = false;
    producers_[static_cast<size_t>(t)] = kNoOp;
    UnlinkInputs(p);
    candidates.insert(candidates.end(), op(p).inputs.begin(), op(p).inputs.end());
  }
}

Graph Editor::Finish() {
  Graph out;
  out.name = std::move(graph_.name);
  const std::vector<OpId> order = Order();
  std::vector<bool> kept(graph_.tensors.size(), false);
  for (const TensorId t : graph_.inputs) kept[static_cast<size_t>(t)] = true;
  for (size_t t = 0; t < kept.size(); ++t) kept[t] = kept[t] || producers_[t] != kNoOp || !uses_[t].empty();
  std::vector<TensorId> renumbered(graph_.tensors.size(), kNoTensor);
  for (size_t t = 0; t < kept.size(); ++t) {
    if (!kept[t]) continue;
    renumbered[t] = static_cast<TensorId>(out.tensors.size());
    out.tensors.push_back(std::move(graph_.tensors[t]));
  }
  const auto renumber = [&](TensorId* t) {
    if (*t != kNoTensor) *t = renumbered[static_cast<size_t>(*t)];
  };
  for (const OpId o : order) {
    out.ops.push_back(std::move(graph_.ops[static_cast<size_t>(o)]));
    for (TensorId& t : out.ops.back().inputs) renumber(&t);
    renumber(&out.ops.back().output);
  }
  out.inputs = std::move(graph_.inputs);
  out.outputs = std::move(graph_.outputs);
  for (TensorId& t : out.inputs) renumber(&t);
  for (TensorId& t : out.outputs) renumber(&t);
  return out;
}

bool RunPass(Graph* graph, void (*pass)(Editor&)) {
  Editor editor(std::move(*graph));
  pass(editor);
  const bool changed = editor.changed();
  *graph = editor.Finish();
  return changed;
}

}  // namespace plait
