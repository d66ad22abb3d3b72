// Latencies corrected by what was measured inside executed plans. Private to the room.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "predictors/soc_profile.h"

namespace plait {

// A measured part answers for itself; its neighbours along the same axis are scaled by its ratio to the base; whatever was never run in a
// plan is scaled by the lane's median ratio, so that options are not preferred for having stayed untried. Not thread-safe while Learn runs.
class CorrectedLatency final : public LatencySource {
 public:
  CorrectedLatency(const LatencySource& base, const Graph& graph) : base_(base), graph_(graph) {}  // both outlive it

  // What the part of `op` took on the lane. Later observations replace earlier ones of the same part.
  void Learn(OpId op, const std::string& lane, const CutOf& cut, double us);
  // After a batch of Learn: recomputes the lanes' medians.
  void Settle();

  Latency PartLatency(const Graph& graph, OpId op, const std::string& lane, const Region& region) const override;
  size_t measured() const { return observed_.size(); }

 private:
  struct Observed {
    double us = 0;
    double ratio = 1;
  };
  using Key = std::tuple<std::string, std::string, int, int64_t>;  // lane, signature, axis, extent

  const LatencySource& base_;
  const Graph& graph_;
  std::map<Key, Observed> observed_;
  std::map<std::string, double> lane_ratio_;
};

}  // namespace plait
