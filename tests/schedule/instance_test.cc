#include "src/schedule/instance.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/schedule/timeline.h"

namespace plait {
namespace {

// Four operators on two devices: a feeds b and c, both feed d.
const char kDiamond[] = R"({"format":"plait-instance","version":1,"name":"t",
  "devices":[{"name":"gpu","kind":"gpu"},{"name":"big","kind":"cpu"}],
  "entry_us":[5,0],"exit_us":[7,0],"sync_us":[[0,10],[20,0]],"ps_per_byte":[[0,100],[200,0]],
  "contention":{"slow":[[0,1.0],[1.0,0]]},
  "profiles":[{"units":4,"us":[[10,12,14,20.5],[8,16,24,32]],"mem":[1,1]},{"units":1,"us":[null,[3.5]]}],
  "ops":[{"name":"a","type":"conv","profile":0,"out_bytes":4000,"inputs":[]},
         {"name":"b","type":"conv","profile":0,"out_bytes":4000,"inputs":[0]},
         {"name":"c","type":"conv","profile":0,"out_bytes":4000,"inputs":[0]},
         {"name":"d","type":"add","profile":1,"out_bytes":4000,"inputs":[1,2]}]})";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string ScheduleWith(const std::string& lanes) {
  return R"({"format":"plait-schedule","version":1,"instance":"t","lanes":)" + lanes + "}";
}

class Diamond : public ::testing::Test {
 protected:
  void SetUp() override {
    auto parsed = ParseInstance(kDiamond, "diamond");
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    problem_ = std::move(parsed).value();
  }
  // Expected values are worked out by hand from PROBLEM.md's rules.
  void ExpectMakespan(const std::string& lanes, Tick ticks) {
    auto schedule = ParseSchedule(problem_, ScheduleWith(lanes), "schedule");
    ASSERT_TRUE(schedule.ok()) << schedule.status().message();
    EXPECT_EQ(schedule->makespan, ticks);
  }
  void ExpectRefused(const std::string& lanes, const std::string& why) {
    auto schedule = ParseSchedule(problem_, ScheduleWith(lanes), "schedule");
    ASSERT_FALSE(schedule.ok());
    EXPECT_NE(schedule.status().message().find(why), std::string::npos) << schedule.status().message();
  }
  Problem problem_;
};

TEST_F(Diamond, EverythingOnOneLane) { ExpectMakespan(R"({"big":[[0,4],[1,4],[2,4],[3,1]]})", 995); }

TEST_F(Diamond, WholeOperatorsOnTwoLanes) {
  // a: 5..25.5 on the gpu; b: ..46; c on big from 25.5 + 10 + 0.4 = 35.9 to 67.9; d to 71.4.
  ExpectMakespan(R"({"gpu":[[0,4],[1,4]],"big":[[2,4],[3,1]]})", 714);
}

TEST_F(Diamond, SplitOperator) {
  // a: 5..17 and 0..16; b on the gpu from 36.4 to 56.9; c on big from 27.2 to 59.2; d waits for b: 67.3.
  ExpectMakespan(R"({"gpu":[[0,2],[1,4]],"big":[[0,2],[2,4],[3,1]]})", 708);
}

TEST_F(Diamond, RefusesSchedulesThatBreakTheRules) {
  ExpectRefused(R"({"gpu":[[0,4],[1,4]],"big":[[3,1],[2,4]]})", "waits for ever");
  ExpectRefused(R"({"big":[[0,4],[2,4],[3,1]]})", "0 of 4 units");
  ExpectRefused(R"({"big":[[0,4],[1,4],[2,4]],"gpu":[[3,1]]})", "cannot run");
  ExpectRefused(R"({"big":[[0,5],[1,4],[2,4],[3,1]]})", "5 units are outside");
  ExpectRefused(R"({"big":[[0,2],[0,2],[1,4],[2,4],[3,1]]})", "twice");
  ExpectRefused(R"({"npu":[[0,4]]})", "no device \"npu\"");
  ExpectRefused(R"({"big":[[0.5,4]]})", "not an integer");
}

TEST_F(Diamond, RefusesAFalseClaim) {
  const std::string text = R"({"format":"plait-schedule","version":1,"instance":"t","makespan_us":99.4,"lanes":{"big":[[0,4],[1,4],[2,4],[3,1]]}})";
  auto schedule = ParseSchedule(problem_, text, "schedule");
  ASSERT_FALSE(schedule.ok());
  EXPECT_NE(schedule.status().message().find("99.4"), std::string::npos);
}

TEST_F(Diamond, ScheduleFilesRoundTrip) {
  auto schedule = ParseSchedule(problem_, ScheduleWith(R"({"gpu":[[0,2],[1,4]],"big":[[0,2],[2,4],[3,1]]})"), "schedule");
  ASSERT_TRUE(schedule.ok());
  auto again = ParseSchedule(problem_, ScheduleText(problem_, *schedule), "again");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->order, schedule->order);
  EXPECT_EQ(again->makespan, 708);
}

TEST_F(Diamond, InstanceFilesRoundTrip) {
  auto text = InstanceText(problem_);
  ASSERT_TRUE(text.ok()) << text.status().message();
  auto again = ParseInstance(*text, "again");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(*InstanceText(*again), *text);
}

TEST_F(Diamond, ContentionStretchesPartsThatShareMemory) {
  Problem two = problem_;
  two.ops.resize(2);
  two.ops[1].inputs.clear();
  two.entry = two.exit = {0, 0};
  auto schedule = ParseSchedule(two, ScheduleWith(R"({"gpu":[[0,4]],"big":[[1,4]]})"), "schedule");
  ASSERT_TRUE(schedule.ok()) << schedule.status().message();
  auto contended = EvaluateContended(two, *schedule);
  ASSERT_TRUE(contended.ok());
  // Half speed each until the gpu is done at 41; big has 11.5 us left then.
  EXPECT_NEAR(contended->makespan_us, 52.5, 1e-6);
}

TEST_F(Diamond, BadInstancesAreRefusedWithTheirPlace) {
  const struct {
    const char *from, *to, *why;
  } cases[] = {
      {"\"version\":1", "\"version\":2", "version"},
      {"\"format\":\"plait-instance\"", "\"format\":\"other\"", "format"},
      {"\"inputs\":[0]}", "\"inputs\":[3]}", "ops[1]"},
      {"\"inputs\":[]}", "\"inputs\":[0]}", "ops[0]"},
      {"\"inputs\":[1,2]}", "\"inputs\":[1,1]}", "twice"},
      {"\"inputs\":[1,2]}", "\"inputs\":[1,1.5]}", "ops[3]"},
      {"\"entry_us\":[5,0]", "\"entry_us\":[0.05,0]", "multiple of 0.1"},
      {"\"entry_us\":[5,0]", "\"entry_us\":[-1,0]", "entry_us[0]"},
      {"\"entry_us\":[5,0]", "\"entry_us\":[5]", "entry_us"},
      {"\"sync_us\":[[0,10],[20,0]]", "\"sync_us\":[[0,10],[20,1]]", "sync"},
      {"\"sync_us\":[[0,10],[20,0]]", "\"sync_us\":[[0,10]]", "sync_us"},
      {"\"ps_per_byte\":[[0,100],[200,0]]", "\"ps_per_byte\":[[0,-1],[200,0]]", "ps_per_byte[0][1]"},
      {"[10,12,14,20.5]", "[10,12,14]", "profiles[0]"},
      {"[10,12,14,20.5]", "[10,12,14,0]", "us[0][3]"},
      {"[10,12,14,20.5]", "[10,12,14,-3]", "us[0][3]"},
      {"[10,12,14,20.5]", "[10,12,14,1e300]", "us[0][3]"},
      {"[10,12,14,20.5]", "[10,12,14,\"x\"]", "us[0][3]"},
      {"[null,[3.5]]", "[null,null]", "no device can run it"},
      {"\"units\":4", "\"units\":65", "units"},
      {"\"units\":4", "\"units\":0", "units"},
      {"\"profile\":1", "\"profile\":2", "ops[3]: profile"},
      {"\"out_bytes\":4000", "\"out_bytes\":-4", "ops[0]: out_bytes"},
      {"\"out_bytes\":4000", "\"out_bytes\":18446744073709551615", "ops[0]: out_bytes"},
      {"{\"name\":\"big\",\"kind\":\"cpu\"}", "{\"name\":\"gpu\",\"kind\":\"cpu\"}", "called \"gpu\""},
      {"\"mem\":[1,1]", "\"mem\":[1,2]", "mem[1]"},
      {"[1.0,0]]}", "[1.0]]}", "contention"},
      {"\"name\":\"t\"", "\"name\":\"t\",\"name\":\"t\"", "twice"},
      {"\"profile\":0", "\"profile\":NaN", "JSON"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(StrCat(c.from, " -> ", c.to));
    auto parsed = ParseInstance(Replaced(kDiamond, c.from, c.to), "bad.json");
    ASSERT_FALSE(parsed.ok());
    EXPECT_NE(parsed.status().message().find("bad.json"), std::string::npos) << parsed.status().message();
    EXPECT_NE(parsed.status().message().find(c.why), std::string::npos) << parsed.status().message();
  }
}

TEST(Instance, UnknownKeysAreIgnored) {
  EXPECT_TRUE(ParseInstance(Replaced(kDiamond, "\"name\":\"t\"", "\"later\":[{}],\"name\":\"t\""), "x").ok());
}

}  // namespace
}  // namespace plait
