// A graph run by XNNPACK's own subgraph runtime: what an application that uses XNNPACK directly would get.
#pragma once

#include <pthreadpool.h>
#include <xnnpack.h>

#include <memory>
#include <string>
#include <vector>

#include "src/graph/graph.h"

namespace plait {

struct PeerTiming {
  std::string name;  // XNNPACK's name of the operator
  double us = 0;
};

// Used by one thread at a time, the one that counts as the first of the pool's.
class XnnpackRuntime {
 public:
  // Converts the graph, whose constants must outlive the runtime. `pool` is shared and outlives it; nullptr: the calling thread alone.
  // Unsupported names the operator that XNNPACK's subgraphs cannot express.
  static Result<std::unique_ptr<XnnpackRuntime>> Create(const Graph& graph, pthreadpool_t pool, bool profile);
  XnnpackRuntime(const XnnpackRuntime&) = delete;
  XnnpackRuntime& operator=(const XnnpackRuntime&) = delete;
  ~XnnpackRuntime();

  // The i-th graph input or output, dense, row-major. Readable 16 bytes beyond the end, as XNNPACK asks.
  std::vector<std::byte>& input(int i) { return inputs_[static_cast<size_t>(i)]; }
  std::vector<std::vector<std::byte>> CopyOutputs() const;
  Status Run();
  // Of the last run, in the runtime's order; needs `profile`.
  Result<std::vector<PeerTiming>> Timings() const;

 private:
  XnnpackRuntime() = default;
  Status Setup(const Graph& graph);

  xnn_runtime_t runtime_ = nullptr;
  std::vector<std::vector<std::byte>> inputs_, outputs_;  // with XNN_EXTRA_BYTES
  std::vector<size_t> output_bytes_;
  std::vector<std::unique_ptr<float[]>> scalars_;  // constants of composed operators; XNNPACK keeps addresses
  friend class SubgraphBuilder;
};

}  // namespace plait
