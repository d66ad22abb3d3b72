#include "backends/opencl/kernels/sources.h"

namespace plait::opencl {

const char kRowsSource[] = R"CL(
// Softmax and LayerNorm: one item takes some rows of `size.s3` elements. Row addresses as in the elementwise kernels.
#define ROW(at) (at.s0 + i0 * at.s1 + i1 * at.s2 + i2 * at.s3)
#define ROW_INDEX int i2 = r % size.s1, i1 = (r / size.s1) % size.s0, i0 = r / (size.s1 * size.s0)

KERNEL softmax(ALIASED_IN x, int8 x_at, ALIASED_OUT y, int8 y_at, int8 size) {
  int count = size.s3, body = count / VW * VW, left = count - body;
  int row_end = min((int)(get_global_id(0) + 1) * size.s4, size.s2);
  for (int r = (int)get_global_id(0) * size.s4; r < row_end; ++r) {
    ROW_INDEX;
    __global const float* in = x + ROW(x_at);
    __global float* out = y + ROW(y_at);
    fv top = (fv)(-INFINITY);
    for (int i = 0; i < body; i += VW) top = MAXF(top, LOAD(in + i));
    float largest = max_fv(top);
    for (int i = body; i < count; ++i) largest = MAXF(largest, in[i]);
    fv sum = (fv)(0.0f);
    for (int i = 0; i < body; i += VW) {
      fv e = exp_fv(LOAD(in + i) - largest);
      STORE(e, out + i);
      sum += e;
    }
    float total = sum_fv(sum);
    if (left > 0) {
      fv e = exp_fv(load_part(in + body, left) - largest);
      store_part(e, out + body, left);
      for (int i = body; i < count; ++i) total += out[i];
    }
    float scale = 1.0f / total;
    for (int i = 0; i < body; i += VW) STORE(LOAD(out + i) * scale, out + i);
    for (int i = body; i < count; ++i) out[i] *= scale;
  }
}

KERNEL layer_norm(IN x, int8 x_at, IN gamma, IN beta, OUT y, int8 y_at, int8 size, float epsilon) {
  int count = size.s3, body = count / VW * VW;
  int row_end = min((int)(get_global_id(0) + 1) * size.s4, size.s2);
  for (int r = (int)get_global_id(0) * size.s4; r < row_end; ++r) {
    ROW_INDEX;
    __global const float* in = x + ROW(x_at);
    __global float* out = y + ROW(y_at);
    fv sum = (fv)(0.0f);
    for (int i = 0; i < body; i += VW) sum += LOAD(in + i);
    float total = sum_fv(sum);
    for (int i = body; i < count; ++i) total += in[i];
    float mean = total / (float)count;
    fv squares = (fv)(0.0f);
    for (int i = 0; i < body; i += VW) {
      fv d = LOAD(in + i) - mean;
      squares = fma(d, d, squares);
    }
    float variance = sum_fv(squares);
    for (int i = body; i < count; ++i) variance = fma(in[i] - mean, in[i] - mean, variance);
    float scale = 1.0f / sqrt(variance / (float)count + epsilon);
    for (int i = 0; i < body; i += VW)
      STORE(fma((LOAD(in + i) - mean) * scale, LOAD(gamma + i), LOAD(beta + i)), out + i);
    for (int i = body; i < count; ++i) out[i] = fma((in[i] - mean) * scale, gamma[i], beta[i]);
  }
}

// Mean over two axes for every element of a row that is kept: one item takes a chunk of the row.
//   at: offset, strides of three outer axes, of the innermost, of the two reduced axes
//   size: as in the elementwise kernels;  reduced: extents of the reduced axes
KERNEL reduce_kept(IN x, int8 x_at, OUT y, int8 y_at, int8 size, int4 reduced) {
  int begin = (int)get_global_id(1) * size.s5, end = min(begin + size.s5, size.s3);
  int row_end = min((int)(get_global_id(0) + 1) * size.s4, size.s2);
  fv count = (fv)((float)reduced.w);
  for (int r = (int)get_global_id(0) * size.s4; r < row_end; ++r) {
    ROW_INDEX;
    __global const float* in = x + ROW(x_at);
    __global float* out = y + ROW(y_at);
    int c = begin;
#ifdef LOCAL_ONE
    // Whole rows one after another into the output: a core reads memory in order, and the output stays in its cache.
    int body = begin + (end - begin) / VW * VW;
    for (; c < body; c += VW) STORE((fv)(0.0f), out + c);
    for (int p = 0; p < reduced.x; ++p)
      for (int q = 0; q < reduced.y; ++q) {
        __global const float* at = in + p * x_at.s5 + q * x_at.s6;
        for (int i = begin; i < body; i += VW) STORE(LOAD(out + i) + LOAD(at + i), out + i);
      }
    for (int i = begin; i < body; i += VW) STORE(LOAD(out + i) / count, out + i);
#endif
    for (; c < end; c += VW) {
      int left = min(end - c, VW);
      fv sum = (fv)(0.0f);
      for (int p = 0; p < reduced.x; ++p)
        for (int q = 0; q < reduced.y; ++q) sum += load_part(in + p * x_at.s5 + q * x_at.s6 + c, left);
      store_part(sum / count, out + c, left);
    }
  }
}

// Mean over the innermost axis and two more; one output element a row.
//   reduced: extents of the two outer reduced axes, of the innermost, product of all
KERNEL reduce_inner(IN x, int8 x_at, OUT y, int8 y_at, int8 size, int4 reduced) {
  int body = reduced.z / VW * VW;
  int row_end = min((int)(get_global_id(0) + 1) * size.s4, size.s2);
  for (int r = (int)get_global_id(0) * size.s4; r < row_end; ++r) {
    ROW_INDEX;
    __global const float* in = x + ROW(x_at);
    fv sum = (fv)(0.0f);
    float rest = 0.0f;
    for (int p = 0; p < reduced.x; ++p)
      for (int q = 0; q < reduced.y; ++q) {
        __global const float* at = in + p * x_at.s5 + q * x_at.s6;
        for (int i = 0; i < body; i += VW) sum += LOAD(at + i);
        for (int i = body; i < reduced.z; ++i) rest += at[i];
      }
    y[ROW(y_at)] = (sum_fv(sum) + rest) / (float)reduced.w;
  }
}
)CL";

}  // namespace plait::opencl
