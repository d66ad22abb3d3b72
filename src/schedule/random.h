// A small generator with the same sequence on every machine.
#pragma once

#include <cstdint>

namespace plait {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x2545F4914F6CDD1Dull) {}
  // SplitMix64.
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  // 0 <= result < bound; bound > 0. The bias is below bound / 2^32.
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(((Next() >> 32) * bound) >> 32); }
  int64_t UpTo(int64_t most) { return most <= 0 ? 0 : static_cast<int64_t>(Next() % static_cast<uint64_t>(most + 1)); }

 private:
  uint64_t state_;
};

}  // namespace plait
