#include "backends/opencl/kernels/sources.h"

namespace plait::opencl {

const char kPrelude[] = R"CL(
// Sums are contracted only where the source says fma: parts and whole must round alike.
#pragma OPENCL FP_CONTRACT OFF

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
typedef JOIN(float, VW) fv;
typedef JOIN(int, VW) iv;
#define LOAD(p) JOIN(vload, VW)(0, p)
#define STORE(v, p) JOIN(vstore, VW)(v, 0, p)
#define AS_FV(x) JOIN(as_float, VW)(x)
#define AS_IV(x) JOIN(as_int, VW)(x)
#define TN (NV * VW)

#ifdef LOCAL_ONE
#define KERNEL __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
#else
#define KERNEL __kernel void
#endif
#define IN __global const float* restrict
#define OUT __global float* restrict
// Of kernels that may write over what they read (MayWriteOver in src/graph/operators.h).
#define ALIASED_IN __global const float*
#define ALIASED_OUT __global float*

// Comparisons rather than fmin and fmax, which cost three instructions on x86.
#define MAXF(a, b) ((a) > (b) ? (a) : (b))
#define MINF(a, b) ((a) < (b) ? (a) : (b))
#define CLAMPF(v, lo, hi) MINF(hi, MAXF(lo, v))  // the value stands last, so that a NaN stays one

// The first n <= VW elements; the others are 0. Halves rather than loops, which compilers turn into calls of memcpy.
inline float4 load_part4(__global const float* p, int n) {
  float4 v = (float4)(0.0f);
  if (n & 4) return vload4(0, p);
  if (n & 2) v.lo = vload2(0, p);
  if (n == 1) v.x = p[0];
  if (n == 3) v.z = p[2];
  return v;
}
inline void store_part4(float4 v, __global float* p, int n) {
  if (n & 4) vstore4(v, 0, p);
  if (n & 2) vstore2(v.lo, 0, p);
  if (n == 1) p[0] = v.x;
  if (n == 3) p[2] = v.z;
}
#if VW == 8
inline fv load_part(__global const float* p, int n) {
  return (fv)(load_part4(p, min(n, 4)), n > 4 ? load_part4(p + 4, n - 4) : (float4)(0.0f));
}
inline void store_part(fv v, __global float* p, int n) {
  store_part4(v.lo, p, min(n, 4));
  if (n > 4) store_part4(v.hi, p + 4, n - 4);
}
#else
#define load_part load_part4
#define store_part store_part4
#endif
// Sum and largest of a vector's elements, in one fixed order.
inline float sum_fv(fv v) {
#if VW == 8
  float4 h = v.lo + v.hi;
#else
  float4 h = v;
#endif
  return (h.x + h.z) + (h.y + h.w);
}
inline float max_fv(fv v) {
#if VW == 8
  float4 h = MAXF(v.lo, v.hi);
#else
  float4 h = v;
#endif
  return MAXF(MAXF(h.x, h.z), MAXF(h.y, h.w));
}

// e^x to 2 ulp: 2^n * p(r), r in [-ln 2 / 2, ln 2 / 2]. Its operations are the same for every lane of a vector.
inline fv exp_fv(fv x) {
  x = MINF(MAXF(x, (fv)(-87.33654f)), (fv)(88.37626f));
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits: cheaper than conversions, which drivers call as functions.
  fv shifted = fma(x, (fv)(1.44269504f), (fv)(12582912.0f));
  iv n = AS_IV(shifted);
  fv f = shifted - 12582912.0f;
  fv r = fma(f, (fv)(-0.693359375f), x);
  r = fma(f, (fv)(2.12194440e-4f), r);
  fv p = (fv)(1.9875691500e-4f);
  p = fma(p, r, (fv)(1.3981999507e-3f));
  p = fma(p, r, (fv)(8.3334519073e-3f));
  p = fma(p, r, (fv)(4.1665795894e-2f));
  p = fma(p, r, (fv)(1.6666665459e-1f));
  p = fma(p, r, (fv)(5.0000001201e-1f));
  p = fma(p, r * r, r + 1.0f);
  return p * AS_FV((n << 23) + (127 << 23));
}
inline fv abs_fv(fv x) { return AS_FV(AS_IV(x) & 0x7fffffff); }
// |magnitude| with the sign of x; magnitude >= 0.
inline fv with_sign(fv magnitude, fv x) { return AS_FV(AS_IV(magnitude) | (AS_IV(x) & (int)0x80000000)); }
inline fv sigmoid_fv(fv x) { return (fv)(1.0f) / (1.0f + exp_fv(-x)); }
inline fv tanh_fv(fv x) {
  fv t = exp_fv(-2.0f * abs_fv(x));
  fv big = (1.0f - t) / (1.0f + t);
  // Near 0 the quotient loses relative precision; the odd Taylor polynomial does not.
  fv s = x * x;
  fv small = abs_fv(x) * fma(s, fma(s, (fv)(0.13333333f), (fv)(-0.33333333f)), (fv)(1.0f));
  return with_sign(abs_fv(x) < 0.06f ? small : big, x);
}
// x * P(x^2) / Q(x^2), fitted by relative error on [0, 3.92] (4e-7), beyond which erf rounds to 1.
inline fv erf_fv(fv x) {
  x = MINF((fv)(3.92f), MAXF((fv)(-3.92f), x));
  fv s = x * x;
  fv p = fma(s, (fv)(2.0501663e-06f), (fv)(2.8487877e-04f));
  p = fma(p, s, (fv)(3.7653372e-03f));
  p = fma(p, s, (fv)(5.2747849e-02f));
  p = fma(p, s, (fv)(1.9039962e-01f));
  p = fma(p, s, (fv)(1.1283791e+00f));
  fv q = fma(s, (fv)(3.8092337e-05f), (fv)(1.1624725e-03f));
  q = fma(q, s, (fv)(1.4968648e-02f));
  q = fma(q, s, (fv)(1.1410631e-01f));
  q = fma(q, s, (fv)(5.0207001e-01f));
  q = fma(q, s, (fv)(1.0f));
  return x * p / q;
}
)CL";

}  // namespace plait::opencl
