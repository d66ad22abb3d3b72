#include "src/graph/passes/permutation.h"

#include <cstring>

namespace plait {

bool IsIdentity(const Perm& perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int32_t>(i)) return false;
  }
  return true;
}

Perm Inverse(const Perm& perm) {
  Perm out(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) out[static_cast<size_t>(perm[i])] = static_cast<int32_t>(i);
  return out;
}

Perm Compose(const Perm& first, const Perm& second) {
  Perm out(second.size());
  for (size_t i = 0; i < second.size(); ++i) out[i] = first[static_cast<size_t>(second[i])];
  return out;
}

Dims Permuted(const Dims& dims, const Perm& perm) {
  Dims out;
  for (const int32_t axis : perm) out.push_back(dims[axis]);
  return out;
}

bool MovesNoByte(const Dims& shape, const Perm& perm) {
  int32_t last = -1;
  for (const int32_t axis : perm) {
    if (shape[axis] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

std::optional<Perm> ThroughReshape(const Dims& x, const Dims& y, const Perm& perm) {
  // Groups of axes longer than 1 with equal element counts on both sides, outermost first.
  std::array<int, kMaxRank> group_of_x{}, group_of_y{};
  int groups = 0;
  for (int i = 0, j = 0; i < x.rank() || j < y.rank();) {
    if (i < x.rank() && x[i] == 1) { ++i; continue; }
    if (j < y.rank() && y[j] == 1) { ++j; continue; }
    int64_t x_count = x[i], y_count = y[j];
    group_of_x[static_cast<size_t>(i++)] = group_of_y[static_cast<size_t>(j++)] = groups;
    while (x_count != y_count) {
      if (x_count < y_count) {
        x_count *= x[i];
        group_of_x[static_cast<size_t>(i++)] = groups;
      } else {
        y_count *= y[j];
        group_of_y[static_cast<size_t>(j++)] = groups;
      }
    }
    ++groups;
  }
  // In the transposed x every group has to lie together and in order.
  std::vector<int> group_order;
  std::array<int32_t, kMaxRank> last_axis{};
  last_axis.fill(-1);
  for (const int32_t axis : perm) {
    if (x[axis] == 1) continue;
    const int group = group_of_x[static_cast<size_t>(axis)];
    int32_t& last = last_axis[static_cast<size_t>(group)];
    if (last < 0) {
      group_order.push_back(group);
    } else if (group_order.back() != group || axis < last) {
      return std::nullopt;
    }
    last = axis;
  }
  Perm out;
  int leading = 0;
  for (; leading < y.rank() && y[leading] == 1; ++leading) out.push_back(leading);
  for (const int group : group_order) {
    for (int j = leading; j < y.rank(); ++j) {
      if (y[j] == 1 || group_of_y[static_cast<size_t>(j)] != group) continue;
      out.push_back(j);
      for (int one = j + 1; one < y.rank() && y[one] == 1; ++one) out.push_back(one);
    }
  }
  return out;
}

namespace {

// Copies elements of one size into row-major order; `strides` (elements) say where each axis of the result lies in `from`.
template <typename T>
void CopyStrided(const T* from, const Dims& size, const Dims& strides, T* to) {
  const int outer_rank = size.rank() - 1;
  const int64_t inner = size[outer_rank], inner_stride = strides[outer_rank];
  Dims index = Dims::Filled(size.rank(), 0);
  for (int64_t rows = size.Count() / inner; rows > 0; --rows, to += inner) {
    for (int64_t i = 0; i < inner; ++i) to[i] = from[i * inner_stride];
    for (int i = outer_rank - 1; i >= 0; --i) {
      from += strides[i];
      if (++index[i] < size[i]) break;
      from -= size[i] * strides[i];
      index[i] = 0;
    }
  }
}

}  // namespace

std::shared_ptr<const ConstData> TransposedData(const Tensor& constant, const Dims& shape, const Perm& perm) {
  std::shared_ptr<ConstData> data = ConstData::Allocate(constant.bytes());
  if (data == nullptr) return nullptr;
  if (MovesNoByte(shape, perm)) {
    std::memcpy(data->mutable_data(), constant.data->data(), static_cast<size_t>(data->bytes()));
    return data;
  }
  const Dims size = Permuted(shape, perm), strides = Permuted(DenseStrides(shape), perm);
  switch (SizeOf(constant.dtype)) {
    case 1: CopyStrided(constant.data->as<uint8_t>(), size, strides, data->as<uint8_t>()); break;
    case 2: CopyStrided(constant.data->as<uint16_t>(), size, strides, data->as<uint16_t>()); break;
    case 4: CopyStrided(constant.data->as<uint32_t>(), size, strides, data->as<uint32_t>()); break;
    default: CopyStrided(constant.data->as<uint64_t>(), size, strides, data->as<uint64_t>()); break;
  }
  return data;
}

}  // namespace plait
