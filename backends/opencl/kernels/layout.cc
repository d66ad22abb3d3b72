#include "backends/opencl/kernels/sources.h"

namespace plait::opencl {

const char kLayoutSource[] = R"CL(
#define ROW(at) (at.s0 + i0 * at.s1 + i1 * at.s2 + i2 * at.s3)
#define ROW_INDEX int i2 = r % size.s1, i1 = (r / size.s1) % size.s0, i0 = r / (size.s1 * size.s0)
#define BLOCK 8

// y[.., p, q] = x[.., q, p]: contiguous along p in x and along q in y. One item takes `size.s5` rows of p of one outer index.
//   x_at: offset, strides of three outer axes, of q;  y_at: offset, strides of the outer axes, of p
//   size: extents of outer axes 1 and 2, outer rows, p, q, p rows an item
KERNEL transpose(IN x, int8 x_at, OUT y, int8 y_at, int8 size) {
  int r = (int)get_global_id(1);
  ROW_INDEX;
  x += ROW(x_at);
  y += ROW(y_at);
  int p_end = min((int)(get_global_id(0) + 1) * size.s5, size.s3);
  for (int p = (int)get_global_id(0) * size.s5; p < p_end; p += BLOCK) {
    int ps = min(p_end - p, BLOCK);
    int q = 0;
    if (ps == BLOCK) {
      for (; q + BLOCK <= size.s4; q += BLOCK) {
        float8 a = vload8(0, x + (q + 0) * x_at.s4 + p), b = vload8(0, x + (q + 1) * x_at.s4 + p);
        float8 c = vload8(0, x + (q + 2) * x_at.s4 + p), d = vload8(0, x + (q + 3) * x_at.s4 + p);
        float8 e = vload8(0, x + (q + 4) * x_at.s4 + p), f = vload8(0, x + (q + 5) * x_at.s4 + p);
        float8 g = vload8(0, x + (q + 6) * x_at.s4 + p), h = vload8(0, x + (q + 7) * x_at.s4 + p);
#define COLUMN(s, j) vstore8((float8)(a.s, b.s, c.s, d.s, e.s, f.s, g.s, h.s), 0, y + (p + j) * y_at.s4 + q)
        COLUMN(s0, 0); COLUMN(s1, 1); COLUMN(s2, 2); COLUMN(s3, 3);
        COLUMN(s4, 4); COLUMN(s5, 5); COLUMN(s6, 6); COLUMN(s7, 7);
      }
    }
    if (ps == BLOCK && size.s4 == 3 && y_at.s4 == 3) {
      // Three planes to pixels, as images come in.
      float8 a = vload8(0, x + p), b = vload8(0, x + x_at.s4 + p), c = vload8(0, x + 2 * x_at.s4 + p);
      __global float* out = y + p * 3;
      vstore8((float8)(a.s0, b.s0, c.s0, a.s1, b.s1, c.s1, a.s2, b.s2), 0, out);
      vstore8((float8)(c.s2, a.s3, b.s3, c.s3, a.s4, b.s4, c.s4, a.s5), 0, out + 8);
      vstore8((float8)(b.s5, c.s5, a.s6, b.s6, c.s6, a.s7, b.s7, c.s7), 0, out + 16);
      continue;
    }
    for (int i = 0; i < ps; ++i)
      for (int j = q; j < size.s4; ++j) y[(p + i) * y_at.s4 + j] = x[j * x_at.s4 + p + i];
  }
}

// Constant padding. Rows are those of the output; outer coordinates count in the output tensor.
//   x_at: offset of the input's element (0, ..), strides of three outer axes, of the innermost;  y_at: the same for the part
//   size: extents of outer axes 1 and 2 of the part, rows, elements of a row, rows an item
//   begin, before, inner: part's first output coordinate, padding before and the input's extent, per axis
KERNEL pad(IN x, int8 x_at, OUT y, int8 y_at, int8 size, int4 begin, int4 before, int4 inner, float value) {
  int row_end = min((int)(get_global_id(0) + 1) * size.s4, size.s2);
  for (int r = (int)get_global_id(0) * size.s4; r < row_end; ++r) {
    ROW_INDEX;
    __global float* out = y + ROW(y_at);
    int c0 = i0 + begin.x - before.x, c1 = i1 + begin.y - before.y, c2 = i2 + begin.z - before.z, c3 = begin.w - before.w;
    bool filled = c0 < 0 || c0 >= inner.x || c1 < 0 || c1 >= inner.y || c2 < 0 || c2 >= inner.z;
    int first = filled ? size.s3 : clamp(-c3, 0, size.s3);
    int last = filled ? size.s3 : clamp(inner.w - c3, first, size.s3);
    for (int i = 0; i < first; ++i) out[i] = value;
    if (!filled) {
      __global const float* in = x + x_at.s0 + c0 * x_at.s1 + c1 * x_at.s2 + c2 * x_at.s3 + c3;
      int i = first;
      for (; i + VW <= last; i += VW) STORE(LOAD(in + i), out + i);
      for (; i < last; ++i) out[i] = in[i];
    }
    for (int i = last; i < size.s3; ++i) out[i] = value;
  }
}

// Copies a box between two arenas, every run widened to whole cache lines of 16 elements: what a handoff between
// memories moves that are not coherent.
//   at: offset, strides of three outer axes, the same in both;  size: extents of outer axes 1 and 2, rows, elements of a row, rows an item
KERNEL copy_lines(__global const float* from, __global float* to, int8 at, int8 size) {
  int row_end = min((int)(get_global_id(0) + 1) * size.s4, size.s2);
  for (int r = (int)get_global_id(0) * size.s4; r < row_end; ++r) {
    ROW_INDEX;
    int first = ROW(at) / 16 * 16, last = (ROW(at) + size.s3 + 15) / 16 * 16;
    for (int i = first; i < last; ++i) to[i] = from[i];
  }
}
)CL";

}  // namespace plait::opencl
