// Inputs and outputs of a session as users see them.
#pragma once

#include <string>
#include <vector>

#include "src/runtime/session.h"

namespace plait {

// Fills every input: from `files` (NAME=FILE.npy, dtype and element count must fit the input) where given, else with seeded random values in
// [-1, 1). The message names input, file and both shapes.
Status FillInputs(const Graph& graph, const std::vector<std::string>& files, uint64_t seed, Session* session);

// Writes every output to DIR/NAME.npy in the model's own shape; '/' and ':' in names become '_'.
Status SaveOutputs(const Graph& graph, const Session& session, const std::string& dir);

// The largest absolute difference between corresponding outputs, divided by the largest magnitude of `b`; the worst output counts.
// Infinity if either holds a NaN. Outputs are f32.
double MaxRelativeError(const std::vector<std::vector<std::byte>>& a, const std::vector<std::vector<std::byte>>& b);
std::vector<std::vector<std::byte>> CopyOutputs(const Graph& graph, const Session& session);

}  // namespace plait
