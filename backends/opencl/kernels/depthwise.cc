#include "backends/opencl/kernels/sources.h"

namespace plait::opencl {

const char kDepthwiseSource[] = R"CL(
// One item: some rows of some channels. Weights [kh][kw][C]; taps outside the image are left out, the others are summed in
// the order (ky, kx). Pixels are the outer loop and channels the inner one, so that whole cache lines are read in a row.
//   x_at: offset of image coordinate (0, 0, 0), strides of image, row, column;  y_at: offset, the same strides
//   w_at: offset of weights and bias (< 0: none), stride of one tap, channels an item
//   size: rows N * Ho of the part, columns Wo, channels, rows an item;  image: H, W, output rows Ho of the part
//   origin: input row and column of the part's first pixel's window;  filter: kh, kw;  step: strides, dilations
#define PX 4
#define FINISHED(acc) CLAMPF(acc, (fv)(range.x), (fv)(range.y))
#define ONE_PIXEL(GET, PUT)                                                                     \
  fv acc = w_at.y < 0 ? (fv)(0.0f) : GET(bias + w_at.y + c);                                    \
  for (int ky = ky0; ky < ky1; ++ky)                                                            \
    for (int kx = kx0; kx < kx1; ++kx)                                                          \
      acc = fma(GET(xp + ky * DY * x_at.z + kx * DX * x_at.w + c), GET(weights + (ky * KW + kx) * w_at.z + c), acc); \
  PUT(FINISHED(acc), yp + c);
#define WHOLE_GET(p) LOAD(p)
#define WHOLE_PUT(v, p) STORE(v, p)
#define PART_GET(p) load_part(p, left)
#define PART_PUT(v, p) store_part(v, p, left)

#define DEPTHWISE(NAME, KH_, KW_, SX_, DY_, DX_)                                                                          \
KERNEL NAME(IN x, int4 x_at, IN weights, int4 w_at, IN bias, OUT y, int4 y_at, int4 size, int4 image, int2 origin,        \
            int2 filter, int4 step, float2 range) {                                                                       \
  const int KH = KH_, KW = KW_, SX = SX_, DY = DY_, DX = DX_;                                                             \
  int row_end = min((int)(get_global_id(1) + 1) * size.w, size.x);                                                        \
  int c_begin = (int)get_global_id(0) * w_at.w;                                                                           \
  int c_end = min(c_begin + w_at.w, size.z);                                                                              \
  int c_body = c_begin + (c_end - c_begin) / VW * VW, left = c_end - c_body;                                              \
  weights += w_at.x;                                                                                                      \
  /* output columns whose windows lie inside the image: [inner0, inner1) */                                               \
  int inner0 = origin.y >= 0 ? 0 : min((-origin.y + SX - 1) / SX, size.y);                                                \
  int room = image.y - (KW - 1) * DX - 1 - origin.y;                                                                      \
  int inner1 = room < 0 ? inner0 : max(min(room / SX + 1, size.y), inner0);                                               \
  for (int r = (int)get_global_id(1) * size.w; r < row_end; ++r) {                                                        \
    int n = r / image.z, oh = r % image.z;                                                                                \
    int iy0 = origin.x + oh * step.x;                                                                                     \
    int ky0 = iy0 >= 0 ? 0 : (-iy0 + DY - 1) / DY;                                                                        \
    int ky1 = image.x <= iy0 ? 0 : min(KH, (image.x - iy0 + DY - 1) / DY);                                                \
    __global const float* xr = x + x_at.x + n * x_at.y + iy0 * x_at.z;                                                    \
    __global float* yr = y + y_at.x + n * y_at.y + oh * y_at.z;                                                           \
    for (int ow = 0; ow < size.y;) {                                                                                      \
      int ix0 = origin.y + ow * SX;                                                                                       \
      __global const float* xp = xr + ix0 * x_at.w;                                                                       \
      __global float* yp = yr + ow * y_at.w;                                                                              \
      if (ow >= inner0 && ow + PX <= inner1 && left == 0) {                                                               \
        for (int c = c_begin; c < c_body; c += VW) {                                                                      \
          fv acc[PX];                                                                                                     \
          fv start = w_at.y < 0 ? (fv)(0.0f) : LOAD(bias + w_at.y + c);                                                   \
          _Pragma("unroll") for (int j = 0; j < PX; ++j) acc[j] = start;                                                  \
          for (int ky = ky0; ky < ky1; ++ky) {                                                                            \
            __global const float* xk = xp + ky * DY * x_at.z + c;                                                         \
            __global const float* wk = weights + ky * KW * w_at.z + c;                                                    \
            _Pragma("unroll") for (int kx = 0; kx < KW; ++kx) {                                                           \
              fv tap = LOAD(wk + kx * w_at.z);                                                                            \
              _Pragma("unroll") for (int j = 0; j < PX; ++j)                                                              \
                acc[j] = fma(LOAD(xk + (j * SX + kx * DX) * x_at.w), tap, acc[j]);                                        \
            }                                                                                                             \
          }                                                                                                               \
          _Pragma("unroll") for (int j = 0; j < PX; ++j) STORE(FINISHED(acc[j]), yp + j * y_at.w + c);                    \
        }                                                                                                                 \
        ow += PX;                                                                                                         \
      } else {                                                                                                            \
        int kx0 = ix0 >= 0 ? 0 : (-ix0 + DX - 1) / DX;                                                                    \
        int kx1 = image.y <= ix0 ? 0 : min(KW, (image.y - ix0 + DX - 1) / DX);                                            \
        for (int c = c_begin; c < c_body; c += VW) {                                                                      \
          ONE_PIXEL(WHOLE_GET, WHOLE_PUT)                                                                                 \
        }                                                                                                                 \
        if (left > 0) {                                                                                                   \
          int c = c_body;                                                                                                 \
          ONE_PIXEL(PART_GET, PART_PUT)                                                                                   \
        }                                                                                                                 \
        ++ow;                                                                                                             \
      }                                                                                                                   \
    }                                                                                                                     \
  }                                                                                                                       \
}
DEPTHWISE(depthwise, filter.x, filter.y, step.y, step.z, step.w)
DEPTHWISE(depthwise_3x3s1, 3, 3, 1, 1, 1)
DEPTHWISE(depthwise_3x3s2, 3, 3, 2, 1, 1)
DEPTHWISE(depthwise_5x5s1, 5, 5, 1, 1, 1)
DEPTHWISE(depthwise_5x5s2, 5, 5, 2, 1, 1)
)CL";

const char kPoolSource[] = R"CL(
// One item: some rows of pixels, all channels of its chunk. Taps outside the image are left out.
//   x_at: offset of image coordinate (0, 0, 0), strides of image, row, column;  y_at: offset, the same strides
//   size: rows N * Ho of the part, columns Wo, channels, rows an item;  image: H, W, Ho of the part, channels an item
//   origin: input row and column of the part's first pixel's window;  filter: kh, kw, strides
//   padded: lowest and highest row and column that count for the mean
#define POOL(NAME, START, STEP, FINISH)                                                                                   \
KERNEL NAME(IN x, int4 x_at, OUT y, int4 y_at, int4 size, int4 image, int2 origin, int4 filter, int4 padded, float2 range) { \
  int c_begin = (int)get_global_id(1) * image.w, c_end = min(c_begin + image.w, size.z);                                  \
  int row_end = min((int)(get_global_id(0) + 1) * size.w, size.x);                                                        \
  x += x_at.x;                                                                                                            \
  y += y_at.x;                                                                                                            \
  for (int r = (int)get_global_id(0) * size.w; r < row_end; ++r) {                                                        \
    int n = r / image.z, oh = r % image.z;                                                                                \
    int iy0 = origin.x + oh * filter.z;                                                                                   \
    int y0 = max(iy0, 0), y1 = min(iy0 + filter.x, image.x);                                                              \
    int rows = min(iy0 + filter.x, padded.y) - max(iy0, padded.x);                                                        \
    for (int ow = 0; ow < size.y; ++ow) {                                                                                 \
      int ix0 = origin.y + ow * filter.w;                                                                                 \
      int x0 = max(ix0, 0), x1 = min(ix0 + filter.y, image.y);                                                            \
      int columns = min(ix0 + filter.y, padded.w) - max(ix0, padded.z);                                                   \
      fv count = (fv)((float)(rows * columns));                                                                           \
      __global const float* xp = x + n * x_at.y;                                                                          \
      __global float* out = y + n * y_at.y + oh * y_at.z + ow * y_at.w;                                                   \
      int c = c_begin;                                                                                                    \
      for (; c + 2 * VW <= c_end; c += 2 * VW) {                                                                          \
        fv a = (fv)(START), b = (fv)(START);                                                                              \
        for (int iy = y0; iy < y1; ++iy)                                                                                  \
          for (int ix = x0; ix < x1; ++ix) {                                                                              \
            __global const float* p = xp + iy * x_at.z + ix * x_at.w + c;                                                 \
            a = STEP(a, LOAD(p));                                                                                         \
            b = STEP(b, LOAD(p + VW));                                                                                    \
          }                                                                                                               \
        STORE(CLAMPF(FINISH(a), (fv)(range.x), (fv)(range.y)), out + c);                                                  \
        STORE(CLAMPF(FINISH(b), (fv)(range.x), (fv)(range.y)), out + c + VW);                                             \
      }                                                                                                                   \
      for (; c < c_end; c += VW) {                                                                                        \
        int left = min(c_end - c, VW);                                                                                    \
        fv a = (fv)(START);                                                                                               \
        for (int iy = y0; iy < y1; ++iy)                                                                                  \
          for (int ix = x0; ix < x1; ++ix) a = STEP(a, load_part(xp + iy * x_at.z + ix * x_at.w + c, left));              \
        store_part(CLAMPF(FINISH(a), (fv)(range.x), (fv)(range.y)), out + c, left);                                       \
      }                                                                                                                   \
    }                                                                                                                     \
  }                                                                                                                       \
}
#define ADD(a, b) ((a) + (b))
#define SAME(a) (a)
#define MEAN(a) ((a) / count)
POOL(max_pool, -INFINITY, MAXF, SAME)
POOL(average_pool, 0.0f, ADD, MEAN)
)CL";

}  // namespace plait::opencl
