// What a part costs on a lane: the question that planning asks, whatever answers it (a table of measurements, a learned
// predictor, a simulated chip).
#pragma once

#include <string>

#include "src/graph/graph.h"
#include "src/graph/operators.h"

namespace plait {

struct Latency {
  double us = 0;              // start to end of the step on the lane, dispatch included
  double relative_error = 0;  // one standard deviation of log(us); 0: measured in place
  bool known = false;         // false: the lane cannot run it or nothing is known
};

// Pure and thread-safe.
class LatencySource {
 public:
  virtual ~LatencySource() = default;
  // `lane` is a lane's name in the SoC profile.
  virtual Latency PartLatency(const Graph& graph, OpId op, const std::string& lane, const Region& region) const = 0;
};

// Everything a kernel's time depends on, without names: kind, attributes, dtypes, shapes of inputs and output. Equal signatures
// may share measurements. Printable ASCII, no spaces, machine-independent.
std::string OpSignature(const Graph& graph, const Operator& op);

}  // namespace plait
