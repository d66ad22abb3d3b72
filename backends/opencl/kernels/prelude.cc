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
#define TO_IV(x) JOIN(JOIN(convert_int, VW), _rte)(x)
#define TO_FV(x) JOIN(convert_float, VW)(x)
#define TN (NV * VW)

#ifdef LOCAL_ONE
#define KERNEL __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
#else
#define KERNEL __kernel void
#endif
#define IN __global const float* restrict
#define OUT __global float* restrict

// Comparisons rather than fmin and fmax, which cost three instructions on x86.
#define MAXF(a, b) ((a) > (b) ? (a) : (b))
#define MINF(a, b) ((a) < (b) ? (a) : (b))
#define CLAMPF(v, lo, hi) MINF(hi, MAXF(lo, v))  // the value stands last, so that a NaN stays one

// The first n < VW elements; the others are 0.
inline fv load_part(__global const float* p, int n) {
  float t[VW];
  for (int i = 0; i < VW; ++i) t[i] = i < n ? p[i] : 0.0f;
  return JOIN(vload, VW)(0, t);
}
inline void store_part(fv v, __global float* p, int n) {
  float t[VW];
  JOIN(vstore, VW)(v, 0, t);
  for (int i = 0; i < n; ++i) p[i] = t[i];
}
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
  iv n = TO_IV(x * 1.44269504f);
  fv f = TO_FV(n);
  fv r = fma(f, (fv)(-0.693359375f), x);
  r = fma(f, (fv)(2.12194440e-4f), r);
  fv p = (fv)(1.9875691500e-4f);
  p = fma(p, r, (fv)(1.3981999507e-3f));
  p = fma(p, r, (fv)(8.3334519073e-3f));
  p = fma(p, r, (fv)(4.1665795894e-2f));
  p = fma(p, r, (fv)(1.6666665459e-1f));
  p = fma(p, r, (fv)(5.0000001201e-1f));
  p = fma(p, r * r, r + 1.0f);
  return p * AS_FV((n + 127) << 23);
}
inline fv sigmoid_fv(fv x) { return (fv)(1.0f) / (1.0f + exp_fv(-x)); }
inline fv tanh_fv(fv x) {
  fv t = exp_fv(-2.0f * fabs(x));
  fv big = (1.0f - t) / (1.0f + t);
  // Near 0 the quotient loses relative precision; the odd Taylor polynomial does not.
  fv s = x * x;
  fv small = fabs(x) * fma(s, fma(s, (fv)(0.13333333f), (fv)(-0.33333333f)), (fv)(1.0f));
  return copysign(fabs(x) < 0.06f ? small : big, x);
}
// Abramowitz and Stegun 7.1.26, absolute error below 2e-7; the Taylor polynomial near 0.
inline fv erf_fv(fv x) {
  fv a = fabs(x);
  fv t = (fv)(1.0f) / fma(a, (fv)(0.3275911f), (fv)(1.0f));
  fv p = fma(t, (fv)(1.061405429f), (fv)(-1.453152027f));
  p = fma(p, t, (fv)(1.421413741f));
  p = fma(p, t, (fv)(-0.284496736f));
  p = fma(p, t, (fv)(0.254829592f)) * t;
  fv big = fma(-p, exp_fv(-a * a), (fv)(1.0f));
  fv s = x * x;
  fv small = a * fma(s, fma(s, (fv)(0.11283791f), (fv)(-0.37612639f)), (fv)(1.12837917f));
  return copysign(a < 0.15f ? small : big, x);
}
)CL";

}  // namespace plait::opencl
