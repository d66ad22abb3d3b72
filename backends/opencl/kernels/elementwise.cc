#include "backends/opencl/kernels/sources.h"

namespace plait::opencl {

const char kElementwiseSource[] = R"CL(
// Elementwise kernels walk rows: up to three outer axes and the innermost one, which an item takes in chunks.
//   *_at: offset, strides of the three outer axes, stride of the innermost
//   size: extents of outer axes 1 and 2, rows in all, elements of a row, rows an item, elements a chunk
#define ROW(at) (at.s0 + i0 * at.s1 + i1 * at.s2 + i2 * at.s3)
#define FOR_ROWS(size)                                                                      \
  int begin = (int)get_global_id(1) * size.s5, end = min(begin + size.s5, size.s3);         \
  int row_end = min((int)(get_global_id(0) + 1) * size.s4, size.s2);                        \
  for (int r = (int)get_global_id(0) * size.s4, i2 = r % size.s1, i1 = (r / size.s1) % size.s0, i0 = r / (size.s1 * size.s0); \
       r < row_end; ++r, ++i2, i1 += i2 == size.s1, i2 = i2 == size.s1 ? 0 : i2,            \
           i0 += i1 == size.s0, i1 = i1 == size.s0 ? 0 : i1)

#define BINARY_LOOP(EXPR, A_VEC, B_VEC, A_PART, B_PART)                                     \
  {                                                                                         \
    int i = begin;                                                                          \
    _Pragma("unroll 4") for (; i + VW <= end; i += VW) {                                    \
      fv p = A_VEC, q = B_VEC;                                                              \
      STORE(CLAMPF(EXPR(p, q), (fv)(range.x), (fv)(range.y)), out + i);                     \
    }                                                                                       \
    if (i < end) {                                                                          \
      int left = end - i;                                                                   \
      fv p = A_PART, q = B_PART;                                                            \
      store_part(CLAMPF(EXPR(p, q), (fv)(range.x), (fv)(range.y)), out + i, left);          \
    }                                                                                       \
  }
#define BINARY(NAME, EXPR)                                                                  \
KERNEL NAME(ALIASED_IN a, int8 a_at, ALIASED_IN b, int8 b_at, ALIASED_OUT y, int8 y_at, int8 size, float2 range) { \
  FOR_ROWS(size) {                                                                          \
    __global const float* pa = a + ROW(a_at);                                               \
    __global const float* pb = b + ROW(b_at);                                               \
    __global float* out = y + ROW(y_at);                                                    \
    if (a_at.s4 == 1 && b_at.s4 == 1)                                                       \
      BINARY_LOOP(EXPR, LOAD(pa + i), LOAD(pb + i), load_part(pa + i, left), load_part(pb + i, left)) \
    else if (a_at.s4 == 1 && b_at.s4 == 0)                                                  \
      BINARY_LOOP(EXPR, LOAD(pa + i), (fv)(pb[0]), load_part(pa + i, left), (fv)(pb[0]))    \
    else if (a_at.s4 == 0 && b_at.s4 == 1)                                                  \
      BINARY_LOOP(EXPR, (fv)(pa[0]), LOAD(pb + i), (fv)(pa[0]), load_part(pb + i, left))    \
    else                                                                                    \
      BINARY_LOOP(EXPR, (fv)(pa[0]), (fv)(pb[0]), (fv)(pa[0]), (fv)(pb[0]))                 \
  }                                                                                         \
}
#define F_ADD(p, q) ((p) + (q))
#define F_SUB(p, q) ((p) - (q))
#define F_MUL(p, q) ((p) * (q))
#define F_DIV(p, q) ((p) / (q))
BINARY(binary_add, F_ADD)
BINARY(binary_sub, F_SUB)
BINARY(binary_mul, F_MUL)
BINARY(binary_div, F_DIV)
BINARY(binary_max, MAXF)
BINARY(binary_min, MINF)

#define UNARY(NAME, EXPR)                                                                   \
KERNEL NAME(ALIASED_IN x, int8 x_at, ALIASED_OUT y, int8 y_at, int8 size, float2 range) {   \
  FOR_ROWS(size) {                                                                          \
    __global const float* in = x + ROW(x_at);                                               \
    __global float* out = y + ROW(y_at);                                                    \
    int i = begin;                                                                          \
    if (x_at.s4 == 1) {                                                                     \
      for (; i + 2 * VW <= end; i += 2 * VW) {                                              \
        fv v0 = LOAD(in + i), v1 = LOAD(in + i + VW);                                       \
        STORE(EXPR(v0), out + i);                                                           \
        STORE(EXPR(v1), out + i + VW);                                                      \
      }                                                                                     \
      for (; i < end; i += VW) {                                                            \
        int left = min(end - i, VW);                                                        \
        fv v = load_part(in + i, left);                                                     \
        store_part(EXPR(v), out + i, left);                                                 \
      }                                                                                     \
    } else {                                                                                \
      for (; i < end; ++i) {                                                                \
        fv v = (fv)(in[i * x_at.s4]);                                                       \
        store_part(EXPR(v), out + i, 1);                                                    \
      }                                                                                     \
    }                                                                                       \
  }                                                                                         \
}
#define HARD_SIGMOID(v) CLAMPF(fma(v, (fv)(1.0f / 6.0f), (fv)(0.5f)), (fv)(0.0f), (fv)(1.0f))
#define F_COPY(v) (v)
#define F_CLAMP(v) CLAMPF(v, (fv)(range.x), (fv)(range.y))
#define F_SIGMOID(v) sigmoid_fv(v)
#define F_HARD_SIGMOID(v) HARD_SIGMOID(v)
#define F_HARD_SWISH(v) ((v) * HARD_SIGMOID(v))
#define F_SILU(v) ((v) * sigmoid_fv(v))
#define F_GELU(v) (0.5f * (v) * (1.0f + erf_fv((v) * 0.70710678f)))
#define F_TANH(v) tanh_fv(v)
#define F_EXP(v) exp(v)
#define F_SQRT(v) sqrt(v)
#define F_ERF(v) erf_fv(v)
#define F_NEGATE(v) (-(v))
#define F_ABS(v) abs_fv(v)
#define F_SQUARE(v) ((v) * (v))
#define F_RECIPROCAL(v) ((fv)(1.0f) / (v))
#define F_LOG(v) log(v)
UNARY(unary_copy, F_COPY)
UNARY(unary_clamp, F_CLAMP)
UNARY(unary_sigmoid, F_SIGMOID)
UNARY(unary_hard_sigmoid, F_HARD_SIGMOID)
UNARY(unary_hard_swish, F_HARD_SWISH)
UNARY(unary_silu, F_SILU)
UNARY(unary_gelu, F_GELU)
UNARY(unary_tanh, F_TANH)
UNARY(unary_exp, F_EXP)
UNARY(unary_sqrt, F_SQRT)
UNARY(unary_erf, F_ERF)
UNARY(unary_negate, F_NEGATE)
UNARY(unary_abs, F_ABS)
UNARY(unary_square, F_SQUARE)
UNARY(unary_reciprocal, F_RECIPROCAL)
UNARY(unary_log, F_LOG)
)CL";

}  // namespace plait::opencl
