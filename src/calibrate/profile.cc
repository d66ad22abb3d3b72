#include "src/calibrate/calibrate.h"

namespace plait {

SocProfile EmptyProfile(const LanesToMeasure& lanes, const std::string& soc, const std::string& plait_version) {
  SocProfile profile;
  profile.soc = soc;
  profile.plait_version = plait_version;
  for (const std::shared_ptr<Lane>& lane : lanes.lanes) {
    LaneProfile out;
    out.name = lane->name();
    out.kind = lane->kind();
    out.cpus = lane->affinity();
    out.coherent = lane->coherent();
    profile.lanes.push_back(std::move(out));
  }
  profile.handoffs.assign(profile.lanes.size(), std::vector<HandoffProfile>(profile.lanes.size()));
  return profile;
}

PlanningCosts CostsFrom(const SocProfile& profile, const LatencySource* latency) {
  PlanningCosts costs;
  costs.latency = latency;
  const size_t n = profile.lanes.size();
  costs.sync_us.assign(n, std::vector<double>(n, 0));
  costs.us_per_byte = costs.sync_us;
  costs.entry_us.assign(n, 0);
  costs.exit_us.assign(n, 0);
  for (size_t a = 0; a < n && a < profile.handoffs.size(); ++a) {
    for (size_t b = 0; b < n && b < profile.handoffs[a].size(); ++b) {
      costs.sync_us[a][b] = profile.handoffs[a][b].sync_us;
      costs.us_per_byte[a][b] = profile.handoffs[a][b].us_per_byte;
      // The caller's data is the host's: a GPU lane takes it over as from a CPU lane, and gives it back so.
      const bool a_is_cpu = profile.lanes[a].kind == LaneKind::kCpu, b_is_cpu = profile.lanes[b].kind == LaneKind::kCpu;
      if (a_is_cpu && !b_is_cpu && costs.entry_us[b] == 0) costs.entry_us[b] = costs.sync_us[a][b];
      if (!a_is_cpu && b_is_cpu && costs.exit_us[a] == 0) costs.exit_us[a] = costs.sync_us[a][b];
    }
  }
  return costs;
}

void ApplyProfile(const SocProfile& profile, std::vector<PlanningLane>* lanes) {
  for (PlanningLane& lane : *lanes) {
    const LaneProfile* found = profile.Find(lane.spec.name);
    if (found == nullptr) continue;
    lane.dispatch_us = found->dispatch_us;
    lane.host_step_us = found->host_step_us;
    lane.host_segment_us = found->host_segment_us;
  }
}

bool HasHandoffs(const SocProfile& profile) {
  for (const LaneProfile& lane : profile.lanes) {
    if (lane.dispatch_us > 0) return true;
  }
  return false;
}

}  // namespace plait
