#include <unordered_set>

#include "src/graph/operators.h"
#include "src/graph/operators/declarations.h"

namespace plait {
namespace {

constexpr int64_t kMaxDim = int64_t{1} << 31;
constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;
constexpr size_t kMaxNameLength = 1 << 16;

Status CheckName(const char* what, size_t index, const std::string& name, std::unordered_set<std::string_view>* seen) {
  if (name.empty()) return InvalidArgument(what, " ", index, " has no name");
  if (name.size() > kMaxNameLength) return InvalidArgument(what, " ", index, ": name of ", name.size(), " bytes; at most ", kMaxNameLength);
  if (!seen->insert(name).second) return InvalidArgument(what, " ", index, ": another one is named ", Quoted(name), ", too");
  return Status();
}

class Validator {
 public:
  explicit Validator(const Graph& graph) : graph_(graph), available_(graph.tensors.size(), false), owned_(graph.tensors.size(), false) {}

  Status Run() {
    PLAIT_RETURN_IF_ERROR(CheckTensors());
    PLAIT_RETURN_IF_ERROR(CheckInputs());
    PLAIT_RETURN_IF_ERROR(CheckOperators());
    return CheckOutputs();
  }

 private:
  bool InRange(TensorId id) const { return id >= 0 && id < graph_.tensor_count(); }

  Status CheckTensors() {
    constexpr size_t kMost = std::numeric_limits<int32_t>::max();
    if (graph_.tensors.size() > kMost || graph_.ops.size() > kMost) return InvalidArgument("more than 2^31 tensors or operators");
    std::unordered_set<std::string_view> names;
    for (size_t t = 0; t < graph_.tensors.size(); ++t) {
      PLAIT_RETURN_IF_ERROR(CheckName("tensor", t, graph_.tensors[t].name, &names));
      PLAIT_RETURN_IF_ERROR(CheckTensor(graph_.tensors[t]));
      owned_[t] = available_[t] = graph_.tensors[t].is_constant();
    }
    return Status();
  }

  Status CheckInputs() {
    for (const TensorId t : graph_.inputs) {
      if (!InRange(t)) return InvalidArgument("a graph input is tensor ", t, " of ", graph_.tensor_count());
      const auto index = static_cast<size_t>(t);
      if (owned_[index]) return InvalidArgument("graph input ", Quoted(graph_.tensor(t).name), " is a constant or listed twice");
      owned_[index] = available_[index] = true;
    }
    return Status();
  }

  Status CheckOperators() {
    std::unordered_set<std::string_view> names;
    for (size_t o = 0; o < graph_.ops.size(); ++o) {
      const Operator& op = graph_.ops[o];
      PLAIT_RETURN_IF_ERROR(CheckName("operator", o, op.name, &names));
      PLAIT_ASSIGN_OR_RETURN(const Dims shape, InferShape(graph_, op));
      for (int i = 0; i < static_cast<int>(op.inputs.size()); ++i) {
        if (HasInput(op, i) && !available_[static_cast<size_t>(op.inputs[static_cast<size_t>(i)])]) {
          return OpError(op, DescribeInput(graph_, op, i), " is computed by no operator before it (a cycle, or operators out of order)");
        }
      }
      if (!InRange(op.output)) return OpError(op, "the output is tensor ", op.output, " of ", graph_.tensor_count());
      const Tensor& out = graph_.output(op);
      const auto index = static_cast<size_t>(op.output);
      if (owned_[index]) return OpError(op, "output ", Quoted(out.name), " is a constant, a graph input, or another operator's output");
      owned_[index] = available_[index] = true;
      if (!(out.shape == shape) || out.dtype != graph_.input(op, 0).dtype) {
        return OpError(op, "output ", Quoted(out.name), " is ", ToString(out.shape), " of ", Name(out.dtype), ", but should be ",
                       ToString(shape), " of ", Name(graph_.input(op, 0).dtype));
      }
    }
    return Status();
  }

  Status CheckOutputs() {
    if (graph_.outputs.empty()) return InvalidArgument("graph ", Quoted(graph_.name), " has no outputs");
    std::vector<bool> computed(graph_.tensors.size(), false);
    for (const Operator& op : graph_.ops) computed[static_cast<size_t>(op.output)] = true;
    for (const TensorId t : graph_.outputs) {
      if (!InRange(t)) return InvalidArgument("a graph output is tensor ", t, " of ", graph_.tensor_count());
      const auto index = static_cast<size_t>(t);
      if (!computed[index]) {
        return InvalidArgument("graph output ", Quoted(graph_.tensor(t).name),
                               " is computed by no operator, or listed twice; a Unary copy makes one of an input or constant");
      }
      computed[index] = false;
    }
    for (size_t t = 0; t < owned_.size(); ++t) {
      if (!owned_[t]) return InvalidArgument("tensor ", Quoted(graph_.tensors[t].name), " is neither input nor constant nor computed");
    }
    return Status();
  }

  const Graph& graph_;
  std::vector<bool> available_;  // may be read by the next operator
  std::vector<bool> owned_;      // has its one source
};

}  // namespace

Status CheckTensor(const Tensor& tensor) {
  int64_t bytes = SizeOf(tensor.dtype);
  for (int i = 0; i < tensor.shape.rank(); ++i) {
    if (tensor.shape[i] < 1 || tensor.shape[i] > kMaxDim) {
      return InvalidArgument("tensor ", Quoted(tensor.name), ": size ", tensor.shape[i], " of axis ", i, " is not within 1..", kMaxDim);
    }
    bytes = SaturatingMul(bytes, tensor.shape[i]);
  }
  if (bytes > kMaxTensorBytes) {
    return InvalidArgument("tensor ", Quoted(tensor.name), ": shape ", ToString(tensor.shape), " has more than 2^40 bytes");
  }
  if (tensor.is_constant() && tensor.data->bytes() != bytes) {
    return InvalidArgument("constant ", Quoted(tensor.name), ": ", tensor.data->bytes(), " bytes of data, but shape ", ToString(tensor.shape),
                           " of ", Name(tensor.dtype), " has ", bytes);
  }
  return Status();
}

Status Validate(const Graph& graph) { return Validator(graph).Run(); }

}  // namespace plait
