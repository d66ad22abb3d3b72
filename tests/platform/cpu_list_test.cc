#include "src/platform/cpu_list.h"

#include <gtest/gtest.h>

#include <random>

namespace plait {
namespace {

TEST(CpuList, ReadsWhatTheKernelWrites) {
  EXPECT_EQ(*ParseCpuList("0-3,5\n"), (std::vector<int>{0, 1, 2, 3, 5}));
  EXPECT_EQ(*ParseCpuList("7"), std::vector<int>{7});
  EXPECT_EQ(*ParseCpuList("5,1-2,2"), (std::vector<int>{1, 2, 5}));
  EXPECT_EQ(*ParseCpuList("1023-1025"), (std::vector<int>{1023, 1024, 1025}));
  EXPECT_EQ(*ParseCpuList("65535"), std::vector<int>{65535});
  EXPECT_TRUE(ParseCpuList("")->empty());
  EXPECT_TRUE(ParseCpuList("\n")->empty());
}

TEST(CpuList, RefusesGarbageAndQuotesIt) {
  for (const char* text : {"0-3,5-", "7-2", "4294967295", "65536", "-1", "a", "1,,2", ",", "1 2", "0x1", "+1", "1-2-3", "99999999999999999999"}) {
    const Result<std::vector<int>> cpus = ParseCpuList(text);
    ASSERT_FALSE(cpus.ok()) << text;
    EXPECT_EQ(cpus.status().code(), PLAIT_INVALID_ARGUMENT);
    EXPECT_NE(cpus.status().message().find(text), std::string::npos) << cpus.status().message();
  }
  const std::string binary("\x01\xff\x00 9", 5);
  EXPECT_FALSE(ParseCpuList(binary).ok());
  const Result<std::vector<int>> huge = ParseCpuList(std::string(1 << 20, '1'));
  ASSERT_FALSE(huge.ok());
  EXPECT_LT(huge.status().message().size(), 500u);
}

TEST(CpuList, FormatAndParseAreInverse) {
  std::mt19937 random(7);
  SCOPED_TRACE("seed 7");
  for (int round = 0; round < 200; ++round) {
    std::vector<int> cpus;
    for (int id = 0; id < 80; ++id) {
      if (random() % 3 != 0) cpus.push_back(id + (round % 2) * 1000);
    }
    EXPECT_EQ(*ParseCpuList(FormatCpuList(cpus)), cpus) << FormatCpuList(cpus);
  }
  EXPECT_EQ(FormatCpuList(std::vector<int>{0, 1, 2, 5}), "0-2,5");
  EXPECT_EQ(FormatCpuList({}), "");
}

TEST(Clusters, KeepTheirOrder) {
  const Result<std::vector<std::vector<int>>> clusters = ParseClusters("4-6/0-3/7");
  ASSERT_TRUE(clusters.ok()) << clusters.status().message();
  EXPECT_EQ(*clusters, (std::vector<std::vector<int>>{{4, 5, 6}, {0, 1, 2, 3}, {7}}));
}

TEST(Clusters, RefuseEmptyAndOverlapping) {
  for (const char* text : {"", "/", "0/", "0//1", "0-3/3", "0/x"}) {
    const Result<std::vector<std::vector<int>>> clusters = ParseClusters(text);
    ASSERT_FALSE(clusters.ok()) << text;
    EXPECT_EQ(clusters.status().code(), PLAIT_INVALID_ARGUMENT);
  }
  EXPECT_NE(ParseClusters("0-3/3").status().message().find("core 3 twice"), std::string::npos);
}

}  // namespace
}  // namespace plait
