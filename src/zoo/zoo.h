// Built-in networks: published architectures with seeded weights, made in code. They need no download and no file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "src/graph/graph.h"

namespace plait {

struct ZooEntry {
  std::string_view name;
  std::string_view description;
  std::string_view input_layout;  // of the graph's only input, "input": "1x3x224x224 NCHW", ...
  int64_t parameters;             // as the published implementation counts them
  bool counts_statistics;         // whether that count includes BatchNorm's moving mean and variance
  int64_t macs;                   // published multiply-accumulates of one inference
  std::string_view source;        // who published the architecture and both figures
};

// All networks, smallest work first. Static storage; thread-safe.
std::span<const ZooEntry> ZooEntries();

// The network as published, batch 1, un-optimised: BatchNorm operators are there, dropout and auxiliary heads are
// not. One input "input", one output "output" [1, 1000] (logits, except where the publisher ends in a softmax).
// Weights depend on `seed` alone and are the same bytes on every machine; they are scaled so that activations keep a
// healthy range. NotFound lists the names there are.
Result<Graph> BuildZooModel(std::string_view name, uint64_t seed = 1);

}  // namespace plait
