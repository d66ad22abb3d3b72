#include "src/graph/dims.h"

#include <algorithm>

namespace plait {

std::string ToString(const Dims& dims) {
  if (dims.rank() == 0) return "scalar";
  std::string out;
  for (int i = 0; i < dims.rank(); ++i) {
    if (i > 0) out += 'x';
    out += std::to_string(dims[i]);
  }
  return out;
}

Dims DenseStrides(const Dims& shape) {
  Dims strides = Dims::Filled(shape.rank(), 1);
  for (int i = shape.rank() - 2; i >= 0; --i) strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

Region Intersect(const Region& a, const Region& b) {
  Region out = a;
  for (int i = 0; i < a.begin.rank(); ++i) {
    const int64_t begin = std::max(a.begin[i], b.begin[i]);
    const int64_t end = std::min(a.begin[i] + a.size[i], b.begin[i] + b.size[i]);
    out.begin[i] = begin;
    out.size[i] = std::max<int64_t>(0, end - begin);
  }
  return out;
}

Region Enclose(const Region& a, const Region& b) {
  if (a.IsEmpty()) return b;
  if (b.IsEmpty()) return a;
  Region out = a;
  for (int i = 0; i < a.begin.rank(); ++i) {
    const int64_t begin = std::min(a.begin[i], b.begin[i]);
    const int64_t end = std::max(a.begin[i] + a.size[i], b.begin[i] + b.size[i]);
    out.begin[i] = begin;
    out.size[i] = end - begin;
  }
  return out;
}

bool Contains(const Region& outer, const Region& inner) { return inner.IsEmpty() || Intersect(outer, inner) == inner; }

std::string ToString(const Region& region) {
  std::string out = "[";
  for (int i = 0; i < region.begin.rank(); ++i) {
    if (i > 0) out += ", ";
    // Messages also show regions from files, whose ends may not fit.
    const uint64_t end = static_cast<uint64_t>(region.begin[i]) + static_cast<uint64_t>(region.size[i]);
    out += std::to_string(region.begin[i]) + ':' + std::to_string(static_cast<int64_t>(end));
  }
  return out + ']';
}

}  // namespace plait
