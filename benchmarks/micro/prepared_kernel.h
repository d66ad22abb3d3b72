// One whole operator on the XNNPACK backend, ready to run again and again.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/xnnpack/xnnpack.h"
#include "src/graph/builder.h"
#include "src/graph/operators.h"

namespace plait {

template <typename T>
T OrDie(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().message().c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

class PreparedKernel {
 public:
  // `graph` has one operator; activations are dense. `l2_bytes` and `threads` as for the backend.
  PreparedKernel(Graph graph, int64_t l2_bytes, int threads) : graph_(std::move(graph)) {
    backend_ = OrDie(CreateXnnpackBackend(XnnpackOptions{l2_bytes}));
    context_ = OrDie(backend_->CreateContext(threads));
    const Operator& op = graph_.op(0);
    views_.resize(op.inputs.size() + 1);
    KernelRequest request;
    request.graph = &graph_;
    request.op = 0;
    request.region = Region::Whole(graph_.output(op).shape);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] == kNoTensor) {
        request.reads.push_back({&views_[i], nullptr});
        continue;
      }
      const Tensor& tensor = graph_.tensor(op.inputs[i]);
      const Region region = InputRegion(graph_, op, static_cast<int>(i), request.region);
      request.reads.push_back(Bind(op.inputs[i], region, tensor.data, &views_[i]));
    }
    request.write = Bind(op.output, request.region, nullptr, &views_.back());
    kernel_ = OrDie(backend_->CreateKernel(context_.get(), request));
  }

  Status Run() { return kernel_->Run(); }
  const float* input() const { return inputs_.front(); }
  float* output() const { return output_; }

 private:
  BoundView Bind(TensorId id, const Region& region, std::shared_ptr<const ConstData> data, View* view) {
    const Tensor& tensor = graph_.tensor(id);
    view->tensor = id;
    view->region = region;
    view->strides = DenseStrides(tensor.shape);
    if (data != nullptr) return {view, const_cast<void*>(data->data())};
    const std::shared_ptr<ConstData> memory = ConstData::Allocate(tensor.bytes() + kBufferSlack);
    for (int64_t i = 0; i < tensor.shape.Count(); ++i) memory->as<float>()[i] = static_cast<float>(i % 61) * 0.03f - 0.9f;
    buffers_.push_back(memory);
    inputs_.push_back(memory->as<float>());
    output_ = memory->as<float>();
    return {view, memory->mutable_data()};
  }

  Graph graph_;
  std::shared_ptr<XnnpackBackend> backend_;
  std::unique_ptr<CpuContext> context_;
  std::vector<View> views_;
  std::vector<std::shared_ptr<ConstData>> buffers_;
  std::vector<const float*> inputs_;
  float* output_ = nullptr;
  std::unique_ptr<CpuKernel> kernel_;
};

inline Graph Built(GraphBuilder& b, TensorId output) {
  b.Output(output);
  return OrDie(b.Build());
}

inline TensorId Weights(GraphBuilder& b, const std::string& name, const Dims& shape) {
  std::vector<float> values(static_cast<size_t>(shape.Count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 53) * 0.01f - 0.25f;
  return b.Constant(name, shape, values);
}

}  // namespace plait
