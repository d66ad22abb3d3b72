#include <cstring>
#include <new>

#include "backends/reference/reference.h"
#include "src/base/status.h"

namespace plait {
namespace {

// Tensors of one evaluation: where each one lies, and when its buffer may go.
class Evaluation {
 public:
  explicit Evaluation(const Graph& graph)
      : graph_(graph),
        memory_(graph.tensors.size()),
        address_(graph.tensors.size(), nullptr),
        readers_(graph.tensors.size(), 0) {
    for (const Operator& op : graph.ops) {
      for (TensorId id : op.inputs) {
        if (id != kNoTensor) ++readers_[Index(id)];
      }
    }
    for (TensorId id : graph.outputs) ++readers_[Index(id)];
    for (size_t i = 0; i < graph.tensors.size(); ++i) {
      if (graph.tensors[i].is_constant()) address_[i] = graph.tensors[i].data->data();
    }
  }

  void SetInput(TensorId id, const void* data) { address_[Index(id)] = data; }
  const void* address(TensorId id) const { return address_[Index(id)]; }

  Status Run(CpuBackend* backend, CpuContext* context, OpId id, const TensorObserver& observe) {
    const Operator& op = graph_.op(id);
    PLAIT_RETURN_IF_ERROR(Allocate(op.output));
    std::vector<View> views;
    views.reserve(op.inputs.size() + 1);  // addresses of views are kept below
    KernelRequest request;
    request.graph = &graph_;
    request.op = id;
    request.region = Region::Whole(graph_.output(op).shape);
    for (TensorId input : op.inputs) request.reads.push_back(BindWhole(input, &views));
    request.write = BindWhole(op.output, &views);
    PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<CpuKernel> kernel, backend->CreateKernel(context, request));
    PLAIT_RETURN_IF_ERROR(kernel->Run());
    if (observe) {
      const auto* data = static_cast<const float*>(address(op.output));
      observe(op.output, {data, static_cast<size_t>(graph_.output(op).shape.Count())});
    }
    for (TensorId input : op.inputs) Release(input);
    if (readers_[Index(op.output)] == 0) memory_[Index(op.output)].reset();
    return Status();
  }

 private:
  static size_t Index(TensorId id) { return static_cast<size_t>(id); }

  Status Allocate(TensorId id) {
    const Tensor& tensor = graph_.tensor(id);
    memory_[Index(id)] = ConstData::Allocate(tensor.bytes());
    if (!memory_[Index(id)]) return OutOfMemory("no memory for tensor '", tensor.name, "' of ", tensor.bytes(), " bytes");
    address_[Index(id)] = memory_[Index(id)]->data();
    return Status();
  }

  BoundView BindWhole(TensorId id, std::vector<View>* views) const {
    View view;
    view.tensor = id;
    if (id == kNoTensor) {
      views->push_back(view);
      return {&views->back(), nullptr};
    }
    const Tensor& tensor = graph_.tensor(id);
    view.region = Region::Whole(tensor.shape);
    view.strides = DenseStrides(tensor.shape);
    view.dtype = tensor.dtype;
    views->push_back(view);
    return {&views->back(), const_cast<void*>(address(id))};  // kernels write the output only
  }

  void Release(TensorId id) {
    if (id != kNoTensor && --readers_[Index(id)] == 0) memory_[Index(id)].reset();
  }

  const Graph& graph_;
  std::vector<std::shared_ptr<ConstData>> memory_;
  std::vector<const void*> address_;
  std::vector<int> readers_;
};

}  // namespace

Status EvaluateReference(const Graph& graph, std::span<const void* const> inputs,
                         std::vector<std::vector<std::byte>>* outputs, const TensorObserver& observe) {
  if (inputs.size() != graph.inputs.size()) {
    return InvalidArgument("graph '", graph.name, "' has ", graph.inputs.size(), " inputs, but ", inputs.size(),
                           " buffers are given");
  }
  try {
    const std::shared_ptr<CpuBackend> backend = CreateReferenceBackend();
    PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<CpuContext> context, backend->CreateContext(1));
    Evaluation evaluation(graph);
    for (size_t i = 0; i < inputs.size(); ++i) evaluation.SetInput(graph.inputs[i], inputs[i]);
    for (OpId id = 0; id < graph.op_count(); ++id) {
      PLAIT_RETURN_IF_ERROR(evaluation.Run(backend.get(), context.get(), id, observe));
    }
    outputs->clear();
    for (TensorId id : graph.outputs) {
      outputs->emplace_back(static_cast<size_t>(graph.tensor(id).bytes()));
      if (!outputs->back().empty()) std::memcpy(outputs->back().data(), evaluation.address(id), outputs->back().size());
    }
  } catch (const std::bad_alloc&) {
    return OutOfMemory("no memory to evaluate graph '", graph.name, "'");
  }
  return Status();
}

}  // namespace plait
