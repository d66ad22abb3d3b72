#include "src/platform/topology.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "src/platform/affinity.h"
#include "src/platform/cpu_list.h"

namespace plait {
namespace {

// A root folder with files of the test's choice.
class Tree {
 public:
  Tree() {
    char name[] = "/tmp/plait_sysfs_XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~Tree() { std::filesystem::remove_all(root_); }
  Tree& Put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return *this;
  }
  Tree& Cpu(int id, const std::string& file, const std::string& text) {
    return Put("sys/devices/system/cpu/cpu" + std::to_string(id) + "/" + file, text + "\n");
  }
  const std::filesystem::path& root() const { return root_; }
  SysFs sysfs() const { return SysFs(root_); }

 private:
  std::filesystem::path root_;
};

std::string Shape(const Topology& topology) {
  std::string out;
  for (const Cluster& cluster : topology.clusters) {
    if (!out.empty()) out += '/';
    out += FormatCpuList(cluster.cpus);
  }
  return out;
}

// 1 + 3 + 4 cores, as on many phones.
void MakePhone(Tree* tree) {
  tree->Put("sys/devices/system/cpu/online", "0-7\n").Put("sys/devices/system/cpu/possible", "0-7\n");
  for (int id = 0; id < 8; ++id) {
    const bool little = id < 4, prime = id == 7;
    tree->Cpu(id, "cpu_capacity", little ? "325" : prime ? "1024" : "800");
    tree->Cpu(id, "cpufreq/cpuinfo_max_freq", little ? "1804800" : prime ? "2995200" : "2496000");
    tree->Cpu(id, "cpufreq/related_cpus", little ? "0 1 2 3" : prime ? "7" : "4 5 6");
    tree->Cpu(id, "topology/physical_package_id", "0");
  }
}

TEST(Topology, PhoneHasThreeClustersStrongestFirst) {
  Tree tree;
  MakePhone(&tree);
  const Topology topology = ReadTopology(tree.sysfs(), {});
  EXPECT_EQ(Shape(topology), "4-6/0-3/7");
  EXPECT_EQ(topology.clusters[0].capacity, 800);
  EXPECT_EQ(topology.clusters[2].max_khz, 2995200);
}

TEST(Topology, OnlyAllowedCoresCount) {
  Tree tree;
  MakePhone(&tree);
  EXPECT_EQ(Shape(ReadTopology(tree.sysfs(), std::vector<int>{0, 5, 7})), "7/5/0");
  // A mask that the files know nothing of: the kernel's word counts.
  EXPECT_EQ(Shape(ReadTopology(tree.sysfs(), std::vector<int>{40, 41})), "40-41");
}

TEST(Topology, ClockDomainsPartEqualCores) {
  Tree tree;
  tree.Put("sys/devices/system/cpu/online", "0-7");
  for (int id = 0; id < 8; ++id) {
    tree.Cpu(id, "cpufreq/cpuinfo_max_freq", "1500000").Cpu(id, "cpufreq/related_cpus", id < 4 ? "0-3" : "4-7");
  }
  EXPECT_EQ(Shape(ReadTopology(tree.sysfs(), {})), "0-3/4-7");
}

TEST(Topology, PrivateClockDomainsDoNotPartCores) {
  Tree tree;
  tree.Put("sys/devices/system/cpu/online", "0-5");
  // Two favoured cores with a higher turbo; then two weak ones.
  const char* clocks[] = {"5200000", "5200000", "5000000", "5000000", "3900000", "3900000"};
  for (int id = 0; id < 6; ++id) {
    tree.Cpu(id, "cpufreq/cpuinfo_max_freq", clocks[id]).Cpu(id, "cpufreq/related_cpus", std::to_string(id));
  }
  EXPECT_EQ(Shape(ReadTopology(tree.sysfs(), {})), "0-3/4-5");
}

TEST(Topology, PackagesPartCores) {
  Tree tree;
  tree.Put("sys/devices/system/cpu/online", "0-3");
  for (int id = 0; id < 4; ++id) tree.Cpu(id, "topology/physical_package_id", id % 2 == 0 ? "0" : "1");
  EXPECT_EQ(Shape(ReadTopology(tree.sysfs(), {})), "0,2/1,3");
}

TEST(Topology, KernelClustersCountWhereNothingElseTellsCoresApart) {
  Tree tree;
  tree.Put("sys/devices/system/cpu/online", "0-3");
  for (int id = 0; id < 4; ++id) {
    tree.Cpu(id, "topology/cluster_cpus_list", id < 2 ? "0-1" : "2-3").Cpu(id, "topology/thread_siblings_list", std::to_string(id));
  }
  EXPECT_EQ(Shape(ReadTopology(tree.sysfs(), {})), "0-1/2-3");
  // Threads of one core are no cluster.
  for (int id = 0; id < 4; ++id) tree.Cpu(id, "topology/thread_siblings_list", id < 2 ? "0-1" : "2-3");
  EXPECT_EQ(Shape(ReadTopology(tree.sysfs(), {})), "0-3");
}

TEST(Topology, HolesAndLargeIds) {
  Tree tree;
  tree.Put("sys/devices/system/cpu/online", "0,64,100,1500\n");
  for (int id : {0, 64, 100, 1500}) tree.Cpu(id, "cpu_capacity", id < 100 ? "1024" : "512");
  EXPECT_EQ(Shape(ReadTopology(tree.sysfs(), {})), "0,64/100,1500");
}

TEST(Topology, EmptyMachineHasOneCore) {
  Tree tree;
  const Topology topology = ReadTopology(tree.sysfs(), {});
  EXPECT_EQ(Shape(topology), "0");
  EXPECT_EQ(topology.cpu, "unknown processor");
  EXPECT_EQ(topology.cores[0].l2_bytes, 0);
}

TEST(Topology, FoldersStandInForDamagedLists) {
  Tree tree;
  tree.Put("sys/devices/system/cpu/online", "0-3,5-\n").Put("sys/devices/system/cpu/possible", std::string("\x7f\x00\xff", 3));
  for (int id : {0, 1, 10}) tree.Cpu(id, "cpu_capacity", "1024");
  tree.Put("sys/devices/system/cpu/cpufreq/x", "").Put("sys/devices/system/cpu/cpuidle/x", "");
  EXPECT_EQ(Shape(ReadTopology(tree.sysfs(), {})), "0-1,10");
}

TEST(Topology, ReadsNamesAndCaches) {
  Tree tree;
  tree.Put("sys/devices/system/cpu/online", "0-1").Put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some Core v3\n");
  tree.Cpu(0, "cache/index0/level", "1").Cpu(0, "cache/index0/size", "32K");
  tree.Cpu(0, "cache/index2/level", "2").Cpu(0, "cache/index2/size", "512K").Cpu(0, "cache/index2/shared_cpu_list", "0-1");
  tree.Cpu(1, "cache/index2/level", "2").Cpu(1, "cache/index2/size", "much");
  const Topology topology = ReadTopology(tree.sysfs(), {});
  EXPECT_EQ(topology.cpu, "Some Core v3");
  EXPECT_EQ(topology.cores[0].l2_bytes, 512 << 10);
  EXPECT_EQ(topology.cores[0].l2_sharers, 2);
  EXPECT_EQ(topology.cores[1].l2_bytes, 0);
}

TEST(Topology, SurvivesAnyTextInAnyFile) {
  std::mt19937 random(11);
  SCOPED_TRACE("seed 11");
  const std::vector<std::string> texts = {"", "\n", "0-3,5-", "7-2", "4294967295", "-1", "9223372036854775808", "512K", "0-65535",
                                          std::string("\x00\xff\x80", 3), std::string(1 << 20, '7'), "0 1 2 3", "0-3"};
  const std::vector<std::string> files = {"cpu_capacity", "cpufreq/cpuinfo_max_freq", "cpufreq/related_cpus", "topology/physical_package_id",
                                          "topology/cluster_cpus_list", "topology/thread_siblings_list", "cache/index2/level",
                                          "cache/index2/size", "cache/index2/shared_cpu_list"};
  for (int round = 0; round < 30; ++round) {
    Tree tree;
    for (int id = 0; id < 4; ++id) {
      for (const std::string& file : files) {
        if (random() % 4 != 0) tree.Cpu(id, file, texts[random() % texts.size()]);
      }
    }
    tree.Put("sys/devices/system/cpu/online", texts[random() % texts.size()]);
    tree.Put("proc/cpuinfo", texts[random() % texts.size()]);
    // Within a mask, as the process has one: garbage may claim 65,536 cores.
    const Topology topology = ReadTopology(tree.sysfs(), std::vector<int>{0, 1, 2, 3});
    size_t cores = 0;
    for (const Cluster& cluster : topology.clusters) cores += cluster.cpus.size();
    EXPECT_EQ(cores, topology.cores.size());
    EXPECT_GE(cores, 1u);
  }
}

TEST(SysFsTest, OddFilesAreUnknown) {
  Tree tree;
  tree.Put("folder/file", "12x").Put("long", std::string(1 << 20, '1'));
  ASSERT_EQ(::mkfifo((tree.root() / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink(tree.root() / "loop", tree.root() / "loop");
  const SysFs sysfs = tree.sysfs();
  EXPECT_EQ(sysfs.Text("none"), std::nullopt);
  EXPECT_EQ(sysfs.Text("folder"), std::nullopt);
  EXPECT_EQ(sysfs.Text("loop"), std::nullopt);
  EXPECT_EQ(sysfs.Number("folder/file"), std::nullopt);
  EXPECT_EQ(sysfs.Number("fifo"), std::nullopt);
  EXPECT_EQ(sysfs.Text("long")->size(), 64u << 10);
  EXPECT_TRUE(sysfs.Names("none").empty());
}

TEST(Readers, UnknownWithoutFiles) {
  Tree tree;
  EXPECT_EQ(CurrentKhz(tree.sysfs(), 0), std::nullopt);
  EXPECT_EQ(HottestCelsius(tree.sysfs()), std::nullopt);
  tree.Cpu(0, "cpufreq/scaling_cur_freq", "1200000");
  tree.Put("sys/class/thermal/thermal_zone0/temp", "61000\n").Put("sys/class/thermal/thermal_zone0/type", "battery\n");
  tree.Put("sys/class/thermal/thermal_zone1/temp", "48500\n").Put("sys/class/thermal/thermal_zone1/type", "cpu-1-0\n");
  tree.Put("sys/class/thermal/thermal_zone2/temp", "-274000\n").Put("sys/class/thermal/thermal_zone2/type", "cpu-1-1\n");
  EXPECT_EQ(CurrentKhz(tree.sysfs(), 0), 1200000);
  EXPECT_EQ(HottestCelsius(tree.sysfs()), 48.5);
}

TEST(Affinity, SetAndReadBack) {
  const std::vector<int> before = ThreadAffinity();
  ASSERT_FALSE(before.empty());
  ASSERT_TRUE(SetThreadAffinity(std::vector<int>{before.back()}).ok());
  EXPECT_EQ(ThreadAffinity(), std::vector<int>{before.back()});
  // The kernel drops cores that it does not have.
  ASSERT_TRUE(SetThreadAffinity(std::vector<int>{before.front(), 60000}).ok());
  EXPECT_EQ(ThreadAffinity(), std::vector<int>{before.front()});
  ASSERT_TRUE(SetThreadAffinity(before).ok());
  EXPECT_EQ(ThreadAffinity(), before);
}

TEST(Affinity, RefusesCoresThatCannotBeHad) {
  const std::vector<int> before = ThreadAffinity();
  const Status status = SetThreadAffinity(std::vector<int>{60000});
  EXPECT_EQ(status.code(), PLAIT_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("60000"), std::string::npos);
  EXPECT_FALSE(SetThreadAffinity({}).ok());
  EXPECT_FALSE(SetThreadAffinity(std::vector<int>{-1}).ok());
  EXPECT_EQ(ThreadAffinity(), before);
}

}  // namespace
}  // namespace plait
