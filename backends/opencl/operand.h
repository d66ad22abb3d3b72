// Operands of a step as kernels address them, and what the lowering of all kinds shares.
#pragma once

#include "backends/opencl/axes.h"
#include "backends/opencl/lower.h"

namespace plait::opencl {

// A tensor's memory: the element with coordinates c (in the whole tensor) lies at zero + sum of c[i] * strides[i]. `zero` itself may lie
// outside, when only a region is stored.
struct Operand {
  Memory memory;
  int64_t zero = 0;
  Dims strides;
  const Tensor* tensor = nullptr;

  int64_t At(const Dims& coordinates) const {
    int64_t at = zero;
    for (int i = 0; i < strides.rank(); ++i) at += coordinates[i] * strides[i];
    return at;
  }
};

// A step under lowering.
class StepLowering {
 public:
  StepLowering(const LowerContext& context, const Step& step)
      : context_(context), step_(step), op_(context.graph->op(step.op)) {}

  Result<std::vector<Launch>> Run();

 private:
  Result<Operand> Read(size_t i) const;
  Result<Operand> Write() const;
  Result<Operand> OperandOf(const View& view) const;
  // A constant in a form of its own; `form` names it.
  Result<Memory> Packed(const Tensor& tensor, const std::string& form, Device::MakeBytes make, int64_t parameter) const;
  Result<Memory> Zeros(int64_t elements) const;
  Status Add(Result<Launch> launch);
  const Tensor& input(int i) const { return context_.graph->input(op_, i); }
  bool has_input(size_t i) const { return i < op_.inputs.size() && op_.inputs[i] != kNoTensor; }
  const Region& out() const { return step_.region; }
  Device& device() const { return *context_.device; }

  // Work division. An item takes `rows` of all rows and `chunk` elements of a row.
  struct Division {
    int64_t rows, row_items, chunk, chunk_items;
  };
  Division Divide(int64_t rows, int64_t length) const;
  // Rows an item when a row cannot be divided; `row_cost` in elements.
  int64_t RowsAnItem(int64_t rows, int64_t row_cost) const;

  Status Conv();
  Status Pointwise(const Operand& x, const Operand& y, const Memory& tiles, const Memory& bias, int64_t depth, Clamp clamp);
  Status FullyConnected();
  Status MatMul();
  Status Depthwise();
  Status BatchNorm();
  Status Pool(bool max);
  Status Binary();
  Status Unary();
  Status Walk(const Operand& x, const Dims& x_strides, int64_t x_offset, const std::string& kernel, Clamp clamp);
  Status Softmax();
  Status LayerNorm();
  Status ReduceMean();
  Status Transpose();
  Status Pad();

  const LowerContext& context_;
  const Step& step_;
  const Operator& op_;
  std::vector<Launch> launches_;
};

}  // namespace plait::opencl
