// The SoC profile: lanes of one chip, what their kernels were measured to take, handoff costs. A file (docs/formats.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/interface/steps.h"
#include "predictors/latency.h"

namespace plait {

// One operator measured on one lane with its output cut along `axis` to `extent` elements.
struct Measurement {
  int axis = -1;        // -1: whole
  int64_t extent = 0;   // elements along the axis; 0 for whole
  double us = 0;        // lower quartile of the repeats
  double spread = 0;    // half the interquartile range divided by the median
  int repeats = 0;
};

struct LaneProfile {
  std::string name;                  // "cpu0"
  LaneKind kind = LaneKind::kCpu;
  std::string device;                // "core 0", "PoCL ... on core 1": what it was measured on; another one makes the profile foreign
  std::vector<int> cpus;             // cores of the cluster, or the cores a CPU OpenCL device was confined to
  bool coherent = true;
  double network_factor = 1.0;       // in-network time over the sum of measured parts
  double dispatch_us = 0;            // per step, on the lane's own time line
  double host_step_us = 0;           // GPU: what one step costs the lane's host thread
  double host_segment_us = 0;        // GPU: what one segment costs the lane's host thread
  std::map<std::string, std::vector<Measurement>> measurements;  // by OpSignature
};

struct HandoffProfile {
  double sync_us = 0;        // fixed latency
  double us_per_byte = 0;    // where bytes have to move
};

struct SocProfile {
  std::string soc;           // machine description; part of the cache key
  std::string plait_version;
  std::vector<LaneProfile> lanes;
  std::vector<std::vector<HandoffProfile>> handoffs;  // [from][to], lanes' order; the diagonal is zero

  const LaneProfile* Find(const std::string& lane) const;
};

// Reads and verifies (version N and N-1; finite non-negative numbers; square matrices). The message names the path and the field.
Result<SocProfile> LoadSocProfile(const std::string& path);
Status SaveSocProfile(const SocProfile& profile, const std::string& path);

// Answers from the measurements: the same operator at the same cut, else linear interpolation between measured extents of the same
// axis, else scaled by work from the whole. Not known where the operator was never measured on the lane.
class MeasuredLatency final : public LatencySource {
 public:
  explicit MeasuredLatency(const SocProfile& profile) : profile_(profile) {}  // outlived by `profile`
  // The same answers, faster for this very graph object, which must outlive the source and stay as it is.
  MeasuredLatency(const SocProfile& profile, const Graph& graph);
  Latency PartLatency(const Graph& graph, OpId op, const std::string& lane, const Region& region) const override;

 private:
  const std::vector<Measurement>* Find(const Graph& graph, OpId op, size_t lane) const;

  const SocProfile& profile_;
  const Graph* indexed_ = nullptr;
  std::vector<const std::vector<Measurement>*> index_;  // [op * lanes + lane]; nullptr: never measured
};

// How a region lies in the operator's output: whole (axis -1, extent 0), cut along one axis, or neither (nullopt).
struct CutOf {
  int axis = -1;
  int64_t extent = 0;
};
std::optional<CutOf> FindCut(const Graph& graph, const Operator& op, const Region& region);

}  // namespace plait
