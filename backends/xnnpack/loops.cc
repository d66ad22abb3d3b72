#include "backends/xnnpack/loops.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

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

constexpr int64_t kBlock = 16;       // elements handled as one; tails run the same code on a padded copy
constexpr int64_t kChannels = 64;    // accumulators that stay in registers

PLAIT_INLINE float ClampTo(float v, float lo, float hi) {
  v = v < lo ? lo : v;
  return v > hi ? hi : v;
}

template <typename F>
PLAIT_INLINE void MapBinary(BinaryOperand a, BinaryOperand b, float lo, float hi, float* y, int64_t n, F f) {
  if (a.constant) {
    const float s = *a.data;
    const float* v = b.data;
    if (b.constant) {
      const float r = ClampTo(f(s, *v), lo, hi);
      for (int64_t i = 0; i < n; ++i) y[i] = r;
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = ClampTo(f(s, v[i]), lo, hi);
    }
    return;
  }
  const float* v = a.data;
  if (b.constant) {
    const float s = *b.data;
    for (int64_t i = 0; i < n; ++i) y[i] = ClampTo(f(v[i], s), lo, hi);
    return;
  }
  const float* w = b.data;
  for (int64_t i = 0; i < n; ++i) y[i] = ClampTo(f(v[i], w[i]), lo, hi);
}

// e^v to about 2e-7, for v clamped to where the result is a normal number.
PLAIT_INLINE float Exp(float v) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer held in the low bits
  v = ClampTo(v, -87.0f, 88.0f);
  const float biased = v * 1.44269504f + kRound;
  const float n = biased - kRound;
  const float r = (v - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
  float p = 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const float power = std::bit_cast<float>((std::bit_cast<uint32_t>(biased) + 127u) << 23);
  return p * power;
}

// Abramowitz and Stegun 7.1.26: absolute error below 2e-7.
PLAIT_INLINE float Erf(float x) {
  const float a = x < 0 ? -x : x;
  const float t = 1.0f / (1.0f + 0.3275911f * a);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const float e = 1.0f - p * t * Exp(-a * a);
  return x < 0 ? -e : e;
}

template <typename F>
PLAIT_INLINE void MapUnary(const float* x, float* y, int64_t n, F f) {
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    for (int64_t k = 0; k < kBlock; ++k) y[i + k] = f(x[i + k]);
  }
  if (i == n) return;
  float block[kBlock] = {};
  std::memcpy(block, x + i, static_cast<size_t>(n - i) * sizeof(float));
  for (int64_t k = 0; k < kBlock; ++k) block[k] = f(block[k]);
  std::memcpy(y + i, block, static_cast<size_t>(n - i) * sizeof(float));
}

// Runs body(c, count) over [0, channels): whole blocks of kChannels, then of kBlock, then the rest.
template <typename Body>
PLAIT_INLINE void ForChannels(int64_t channels, Body body) {
  int64_t c = 0;
  for (; c + kChannels <= channels; c += kChannels) body(c, std::integral_constant<int64_t, kChannels>());
  for (; c + kBlock <= channels; c += kBlock) body(c, std::integral_constant<int64_t, kBlock>());
  if (c < channels) body(c, channels - c);
}

}  // namespace

PLAIT_SIMD void BinaryRow(BinaryKind kind, BinaryOperand a, BinaryOperand b, const Clamp& clamp, float* y, int64_t n) {
  const float lo = clamp.min, hi = clamp.max;
  switch (kind) {
    case BinaryKind::kAdd: return MapBinary(a, b, lo, hi, y, n, [](float u, float v) { return u + v; });
    case BinaryKind::kSub: return MapBinary(a, b, lo, hi, y, n, [](float u, float v) { return u - v; });
    case BinaryKind::kMul: return MapBinary(a, b, lo, hi, y, n, [](float u, float v) { return u * v; });
    case BinaryKind::kDiv: return MapBinary(a, b, lo, hi, y, n, [](float u, float v) { return u / v; });
    case BinaryKind::kMax: return MapBinary(a, b, lo, hi, y, n, [](float u, float v) { return u > v ? u : v; });
    case BinaryKind::kMin: return MapBinary(a, b, lo, hi, y, n, [](float u, float v) { return u < v ? u : v; });
  }
}

bool HasUnaryRow(UnaryKind kind) {
  return kind == UnaryKind::kHardSigmoid || kind == UnaryKind::kSilu || kind == UnaryKind::kErf || kind == UnaryKind::kReciprocal;
}

PLAIT_SIMD void UnaryRow(UnaryKind kind, const float* x, float* y, int64_t n) {
  switch (kind) {
    case UnaryKind::kHardSigmoid: return MapUnary(x, y, n, [](float v) { return ClampTo(v * (1.0f / 6.0f) + 0.5f, 0.0f, 1.0f); });
    case UnaryKind::kSilu: return MapUnary(x, y, n, [](float v) { return v / (1.0f + Exp(-v)); });
    case UnaryKind::kErf: return MapUnary(x, y, n, [](float v) { return Erf(v); });
    case UnaryKind::kReciprocal: return MapUnary(x, y, n, [](float v) { return 1.0f / v; });
    default: return;
  }
}

PLAIT_SIMD void ScaleShiftRow(const float* x, const float* scale, const float* shift, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale[i] + shift[i];
}

PLAIT_SIMD float SumRow(const float* x, int64_t n) {
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
  const float lo = clamp.min, hi = clamp.max;
  ForChannels(channels, [&](int64_t c, auto count) __attribute__((always_inline)) {
    float total[kChannels] = {};
    for (int64_t row = 0; row < x.rows; ++row) {
      // Row by row, so that long sums keep their precision.
      float sum[kChannels] = {};
      const float* p = x.data + row * x.row_stride + c;
      for (int64_t col = 0; col < x.cols; ++col, p += x.col_stride) {
        for (int64_t k = 0; k < count; ++k) sum[k] += p[k];
      }
      for (int64_t k = 0; k < count; ++k) total[k] += sum[k];
    }
    for (int64_t k = 0; k < count; ++k) y[c + k] = ClampTo(total[k] * scale, lo, hi);
  });
}

PLAIT_SIMD void MaxPixels(const Pixels& x, const Clamp& clamp, float* y, int64_t channels) {
  const float lo = clamp.min, hi = clamp.max;
  ForChannels(channels, [&](int64_t c, auto count) __attribute__((always_inline)) {
    float most[kChannels];
    for (int64_t k = 0; k < count; ++k) most[k] = x.data[c + k];
    for (int64_t row = 0; row < x.rows; ++row) {
      const float* p = x.data + row * x.row_stride + c;
      for (int64_t col = 0; col < x.cols; ++col, p += x.col_stride) {
        for (int64_t k = 0; k < count; ++k) most[k] = p[k] > most[k] ? p[k] : most[k];
      }
    }
    for (int64_t k = 0; k < count; ++k) y[c + k] = ClampTo(most[k], lo, hi);
  });
}

PLAIT_SIMD void DotPixels(const Pixels& x, const Pixels& w, const float* bias, const Clamp& clamp, float* y, int64_t channels) {
  const float lo = clamp.min, hi = clamp.max;
  ForChannels(channels, [&](int64_t c, auto count) __attribute__((always_inline)) {
    float sum[kChannels] = {};
    if (bias != nullptr) {
      for (int64_t k = 0; k < count; ++k) sum[k] = bias[c + k];
    }
    for (int64_t row = 0; row < x.rows; ++row) {
      const float* p = x.data + row * x.row_stride + c;
      const float* q = w.data + row * w.row_stride + c;
      for (int64_t col = 0; col < x.cols; ++col, p += x.col_stride, q += w.col_stride) {
        for (int64_t k = 0; k < count; ++k) sum[k] += p[k] * q[k];
      }
    }
    for (int64_t k = 0; k < count; ++k) y[c + k] = ClampTo(sum[k], lo, hi);
  });
}

PLAIT_SIMD void TransposeTile(const float* x, int64_t x_stride, int64_t rows, int64_t cols, float* y, int64_t y_stride) {
  constexpr int64_t kSide = 8;
  for (int64_t r0 = 0; r0 < rows; r0 += kSide) {
    for (int64_t c0 = 0; c0 < cols; c0 += kSide) {
      const int64_t r1 = r0 + kSide < rows ? r0 + kSide : rows, c1 = c0 + kSide < cols ? c0 + kSide : cols;
      for (int64_t c = c0; c < c1; ++c) {
        for (int64_t r = r0; r < r1; ++r) y[c * y_stride + r] = x[r * x_stride + c];
      }
    }
  }
}

}  // namespace plait::xnn
