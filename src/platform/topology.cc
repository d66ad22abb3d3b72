#include "src/platform/topology.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace plait {
namespace {

const std::string kCpuRoot = "sys/devices/system/cpu/";

std::string CpuPath(int cpu) { return kCpuRoot + "cpu" + std::to_string(cpu) + "/"; }

int64_t Positive(std::optional<int64_t> value) { return value && *value > 0 ? *value : 0; }

// Ids from the kernel's list; from the folders' names where the list is missing or damaged.
std::vector<int> OnlineCpus(const SysFs& sysfs) {
  for (const char* list : {"online", "present", "possible"}) {
    const std::optional<std::vector<int>> cpus = sysfs.CpuList(kCpuRoot + list);
    if (cpus && !cpus->empty()) return *cpus;
  }
  std::vector<int> cpus;
  for (const std::string& name : sysfs.Names(kCpuRoot)) {
    int id = 0;
    if (name.rfind("cpu", 0) != 0) continue;
    const auto [end, error] = std::from_chars(name.data() + 3, name.data() + name.size(), id);
    if (error == std::errc() && end == name.data() + name.size() && id >= 0) cpus.push_back(id);
  }
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

// "512K", "2M", "65536".
int64_t ParseBytes(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value <= 0 || value > (int64_t{1} << 40)) return 0;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (unit.empty()) return value;
  if (unit == "K") return value << 10;
  if (unit == "M") return value << 20;
  return 0;
}

void ReadL2(const SysFs& sysfs, Core* core) {
  const std::string folder = CpuPath(core->id) + "cache/";
  for (const std::string& name : sysfs.Names(folder)) {
    if (name.rfind("index", 0) != 0 || sysfs.Number(folder + name + "/level") != 2) continue;
    if (sysfs.Text(folder + name + "/type") == "Instruction") continue;
    core->l2_bytes = ParseBytes(sysfs.Text(folder + name + "/size").value_or(""));
    const std::optional<std::vector<int>> sharers = sysfs.CpuList(folder + name + "/shared_cpu_list");
    if (sharers && !sharers->empty()) core->l2_sharers = static_cast<int>(sharers->size());
    return;
  }
}

Core ReadCore(const SysFs& sysfs, int id) {
  Core core;
  core.id = id;
  const std::string path = CpuPath(id);
  core.package = static_cast<int>(std::clamp<int64_t>(sysfs.Number(path + "topology/physical_package_id").value_or(-1), -1, 1 << 20));
  core.capacity = Positive(sysfs.Number(path + "cpu_capacity"));
  core.max_khz = Positive(sysfs.Number(path + "cpufreq/cpuinfo_max_freq"));
  ReadL2(sysfs, &core);
  return core;
}

// The lowest core of a group that the kernel names for `id`; -1 if the group says nothing: it is missing, does not hold the core itself, or
// is one physical core (whose threads `siblings` lists).
int GroupLeader(const std::optional<std::vector<int>>& group, int id, size_t siblings) {
  if (!group || group->size() <= std::max<size_t>(siblings, 1)) return -1;
  if (!std::binary_search(group->begin(), group->end(), id)) return -1;
  return group->front();
}

// Cores with equal keys are of one kind; what is left is to merge neighbouring clocks.
using Key = std::tuple<int, int64_t, int, int>;  // package, capacity, clock domain, kernel's cluster

Key KeyOf(const SysFs& sysfs, const Core& core) {
  const std::string path = CpuPath(core.id);
  const std::optional<std::vector<int>> threads = sysfs.CpuList(path + "topology/thread_siblings_list");
  const size_t siblings = threads ? threads->size() : 1;
  const int domain = GroupLeader(sysfs.CpuList(path + "cpufreq/related_cpus"), core.id, siblings);
  int cluster = -1;
  if (domain < 0 && core.max_khz == 0) {
    cluster = GroupLeader(sysfs.CpuList(path + "topology/cluster_cpus_list"), core.id, siblings);
  }
  return {core.package, core.capacity, domain, cluster};
}

double Strength(const Cluster& cluster) {
  // Capacity already holds the clock; clocks in MHz are of the same order, so a machine that gives capacities only for some cores still sorts.
  const double one = cluster.capacity > 0 ? static_cast<double>(cluster.capacity) : std::max(1.0, static_cast<double>(cluster.max_khz) / 1e3);
  return one * static_cast<double>(cluster.cpus.size());
}

std::vector<Cluster> MakeClusters(const SysFs& sysfs, const std::vector<Core>& cores) {
  std::map<Key, std::vector<const Core*>> kinds;
  for (const Core& core : cores) kinds[KeyOf(sysfs, core)].push_back(&core);
  std::vector<Cluster> clusters;
  for (auto& [key, members] : kinds) {
    std::stable_sort(members.begin(), members.end(), [](const Core* a, const Core* b) { return a->max_khz > b->max_khz; });
    int64_t top_khz = 0;
    for (const Core* core : members) {
      const bool is_like = top_khz > 0 && core->max_khz * 10 >= top_khz * 9;
      if (core == members.front() || (core->max_khz != top_khz && !is_like)) {
        top_khz = core->max_khz;
        clusters.push_back({{}, core->capacity, core->max_khz, core->l2_bytes});
      }
      clusters.back().cpus.push_back(core->id);
    }
  }
  for (Cluster& cluster : clusters) std::sort(cluster.cpus.begin(), cluster.cpus.end());
  std::sort(clusters.begin(), clusters.end(), [](const Cluster& a, const Cluster& b) {
    const double sa = Strength(a), sb = Strength(b);
    return sa != sb ? sa > sb : a.cpus.front() < b.cpus.front();
  });
  return clusters;
}

std::string DescribeCpu(const SysFs& sysfs) {
  const std::string info = sysfs.Text("proc/cpuinfo").value_or("");
  for (const std::string_view field : {"model name", "Hardware", "cpu model"}) {
    for (size_t at = 0; at < info.size();) {
      const size_t end = std::min(info.find('\n', at), info.size());
      const std::string_view line = std::string_view(info).substr(at, end - at);
      const size_t colon = line.find(": ");
      if (line.substr(0, field.size()) == field && colon != std::string_view::npos) return std::string(line.substr(colon + 2));
      at = end + 1;
    }
  }
  for (const char* path : {"sys/devices/soc0/machine", "proc/device-tree/model"}) {
    std::optional<std::string> text = sysfs.Text(path);
    if (!text) continue;
    text->resize(std::min(text->find('\0'), text->size()));
    if (!text->empty()) return *text;
  }
  return "unknown processor";
}

}  // namespace

Topology ReadTopology(const SysFs& sysfs, std::span<const int> allowed) {
  Topology topology;
  topology.cpu = DescribeCpu(sysfs);
  const std::set<int> mask(allowed.begin(), allowed.end());
  std::vector<int> ids = OnlineCpus(sysfs);
  if (!mask.empty()) {
    std::erase_if(ids, [&](int id) { return !mask.contains(id); });
    // The kernel lets the process run there, whatever the files say.
    if (ids.empty()) ids.assign(mask.begin(), mask.end());
  }
  if (ids.empty()) ids.push_back(0);
  for (int id : ids) topology.cores.push_back(ReadCore(sysfs, id));
  topology.clusters = MakeClusters(sysfs, topology.cores);
  return topology;
}

std::optional<int64_t> CurrentKhz(const SysFs& sysfs, int cpu) {
  const std::optional<int64_t> khz = sysfs.Number(CpuPath(cpu) + "cpufreq/scaling_cur_freq");
  return khz && *khz > 0 ? khz : std::nullopt;
}

std::optional<double> HottestCelsius(const SysFs& sysfs) {
  const std::string folder = "sys/class/thermal/";
  std::optional<double> hottest, hottest_cpu;
  for (const std::string& zone : sysfs.Names(folder)) {
    if (zone.rfind("thermal_zone", 0) != 0) continue;
    const std::optional<int64_t> millidegrees = sysfs.Number(folder + zone + "/temp");
    // Absent sensors read as absolute zero or as a huge number.
    if (!millidegrees || *millidegrees <= -40'000 || *millidegrees > 200'000) continue;
    const double celsius = static_cast<double>(*millidegrees) / 1e3;
    hottest = std::max(hottest.value_or(celsius), celsius);
    const std::string type = sysfs.Text(folder + zone + "/type").value_or("");
    if (type.find("cpu") == std::string::npos && type.find("x86_pkg") == std::string::npos && type.find("soc") == std::string::npos) continue;
    hottest_cpu = std::max(hottest_cpu.value_or(celsius), celsius);
  }
  return hottest_cpu ? hottest_cpu : hottest;
}

}  // namespace plait
