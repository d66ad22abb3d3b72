#include "backends/opencl/kernels/sources.h"

namespace plait::opencl {

const char kGemmSource[] = R"CL(
// Multiplies MR rows of K elements by a packed column tile; k ascends, one fma a term, so that neither the tile's shape nor
// its place changes a bit of the result.
#define ACCUMULATE(acc, row, tile, tile_stride, count)                             \
  for (int k = 0; k < (count); ++k) {                                              \
    fv w[NV];                                                                      \
    _Pragma("unroll") for (int v = 0; v < NV; ++v) w[v] = LOAD((tile) + v * VW);   \
    (tile) += (tile_stride);                                                       \
    _Pragma("unroll") for (int i = 0; i < MR; ++i) {                               \
      fv s = (fv)(row[i][k]);                                                      \
      _Pragma("unroll") for (int v = 0; v < NV; ++v) acc[i][v] = fma(s, w[v], acc[i][v]); \
    }                                                                              \
  }

inline void store_row(fv* acc, __global float* p, int columns, float2 range) {
  _Pragma("unroll") for (int v = 0; v < NV; ++v) acc[v] = CLAMPF(acc[v], (fv)(range.x), (fv)(range.y));
  if (columns >= TN) {
    _Pragma("unroll") for (int v = 0; v < NV; ++v) STORE(acc[v], p + v * VW);
  } else {
    for (int v = 0; v * VW < columns; ++v) {
      if (columns - v * VW >= VW) STORE(acc[v], p + v * VW);
      else store_part(acc[v], p + v * VW, columns - v * VW);
    }
  }
}

// y[b][m][n] = clamp(bias[n] + sum over k of a[b][m][k] * tile[n / TN][k][n % TN]).
//   a_at, y_at: offset, row stride, strides of the two batch axes
//   b_at: offset, k stride, tile stride, strides of the two batch axes
//   size: M, N, K, rows an item;  batch: extent of the inner batch axis
#define GEMM(NAME, K_STRIDE)                                                                                    \
KERNEL NAME(IN a, int4 a_at, IN b, int8 b_at, IN bias, int bias_at, OUT y, int4 y_at, int4 size, int batch, float2 range) { \
  int n = (int)get_global_id(1) * TN;                                                                           \
  int z0 = (int)get_global_id(2) / batch, z1 = (int)get_global_id(2) % batch;                                   \
  a += a_at.x + z0 * a_at.z + z1 * a_at.w;                                                                      \
  y += y_at.x + z0 * y_at.z + z1 * y_at.w + n;                                                                  \
  b += b_at.s0 + z0 * b_at.s3 + z1 * b_at.s4 + (int)get_global_id(1) * b_at.s2;                                 \
  int m_end = min((int)(get_global_id(0) + 1) * size.w, size.x);                                                \
  fv start[NV];                                                                                                 \
  _Pragma("unroll") for (int v = 0; v < NV; ++v)                                                                \
    start[v] = bias_at < 0 ? (fv)(0.0f) : LOAD(bias + bias_at + n + v * VW);                                    \
  for (int m = (int)get_global_id(0) * size.w; m < m_end; m += MR) {                                            \
    __global const float* row[MR];                                                                              \
    fv acc[MR][NV];                                                                                             \
    _Pragma("unroll") for (int i = 0; i < MR; ++i) {                                                            \
      row[i] = a + (long)min(m + i, m_end - 1) * a_at.y;                                                        \
      _Pragma("unroll") for (int v = 0; v < NV; ++v) acc[i][v] = start[v];                                      \
    }                                                                                                           \
    __global const float* tile = b;                                                                             \
    ACCUMULATE(acc, row, tile, K_STRIDE, size.z)                                                                \
    _Pragma("unroll") for (int i = 0; i < MR; ++i)                                                              \
      if (m + i < m_end) store_row(acc[i], y + (long)(m + i) * y_at.y, size.y - n, range);                      \
  }                                                                                                             \
}
GEMM(gemm, TN)
GEMM(gemm_strided, b_at.s1)

// The same for one row: several column tiles an item, so that loads of the weights overlap.
KERNEL gemv(IN a, int4 a_at, IN b, int8 b_at, IN bias, int bias_at, OUT y, int4 y_at, int4 size, int batch, float2 range) {
  int tile0 = (int)get_global_id(1) * GEMV_TILES;
  int z0 = (int)get_global_id(2) / batch, z1 = (int)get_global_id(2) % batch;
  a += a_at.x + z0 * a_at.z + z1 * a_at.w;
  y += y_at.x + z0 * y_at.z + z1 * y_at.w;
  b += b_at.s0 + z0 * b_at.s3 + z1 * b_at.s4;
  int last = (size.y + TN - 1) / TN - 1;
  __global const float* tile[GEMV_TILES];
  fv acc[GEMV_TILES][NV];
  _Pragma("unroll") for (int t = 0; t < GEMV_TILES; ++t) {
    int at = min(tile0 + t, last);
    tile[t] = b + (long)at * b_at.s2;
    _Pragma("unroll") for (int v = 0; v < NV; ++v)
      acc[t][v] = bias_at < 0 ? (fv)(0.0f) : LOAD(bias + bias_at + at * TN + v * VW);
  }
  for (int k = 0; k < size.z; ++k) {
    fv s = (fv)(a[k]);
    _Pragma("unroll") for (int t = 0; t < GEMV_TILES; ++t)
      _Pragma("unroll") for (int v = 0; v < NV; ++v)
        acc[t][v] = fma(s, LOAD(tile[t] + k * TN + v * VW), acc[t][v]);
  }
  _Pragma("unroll") for (int t = 0; t < GEMV_TILES; ++t)
    if (tile0 + t <= last) store_row(acc[t], y + (tile0 + t) * TN, size.y - (tile0 + t) * TN, range);
}

// Convolution as an implicit GEMM: row m is an output pixel, k runs over (ky, kx, ci). Padding reads `zeros`.
//   x_at: offset of image coordinate (0, 0, 0), strides of image, row, column;  y_at: offset, the same strides
//   b_at: offset of tile 0, tile stride
//   size: pixels M, output channels a group, rows an item, column tiles a group
//   image: H, W, output rows and columns of the part;  origin: input row and column of the part's first pixel's window
//   filter: kh, kw, channels Ci of a group, 1 if (kx, ci) is one run of memory;  step: strides, dilations
//   groups: input channels a group, first column tile, end of the part's channels.  y_at.x stands for channel 0
KERNEL conv(IN x, int4 x_at, IN b, int2 b_at, IN bias, OUT y, int4 y_at, IN zeros, int4 size, int4 image, int2 origin,
            int4 filter, int4 step, int4 groups, float2 range) {
  int t = (int)get_global_id(1) + groups.y;
  int group = t / size.w, n = t % size.w * TN;
  int channel = group * size.y + n;
  int channels = min(size.y - n, groups.z - channel);
  x += x_at.x + group * groups.x;
  y += y_at.x + channel;
  b += b_at.x + t * b_at.y;
  bias += t * TN;
  int m = (int)get_global_id(0) * size.z;
  int m_end = min(m + size.z, size.x);
  int ow = m % image.w, oh = (m / image.w) % image.z, on = m / (image.w * image.z);
  while (m < m_end) {
    __global const float* base[MR];
    __global float* out[MR];
    int iy[MR], ix[MR];
    bool inside = true;
    _Pragma("unroll") for (int i = 0; i < MR; ++i) {
      iy[i] = origin.x + oh * step.x;
      ix[i] = origin.y + ow * step.y;
      base[i] = x + on * x_at.y + iy[i] * x_at.z + ix[i] * x_at.w;
      out[i] = y + on * y_at.y + oh * y_at.z + ow * y_at.w;
      inside &= iy[i] >= 0 && ix[i] >= 0 && iy[i] + (filter.x - 1) * step.z < image.x && ix[i] + (filter.y - 1) * step.w < image.y;
      if (m + i + 1 < m_end) {
        bool wrap_w = ow + 1 == image.w;
        bool wrap_h = wrap_w && oh + 1 == image.z;
        ow = wrap_w ? 0 : ow + 1;
        oh = wrap_h ? 0 : (wrap_w ? oh + 1 : oh);
        on = wrap_h ? on + 1 : on;
      }
    }
    fv acc[MR][NV];
    _Pragma("unroll") for (int i = 0; i < MR; ++i)
      _Pragma("unroll") for (int v = 0; v < NV; ++v) acc[i][v] = LOAD(bias + v * VW);
    __global const float* tile = b;
    bool merge = inside && filter.w;
    int columns = merge ? 1 : filter.y;
    int run = merge ? filter.y * filter.z : filter.z;
    for (int ky = 0; ky < filter.x; ++ky) {
      for (int kx = 0; kx < columns; ++kx) {
        __global const float* row[MR];
        _Pragma("unroll") for (int i = 0; i < MR; ++i) {
          int dy = ky * step.z, dx = kx * step.w;
          bool valid = inside || (iy[i] + dy >= 0 && iy[i] + dy < image.x && ix[i] + dx >= 0 && ix[i] + dx < image.y);
          row[i] = valid ? base[i] + dy * x_at.z + dx * x_at.w : zeros;
        }
        ACCUMULATE(acc, row, tile, TN, run)
      }
    }
    _Pragma("unroll") for (int i = 0; i < MR; ++i)
      if (m + i < m_end) store_row(acc[i], out[i], channels, range);
    m += MR;
  }
}

// Packs b[n][k] (rows `at.y` apart) as column tiles [n / TN][k][n % TN], for MatMul with a transposed right side.
//   at: offset, row stride, strides of the two batch axes;  size: N, K, elements of one packed matrix, inner batch extent
KERNEL pack_transposed(IN b, int4 at, OUT tiles, int4 size, int tiles_at) {
  int n0 = (int)get_global_id(0) * TN;
  int z = (int)get_global_id(1);
  b += at.x + (z / size.w) * at.z + (z % size.w) * at.w;
  tiles += tiles_at + (long)z * size.z + (long)n0 * size.y;
  for (int v = 0; v < TN; v += VW) {
    int count = min(size.x - n0 - v, VW);
    for (int k = 0; k < size.y; ++k) {
      for (int i = 0; i < VW; ++i) tiles[k * TN + v + i] = i < count ? b[(long)(n0 + v + i) * at.y + k] : 0.0f;
    }
  }
}
)CL";

}  // namespace plait::opencl
