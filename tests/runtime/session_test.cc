#include "src/runtime/session.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <latch>
#include <random>
#include <set>
#include <thread>

#include "src/base/log.h"
#include "src/platform/affinity.h"
#include "tests/runtime/fakes.h"

namespace plait {
namespace {

using testing::FakeBackend;
using testing::FakeBackendOptions;
using testing::FakeGpuLane;
using testing::FillInput;
using testing::MakeCpuLane;
using testing::Output;
using testing::ProgramMaker;

std::unique_ptr<Session> Open(const ProgramMaker& maker, std::vector<std::shared_ptr<Lane>> lanes, const SessionOptions& options = {}) {
  Result<std::unique_ptr<Session>> session = Session::Create(maker.graph(), maker.plan(), std::move(lanes), options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.ok() ? std::move(session).value() : nullptr;
}

// input -> n operators, each adds one, on one lane.
void MakeChain(ProgramMaker* maker, LaneId lane, int n) {
  TensorId t = maker->Input();
  for (int i = 0; i < n; ++i) t = maker->Op(lane, {t}, {}, i + 1 == n);
}

// Stops a backend inside a kernel until it is opened.
class Gate {
 public:
  Status Pass() {
    entered_.count_down();
    opened_.get_future().wait();
    return Status();
  }
  void AwaitEntry() { entered_.wait(); }
  void Open() { opened_.set_value(); }

 private:
  std::latch entered_{1};
  std::promise<void> opened_;
};

TEST(Session, RunsAChainAgainAndAgain) {
  ProgramMaker maker;
  const LaneId cpu0 = maker.Lane("cpu0");
  MakeChain(&maker, cpu0, 20);
  auto backend = std::make_shared<FakeBackend>();
  auto session = Open(maker, {MakeCpuLane("cpu0", {backend})});
  ASSERT_NE(session, nullptr);
  for (int run = 0; run < 100; ++run) {
    FillInput(session.get(), 0, static_cast<float>(run));
    ASSERT_TRUE(session->Run().ok());
    ASSERT_EQ(Output(*session)[3], static_cast<float>(run) + 3 + 20);
  }
  EXPECT_EQ(session->reports()[0].compute_steps, 20);
  EXPECT_EQ(session->reports()[0].reference_steps, 0);
  // One thread made the context and ran the kernels, and it is not the caller's.
  EXPECT_EQ(backend->context_thread_id, backend->run_thread_id.load());
  EXPECT_NE(backend->run_thread_id.load(), std::this_thread::get_id());
}

TEST(Session, LanesWaitForEachOther) {
  // Two lanes hand a value to and fro; any missing order gives another sum.
  ProgramMaker maker;
  const LaneId a = maker.Lane("cpu0"), b = maker.Lane("cpu1");
  TensorId t = maker.Input();
  constexpr int kTurns = 50;
  for (int i = 0; i < kTurns; ++i) {
    t = maker.Op(a, {t}, i == 0 ? std::vector<Wait>{} : std::vector<Wait>{{b, i}});
    t = maker.Op(b, {t}, {{a, i + 1}}, i + 1 == kTurns);
  }
  auto session = Open(maker, {MakeCpuLane("cpu0", {std::make_shared<FakeBackend>()}), MakeCpuLane("cpu1", {std::make_shared<FakeBackend>()})});
  ASSERT_NE(session, nullptr);
  for (int run = 0; run < 20; ++run) {
    FillInput(session.get(), 0, static_cast<float>(run));
    ASSERT_TRUE(session->Run().ok());
    ASSERT_EQ(Output(*session)[0], static_cast<float>(run) + 2 * kTurns);
  }
}

TEST(Session, RandomProgramsGiveTheSerialResult) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    ProgramMaker maker(4);
    const int lane_count = 1 + static_cast<int>(random() % 3);
    std::vector<std::shared_ptr<Lane>> lanes;
    for (int l = 0; l < lane_count; ++l) {
      maker.Lane("cpu" + std::to_string(l));
      lanes.push_back(MakeCpuLane("cpu" + std::to_string(l), {std::make_shared<FakeBackend>()}));
    }
    struct Made {
      TensorId tensor;
      LaneId lane;
      int64_t step;
      float value;
    };
    std::vector<Made> made = {{maker.Input(), -1, 0, 1.0f}};
    for (int i = 0; i < 40; ++i) {
      const LaneId lane = static_cast<LaneId>(random() % static_cast<uint32_t>(lane_count));
      const Made x = made[random() % made.size()], y = made[random() % made.size()];
      std::vector<Wait> waits;
      for (const Made& m : {x, y}) {
        if (m.lane >= 0 && m.lane != lane) waits.push_back({m.lane, m.step});
      }
      // Scaled down by nothing, sums stay exact in floats for this depth: values are capped by taking fresh inputs.
      const bool is_large = x.value + y.value > 1e6f;
      const TensorId out = is_large ? maker.Op(lane, {made[0].tensor}) : maker.Op(lane, {x.tensor, y.tensor}, waits);
      made.push_back({out, lane, maker.Count(lane), is_large ? 2.0f : x.value + y.value + 1.0f});
    }
    // Everything into one output.
    std::vector<Wait> all;
    for (LaneId l = 1; l < lane_count; ++l) all.push_back({l, maker.Count(l)});
    std::erase_if(all, [](const Wait& wait) { return wait.steps == 0; });
    float sum = 0.0f;
    TensorId total = made[0].tensor;
    sum = 1.0f;
    for (size_t i = 1; i < made.size(); ++i) {
      if (sum + made[i].value > 8e6f) break;
      total = maker.Op(0, {total, made[i].tensor}, i == 1 ? all : std::vector<Wait>{});
      sum += made[i].value + 1.0f;
    }
    maker.Op(0, {total}, {}, true);
    auto session = Open(maker, lanes);
    ASSERT_NE(session, nullptr);
    for (int run = 0; run < 5; ++run) {
      FillInput(session.get(), 0, 1.0f);
      ASSERT_TRUE(session->Run().ok());
      ASSERT_EQ(Output(*session)[0], sum + 1.0f);
    }
  }
}

TEST(Session, ACpuLaneHostsAGpuLane) {
  ProgramMaker maker;
  const LaneId cpu = maker.Lane("cpu0"), gpu = maker.Lane("gpu0", LaneKind::kGpu, 0);
  TensorId x = maker.Op(cpu, {maker.Input()});
  TensorId y = maker.Op(gpu, {x}, {{cpu, 1}});
  TensorId z = maker.Op(cpu, {x});
  maker.Op(cpu, {y, z}, {{gpu, 1}}, true);
  auto backend = std::make_shared<FakeBackend>();
  auto gpu_lane = std::make_shared<FakeGpuLane>("gpu0", std::make_shared<FakeBackend>(), FakeGpuLane::Options{});
  auto session = Open(maker, {MakeCpuLane("cpu0", {backend}), gpu_lane});
  ASSERT_NE(session, nullptr);
  for (int run = 0; run < 10; ++run) {
    FillInput(session.get(), 0, 5.0f);
    ASSERT_TRUE(session->Run().ok());
    ASSERT_EQ(Output(*session)[0], 5 + 1 + 1 + 5 + 1 + 1 + 1);
  }
  EXPECT_EQ(gpu_lane->starts, 1);
  EXPECT_FALSE(gpu_lane->started_on_own_thread);
  EXPECT_EQ(gpu_lane->poll_thread_id, backend->run_thread_id.load());
  EXPECT_EQ(gpu_lane->allocations, 1) << "the arena belongs into memory that the GPU shares";
}

TEST(Session, AGpuLaneWithoutHostHasAThreadOfItsOwn) {
  for (bool allocates : {true, false}) {
    ProgramMaker maker;
    const LaneId cpu = maker.Lane("cpu0"), gpu = maker.Lane("gpu0", LaneKind::kGpu, -1);
    TensorId x = maker.Op(cpu, {maker.Input()});
    maker.Op(gpu, {x}, {{cpu, 1}}, true);
    auto backend = std::make_shared<FakeBackend>();
    FakeGpuLane::Options options;
    options.allocates = allocates;
    auto gpu_lane = std::make_shared<FakeGpuLane>("gpu0", std::make_shared<FakeBackend>(), options);
    auto session = Open(maker, {MakeCpuLane("cpu0", {backend}), gpu_lane});
    ASSERT_NE(session, nullptr);
    FillInput(session.get(), 0, 0.0f);
    ASSERT_TRUE(session->Run().ok());
    EXPECT_EQ(Output(*session)[1], 3.0f);
    EXPECT_TRUE(gpu_lane->started_on_own_thread);
    EXPECT_NE(gpu_lane->poll_thread_id, backend->run_thread_id.load());
  }
}

TEST(Session, SessionsShareLanesAndTheirThreads) {
  auto backend = std::make_shared<FakeBackend>();
  const std::shared_ptr<Lane> lane = MakeCpuLane("cpu0", {backend});
  ProgramMaker one, two;
  MakeChain(&one, one.Lane("cpu0"), 3);
  MakeChain(&two, two.Lane("cpu0"), 7);
  {
    auto first = Open(one, {lane}), second = Open(two, {lane});
    ASSERT_TRUE(first && second);
    for (int run = 0; run < 10; ++run) {
      FillInput(first.get(), 0, 1.0f);
      FillInput(second.get(), 0, 2.0f);
      ASSERT_TRUE(first->Run().ok());
      ASSERT_TRUE(second->Run().ok());
      ASSERT_EQ(Output(*first)[0], 4.0f);
      ASSERT_EQ(Output(*second)[0], 9.0f);
    }
    EXPECT_EQ(backend->contexts, 1);
  }
  // The thread went with its last session; a later one starts the lane again.
  auto third = Open(one, {lane});
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(backend->contexts, 2);
  EXPECT_TRUE(third->Run().ok());
}

TEST(Session, LanesParkBetweenInferences) {
  auto backend = std::make_shared<FakeBackend>();
  ProgramMaker maker;
  MakeChain(&maker, maker.Lane("cpu0"), 1);
  {
    auto session = Open(maker, {MakeCpuLane("cpu0", {backend})});
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->Run().ok());
  }
  EXPECT_GE(backend->parks, 1);
}

TEST(Session, SecondRunIsBusy) {
  Gate gate;
  FakeBackendOptions options;
  options.before_run = [&](OpId) { return gate.Pass(); };
  const std::shared_ptr<Lane> lane = MakeCpuLane("cpu0", {std::make_shared<FakeBackend>(options)});
  ProgramMaker maker;
  MakeChain(&maker, maker.Lane("cpu0"), 1);
  auto session = Open(maker, {lane}), other = Open(maker, {lane});
  ASSERT_TRUE(session && other);
  std::future<Status> run = std::async(std::launch::async, [&] { return session->Run(); });
  gate.AwaitEntry();
  EXPECT_EQ(session->Run().code(), PLAIT_BUSY);
  EXPECT_EQ(other->Run().code(), PLAIT_BUSY) << "its lane is taken";
  gate.Open();
  EXPECT_TRUE(run.get().ok());
}

TEST(Session, CancelEndsTheInferenceAndTheNextOneWorks) {
  for (int at = 0; at < 4; ++at) {
    Gate gate;
    std::atomic<bool> is_first{true};
    FakeBackendOptions options;
    options.before_run = [&](OpId op) { return op == at && is_first.exchange(false) ? gate.Pass() : Status(); };
    auto backend = std::make_shared<FakeBackend>(options);
    // The lanes' counters stand at different heights when the inference is given up.
    ProgramMaker maker;
    const LaneId a = maker.Lane("cpu0"), b = maker.Lane("cpu1");
    TensorId t = maker.Input();
    for (int i = 0; i < 2; ++i) {
      t = maker.Op(a, {t}, i == 0 ? std::vector<Wait>{} : std::vector<Wait>{{b, i}});
      t = maker.Op(b, {t}, {{a, i + 1}});
    }
    maker.Op(a, {t}, {{b, 2}}, true);
    auto session = Open(maker, {MakeCpuLane("cpu0", {backend}), MakeCpuLane("cpu1", {backend})});
    ASSERT_NE(session, nullptr);
    std::future<Status> run = std::async(std::launch::async, [&] { return session->Run(); });
    gate.AwaitEntry();
    EXPECT_TRUE(session->Cancel().ok());
    EXPECT_TRUE(session->Cancel().ok());
    gate.Open();
    EXPECT_EQ(run.get().code(), PLAIT_CANCELLED);
    EXPECT_TRUE(session->Cancel().ok()) << "nothing runs: no effect";
    for (int i = 0; i < 3; ++i) {
      FillInput(session.get(), 0, 1.0f);
      ASSERT_TRUE(session->Run().ok());
      ASSERT_EQ(Output(*session)[0], 6.0f);
    }
  }
}

TEST(Session, DestructionWaitsForARunningInference) {
  Gate gate;
  FakeBackendOptions options;
  options.before_run = [&](OpId) { return gate.Pass(); };
  auto backend = std::make_shared<FakeBackend>(options);
  ProgramMaker maker;
  MakeChain(&maker, maker.Lane("cpu0"), 1);
  auto session = Open(maker, {MakeCpuLane("cpu0", {backend})});
  Session* raw = session.get();
  std::future<Status> run = std::async(std::launch::async, [raw] { return raw->Run(); });
  gate.AwaitEntry();
  std::future<void> destroyed = std::async(std::launch::async, [&] { session.reset(); });
  gate.Open();
  EXPECT_TRUE(run.get().ok());
  destroyed.get();
  EXPECT_EQ(backend->runs, 1);
}

TEST(Session, AHangingDeviceEndsInATimeout) {
  ProgramMaker maker;
  const LaneId cpu = maker.Lane("cpu0"), gpu = maker.Lane("gpu0", LaneKind::kGpu, 0);
  TensorId x = maker.Op(gpu, {maker.Input()});
  maker.Op(cpu, {x}, {{gpu, 1}}, true);
  FakeGpuLane::Options hang;
  hang.hangs_at = 0;
  auto gpu_lane = std::make_shared<FakeGpuLane>("gpu0", std::make_shared<FakeBackend>(), hang);
  SessionOptions options;
  options.timeout_us = 20'000;
  auto session = Open(maker, {MakeCpuLane("cpu0", {std::make_shared<FakeBackend>()}), gpu_lane}, options);
  ASSERT_NE(session, nullptr);
  const Status status = session->Run();
  EXPECT_EQ(status.code(), PLAIT_TIMEOUT);
  EXPECT_NE(status.message().find("0.02 s"), std::string::npos) << status.message();
  EXPECT_EQ(gpu_lane->abandons, 1);
  EXPECT_EQ(session->Run().code(), PLAIT_TIMEOUT) << "the session stays unusable";
}

TEST(Session, AFailingLaneIsNamedAndTheOthersAreDrained) {
  for (int64_t at = 0; at < 4; ++at) {
    for (LaneId host : {0, -1}) {
      ProgramMaker maker;
      const LaneId cpu = maker.Lane("cpu0"), gpu = maker.Lane("gpu0", LaneKind::kGpu, host);
      TensorId t = maker.Input();
      for (int i = 0; i < 4; ++i) {
        t = maker.Op(gpu, {t}, i == 0 ? std::vector<Wait>{} : std::vector<Wait>{{cpu, i}});
        t = maker.Op(cpu, {t}, {{gpu, i + 1}}, i == 3);
      }
      FakeGpuLane::Options fault;
      fault.fails_at = at;
      auto session = Open(maker, {MakeCpuLane("cpu0", {std::make_shared<FakeBackend>()}),
                                  std::make_shared<FakeGpuLane>("gpu0", std::make_shared<FakeBackend>(), fault)});
      ASSERT_NE(session, nullptr);
      for (int run = 0; run < 2; ++run) {
        const Status status = session->Run();
        EXPECT_EQ(status.code(), PLAIT_DEVICE_LOST);
        EXPECT_NE(status.message().find("gpu0"), std::string::npos) << status.message();
        EXPECT_NE(status.message().find("fell off"), std::string::npos) << status.message();
      }
    }
  }
}

TEST(Session, AFailingKernelNamesTheOperator) {
  FakeBackendOptions options;
  options.before_run = [](OpId op) { return op == 2 ? Internal("the kernel tripped") : Status(); };
  ProgramMaker maker;
  MakeChain(&maker, maker.Lane("cpu0"), 5);
  auto session = Open(maker, {MakeCpuLane("cpu0", {std::make_shared<FakeBackend>(options)})});
  ASSERT_NE(session, nullptr);
  const Status status = session->Run();
  EXPECT_EQ(status.code(), PLAIT_DEVICE_LOST);
  EXPECT_NE(status.message().find("operator op2"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("tripped"), std::string::npos) << status.message();
}

TEST(Session, AForkedChildIsToldAndMayDestroy) {
  const std::shared_ptr<Lane> lane = MakeCpuLane("cpu0", {std::make_shared<FakeBackend>()});
  ProgramMaker maker;
  MakeChain(&maker, maker.Lane("cpu0"), 2);
  auto session = Open(maker, {lane});
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->Run().ok());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    int faults = 0;
    faults += session->Run().code() == PLAIT_WRONG_PROCESS ? 0 : 1;
    faults += session->Cancel().code() == PLAIT_WRONG_PROCESS ? 0 : 2;
    faults += Session::Create(maker.graph(), maker.plan(), {lane}, {}).status().code() == PLAIT_WRONG_PROCESS ? 0 : 4;
    session.reset();
    ::_exit(faults);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(session->Run().ok()) << "the parent goes on";
}

TEST(Session, StressOfRunCancelAndBusy) {
  ProgramMaker maker;
  const LaneId a = maker.Lane("cpu0"), b = maker.Lane("cpu1");
  TensorId t = maker.Input();
  for (int i = 0; i < 20; ++i) {
    t = maker.Op(a, {t}, i == 0 ? std::vector<Wait>{} : std::vector<Wait>{{b, i}});
    t = maker.Op(b, {t}, {{a, i + 1}}, i == 19);
  }
  auto session = Open(maker, {MakeCpuLane("cpu0", {std::make_shared<FakeBackend>()}), MakeCpuLane("cpu1", {std::make_shared<FakeBackend>()})});
  ASSERT_NE(session, nullptr);
  std::atomic<bool> is_over{false};
  std::thread canceller([&] {
    while (!is_over) {
      EXPECT_TRUE(session->Cancel().ok());
      std::this_thread::yield();
    }
  });
  std::thread rival([&] {
    while (!is_over) {
      const plait_status code = session->Run().code();
      EXPECT_TRUE(code == PLAIT_OK || code == PLAIT_BUSY || code == PLAIT_CANCELLED) << code;
      std::this_thread::yield();
    }
  });
  for (int run = 0; run < 200; ++run) {
    const plait_status code = session->Run().code();
    EXPECT_TRUE(code == PLAIT_OK || code == PLAIT_BUSY || code == PLAIT_CANCELLED) << code;
  }
  is_over = true;
  canceller.join();
  rival.join();
  FillInput(session.get(), 0, 0.0f);
  ASSERT_TRUE(session->Run().ok());
  EXPECT_EQ(Output(*session)[0], 40.0f);
}

TEST(Session, TimingsCoverEveryStepInOrder) {
  ProgramMaker maker;
  const LaneId a = maker.Lane("cpu0"), b = maker.Lane("cpu1");
  TensorId x = maker.Op(a, {maker.Input()});
  maker.Op(b, {x}, {{a, 1}}, true);
  SessionOptions options;
  options.bind.timings = true;
  auto session = Open(maker, {MakeCpuLane("cpu0", {std::make_shared<FakeBackend>()}), MakeCpuLane("cpu1", {std::make_shared<FakeBackend>()})}, options);
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->Run().ok());
  const auto timings = session->timings();
  ASSERT_EQ(timings.size(), 2u);
  ASSERT_EQ(timings[0].size(), 1u);
  ASSERT_EQ(timings[1].size(), 1u);
  EXPECT_LE(timings[0][0].start_ns, timings[0][0].end_ns);
  EXPECT_LE(timings[0][0].end_ns, timings[1][0].start_ns);
}

TEST(Session, EmptyProgramsRun) {
  ProgramMaker maker;
  maker.Lane("cpu0");
  maker.Input();
  auto session = Open(maker, {MakeCpuLane("cpu0", {std::make_shared<FakeBackend>()})});
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->input(0).size(), 64u);
  EXPECT_TRUE(session->Run().ok());
}

TEST(Session, RefusesPlansThatDoNotFit) {
  const std::shared_ptr<Lane> lane = MakeCpuLane("cpu0", {std::make_shared<FakeBackend>()});
  const auto refuse = [&](const std::function<void(ProgramMaker*)>& spoil, std::vector<std::shared_ptr<Lane>> lanes, plait_status code) {
    ProgramMaker maker;
    MakeChain(&maker, maker.Lane("cpu0"), 2);
    spoil(&maker);
    const Result<std::unique_ptr<Session>> session = Session::Create(maker.graph(), maker.plan(), std::move(lanes), {});
    ASSERT_FALSE(session.ok());
    EXPECT_EQ(session.status().code(), code) << session.status().message();
    EXPECT_FALSE(session.status().message().empty());
  };
  const auto nothing = [](ProgramMaker*) {};
  refuse(nothing, {}, PLAIT_INVALID_ARGUMENT);
  refuse(nothing, {nullptr}, PLAIT_INVALID_ARGUMENT);
  refuse(nothing, {MakeCpuLane("cpu1", {std::make_shared<FakeBackend>()})}, PLAIT_INVALID_ARGUMENT);
  refuse([](ProgramMaker* m) { m->program().steps.clear(); }, {lane}, PLAIT_CORRUPT);
  refuse([](ProgramMaker* m) { m->program().arena_bytes = 64; }, {lane}, PLAIT_CORRUPT);
  refuse([](ProgramMaker* m) { m->program().buffers[0].offset = -64; }, {lane}, PLAIT_CORRUPT);
  refuse([](ProgramMaker* m) { m->program().buffers[0].bytes = std::numeric_limits<int64_t>::max(); }, {lane}, PLAIT_CORRUPT);
  refuse([](ProgramMaker* m) { m->program().buffers[0].role = BufferRole::kActivation, m->program().buffers[2].role = BufferRole::kActivation; },
         {lane}, PLAIT_CORRUPT);
  refuse([](ProgramMaker* m) { m->LastStep(0).waits = {{7, 1}}; }, {lane}, PLAIT_CORRUPT);
  refuse([](ProgramMaker* m) { m->LastStep(0).waits = {{0, 99}}; }, {lane}, PLAIT_CORRUPT);
  refuse([](ProgramMaker* m) { m->LastStep(0).reads[0].buffer = 99; }, {lane}, PLAIT_CORRUPT);
  refuse([](ProgramMaker* m) { m->LastStep(0).reads[0].offset = 1 << 20; }, {lane}, PLAIT_CORRUPT);
  refuse([](ProgramMaker* m) { m->LastStep(0).reads[0].buffer = kConstantBuffer; }, {lane}, PLAIT_CORRUPT);
  refuse([](ProgramMaker* m) { m->LastStep(0).write.buffer = kConstantBuffer; }, {lane}, PLAIT_CORRUPT);
  refuse([](ProgramMaker* m) { m->LastStep(0).op = 99; }, {lane}, PLAIT_CORRUPT);
  refuse([](ProgramMaker* m) { m->LastStep(0).kind = StepKind::kConvert; }, {lane}, PLAIT_UNSUPPORTED);
  refuse([](ProgramMaker* m) { m->LastStep(0).kernel = "other.kernel"; }, {lane}, PLAIT_UNSUPPORTED);
  EXPECT_FALSE(Session::Create(nullptr, nullptr, {}, {}).ok());
}

TEST(CpuLane, TheFirstBackendThatSupportsAnOperatorRunsIt) {
  FakeBackendOptions fast, last;
  fast.name = "fast";
  fast.supports = [](OpId op) { return op != 1; };
  fast.refuses = [](OpId op) { return op == 2; };
  last.name = "reference";
  auto first = std::make_shared<FakeBackend>(fast), reference = std::make_shared<FakeBackend>(last);
  const std::shared_ptr<Lane> lane = MakeCpuLane("cpu0", {first, reference});
  ProgramMaker maker;
  MakeChain(&maker, maker.Lane("cpu0"), 4);
  const auto graph = maker.graph();
  EXPECT_EQ(lane->rules().Supports(*graph, 0).kernel, "fast.sum");
  EXPECT_EQ(lane->rules().Supports(*graph, 1).kernel, "reference.sum");
  maker.program().steps[0][0].kernel = "fast.sum";
  maker.program().steps[0][2].kernel = "fast.sum";
  maker.program().steps[0][3].kernel = "reference.sum";
  auto session = Open(maker, {lane});
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->Run().ok());
  EXPECT_EQ(first->runs, 1);
  EXPECT_EQ(reference->runs, 3) << "what the rules give it, what the other refused, and what the plan says";
  EXPECT_EQ(session->reports()[0].reference_steps, 3);
}

TEST(CpuLane, PinsItsThreadAndReadsBack) {
  const std::vector<int> allowed = ThreadAffinity();
  std::vector<int> seen;
  FakeBackendOptions options;
  options.before_run = [&](OpId) {
    seen = ThreadAffinity();
    return Status();
  };
  ProgramMaker maker;
  MakeChain(&maker, maker.Lane("cpu0"), 1);
  auto session = Open(maker, {MakeCpuLane("cpu0", {std::make_shared<FakeBackend>(options)}, {allowed.back()})});
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->Run().ok());
  EXPECT_EQ(session->reports()[0].cpus, std::vector<int>{allowed.back()});
  EXPECT_EQ(seen, std::vector<int>{allowed.back()});
  EXPECT_EQ(ThreadAffinity(), allowed) << "the caller stays where it was";
}

TEST(CpuLane, RunsUnpinnedWhereItsCoresAreRefused) {
  std::vector<std::string> warnings;
  SetLogSink([&](LogLevel level, const std::string& message) {
    if (level == LogLevel::kWarning) warnings.push_back(message);
  });
  ProgramMaker maker;
  MakeChain(&maker, maker.Lane("cpu0"), 1);
  auto session = Open(maker, {MakeCpuLane("cpu0", {std::make_shared<FakeBackend>()}, {60000})});
  SetLogSink({});
  ASSERT_NE(session, nullptr);
  EXPECT_TRUE(session->Run().ok());
  EXPECT_TRUE(session->reports()[0].cpus.empty());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("cpu0 runs unpinned"), std::string::npos);
}

TEST(CpuLane, RefusesBadConfigurations) {
  CpuLaneConfig config;
  EXPECT_FALSE(CreateCpuLane(config).ok());
  config.name = "cpu0";
  EXPECT_FALSE(CreateCpuLane(config).ok()) << "no backend";
  config.backends = {nullptr};
  EXPECT_FALSE(CreateCpuLane(config).ok());
  config.backends = {std::make_shared<FakeBackend>()};
  EXPECT_TRUE(CreateCpuLane(config).ok());
  config.threads = 0;
  EXPECT_FALSE(CreateCpuLane(config).ok());
  config.threads = 1;
  config.cpus = {-1};
  EXPECT_FALSE(CreateCpuLane(config).ok());
}

TEST(Session, NoThreadLeftIsAnErrorNotAHang) {
  if (::getuid() == 0) {
    // Root has no limit on threads: give the right up in a child.
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      ProgramMaker maker;
      MakeChain(&maker, maker.Lane("cpu0"), 1);
      const std::shared_ptr<Lane> lane = MakeCpuLane("cpu0", {std::make_shared<FakeBackend>()});
      const rlimit none{1, 1};
      if (::setrlimit(RLIMIT_NPROC, &none) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(3);
      const Status status = Session::Create(maker.graph(), maker.plan(), {lane}, {}).status();
      ::_exit(status.code() == PLAIT_OUT_OF_MEMORY ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  } else {
    GTEST_SKIP() << "needs root to become a user with a limit";
  }
}

}  // namespace
}  // namespace plait
