// Lanes that sleep between inferences are woken for each: by the caller, by their peers, and by sessions that take turns on the same threads.
#include <gtest/gtest.h>

#include <thread>

#include "src/platform/affinity.h"
#include "src/runtime/session.h"
#include "tests/runtime/fakes.h"

namespace plait {
namespace {

using testing::FakeBackend;
using testing::FakeGpuLane;
using testing::FillInput;
using testing::MakeCpuLane;
using testing::Output;
using testing::ProgramMaker;

// An inference takes microseconds: one whose lane sleeps on is ended by this, as a failure and not as a hang.
constexpr double kTimeoutUs = 20e6;

// Lanes 0 and 2 share a core, lane 1 has another where there is one, so that some are late.
std::vector<std::shared_ptr<Lane>> ThreeCpuLanes() {
  const std::vector<int> cores = ThreadAffinity();
  std::vector<std::shared_ptr<Lane>> lanes;
  for (const char* name : {"cpu0", "cpu1", "cpu2"}) {
    lanes.push_back(MakeCpuLane(name, {std::make_shared<FakeBackend>()}, {lanes.size() == 1 ? cores.front() : cores.back()}));
  }
  return lanes;
}

// input -> one operator on every lane in turn, `rounds` times over; the last one makes the output, input + rounds * lanes.
void MakeRing(ProgramMaker* maker, const std::vector<std::shared_ptr<Lane>>& lanes, int rounds) {
  std::vector<LaneId> ids;
  for (const auto& lane : lanes) ids.push_back(maker->Lane(lane->name(), lane->kind()));
  TensorId t = maker->Input();
  LaneId before = -1;
  const int count = rounds * static_cast<int>(ids.size());
  for (int i = 0; i < count; ++i) {
    const LaneId lane = ids[static_cast<size_t>(i) % ids.size()];
    std::vector<Wait> waits;
    if (before >= 0 && before != lane) waits.push_back({before, maker->Count(before)});
    t = maker->Op(lane, {t}, waits, i + 1 == count);
    before = lane;
  }
}

std::unique_ptr<Session> Open(const ProgramMaker& maker, const std::vector<std::shared_ptr<Lane>>& lanes, double idle_spin_us) {
  SessionOptions options;
  options.idle_spin_us = idle_spin_us;
  options.timeout_us = kTimeoutUs;
  Result<std::unique_ptr<Session>> session = Session::Create(maker.graph(), maker.plan(), lanes, options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.ok() ? std::move(session).value() : nullptr;
}

TEST(WakeUps, LatePeersOfTheInferenceBeforeSwallowNone) {
  for (const double spin_us : {0.0, 5.0}) {
    SCOPED_TRACE(spin_us);
    const auto lanes = ThreeCpuLanes();
    ProgramMaker maker;
    MakeRing(&maker, lanes, 1);
    const auto session = Open(maker, lanes, spin_us);
    ASSERT_NE(session, nullptr);
    for (int run = 0; run < 5000; ++run) {
      const Status status = session->Run();
      ASSERT_TRUE(status.ok()) << "run " << run << ": " << status.message();
    }
  }
}

// Runs until `runs` inferences succeeded; the lanes may be another session's meanwhile. The first failure, or ok.
Status RunShared(Session* session, int runs, float expected) {
  FillInput(session, 0, 1.0f);
  for (int done = 0; done < runs;) {
    const Status status = session->Run();
    if (status.code() == PLAIT_BUSY) {
      std::this_thread::yield();
      continue;
    }
    if (!status.ok()) return status;
    const float result = Output(*session)[0];
    if (result != expected) return Internal("run ", done, ": ", result, " instead of ", expected);
    ++done;
  }
  return Status();
}

// Two threads with a session each, whose lanes are partly the same threads.
void RunTwo(const std::vector<std::shared_ptr<Lane>>& first_lanes, const std::vector<std::shared_ptr<Lane>>& second_lanes, double idle_spin_us) {
  constexpr int kRuns = 300;
  ProgramMaker first, second;
  MakeRing(&first, first_lanes, 1);
  MakeRing(&second, second_lanes, 2);
  const auto one = Open(first, first_lanes, idle_spin_us), two = Open(second, second_lanes, idle_spin_us);
  ASSERT_TRUE(one && two);
  Status of_two;
  std::thread other([&] { of_two = RunShared(two.get(), kRuns, 1.0f + 2.0f * static_cast<float>(second_lanes.size())); });
  const Status of_one = RunShared(one.get(), kRuns, 1.0f + static_cast<float>(first_lanes.size()));
  other.join();
  EXPECT_TRUE(of_one.ok()) << of_one.message();
  EXPECT_TRUE(of_two.ok()) << of_two.message();
}

TEST(WakeUps, SessionsOfTwoThreadsOverTheSameLanesLoseNone) {
  for (const double spin_us : {0.0, 5.0}) {
    SCOPED_TRACE(spin_us);
    const auto lanes = ThreeCpuLanes();
    RunTwo(lanes, lanes, spin_us);
  }
}

TEST(WakeUps, SessionsThatShareOneLaneOfSeveralLoseNone) {
  const auto lanes = ThreeCpuLanes();
  RunTwo({lanes[0], lanes[1]}, {lanes[2], lanes[1]}, 0);
  RunTwo({lanes[0], lanes[1], lanes[2]}, {lanes[1]}, 0);
}

TEST(WakeUps, AGpuLanesOwnThreadLosesNone) {
  auto lanes = ThreeCpuLanes();
  lanes[2] = std::make_shared<FakeGpuLane>("gpu0", std::make_shared<FakeBackend>(), FakeGpuLane::Options{});
  RunTwo(lanes, {lanes[0], lanes[2]}, 0);
}

}  // namespace
}  // namespace plait
