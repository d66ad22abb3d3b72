// Plait's own graph files: JSON for people, weights in one binary file beside it. docs/formats.md describes every field.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "src/graph/graph.h"

namespace plait {

inline constexpr int64_t kGraphJsonVersion = 1;
inline constexpr int64_t kWeightAlignment = 64;  // of each constant in the weights file, in bytes

// The content of the weights file of this name; asked for once, and only if the graph names one.
using WeightsReader = std::function<Result<std::string>(const std::string& file)>;

// Reads from the folder of `json_path`. InvalidArgument for names that are not plain file names or that lead elsewhere by a link.
WeightsReader ReadWeightsBeside(const std::string& json_path);

// Parses and validates. Corrupt: malformed, contradictory, or other weights than the file was written with; Unsupported: another
// version. Hostile input never crashes it, and it allocates no more than a constant times the sizes of both files. Thread-safe.
Result<Graph> ImportGraphJson(std::string_view text, const WeightsReader& weights);
Result<Graph> ReadGraphJsonFile(const std::string& path);

struct GraphJson {
  std::string text;
  std::string weights;  // empty if every constant stands in the text
};

// `weights_file`: the name that the text will give the weights file; empty: constants are written into the text as base64.
// The same graph gives the same bytes.
Result<GraphJson> ExportGraphJson(const Graph& graph, const std::string& weights_file);
// Writes `path` and, if there are weights, the file named like it plus ".weights".
Status WriteGraphJsonFile(const Graph& graph, const std::string& path);

}  // namespace plait
