#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "src/base/file_io.h"
#include "src/graph/builder.h"
#include "tests/partition/random_graph.h"
#include "tests/plan/test_lanes.h"

namespace plait {
namespace {

using nlohmann::json;

class PlanFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = StrCat(testing::TempDir(), "plan_file_test.", ::getpid(), ".json");
    Result<Graph> placed = Place(MakeRandomGraph(5, {.ops = 8, .channel_multiple = 16, .view_percent = 30}));
    ASSERT_TRUE(placed.ok());
    graph_ = std::move(placed).value();
    const std::vector<PlanningLane> lanes = Lanes(LaneSet::kTwoCpusGpu);
    Result<Schedule> schedule = RandomSchedule(graph_, lanes, 4);
    ASSERT_TRUE(schedule.ok());
    for (size_t p = 0; p < schedule->parts.size(); ++p) {
      schedule->parts[p].predicted_us = 0.1 * static_cast<double>(p) + 1e-7;
    }
    schedule->predicted_us = 123.456;
    schedule->lower_bound_us = 100.1;
    schedule->by_operator = true;
    Result<Plan> plan = Lower(graph_, lanes, *schedule);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    plan_ = std::move(plan).value();
    plan_.soc = "a chip, \"quoted\"\n";
    ASSERT_TRUE(SavePlan(plan_, path_).ok());
    text_ = ReadFile(path_).value();
  }
  void TearDown() override { ::unlink(path_.c_str()); }

  Result<Plan> LoadText(const std::string& text) {
    ::unlink(path_.c_str());  // some file systems flush a file that is truncated, which takes long a thousand times
    std::ofstream(path_, std::ios::binary) << text;
    return LoadPlan(graph_, path_);
  }
  // The file with its plan changed and the checksum made right, so that what lies behind it is reached.
  Result<Plan> LoadEdited(const std::function<void(json*)>& edit) {
    json file = json::parse(text_);
    edit(&file["plan"]);
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : file["plan"].dump()) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash));
    file["checksum"] = hex;
    return LoadText(file.dump());
  }
  void ExpectRefused(const std::function<void(json*)>& edit, const std::string& why) {
    const Result<Plan> plan = LoadEdited(edit);
    ASSERT_FALSE(plan.ok()) << why;
    EXPECT_EQ(plan.status().code(), PLAIT_CORRUPT);
    EXPECT_NE(plan.status().message().find(why), std::string::npos) << plan.status().message();
    EXPECT_NE(plan.status().message().find(path_), std::string::npos) << plan.status().message();
  }

  // Everything that the executor reads.
  static std::string Text(const Plan& plan) {
    std::ostringstream out;
    out << plan.schedule.by_operator << plan.graph_hash << plan.soc << plan.plait_version << plan.schedule.predicted_us << plan.schedule.lower_bound_us << plan.schedule.strategy
        << plan.program.arena_bytes << '\n';
    for (const LaneSpec& lane : plan.program.lanes) {
      out << lane.name << static_cast<int>(lane.kind) << lane.domain << lane.host << '\n';
    }
    for (const BufferSpec& buffer : plan.program.buffers) {
      out << buffer.tensor << ' ' << buffer.offset << ' ' << buffer.bytes << '\n';
    }
    auto view = [&](const View& v) { out << ' ' << v.buffer << ':' << v.tensor << ToString(v.region) << '@' << v.offset; };
    for (const std::vector<Step>& steps : plan.program.steps) {
      for (const Step& step : steps) {
        out << Name(step.kind) << step.op << step.kernel << ToString(step.region) << step.predicted_us << ' ' << step.predicted_start_us;
        for (const View& v : step.reads) view(v);
        view(step.write);
        for (const Wait& wait : step.waits) out << " after " << wait.lane << '.' << wait.steps;
        out << '\n';
      }
    }
    return out.str();
  }

  std::string path_, text_;
  Graph graph_;
  Plan plan_;
};

TEST_F(PlanFile, GivesBackTheSamePlan) {
  const Result<Plan> loaded = LoadPlan(graph_, path_);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(Text(*loaded), Text(plan_));
  ASSERT_TRUE(SavePlan(*loaded, path_).ok());
  EXPECT_EQ(ReadFile(path_).value(), text_);
}

TEST_F(PlanFile, TruncatedAnywhereIsRefused) {
  const std::string trimmed = text_.substr(0, text_.find_last_of('}') + 1);
  for (size_t n = 0; n < trimmed.size(); ++n) {
    const Result<Plan> plan = LoadText(trimmed.substr(0, n));
    ASSERT_EQ(plan.status().code(), PLAIT_CORRUPT) << "at byte " << n;
  }
}

TEST_F(PlanFile, FlippedBytesAreRefusedOrChangeNothing) {
  std::mt19937_64 random(23);
  const std::string good = Text(plan_);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = text_;
    const size_t at = static_cast<size_t>(random() % bad.size());
    bad[at] = static_cast<char>(round % 3 == 0 ? 0xff : bad[at] ^ (1 << random() % 8));
    const Result<Plan> plan = LoadText(bad);
    if (plan.ok()) {
      ASSERT_EQ(Text(*plan), good) << "byte " << at;
    } else {
      ASSERT_EQ(plan.status().code(), PLAIT_CORRUPT) << plan.status().message();
    }
  }
}

TEST_F(PlanFile, OtherFilesAreRefused) {
  EXPECT_EQ(LoadPlan(graph_, path_ + ".none").status().code(), PLAIT_NOT_FOUND);
  EXPECT_EQ(LoadPlan(graph_, testing::TempDir()).status().code(), PLAIT_IO_ERROR);
  for (const char* text : {"", "{}", "[]", "null", "{\"format\": 1}", "{\"format\": \"plait-graph\", \"version\": 1}",
                           "\x1f\x8b\x08", "{\"format\": \"plait-plan\"}",
                           "{\"format\": \"plait-plan\", \"version\": 1}", "{\"format\": \"plait-plan\", \"version\": -1}"}) {
    EXPECT_EQ(LoadText(text).status().code(), PLAIT_CORRUPT) << text;
  }
  std::string newer = text_;
  newer.replace(newer.find("\"version\": 1"), 12, "\"version\": 2");
  EXPECT_NE(LoadText(newer).status().message().find("newer Plait"), std::string::npos);
}

TEST_F(PlanFile, EditsAreNoticed) {
  json file = json::parse(text_);
  file["plan"]["predicted_us"] = 1.0;
  EXPECT_NE(LoadText(file.dump()).status().message().find("damaged or edited"), std::string::npos);
}

TEST_F(PlanFile, AnotherModelIsRefused) {
  Result<Graph> other = Place(MakeRandomGraph(6, {.ops = 8, .channel_multiple = 16}));
  ASSERT_TRUE(other.ok());
  const Status status = LoadPlan(*other, path_).status();
  EXPECT_EQ(status.code(), PLAIT_CORRUPT);
  EXPECT_NE(status.message().find("another model"), std::string::npos) << status.message();
}

TEST_F(PlanFile, WhatTheChecksumCannotSeeIsVerified) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  ExpectRefused([](json* p) { p->erase("soc"); }, "has no \"soc\"");
  ExpectRefused([](json* p) { (*p)["parts"].erase(0); }, "");
  ExpectRefused([](json* p) { (*p)["parts"].push_back((*p)["parts"][0]); }, "do not tile");
  ExpectRefused([](json* p) { (*p)["parts"] = json::array(); }, "do not tile");
  ExpectRefused([](json* p) { (*p)["parts"][0]["op"] = 99999; }, "of operator 99999");
  ExpectRefused([](json* p) { (*p)["parts"][0]["op"] = -1; }, "\"op\"");
  ExpectRefused([](json* p) { (*p)["parts"][0]["op"] = 1.5; }, "\"op\"");
  ExpectRefused([](json* p) { (*p)["parts"][0]["op"] = 18446744073709551615u; }, "\"op\"");
  ExpectRefused([](json* p) { (*p)["parts"][0]["lane"] = 17; }, "on lane 17");
  ExpectRefused([](json* p) { (*p)["parts"][0]["size"][0] = 0; }, "do not tile");
  ExpectRefused([=](json* p) { (*p)["parts"][0]["size"][0] = huge; }, "do not tile");
  ExpectRefused([=](json* p) { (*p)["parts"][0]["begin"][0] = huge; }, "do not tile");
  ExpectRefused([](json* p) { (*p)["parts"][0]["begin"] = json::array({0}); }, "do not tile");
  ExpectRefused([](json* p) { (*p)["parts"][0]["begin"] = std::vector<int>(1000, 0); }, "more than 8");
  ExpectRefused([](json* p) { (*p)["parts"][0]["kernel"] = 1000; }, "\"kernel\"");
  ExpectRefused([](json* p) { (*p)["parts"][0]["us"] = -1; }, "microseconds");
  ExpectRefused([](json* p) { (*p)["kernels"][0] = 1; }, "kernel's name");
  ExpectRefused([](json* p) { (*p)["order"][0] = 1; }, "list of lists");
  ExpectRefused([](json* p) { (*p)["order"].erase(0); }, "3");
  ExpectRefused([](json* p) { (*p)["order"][0].push_back(99999); }, "99999");
  ExpectRefused([](json* p) { (*p)["lanes"].erase(2); }, "2");
  ExpectRefused([](json* p) { (*p)["lanes"] = json::array(); }, "lanes");
  ExpectRefused([](json* p) { (*p)["lanes"] = std::vector<json>(1000, (*p)["lanes"][0]); }, "lanes");
  ExpectRefused([](json* p) { (*p)["lanes"][1]["name"] = "cpu0"; }, "named 'cpu0'");
  ExpectRefused([](json* p) { (*p)["lanes"][0]["kind"] = "npu"; }, "npu");
  ExpectRefused([](json* p) { (*p)["lanes"][2]["domain"] = 0; }, "domain 0");
  ExpectRefused([](json* p) { (*p)["lanes"][2]["host"] = 7; }, "lane 7");
  ExpectRefused(
      [](json* p) {
        for (json& lane : (*p)["order"]) std::reverse(lane.begin(), lane.end());
      },
      "contradicts the graph");
}

TEST_F(PlanFile, AFailedSaveLeavesTheOldFile) {
  EXPECT_FALSE(SavePlan(plan_, "/nonexistent/folder/plan.json").ok());
  EXPECT_TRUE(LoadPlan(graph_, path_).ok());
}

}  // namespace
}  // namespace plait
