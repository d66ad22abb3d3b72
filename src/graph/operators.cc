#include "src/graph/operators.h"

#include <array>

#include "src/graph/operators/declarations.h"

namespace plait {
namespace {

// By OpKind.
constexpr std::array kDeclarations = {
    &kConv2DDecl,     &kDepthwiseConv2DDecl, &kFullyConnectedDecl, &kMatMulDecl,  &kBinaryDecl,    &kUnaryDecl,
    &kMaxPool2DDecl,  &kAveragePool2DDecl,   &kReduceMeanDecl,     &kSoftmaxDecl, &kLayerNormDecl, &kBatchNormDecl,
    &kConcatDecl,     &kSliceDecl,           &kReshapeDecl,        &kTransposeDecl, &kPadDecl,
};
static_assert(kDeclarations.size() == kOpKindCount, "every operator kind needs a declaration");

bool AttrsFit(const Operator& op) {
  switch (op.kind) {
    case OpKind::kConv2D:
    case OpKind::kDepthwiseConv2D: return std::holds_alternative<Conv2DAttrs>(op.attrs);
    case OpKind::kFullyConnected: return std::holds_alternative<FullyConnectedAttrs>(op.attrs);
    case OpKind::kMatMul: return std::holds_alternative<MatMulAttrs>(op.attrs);
    case OpKind::kBinary: return std::holds_alternative<BinaryAttrs>(op.attrs);
    case OpKind::kUnary: return std::holds_alternative<UnaryAttrs>(op.attrs);
    case OpKind::kMaxPool2D:
    case OpKind::kAveragePool2D: return std::holds_alternative<Pool2DAttrs>(op.attrs);
    case OpKind::kReduceMean: return std::holds_alternative<ReduceAttrs>(op.attrs);
    case OpKind::kSoftmax: return std::holds_alternative<SoftmaxAttrs>(op.attrs);
    case OpKind::kLayerNorm:
    case OpKind::kBatchNorm: return std::holds_alternative<NormAttrs>(op.attrs);
    case OpKind::kConcat: return std::holds_alternative<ConcatAttrs>(op.attrs);
    case OpKind::kSlice: return std::holds_alternative<SliceAttrs>(op.attrs);
    case OpKind::kReshape: return std::holds_alternative<ReshapeAttrs>(op.attrs);
    case OpKind::kTranspose: return std::holds_alternative<TransposeAttrs>(op.attrs);
    case OpKind::kPad: return std::holds_alternative<PadAttrs>(op.attrs);
  }
  return false;
}

// Moving elements works for any type; computing with them only for floating-point ones.
bool MovesOnly(const Operator& op) {
  return IsView(op.kind) || op.kind == OpKind::kTranspose || (op.kind == OpKind::kUnary && op.as<UnaryAttrs>().kind == UnaryKind::kCopy);
}

// Number of inputs, tensor ids, kind of attributes and element types: all that infer_shape relies on.
Status CheckForm(const Graph& graph, const Operator& op) {
  if (static_cast<int>(op.kind) >= kOpKindCount) {
    return InvalidArgument("operator ", Quoted(op.name), " has unknown kind ", static_cast<int>(op.kind));
  }
  const OperatorDecl& decl = Declaration(op.kind);
  const int count = static_cast<int>(op.inputs.size());
  if (count < decl.min_inputs || count > decl.max_inputs) {
    return OpError(op, count, " inputs, but ", decl.min_inputs, " to ", decl.max_inputs, " are needed");
  }
  if (!AttrsFit(op)) return OpError(op, "attributes of another operator kind");
  for (int i = 0; i < count; ++i) {
    const TensorId id = op.inputs[static_cast<size_t>(i)];
    if (id == kNoTensor && i >= decl.min_inputs) continue;
    if (id < 0 || id >= graph.tensor_count()) return OpError(op, "input ", i, " is tensor ", id, " of ", graph.tensor_count());
    const DType dtype = graph.tensor(id).dtype;
    if (dtype != graph.input(op, 0).dtype) {
      return OpError(op, DescribeInput(graph, op, i), " is ", Name(dtype), ", but input 0 is ", Name(graph.input(op, 0).dtype));
    }
    if (dtype != DType::kF32 && dtype != DType::kF16 && !MovesOnly(op)) {
      return OpError(op, DescribeInput(graph, op, i), " is ", Name(dtype), "; only f32 and f16 can be computed with");
    }
  }
  return Status();
}

// Operands that hold trained values even if they have a single element.
bool HoldsWeights(const Operator& op, int input) {
  switch (op.kind) {
    case OpKind::kConv2D:
    case OpKind::kDepthwiseConv2D:
    case OpKind::kFullyConnected:
    case OpKind::kLayerNorm:
    case OpKind::kBatchNorm: return input > 0;
    default: return false;
  }
}

}  // namespace

const OperatorDecl& Declaration(OpKind kind) { return *kDeclarations[static_cast<size_t>(kind)]; }

std::string_view Name(OpKind kind) {
  return static_cast<int>(kind) < kOpKindCount ? Declaration(kind).name : std::string_view("unknown");
}

Result<Dims> InferShape(const Graph& graph, const Operator& op) {
  PLAIT_RETURN_IF_ERROR(CheckForm(graph, op));
  return Declaration(op.kind).infer_shape(graph, op);
}

Region InputRegion(const Graph& graph, const Operator& op, int input, const Region& out) {
  return Declaration(op.kind).input_region(graph, op, input, out);
}

std::vector<SplitAxis> SplitAxes(const Graph& graph, const Operator& op) { return Declaration(op.kind).split_axes(graph, op); }

Work WorkOf(const Graph& graph, const Operator& op, const Region& out) { return Declaration(op.kind).work(graph, op, out); }

Work WorkOf(const Graph& graph, const Operator& op) { return WorkOf(graph, op, Region::Whole(graph.output(op).shape)); }

int64_t TotalMacs(const Graph& graph) {
  int64_t total = 0;
  for (const Operator& op : graph.ops) total = SaturatingAdd(total, WorkOf(graph, op).macs);
  return total;
}

int64_t ParameterCount(const Graph& graph) {
  constexpr int kBatchNormMean = 3;
  std::vector<bool> counted(graph.tensors.size(), false);
  for (const Operator& op : graph.ops) {
    for (int i = 0; i < static_cast<int>(op.inputs.size()); ++i) {
      if (!HasInput(op, i) || (op.kind == OpKind::kBatchNorm && i >= kBatchNormMean)) continue;
      const Tensor& tensor = graph.input(op, i);
      const bool floating = tensor.dtype == DType::kF32 || tensor.dtype == DType::kF16;
      if (tensor.is_constant() && floating && (HoldsWeights(op, i) || tensor.shape.Count() > 1)) {
        counted[static_cast<size_t>(op.inputs[static_cast<size_t>(i)])] = true;
      }
    }
  }
  int64_t total = 0;
  for (size_t t = 0; t < counted.size(); ++t) {
    if (counted[t]) total = SaturatingAdd(total, graph.tensors[t].shape.Count());
  }
  return total;
}

bool MayWriteOver(const Graph& graph, const Operator& op, int operand) {
  if (op.kind != OpKind::kUnary && op.kind != OpKind::kBinary && op.kind != OpKind::kSoftmax) return false;
  const TensorId id = op.inputs[static_cast<size_t>(operand)];
  if (id == kNoTensor || graph.tensor(id).is_constant()) return false;
  return graph.tensor(id).shape == graph.output(op).shape && graph.tensor(id).dtype == graph.output(op).dtype;
}

bool IsView(OpKind kind) { return kind == OpKind::kConcat || kind == OpKind::kSlice || kind == OpKind::kReshape; }

}  // namespace plait
