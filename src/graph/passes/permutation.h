// Private to the passes: permutations of axes, as in TransposeAttrs: axis i of the result is axis perm[i] of the operand.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/graph/dims.h"
#include "src/graph/graph.h"

namespace plait {

using Perm = std::vector<int32_t>;

bool IsIdentity(const Perm& perm);
Perm Inverse(const Perm& perm);
// One permutation for transposing by `first` and then by `second`.
Perm Compose(const Perm& first, const Perm& second);
Dims Permuted(const Dims& dims, const Perm& perm);
// Whether transposing a tensor of `shape` leaves its bytes in place, because only axes of size 1 move.
bool MovesNoByte(const Dims& shape, const Perm& perm);

// For y = reshape(x): the permutation q' such that transposing y by q' equals a reshape of x transposed by `perm`; nullopt if there
// is none. Axes of size 1 stay at the front or follow the axis that they followed.
std::optional<Perm> ThroughReshape(const Dims& x, const Dims& y, const Perm& perm);

// A transposed copy of a constant of any type; nullptr if there is no memory. `shape` may differ from the tensor's as a reshape does.
std::shared_ptr<const ConstData> TransposedData(const Tensor& constant, const Dims& shape, const Perm& perm);

}  // namespace plait
