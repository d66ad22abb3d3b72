// Shapes and regions: small fixed-capacity integer vectors, copied by value.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace plait {

inline constexpr int kMaxRank = 8;

// Up to kMaxRank integers: a shape (outermost first, NHWC for images), a coordinate, or strides in elements.
class Dims {
 public:
  constexpr Dims() = default;
  constexpr Dims(std::initializer_list<int64_t> values) {
    for (int64_t v : values) d_[rank_++] = v;
  }
  static constexpr Dims Filled(int rank, int64_t value) {
    Dims out;
    out.rank_ = rank;
    for (int i = 0; i < rank; ++i) out.d_[i] = value;
    return out;
  }

  constexpr int rank() const { return rank_; }
  constexpr int64_t operator[](int i) const { return d_[i]; }
  constexpr int64_t& operator[](int i) { return d_[i]; }
  // The i-th from the end: back(0) is the innermost.
  constexpr int64_t back(int i = 0) const { return d_[rank_ - 1 - i]; }
  constexpr void push_back(int64_t v) { d_[rank_++] = v; }  // rank() < kMaxRank
  constexpr const int64_t* begin() const { return d_.data(); }
  constexpr const int64_t* end() const { return d_.data() + rank_; }

  // Product of all entries; 1 for rank 0. The graph's validation has bounded it.
  constexpr int64_t Count() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= d_[i];
    return n;
  }

  friend constexpr bool operator==(const Dims& a, const Dims& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i) {
      if (a.d_[i] != b.d_[i]) return false;
    }
    return true;
  }

 private:
  std::array<int64_t, kMaxRank> d_{};
  int rank_ = 0;
};

std::string ToString(const Dims& dims);  // "1x224x224x3"; "scalar" for rank 0

// Strides in elements of a dense row-major tensor of `shape`.
Dims DenseStrides(const Dims& shape);

// A box inside a tensor: begin and size per axis. Same rank as the tensor. Empty if any size is 0.
struct Region {
  Dims begin;
  Dims size;

  static Region Whole(const Dims& shape) { return {Dims::Filled(shape.rank(), 0), shape}; }
  int64_t Count() const { return size.Count(); }
  bool IsEmpty() const { return size.Count() == 0; }
  bool Covers(const Dims& shape) const { return *this == Whole(shape); }
  friend bool operator==(const Region& a, const Region& b) { return a.begin == b.begin && a.size == b.size; }
};

// The common box; empty (a size of 0 on some axis) if they do not touch. Ranks must be equal.
Region Intersect(const Region& a, const Region& b);
// The smallest box that holds both. An empty one does not count.
Region Enclose(const Region& a, const Region& b);
bool Contains(const Region& outer, const Region& inner);
std::string ToString(const Region& region);  // "[0:1, 0:14, 0:14, 32:64]"

}  // namespace plait
