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

std::shared_ptr<const ConstData> TransposedData(const Tensor& constant, const Dims& shape, const Perm& perm) {
  std::shared_ptr<ConstData> data = ConstData::Allocate(constant.bytes());
  if (data == nullptr) return nullptr;
  const int rank = shape.rank();
  const Dims from_strides = DenseStrides(shape);
  const Dims size = Permuted(shape, perm), strides = Permuted(from_strides, perm);
  const auto element = static_cast<size_t>(SizeOf(constant.dtype));
  const char* from = constant.data->as<char>();
  char* to = data->as<char>();
  Dims index = Dims::Filled(rank, 0);
  int64_t offset = 0;
  for (int64_t n = shape.Count(); n > 0; --n, to += element) {
    std::memcpy(to, from + offset * static_cast<int64_t>(element), element);
    for (int i = rank - 1; i >= 0; --i) {
      offset += strides[i];
      if (++index[i] < size[i]) break;
      offset -= size[i] * strides[i];
      index[i] = 0;
    }
  }
  return data;
}

}  // namespace plait
