// Loops of our own, vectorised by the compiler for the processor at hand: what XNNPACK lacks, or lacks strides or a clamp for.
// Pure functions on memory; no alignment is asked for. An element's bits depend on the operands alone, not on its position.
#pragma once

#include <cstdint>

#include "src/graph/graph.h"

namespace plait::xnn {

// y[r][i] = clamp(a[r][i] op b[r][i]) for r < rows, i < n. A constant operand has one element a row. Strides in elements.
struct BinaryOperand {
  const float* data = nullptr;
  int64_t row_stride = 0;
  bool constant = false;
};
struct BinaryRowsArgs {
  BinaryOperand a, b;
  float* y = nullptr;
  int64_t y_row_stride = 0, rows = 1, n = 0;
};
void BinaryRows(BinaryKind kind, const BinaryRowsArgs& args, const Clamp& clamp);

// The unary functions that XNNPACK lacks: kHardSigmoid, kSilu, kErf, kReciprocal.
bool HasUnaryRow(UnaryKind kind);
void UnaryRow(UnaryKind kind, const float* x, float* y, int64_t n);

// y[c] = clamp(x[c] * scale[c] + shift[c])
void ScaleShiftRow(const float* x, const float* scale, const float* shift, float* y, int64_t n);

// y[c] = gamma[c] * (x[c] - mean) / sqrt(variance + epsilon) + beta[c] with mean and variance of x[0..n).
void NormalizeRow(const float* x, const float* gamma, const float* beta, float epsilon, float* y, int64_t n);

float SumRow(const float* x, int64_t n);

// A rectangle of pixels: rows x cols of `channels` contiguous elements, at strides in elements.
struct Pixels {
  const float* data = nullptr;
  int64_t rows = 0, cols = 0, row_stride = 0, col_stride = 0;
};

// y[c] = clamp(scale * sum over the pixels)
void SumPixels(const Pixels& x, float scale, const Clamp& clamp, float* y, int64_t channels);
// y[c] = clamp(max over the pixels)
void MaxPixels(const Pixels& x, const Clamp& clamp, float* y, int64_t channels);
// y[c] = clamp(bias[c] + sum over the pixels of x * w); w has the same rows and cols. `bias` may be null.
void DotPixels(const Pixels& x, const Pixels& w, const float* bias, const Clamp& clamp, float* y, int64_t channels);

// y[c * y_stride + r] = x[r * x_stride + c] for r < rows, c < cols.
void TransposeTile(const float* x, int64_t x_stride, int64_t rows, int64_t cols, float* y, int64_t y_stride);

}  // namespace plait::xnn
