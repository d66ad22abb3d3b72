// From a decoded model to a graph: order, inputs, every node by its handler, outputs.
#include "src/formats/onnx_import.h"

#include <algorithm>
#include <map>
#include <queue>

#include "src/base/checked.h"
#include "src/base/file_io.h"
#include "src/formats/messages.h"
#include "src/formats/onnx/lowering.h"

namespace plait {
namespace {

std::string Describe(const OnnxNode& node) {
  const std::string& name = !node.name.empty() ? node.name : node.outputs.empty() ? node.name : node.outputs[0];
  return StrCat(node.domain.empty() ? "" : node.domain + ".", node.op_type, " '", name, "'");
}

// Which node makes which value. Corrupt if two do, or a node makes an input or initializer.
class NodeOrder {
 public:
  static Result<std::vector<int>> Of(const OnnxModel& model, const std::unordered_set<std::string>& given) {
    NodeOrder order(model);
    PLAIT_RETURN_IF_ERROR(order.FindProducers(given));
    PLAIT_RETURN_IF_ERROR(order.MarkNeeded(given));
    return order.Sort();
  }

 private:
  explicit NodeOrder(const OnnxModel& model) : model_(model), needed_(model.nodes.size(), false) {}

  Status FindProducers(const std::unordered_set<std::string>& given) {
    for (size_t n = 0; n < model_.nodes.size(); ++n) {
      for (const std::string& output : model_.nodes[n].outputs) {
        if (output.empty()) continue;
        if (given.count(output) > 0) {
          return Corrupt(Describe(model_.nodes[n]), " writes '", output, "', which is an input or a constant");
        }
        const auto [at, fresh] = producers_.emplace(output, static_cast<int>(n));
        if (!fresh) {
          return Corrupt("'", output, "' is written twice: by ",
                         Describe(model_.nodes[static_cast<size_t>(at->second)]), " and by ",
                         Describe(model_.nodes[n]));
        }
      }
    }
    return Status();
  }

  // What the outputs need; the rest is not even looked at.
  Status MarkNeeded(const std::unordered_set<std::string>& given) {
    std::vector<int> open;
    auto visit = [&](const std::string& name, const std::string& reader) {
      if (name.empty() || given.count(name) > 0) return Status();
      const auto found = producers_.find(name);
      if (found == producers_.end()) return Corrupt(reader, " reads '", name, "', which nothing makes");
      if (!needed_[static_cast<size_t>(found->second)]) {
        needed_[static_cast<size_t>(found->second)] = true;
        open.push_back(found->second);
      }
      return Status();
    };
    for (const OnnxValueInfo& output : model_.outputs) {
      PLAIT_RETURN_IF_ERROR(visit(output.name, "the graph's output list"));
    }
    while (!open.empty()) {
      const OnnxNode& node = model_.nodes[static_cast<size_t>(open.back())];
      open.pop_back();
      for (const std::string& input : node.inputs) PLAIT_RETURN_IF_ERROR(visit(input, Describe(node)));
    }
    return Status();
  }

  // Topological, and otherwise as in the file. ONNX demands sorted files; unsorted ones are sorted all the same.
  Result<std::vector<int>> Sort() {
    const size_t count = model_.nodes.size();
    std::vector<int> missing(count, 0);
    std::vector<std::vector<int>> readers(count);
    for (size_t n = 0; n < count; ++n) {
      if (!needed_[n]) continue;
      for (const std::string& input : model_.nodes[n].inputs) {
        const auto found = producers_.find(input);
        if (found == producers_.end()) continue;
        readers[static_cast<size_t>(found->second)].push_back(static_cast<int>(n));
        ++missing[n];
      }
    }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t n = 0; n < count; ++n) {
      if (needed_[n] && missing[n] == 0) ready.push(static_cast<int>(n));
    }
    std::vector<int> order;
    while (!ready.empty()) {
      const int n = ready.top();
      ready.pop();
      order.push_back(n);
      for (const int reader : readers[static_cast<size_t>(n)]) {
        if (--missing[static_cast<size_t>(reader)] == 0) ready.push(reader);
      }
    }
    for (size_t n = 0; n < count; ++n) {
      if (missing[n] > 0) return Corrupt("the operators form a cycle through ", Describe(model_.nodes[n]));
    }
    return order;
  }

  const OnnxModel& model_;
  std::unordered_map<std::string, int> producers_;
  std::vector<bool> needed_;
};

// Operators that cannot be lowered, gathered so that one message names all.
class UnsupportedList {
 public:
  void AddKind(const OnnxNode& node) {
    Entry& e = kinds_[StrCat(node.domain.empty() ? "" : node.domain + ".", node.op_type)];
    ++e.count;
    if (e.names.size() < kMaxNames) {
      e.names.push_back(!node.name.empty() || node.outputs.empty() ? node.name : node.outputs[0]);
    }
  }
  void AddCase(const OnnxNode& node, const Status& status) {
    ++case_count_;
    if (cases_.size() < kMaxCases) cases_.push_back(StrCat(Describe(node), ": ", status.message()));
  }
  Status ToStatus() const {
    if (kinds_.empty() && cases_.empty()) return Status();
    std::string text = "the model needs what this version cannot do:";
    for (const auto& [kind, e] : kinds_) {
      text += StrCat(" no operator ", kind, " (", e.count, "x:");
      for (size_t i = 0; i < e.names.size(); ++i) text += StrCat(i > 0 ? "," : "", " '", e.names[i], "'");
      text += StrCat(e.count > static_cast<int64_t>(e.names.size()) ? ", ..." : "", ");");
    }
    for (const std::string& c : cases_) text += StrCat(" ", c, ";");
    if (case_count_ > static_cast<int64_t>(cases_.size())) {
      text += StrCat(" and ", case_count_ - static_cast<int64_t>(cases_.size()), " more;");
    }
    text.back() = '.';
    return Unsupported(text, " Export the model without these operators, or cut it before them");
  }

 private:
  static constexpr size_t kMaxNames = 4, kMaxCases = 8;
  struct Entry {
    int64_t count = 0;
    std::vector<std::string> names;
  };
  std::map<std::string, Entry> kinds_;
  std::vector<std::string> cases_;
  int64_t case_count_ = 0;
};

constexpr char kGiveAShape[] =
    "; shapes must be fixed: export the model with all sizes, or give the input's shape (of the tool: --shape NAME=1x3x224x224)";

Result<Dims> InputShape(const OnnxValueInfo& input, const ImportOptions& options) {
  const auto given = options.shapes.find(input.name);
  const bool has_given = given != options.shapes.end();
  if (!input.shape) {
    if (has_given) return given->second;
    return InvalidArgument("the input '", input.name, "' has no shape", kGiveAShape);
  }
  if (input.shape->size() > static_cast<size_t>(kMaxRank)) {
    return Unsupported("the input '", input.name, "' has ", input.shape->size(), " dimensions; at most ", kMaxRank,
                       " are supported");
  }
  if (has_given && static_cast<size_t>(given->second.rank()) != input.shape->size()) {
    return InvalidArgument("the shape ", ToString(given->second), " given for the input '", input.name,
                           "' has not the ", input.shape->size(), " dimensions of the model");
  }
  Dims shape;
  for (const OnnxDim& d : *input.shape) {
    const int i = shape.rank();
    const int64_t wanted = has_given ? given->second[i] : d.value;
    if (d.value > 0 && wanted != d.value) {
      return InvalidArgument("the shape ", ToString(given->second), " given for the input '", input.name,
                             "' contradicts the model: its dimension ", i, " is ", d.value);
    }
    if (wanted <= 0) {
      return InvalidArgument("the input '", input.name, "' has no fixed size in dimension ", i,
                             d.symbol.empty() ? "" : " ('" + d.symbol + "')", kGiveAShape);
    }
    shape.push_back(wanted);
  }
  return shape;
}

class Importer {
 public:
  Importer(OnnxModel model, const ImportOptions& options, int64_t file_bytes)
      : model_(std::move(model)), options_(options), state_(model_.graph_name) {
    state_.opset = model_.opset;
    state_.max_generated_bytes =
        CheckedAdd(options.max_generated_bytes, 4 * file_bytes).value_or(options.max_generated_bytes);
  }

  Result<Graph> Run() {
    PLAIT_RETURN_IF_ERROR(TakeNames());
    PLAIT_RETURN_IF_ERROR(DefineInitializers());
    PLAIT_RETURN_IF_ERROR(DefineInputs());
    PLAIT_ASSIGN_OR_RETURN(const std::vector<int> order, NodeOrder::Of(model_, given_));
    PLAIT_RETURN_IF_ERROR(LowerNodes(order));
    PLAIT_RETURN_IF_ERROR(DefineOutputs());
    return state_.builder.Build();
  }

 private:
  // Every name of the file is reserved, so that names made up here never collide with one that comes later.
  Status TakeNames() {
    for (const OnnxValueInfo& v : model_.inputs) state_.names.insert(v.name);
    for (const OnnxTensor& t : model_.initializers) state_.names.insert(t.name);
    for (const OnnxNode& n : model_.nodes) {
      for (const std::string& o : n.outputs) state_.names.insert(o);
      for (const std::string& i : n.inputs) state_.read_names.insert(i);
    }
    if (model_.outputs.empty()) return Corrupt("the model has no outputs");
    for (const OnnxValueInfo& v : model_.outputs) {
      if (v.name.empty()) return Corrupt("an output of the model has no name");
      if (!state_.output_names.insert(v.name).second) return Corrupt("the output '", v.name, "' is listed twice");
      state_.read_names.insert(v.name);
      if (v.dtype != "float32") {
        return Unsupported("the output '", v.name, "' is ", v.dtype.empty() ? "no tensor" : v.dtype,
                           "; float32 is supported: export the model in float32");
      }
    }
    return Status();
  }

  Status DefineInitializers() {
    for (OnnxTensor& t : model_.initializers) {
      if (t.name.empty()) return Corrupt("an initializer has no name");
      if (!given_.insert(t.name).second) return Corrupt("the initializer '", t.name, "' is listed twice");
      auto value = std::make_shared<OnnxValue>();
      value->name = t.name;
      value->shape = t.shape;
      value->constant = std::make_shared<const OnnxTensor>(std::move(t));
      state_.values[value->name] = value;
    }
    model_.initializers.clear();
    return Status();
  }

  Status DefineInputs() {
    std::unordered_set<std::string> names;
    for (const OnnxValueInfo& input : model_.inputs) {
      if (input.name.empty()) return Corrupt("an input of the model has no name");
      if (!names.insert(input.name).second) return Corrupt("the input '", input.name, "' is listed twice");
      if (!given_.insert(input.name).second) continue;  // an initializer's default, as old files list them
      if (input.dtype != "float32") {
        return Unsupported("the input '", input.name, "' is ", input.dtype.empty() ? "no tensor" : input.dtype,
                           "; float32 is supported: export the model in float32");
      }
      PLAIT_ASSIGN_OR_RETURN(const Dims shape, InputShape(input, options_));
      auto value = std::make_shared<OnnxValue>();
      value->name = input.name;
      value->shape = shape;
      value->plain = state_.builder.Input(input.name, shape);
      state_.values[input.name] = value;
      PLAIT_RETURN_IF_ERROR(state_.builder.status());
    }
    for (const auto& [name, shape] : options_.shapes) {
      if (names.count(name) == 0) {
        return InvalidArgument("a shape is given for '", name, "', which is no input of the model");
      }
    }
    return Status();
  }

  Status LowerNodes(const std::vector<int>& order) {
    UnsupportedList unsupported;
    for (const int n : order) {
      const OnnxNode& node = model_.nodes[static_cast<size_t>(n)];
      const OnnxHandler handler = node.domain.empty() ? FindOnnxHandler(node.op_type) : nullptr;
      if (handler == nullptr) {
        unsupported.AddKind(node);
        MarkUnknown(node);
        continue;
      }
      if (node.outputs.empty() || node.outputs[0].empty()) return Corrupt(Describe(node), " has no first output");
      if (ReadsUnknown(node)) {
        MarkUnknown(node);
        continue;
      }
      OnnxLowering lowering(&state_, &node);
      handler(lowering);
      const Status status = lowering.status();
      if (status.code() == PLAIT_UNSUPPORTED && state_.builder.ok()) {
        unsupported.AddCase(node, status);
        MarkUnknown(node);
      } else if (!status.ok()) {
        return status.Annotated(Describe(node));
      }
    }
    return unsupported.ToStatus();
  }

  bool ReadsUnknown(const OnnxNode& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& name) {
      const auto found = state_.values.find(name);
      return found != state_.values.end() && found->second->unknown;
    });
  }

  void MarkUnknown(const OnnxNode& node) {
    for (const std::string& output : node.outputs) {
      if (output.empty()) continue;
      auto value = std::make_shared<OnnxValue>();
      value->name = output;
      value->unknown = true;
      state_.values[output] = value;
    }
  }

  Status DefineOutputs() {
    std::unordered_set<std::string> taken = state_.output_names;  // names of tensors that must not be renamed
    for (const OnnxValueInfo& input : model_.inputs) taken.insert(input.name);
    const OnnxNode none;
    for (const OnnxValueInfo& output : model_.outputs) {
      const auto found = state_.values.find(output.name);
      if (found == state_.values.end()) {
        return Corrupt("the output '", output.name, "' is not made by the operator that lists it");
      }
      OnnxLowering lowering(&state_, &none);
      TensorId id = lowering.Plain(found->second);
      PLAIT_RETURN_IF_ERROR(lowering.status().Annotated(StrCat("the output '", output.name, "'")));
      const Tensor& tensor = state_.builder.graph().tensor(id);
      if (tensor.name != output.name) {
        if (tensor.is_constant() || taken.count(tensor.name) > 0) {
          id = state_.builder.Add(output.name, OpKind::kUnary, {id}, UnaryAttrs{UnaryKind::kCopy, {}});
        } else {
          state_.builder.RenameTensor(id, output.name);
        }
      }
      state_.builder.Output(id);
    }
    return state_.builder.status();
  }

  OnnxModel model_;
  const ImportOptions& options_;
  OnnxImportState state_;
  std::unordered_set<std::string> given_;  // inputs and initializers
};

}  // namespace

bool HasOnnx() { return true; }

Result<Graph> ImportOnnx(std::string_view bytes, const ImportOptions& options) {
  Result<OnnxModel> model = DecodeOnnx(bytes);
  if (!model.ok()) return Readable(model.status());
  Result<Graph> graph = Importer(std::move(*model), options, static_cast<int64_t>(bytes.size())).Run();
  if (!graph.ok()) return Readable(graph.status());
  return graph;
}

Result<Graph> ImportOnnxFile(const std::string& path, const ImportOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  Result<Graph> graph = ImportOnnx(bytes, options);
  if (!graph.ok()) return graph.status().Annotated(path);
  return graph;
}

}  // namespace plait
