#include "backends/xnnpack/loops.h"

#include <cmath>
#include <cstring>

// One copy of each loop per instruction set, chosen when the library is loaded. Sanitizers do not get along with that mechanism.
#if defined(__x86_64__) && defined(__linux__) && !defined(__ANDROID__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PLAIT_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PLAIT_SIMD
#endif
#define PLAIT_INLINE __attribute__((always_inline)) inline

namespace plait::xnn {
namespace {

// Eight floats; the compiler makes of it whatever registers the instruction set has.
constexpr int64_t kLanes = 8;
using Vector = float __attribute__((vector_size(32)));
using IntVector = int32_t __attribute__((vector_size(32)));

constexpr int kUnrolled = 8;  // vectors of accumulators that stay in registers

PLAIT_INLINE void Load(const float* p, Vector* v) { std::memcpy(v, p, sizeof(Vector)); }
PLAIT_INLINE void Store(const Vector& v, float* p) { std::memcpy(p, &v, sizeof(Vector)); }

PLAIT_INLINE float ClampTo(float v, float lo, float hi) {
  v = v < lo ? lo : v;
  return v > hi ? hi : v;
}
PLAIT_INLINE void ClampTo(float lo, float hi, Vector* v) {
  *v = *v < lo ? lo - Vector{} : *v;
  *v = *v > hi ? hi - Vector{} : *v;
}

// A row operand, one vector at a time; a constant one stands still.
PLAIT_INLINE void LoadOperand(const float* p, bool constant, int64_t i, Vector* v) {
  if (constant) {
    *v = *p - Vector{};
  } else {
    Load(p + i, v);
  }
}

template <bool kConstantA, bool kConstantB, typename F>
PLAIT_INLINE void MapRows(const BinaryRowsArgs& t, const Clamp& clamp, F f) {
  Vector u{}, v{};
  for (int64_t row = 0; row < t.rows; ++row) {
    const float* a = t.a.data + row * t.a.row_stride;
    const float* b = t.b.data + row * t.b.row_stride;
    float* y = t.y + row * t.y_row_stride;
    int64_t i = 0;
    for (; i + kLanes <= t.n; i += kLanes) {
      LoadOperand(a, kConstantA, i, &u);
      LoadOperand(b, kConstantB, i, &v);
      f(v, &u);
      ClampTo(clamp.min, clamp.max, &u);
      Store(u, y + i);
    }
    for (; i < t.n; ++i) {
      float r = a[kConstantA ? 0 : i];
      f(b[kConstantB ? 0 : i], &r);
      y[i] = ClampTo(r, clamp.min, clamp.max);
    }
  }
}

// f(v, &u) sets u = u op v, for vectors and for single floats.
template <typename F>
PLAIT_INLINE void MapBinary(const BinaryRowsArgs& t, const Clamp& clamp, F f) {
  if (t.a.constant && t.b.constant) return MapRows<true, true>(t, clamp, f);
  if (t.a.constant) return MapRows<true, false>(t, clamp, f);
  if (t.b.constant) return MapRows<false, true>(t, clamp, f);
  MapRows<false, false>(t, clamp, f);
}

// e^v to about 2e-7, for v clamped to where the result is a normal number.
PLAIT_INLINE void Exp(Vector* x) {
  Vector v = *x;
  ClampTo(-87.0f, 88.0f, &v);
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer held in the low bits
  const Vector biased = v * 1.44269504f + kRound;
  const Vector n = biased - kRound;
  const Vector r = (v - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
  Vector p = r * (1.0f / 720.0f) + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const IntVector power = ((IntVector)biased + 127) << 23;
  *x = p * (Vector)power;
}

// Abramowitz and Stegun 7.1.26: absolute error below 2e-7.
PLAIT_INLINE void Erf(Vector* x) {
  const Vector a = *x < 0.0f ? -*x : *x;
  const Vector t = 1.0f / (1.0f + 0.3275911f * a);
  Vector p = t * 1.061405429f - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  Vector e = -a * a;
  Exp(&e);
  e = 1.0f - p * t * e;
  *x = *x < 0.0f ? -e : e;
}

PLAIT_INLINE void Silu(Vector* x) {
  Vector e = -*x;
  Exp(&e);
  *x = *x / (1.0f + e);
}

PLAIT_INLINE void HardSigmoid(Vector* x) {
  *x = *x * (1.0f / 6.0f) + 0.5f;
  ClampTo(0.0f, 1.0f, x);
}

// Tails run the same code on a padded copy, so that an element's bits do not depend on its position.
template <typename F>
PLAIT_INLINE void MapUnary(const float* x, float* y, int64_t n, F f) {
  Vector v;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Load(x + i, &v);
    f(&v);
    Store(v, y + i);
  }
  if (i == n) return;
  float tail[kLanes] = {};
  std::memcpy(tail, x + i, static_cast<size_t>(n - i) * sizeof(float));
  Load(tail, &v);
  f(&v);
  Store(v, tail);
  std::memcpy(y + i, tail, static_cast<size_t>(n - i) * sizeof(float));
}

// Reductions over pixels: `Block::Run<n>` handles n vectors of channels at once, `One` a single channel.
struct SumBlock {
  const Pixels& x;
  float scale, lo, hi;
  float* y;

  template <int n>
  PLAIT_INLINE void Run(int64_t c) const {
    Vector total[n] = {}, v;
    for (int64_t row = 0; row < x.rows; ++row) {
      Vector sum[n] = {};  // row by row, so that long sums keep their precision
      const float* p = x.data + row * x.row_stride + c;
      for (int64_t col = 0; col < x.cols; ++col, p += x.col_stride) {
#pragma GCC unroll 8
        for (int k = 0; k < n; ++k) {
          Load(p + k * kLanes, &v);
          sum[k] += v;
        }
      }
#pragma GCC unroll 8
      for (int k = 0; k < n; ++k) total[k] += sum[k];
    }
#pragma GCC unroll 8
    for (int k = 0; k < n; ++k) {
      v = total[k] * scale;
      ClampTo(lo, hi, &v);
      Store(v, y + c + k * kLanes);
    }
  }
  PLAIT_INLINE void One(int64_t c) const {
    float total = 0;
    for (int64_t row = 0; row < x.rows; ++row) {
      float sum = 0;
      const float* p = x.data + row * x.row_stride + c;
      for (int64_t col = 0; col < x.cols; ++col, p += x.col_stride) sum += *p;
      total += sum;
    }
    y[c] = ClampTo(total * scale, lo, hi);
  }
};

struct MaxBlock {
  const Pixels& x;
  float lo, hi;
  float* y;

  template <int n>
  PLAIT_INLINE void Run(int64_t c) const {
    Vector most[n], v;
#pragma GCC unroll 8
    for (int k = 0; k < n; ++k) Load(x.data + c + k * kLanes, &most[k]);
    for (int64_t row = 0; row < x.rows; ++row) {
      const float* p = x.data + row * x.row_stride + c;
      for (int64_t col = 0; col < x.cols; ++col, p += x.col_stride) {
#pragma GCC unroll 8
        for (int k = 0; k < n; ++k) {
          Load(p + k * kLanes, &v);
          most[k] = v > most[k] ? v : most[k];
        }
      }
    }
#pragma GCC unroll 8
    for (int k = 0; k < n; ++k) {
      ClampTo(lo, hi, &most[k]);
      Store(most[k], y + c + k * kLanes);
    }
  }
  PLAIT_INLINE void One(int64_t c) const {
    float most = x.data[c];
    for (int64_t row = 0; row < x.rows; ++row) {
      const float* p = x.data + row * x.row_stride + c;
      for (int64_t col = 0; col < x.cols; ++col, p += x.col_stride) most = *p > most ? *p : most;
    }
    y[c] = ClampTo(most, lo, hi);
  }
};

struct DotBlock {
  const Pixels& x;
  const Pixels& w;
  const float* bias;
  float lo, hi;
  float* y;

  template <int n>
  PLAIT_INLINE void Run(int64_t c) const {
    Vector sum[n] = {}, v, u;
    if (bias != nullptr) {
#pragma GCC unroll 8
      for (int k = 0; k < n; ++k) Load(bias + c + k * kLanes, &sum[k]);
    }
    for (int64_t row = 0; row < x.rows; ++row) {
      const float* p = x.data + row * x.row_stride + c;
      const float* q = w.data + row * w.row_stride + c;
      for (int64_t col = 0; col < x.cols; ++col, p += x.col_stride, q += w.col_stride) {
#pragma GCC unroll 8
        for (int k = 0; k < n; ++k) {
          Load(p + k * kLanes, &v);
          Load(q + k * kLanes, &u);
          sum[k] += v * u;
        }
      }
    }
#pragma GCC unroll 8
    for (int k = 0; k < n; ++k) {
      ClampTo(lo, hi, &sum[k]);
      Store(sum[k], y + c + k * kLanes);
    }
  }
  PLAIT_INLINE void One(int64_t c) const {
    float sum = bias != nullptr ? bias[c] : 0.0f;
    for (int64_t row = 0; row < x.rows; ++row) {
      const float* p = x.data + row * x.row_stride + c;
      const float* q = w.data + row * w.row_stride + c;
      for (int64_t col = 0; col < x.cols; ++col, p += x.col_stride, q += w.col_stride) sum += *p * *q;
    }
    y[c] = ClampTo(sum, lo, hi);
  }
};

template <typename Block>
PLAIT_INLINE void ForChannels(int64_t channels, const Block& block) {
  int64_t c = 0;
  for (; c + kUnrolled * kLanes <= channels; c += kUnrolled * kLanes) block.template Run<kUnrolled>(c);
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes) block.template Run<2>(c);
  if (c + kLanes <= channels) {
    block.template Run<1>(c);
    c += kLanes;
  }
  for (; c < channels; ++c) block.One(c);
}

// The transpose of 8 x 8 floats: rows of x at x_stride become columns of y.
PLAIT_INLINE void Transpose8(const float* x, int64_t x_stride, float* y, int64_t y_stride) {
  Vector a[8], b[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) Load(x + i * x_stride, &a[i]);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    b[2 * i] = __builtin_shufflevector(a[2 * i], a[2 * i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    b[2 * i + 1] = __builtin_shufflevector(a[2 * i], a[2 * i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      a[4 * h + i] = __builtin_shufflevector(b[4 * h + i], b[4 * h + i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      a[4 * h + i + 2] = __builtin_shufflevector(b[4 * h + i], b[4 * h + i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    Store(__builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11), y + i * y_stride);
    Store(__builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15), y + (i + 4) * y_stride);
  }
}

}  // namespace

PLAIT_SIMD void BinaryRows(BinaryKind kind, const BinaryRowsArgs& args, const Clamp& clamp) {
  switch (kind) {
    case BinaryKind::kAdd: return MapBinary(args, clamp, [](const auto& v, auto* u) __attribute__((always_inline)) { *u = *u + v; });
    case BinaryKind::kSub: return MapBinary(args, clamp, [](const auto& v, auto* u) __attribute__((always_inline)) { *u = *u - v; });
    case BinaryKind::kMul: return MapBinary(args, clamp, [](const auto& v, auto* u) __attribute__((always_inline)) { *u = *u * v; });
    case BinaryKind::kDiv: return MapBinary(args, clamp, [](const auto& v, auto* u) __attribute__((always_inline)) { *u = *u / v; });
    case BinaryKind::kMax: return MapBinary(args, clamp, [](const auto& v, auto* u) __attribute__((always_inline)) { *u = *u > v ? *u : v; });
    case BinaryKind::kMin: return MapBinary(args, clamp, [](const auto& v, auto* u) __attribute__((always_inline)) { *u = *u < v ? *u : v; });
  }
}

bool HasUnaryRow(UnaryKind kind) {
  return kind == UnaryKind::kHardSigmoid || kind == UnaryKind::kSilu || kind == UnaryKind::kErf || kind == UnaryKind::kReciprocal;
}

PLAIT_SIMD void UnaryRow(UnaryKind kind, const float* x, float* y, int64_t n) {
  switch (kind) {
    case UnaryKind::kHardSigmoid: return MapUnary(x, y, n, [](Vector* v) __attribute__((always_inline)) { HardSigmoid(v); });
    case UnaryKind::kSilu: return MapUnary(x, y, n, [](Vector* v) __attribute__((always_inline)) { Silu(v); });
    case UnaryKind::kErf: return MapUnary(x, y, n, [](Vector* v) __attribute__((always_inline)) { Erf(v); });
    case UnaryKind::kReciprocal: return MapUnary(x, y, n, [](Vector* v) __attribute__((always_inline)) { *v = 1.0f / *v; });
    default: return;
  }
}

PLAIT_SIMD void ScaleShiftRow(const float* x, const float* scale, const float* shift, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale[i] + shift[i];
}

PLAIT_SIMD float SumRow(const float* x, int64_t n) {
  constexpr int64_t kBlock = 2 * kLanes;
  float lanes[kBlock] = {};
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    for (int64_t k = 0; k < kBlock; ++k) lanes[k] += x[i + k];
  }
  for (int64_t k = 0; i + k < n; ++k) lanes[k] += x[i + k];
  for (int64_t width = kBlock / 2; width > 0; width /= 2) {
    for (int64_t k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  }
  return lanes[0];
}

PLAIT_SIMD void NormalizeRow(const float* x, const float* gamma, const float* beta, float epsilon, float* y, int64_t n) {
  constexpr int64_t kBlock = 2 * kLanes;
  const float mean = SumRow(x, n) / static_cast<float>(n);
  float lanes[kBlock] = {};
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    for (int64_t k = 0; k < kBlock; ++k) lanes[k] += (x[i + k] - mean) * (x[i + k] - mean);
  }
  for (int64_t k = 0; i + k < n; ++k) lanes[k] += (x[i + k] - mean) * (x[i + k] - mean);
  for (int64_t width = kBlock / 2; width > 0; width /= 2) {
    for (int64_t k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  }
  const float scale = 1.0f / std::sqrt(lanes[0] / static_cast<float>(n) + epsilon);
  for (int64_t c = 0; c < n; ++c) y[c] = (x[c] - mean) * scale * gamma[c] + beta[c];
}

PLAIT_SIMD void SumPixels(const Pixels& x, float scale, const Clamp& clamp, float* y, int64_t channels) {
  ForChannels(channels, SumBlock{x, scale, clamp.min, clamp.max, y});
}

PLAIT_SIMD void MaxPixels(const Pixels& x, const Clamp& clamp, float* y, int64_t channels) {
  ForChannels(channels, MaxBlock{x, clamp.min, clamp.max, y});
}

PLAIT_SIMD void DotPixels(const Pixels& x, const Pixels& w, const float* bias, const Clamp& clamp, float* y, int64_t channels) {
  ForChannels(channels, DotBlock{x, w, bias, clamp.min, clamp.max, y});
}

PLAIT_SIMD void TransposeTile(const float* x, int64_t x_stride, int64_t rows, int64_t cols, float* y, int64_t y_stride) {
  const int64_t whole_rows = rows / 8 * 8, whole_cols = cols / 8 * 8;
  for (int64_t c = 0; c < whole_cols; c += 8) {
    for (int64_t r = 0; r < whole_rows; r += 8) Transpose8(x + r * x_stride + c, x_stride, y + c * y_stride + r, y_stride);
    for (int64_t k = c; k < c + 8; ++k) {
      for (int64_t r = whole_rows; r < rows; ++r) y[k * y_stride + r] = x[r * x_stride + k];
    }
  }
  for (int64_t c = whole_cols; c < cols; ++c) {
    for (int64_t r = 0; r < rows; ++r) y[c * y_stride + r] = x[r * x_stride + c];
  }
}

}  // namespace plait::xnn
