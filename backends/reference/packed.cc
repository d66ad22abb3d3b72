#include "backends/reference/packed.h"

#include <cstring>

namespace plait::reference {
namespace {

// Four floats at once; GCC and clang map it to the target's vectors.
typedef float Vec __attribute__((vector_size(16)));

Vec Load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

}  // namespace

void MultiplyTile(const float* const rows[kTileRows], const float* panel, int64_t depth, const float* start,
                  float out[kTileRows][kTileColumns]) {
  static_assert(kTileRows == 4 && kTileColumns == 8);
  const Vec low = Load(start), high = Load(start + 4);
  Vec a0 = low, a1 = high, b0 = low, b1 = high, c0 = low, c1 = high, d0 = low, d1 = high;
  const float *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  for (int64_t k = 0; k < depth; ++k) {
    const Vec w0 = Load(panel + k * kTileColumns), w1 = Load(panel + k * kTileColumns + 4);
    a0 += a[k] * w0;
    a1 += a[k] * w1;
    b0 += b[k] * w0;
    b1 += b[k] * w1;
    c0 += c[k] * w0;
    c1 += c[k] * w1;
    d0 += d[k] * w0;
    d1 += d[k] * w1;
  }
  const Vec result[kTileRows][2] = {{a0, a1}, {b0, b1}, {c0, c1}, {d0, d1}};
  std::memcpy(out, result, sizeof(result));
}

}  // namespace plait::reference
