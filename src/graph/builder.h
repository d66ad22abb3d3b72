// Builds graphs in code: zoo, importers, tests. Shapes are inferred; the first mistake is kept and reported by Build().
#pragma once

#include <string>
#include <vector>

#include "src/graph/graph.h"

namespace plait {

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) { graph_.name = std::move(name); }

  TensorId Input(const std::string& name, Dims shape, DType dtype = DType::kF32);
  // `data` has the shape's bytes.
  TensorId Constant(const std::string& name, Dims shape, std::shared_ptr<const ConstData> data, DType dtype = DType::kF32);
  TensorId Constant(const std::string& name, Dims shape, const std::vector<float>& values);
  // Appends an operator, infers its output's shape, returns the output tensor (named like the operator). After a mistake
  // every call returns kNoTensor and changes nothing.
  TensorId Add(const std::string& name, OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs);
  void Output(TensorId tensor);
  void RenameTensor(TensorId tensor, const std::string& name);

  const Dims& shape(TensorId tensor) const;  // rank 0 for kNoTensor
  const Graph& graph() const { return graph_; }
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  // The validated graph, or the first mistake. The builder is empty afterwards.
  Result<Graph> Build();

 private:
  bool Append(Tensor tensor);

  Graph graph_;
  Status status_;
};

}  // namespace plait
