#include "backends/opencl/lower.h"

#include <algorithm>

#include "backends/opencl/operand.h"
#include "backends/opencl/rules.h"
#include "src/base/checked.h"

namespace plait::opencl {

Result<Operand> StepLowering::OperandOf(const View& view) const {
  const Tensor& tensor = context_.graph->tensor(view.tensor);
  if (tensor.dtype != DType::kF32) return Unsupported("tensor ", tensor.name, " is ", Name(tensor.dtype), "; OpenCL kernels compute in f32");
  Operand operand;
  operand.tensor = &tensor;
  operand.strides = view.strides;
  int64_t first = view.offset / 4;
  if (view.buffer == kConstantBuffer) {
    PLAIT_ASSIGN_OR_RETURN(std::shared_ptr<ClMem> memory, device().Constant(tensor, "", nullptr, 0));
    context_.keep->push_back(memory);
    operand.memory = {memory->get(), nullptr};
  } else {
    operand.memory = context_.arena;
    first += context_.program->buffers[static_cast<size_t>(view.buffer)].offset / 4;
  }
  operand.zero = first;
  for (int i = 0; i < view.strides.rank(); ++i) operand.zero -= view.region.begin[i] * view.strides[i];
  return operand;
}

Result<Operand> StepLowering::Read(size_t i) const {
  if (i >= step_.reads.size() || step_.reads[i].tensor == kNoTensor) return Internal("the step has no view of input ", i);
  return OperandOf(step_.reads[i]);
}

Result<Operand> StepLowering::Write() const { return OperandOf(step_.write); }

Result<Memory> StepLowering::Packed(const Tensor& tensor, const std::string& form, Device::MakeBytes make, int64_t parameter) const {
  PLAIT_ASSIGN_OR_RETURN(std::shared_ptr<ClMem> memory, device().Constant(tensor, form, make, parameter));
  context_.keep->push_back(memory);
  return Memory{memory->get(), nullptr};
}

Result<Memory> StepLowering::Zeros(int64_t elements) const {
  PLAIT_ASSIGN_OR_RETURN(std::shared_ptr<ClMem> memory, device().Zeros(elements));
  context_.keep->push_back(memory);
  return Memory{memory->get(), nullptr};
}

Status StepLowering::Add(Result<Launch> launch) {
  PLAIT_RETURN_IF_ERROR(launch.status());
  launches_.push_back(std::move(launch).value());
  return Status();
}

StepLowering::Division StepLowering::Divide(int64_t rows, int64_t length) const {
  Division division{rows, 1, length, 1};
  const int64_t vector = device().tuning().vector;
  if (!device().tuning().single_item_groups) {
    // GPU: an item takes two vectors.
    division.chunk = 2 * vector;
    division.rows = 1;
  } else {
    // CPU: a few items a core, none below some microseconds of work.
    constexpr int64_t kLeastElements = 8192;
    const int64_t units = device().info().compute_units;
    const int64_t items = units == 1 ? 1 : std::clamp<int64_t>(rows * length / kLeastElements, 1, 4 * units);
    division.rows = CeilDiv(rows, std::min(items, rows));
    if (rows < items) division.chunk = RoundUp(CeilDiv(length, CeilDiv(items, rows)), 2 * vector);
  }
  division.row_items = CeilDiv(rows, division.rows);
  division.chunk_items = CeilDiv(length, division.chunk);
  return division;
}

int64_t StepLowering::RowsAnItem(int64_t rows, int64_t row_cost) const {
  if (!device().tuning().single_item_groups) return 1;
  constexpr int64_t kLeastElements = 8192;
  const int64_t units = device().info().compute_units;
  const int64_t items = units == 1 ? 1 : std::clamp<int64_t>(rows * row_cost / kLeastElements, 1, 4 * units);
  return CeilDiv(rows, std::min(items, rows));
}

Result<std::vector<Launch>> StepLowering::Run() {
  Status status;
  switch (op_.kind) {
    case OpKind::kConv2D: status = Conv(); break;
    case OpKind::kDepthwiseConv2D: status = Depthwise(); break;
    case OpKind::kFullyConnected: status = FullyConnected(); break;
    case OpKind::kMatMul: status = MatMul(); break;
    case OpKind::kBinary: status = Binary(); break;
    case OpKind::kUnary: status = Unary(); break;
    case OpKind::kMaxPool2D: status = Pool(true); break;
    case OpKind::kAveragePool2D: status = Pool(false); break;
    case OpKind::kReduceMean: status = ReduceMean(); break;
    case OpKind::kSoftmax: status = Softmax(); break;
    case OpKind::kLayerNorm: status = LayerNorm(); break;
    case OpKind::kBatchNorm: status = BatchNorm(); break;
    case OpKind::kTranspose: status = Transpose(); break;
    case OpKind::kPad: status = Pad(); break;
    case OpKind::kConcat:
    case OpKind::kSlice:
    case OpKind::kReshape: status = Unsupported(Name(op_.kind), " is a view; no kernel runs it"); break;
  }
  PLAIT_RETURN_IF_ERROR(status.Annotated(StrCat("operator ", op_.name, " (", Name(op_.kind), ") by OpenCL")));
  return std::move(launches_);
}

Result<std::vector<Launch>> LowerStep(const LowerContext& context, const Step& step) {
  const std::string id = KernelId(context.graph->op(step.op).kind);
  if (!step.kernel.empty() && step.kernel != id) {
    return InvalidArgument("operator ", context.graph->op(step.op).name, ": the OpenCL lane has no kernel ", step.kernel, "; it runs ", id);
  }
  if (step.region.IsEmpty()) return InvalidArgument("operator ", context.graph->op(step.op).name, ": the part is empty");
  return StepLowering(context, step).Run();
}

}  // namespace plait::opencl
