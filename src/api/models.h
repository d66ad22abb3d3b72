// MODEL as users name it: a zoo name or a file.
#pragma once

#include <map>
#include <string>

#include "src/graph/graph.h"

namespace plait {

// The graph as the file or the zoo states it, validated, not optimised. A name without a path separator and extension that the zoo knows is the
// zoo's; all else is a file. The message says which it was taken for and, for an unknown name, what the zoo has.
// `shapes` fixes dynamic input dimensions (input name -> shape).
Result<Graph> LoadModel(const std::string& model, const std::map<std::string, Dims>& shapes = {});

}  // namespace plait
