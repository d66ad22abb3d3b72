// Lanes whose memory is not coherent with the others' must not write a cache line that another one writes.
#pragma once

#include <map>
#include <vector>

#include "src/partition/storage.h"
#include "src/schedule/schedule.h"

namespace plait {

// Parts that write to the same root tensors, added one by one. `graph` and `lanes` outlive it.
class CacheLines {
 public:
  static Result<CacheLines> Create(const Graph& graph, const std::vector<PlanningLane>& lanes);

  // Whether lines matter at all: some lane is not coherent.
  bool matter() const { return matter_; }
  // Whether two parts write a common line and their lanes do not see each other's writes coherently.
  bool Clash(const Part& a, const Part& b) const;
  // The first part added before that writes a line of `part` from a domain that does not see it coherently; nullptr if
  // there is none.
  const Part* Conflict(const Part& part) const;
  // Adds the part unless it conflicts; returns Conflict().
  const Part* Add(const Part& part);
  TensorId Root(TensorId tensor) const { return storage_[static_cast<size_t>(tensor)].root; }

 private:
  CacheLines(const Graph& graph, const std::vector<PlanningLane>& lanes) : graph_(&graph), lanes_(&lanes) {}

  const Graph* graph_;
  const std::vector<PlanningLane>* lanes_;
  std::vector<TensorStorage> storage_;
  std::map<TensorId, std::vector<Part>> written_;  // by root
  bool matter_ = false;
};

}  // namespace plait
