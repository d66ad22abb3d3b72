#include "src/graph/builder.h"

#include <cstring>

#include "src/graph/operators.h"
#include "src/graph/operators/declarations.h"

namespace plait {
namespace {

constexpr Dims kScalar;

// Whether the id names a tensor; kNoTensor is the trace of an earlier mistake.
bool InRange(const Graph& graph, TensorId id) { return id >= 0 && id < graph.tensor_count(); }

}  // namespace

// Sizes are checked at once because shape inference multiplies them.
bool GraphBuilder::Append(Tensor tensor) {
  status_ = CheckTensor(tensor);
  if (status_.ok()) graph_.tensors.push_back(std::move(tensor));
  return status_.ok();
}

TensorId GraphBuilder::Input(const std::string& name, Dims shape, DType dtype) {
  if (!ok()) return kNoTensor;
  if (!Append({name, dtype, shape, nullptr})) return kNoTensor;
  graph_.inputs.push_back(graph_.tensor_count() - 1);
  return graph_.inputs.back();
}

TensorId GraphBuilder::Constant(const std::string& name, Dims shape, std::shared_ptr<const ConstData> data, DType dtype) {
  if (!ok()) return kNoTensor;
  if (data == nullptr) {
    status_ = InvalidArgument("constant ", Quoted(name), " has no data");
    return kNoTensor;
  }
  if (!Append({name, dtype, shape, std::move(data)})) return kNoTensor;
  return graph_.tensor_count() - 1;
}

TensorId GraphBuilder::Constant(const std::string& name, Dims shape, const std::vector<float>& values) {
  if (!ok()) return kNoTensor;
  const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
  std::shared_ptr<ConstData> data = ConstData::Allocate(bytes);
  if (data == nullptr) {
    status_ = OutOfMemory("constant ", Quoted(name), ": no memory for ", bytes, " bytes");
    return kNoTensor;
  }
  if (bytes > 0) std::memcpy(data->mutable_data(), values.data(), static_cast<size_t>(bytes));
  return Constant(name, shape, std::move(data), DType::kF32);
}

TensorId GraphBuilder::Add(const std::string& name, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
  if (!ok()) return kNoTensor;
  Operator op{name, kind, std::move(inputs), kNoTensor, std::move(attrs)};
  Result<Dims> shape = InferShape(graph_, op);
  if (!shape.ok()) {
    status_ = shape.status();
    return kNoTensor;
  }
  if (!Append({name, graph_.input(op, 0).dtype, *shape, nullptr})) return kNoTensor;
  op.output = graph_.tensor_count() - 1;
  graph_.ops.push_back(std::move(op));
  return graph_.ops.back().output;
}

void GraphBuilder::Output(TensorId tensor) {
  if (!ok()) return;
  if (!InRange(graph_, tensor)) {
    status_ = InvalidArgument("graph output ", graph_.outputs.size(), " is tensor ", tensor, " of ", graph_.tensor_count());
    return;
  }
  graph_.outputs.push_back(tensor);
}

void GraphBuilder::RenameTensor(TensorId tensor, const std::string& name) {
  if (!ok()) return;
  if (!InRange(graph_, tensor)) {
    status_ = InvalidArgument("cannot name tensor ", tensor, " of ", graph_.tensor_count(), " ", Quoted(name));
    return;
  }
  graph_.tensors[static_cast<size_t>(tensor)].name = name;
}

const Dims& GraphBuilder::shape(TensorId tensor) const { return InRange(graph_, tensor) ? graph_.tensor(tensor).shape : kScalar; }

Result<Graph> GraphBuilder::Build() {
  Graph graph = std::move(graph_);
  Status status = std::move(status_);
  graph_ = Graph();
  status_ = Status();
  if (status.ok()) status = Validate(graph);
  if (!status.ok()) return status.Annotated(StrCat("graph ", Quoted(graph.name)));
  return graph;
}

}  // namespace plait
