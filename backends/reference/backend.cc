#include <array>
#include <cctype>
#include <new>
#include <string>

#include "backends/reference/kernels.h"
#include "backends/reference/reference.h"
#include "src/base/status.h"
#include "src/graph/operators.h"

namespace plait {
namespace {

using reference::KernelArgs;
using reference::Operand;

std::string KernelId(OpKind kind) {
  std::string id = "reference.";
  for (char c : Name(kind)) id += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return id;
}

// "operator 'NAME' (Kind)", for messages.
std::string Describe(const Operator& op) { return StrCat("operator '", op.name, "' (", Name(op.kind), ")"); }

// The first tensor of the operator that is not f32; kNoTensor if all are.
TensorId FirstForeign(const Graph& graph, const Operator& op) {
  for (TensorId id : op.inputs) {
    if (id != kNoTensor && graph.tensor(id).dtype != DType::kF32) return id;
  }
  return graph.output(op).dtype == DType::kF32 ? kNoTensor : op.output;
}

class ReferenceRules final : public KernelRules {
 public:
  std::string_view name() const override { return "reference"; }
  KernelSupport Supports(const Graph& graph, OpId id) const override {
    const Operator& op = graph.op(id);
    const TensorId foreign = FirstForeign(graph, op);
    if (foreign == kNoTensor) return {true, KernelId(op.kind), ""};
    const Tensor& tensor = graph.tensor(foreign);
    return {false, "",
            StrCat("the reference kernels compute f32 only; tensor '", tensor.name, "' is ", Name(tensor.dtype))};
  }
  CutRule Cut(const Graph&, OpId, SplitAxis) const override { return {1, 1}; }
  bool Strided(const Graph&, OpId, int) const override { return true; }
};

class ReferenceContext final : public CpuContext {};

// The operand behind a bound view that has to hold `needed` of `tensor`.
Result<Operand> ToOperand(const Operator& op, const Tensor& tensor, const BoundView& bound, const Region& needed) {
  if (bound.view == nullptr || bound.data == nullptr) {
    return InvalidArgument(Describe(op), ": tensor '", tensor.name, "' is bound to no memory");
  }
  const View& view = *bound.view;
  const int rank = tensor.shape.rank();
  if (view.region.begin.rank() != rank || view.strides.rank() != rank || !Contains(view.region, needed)) {
    return InvalidArgument(Describe(op), ": the view of tensor '", tensor.name, "' holds ", ToString(view.region), " of ",
                           ToString(tensor.shape), ", but ", ToString(needed), " is needed");
  }
  if (rank > 0 && view.region.size.back() > 1 && view.strides.back() != 1) {
    return InvalidArgument(Describe(op), ": the view of tensor '", tensor.name, "' has an innermost stride of ",
                           view.strides.back(), "; it must be 1");
  }
  return Operand{static_cast<float*>(bound.data), view.region, view.strides, tensor.is_constant()};
}

Result<KernelArgs> Bind(const KernelRequest& request) {
  const Graph& graph = *request.graph;
  const Operator& op = graph.op(request.op);
  if (request.reads.size() != op.inputs.size()) {
    return InvalidArgument(Describe(op), " has ", op.inputs.size(), " inputs, but ", request.reads.size(),
                           " views are bound");
  }
  const Tensor& output = graph.output(op);
  if (request.region.begin.rank() != output.shape.rank() || !Contains(Region::Whole(output.shape), request.region)) {
    return InvalidArgument(Describe(op), ": region ", ToString(request.region), " is not inside the output, ",
                           ToString(output.shape));
  }
  KernelArgs args;
  args.graph = &graph;
  args.op = &op;
  args.region = request.region;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (op.inputs[i] == kNoTensor) {
      args.in.emplace_back();
      continue;
    }
    const Region needed = InputRegion(graph, op, static_cast<int>(i), request.region);
    PLAIT_ASSIGN_OR_RETURN(Operand operand, ToOperand(op, graph.tensor(op.inputs[i]), request.reads[i], needed));
    args.in.push_back(operand);
  }
  PLAIT_ASSIGN_OR_RETURN(args.out, ToOperand(op, output, request.write, request.region));
  return args;
}

using Maker = std::unique_ptr<CpuKernel> (*)(KernelArgs);

Maker MakerOf(OpKind kind) {
  switch (kind) {
    case OpKind::kConv2D: return reference::MakeConv2D;
    case OpKind::kDepthwiseConv2D: return reference::MakeDepthwiseConv2D;
    case OpKind::kFullyConnected: return reference::MakeFullyConnected;
    case OpKind::kMatMul: return reference::MakeMatMul;
    case OpKind::kBinary: return reference::MakeBinary;
    case OpKind::kUnary: return reference::MakeUnary;
    case OpKind::kMaxPool2D: return reference::MakeMaxPool2D;
    case OpKind::kAveragePool2D: return reference::MakeAveragePool2D;
    case OpKind::kReduceMean: return reference::MakeReduceMean;
    case OpKind::kSoftmax: return reference::MakeSoftmax;
    case OpKind::kLayerNorm: return reference::MakeLayerNorm;
    case OpKind::kBatchNorm: return reference::MakeBatchNorm;
    case OpKind::kConcat: return reference::MakeConcat;
    case OpKind::kSlice: return reference::MakeSlice;
    case OpKind::kReshape: return reference::MakeReshape;
    case OpKind::kTranspose: return reference::MakeTranspose;
    case OpKind::kPad: return reference::MakePad;
  }
  return nullptr;
}

class ReferenceBackend final : public CpuBackend {
 public:
  const KernelRules& rules() const override { return rules_; }

  Result<std::unique_ptr<CpuContext>> CreateContext(int threads) override {
    if (threads < 1) return InvalidArgument("a CPU context needs at least one thread, not ", threads);
    return std::unique_ptr<CpuContext>(std::make_unique<ReferenceContext>());
  }

  Result<std::unique_ptr<CpuKernel>> CreateKernel(CpuContext*, const KernelRequest& request) override {
    const Operator& op = request.graph->op(request.op);
    const KernelSupport support = rules_.Supports(*request.graph, request.op);
    if (!support.supported) return Unsupported(Describe(op), ": ", support.reason);
    if (!request.kernel.empty() && request.kernel != support.kernel) {
      return Unsupported(Describe(op), ": kernel '", request.kernel, "' is planned, but the reference backend has '",
                         support.kernel, "'");
    }
    try {
      PLAIT_ASSIGN_OR_RETURN(KernelArgs args, Bind(request));
      args.packed = &packed_;
      return MakerOf(op.kind)(std::move(args));
    } catch (const std::bad_alloc&) {
      return OutOfMemory(Describe(op), ": no memory for the kernel's packed weights or scratch");
    }
  }

 private:
  ReferenceRules rules_;
  reference::PackedCache packed_;
};

}  // namespace

std::shared_ptr<CpuBackend> CreateReferenceBackend() { return std::make_shared<ReferenceBackend>(); }

}  // namespace plait
