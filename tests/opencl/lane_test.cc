// Segments, counters, handoffs and memory of the OpenCL lane, through hand-made step programs.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "backends/opencl/cl_api.h"
#include "src/platform/affinity.h"
#include "tests/opencl/cases.h"

namespace plait {
namespace {

// Two lanes: the test plays lane 0 (a CPU lane of one step) by hand; lane 1 is the OpenCL lane.
constexpr LaneId kHost = 0, kGpu = 1;

class LaneTest : public OpenClTest {
 protected:
  // A 1x1 convolution of 16 rows: rows [0, 8) are the first segment's, [8, 16) the second's, which waits for the host.
  static OperatorCase Operator() {
    Rng rng(1);
    return OperatorCase(ConvGraph(rng, {1, 16, 4, 16, 32, 1, 1, {}}), rng, true);
  }
  static std::vector<Region> Halves(const OperatorCase& op) { return CutAt(op.output_shape(), 1, {8}); }
  static std::shared_ptr<StepProgram> TwoSegments(const OperatorCase& op) {
    auto program = op.ProgramOf({});
    program->lanes.insert(program->lanes.begin(), {"cpu0", LaneKind::kCpu, kHostDomain, -1});
    program->steps = {{Step()}, {}};
    for (const Region& half : Halves(op)) {
      std::vector<Step>& steps = program->steps[kGpu];
      steps.push_back(OperatorCase::HandoffStep(StepKind::kAcquire, {op.ViewOf(op.graph().inputs[0], InputRegion(op.graph(), op.op(), 0, half))}));
      steps.push_back(op.ComputeStep(half));
      steps.push_back(OperatorCase::HandoffStep(StepKind::kPublish, {op.ViewOf(op.op().output, half)}));
      steps.push_back(OperatorCase::SubmitStep());
    }
    program->steps[kGpu][4].waits = {{kHost, 1}};
    return program;
  }
};

TEST_F(LaneTest, ASegmentStartsWhenItsWaitsHoldAndNoSooner) {
  const OperatorCase op = Operator();
  const auto program = TwoSegments(op);
  Arena arena(*lane_, op.arena_bytes());
  op.Fill(arena.host());
  std::vector<LaneCounter> counters(2);
  auto bound = lane_->Bind({op.shared_graph(), program, kGpu, arena.host(), counters, {}});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ((*bound)->Poll(), LaneState::kIdle);
  for (uint64_t n = 0; n < 3; ++n) {
    SCOPED_TRACE(n);
    (*bound)->Submit(n);
    while (counters[kGpu].finished.load() < n * 8 + 4) ASSERT_NE((*bound)->Poll(), LaneState::kFailed);
    // However often it is polled, the second segment stays where it is.
    for (int i = 0; i < 1000; ++i) ASSERT_EQ((*bound)->Poll(), LaneState::kWaiting);
    EXPECT_EQ(counters[kGpu].finished.load(), n * 8 + 4);
    counters[kHost].finished.store(n + 1, std::memory_order_release);
    while ((*bound)->Poll() != LaneState::kIdle) ASSERT_TRUE((*bound)->error().ok());
    EXPECT_EQ(counters[kGpu].finished.load(), n * 8 + 8);
    EXPECT_LE(RelativeError(op.Output(arena.host()), op.Reference()), 1e-5);
  }
}

TEST_F(LaneTest, InjectedLatencyDelaysEveryAcquireAndEveryPublish) {
  const OperatorCase op = Operator();
  const auto program = TwoSegments(op);
  Arena arena(*lane_, op.arena_bytes());
  op.Fill(arena.host());
  std::vector<LaneCounter> counters(2);
  constexpr double kLatencyUs = 2000;
  auto bound = lane_->Bind({op.shared_graph(), program, kGpu, arena.host(), counters, {.handoff_latency_us = kLatencyUs}});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  counters[kHost].finished.store(1);
  const int64_t start = NowNs();
  (*bound)->Submit(0);
  int64_t first_half = 0;
  while (true) {
    const LaneState state = (*bound)->Poll();
    ASSERT_NE(state, LaneState::kFailed);
    if (first_half == 0 && counters[kGpu].finished.load() == 4) first_half = NowNs();
    if (state == LaneState::kIdle) break;
  }
  // Each segment: one latency to acquire, one to publish; the second is acquired while the first is under way.
  EXPECT_GE(static_cast<double>(first_half - start) * 1e-3, 2 * kLatencyUs);
  EXPECT_GE(static_cast<double>(NowNs() - start) * 1e-3, 3 * kLatencyUs);
  EXPECT_LE(RelativeError(op.Output(arena.host()), op.Reference()), 1e-5);
}

TEST_F(LaneTest, AbandonLeavesNoWorkBehind) {
  const OperatorCase op = Operator();
  const auto program = TwoSegments(op);
  Arena arena(*lane_, op.arena_bytes());
  op.Fill(arena.host());
  std::vector<LaneCounter> counters(2);
  auto bound = lane_->Bind({op.shared_graph(), program, kGpu, arena.host(), counters, {}});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  (*bound)->Submit(0);
  (void)(*bound)->Poll();
  (*bound)->Abandon();
  EXPECT_EQ((*bound)->Poll(), LaneState::kIdle);
  std::memset(arena.host(), 0, static_cast<size_t>(op.arena_bytes()));
  for (const float v : op.Output(arena.host())) EXPECT_EQ(v, 0.0f);
}

TEST_F(LaneTest, TimingsLieWithinTheRun) {
  const OperatorCase op = Operator();
  const auto program = op.ProgramOf(Halves(op));
  Arena arena(*lane_, op.arena_bytes());
  op.Fill(arena.host());
  std::vector<LaneCounter> counters(1);
  auto bound = lane_->Bind({op.shared_graph(), program, 0, arena.host(), counters, {.timings = true}});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  ASSERT_EQ(RunToEnd(**bound, 0), LaneState::kIdle);
  const int64_t before = NowNs();
  ASSERT_EQ(RunToEnd(**bound, 1), LaneState::kIdle);
  const int64_t after = NowNs();
  ASSERT_EQ((*bound)->timings().size(), program->steps[0].size());
  for (const int step : {1, 2}) {
    const StepTiming timing = (*bound)->timings()[static_cast<size_t>(step)];
    if (timing.start_ns == 0) continue;  // the driver keeps no usable times
    EXPECT_GE(timing.start_ns, before);
    EXPECT_GE(timing.end_ns, timing.start_ns);
    EXPECT_LE(timing.end_ns, after + 1'000'000);
  }
}

TEST_F(LaneTest, WithoutTimingsThereAreNone) {
  const OperatorCase op = Operator();
  Arena arena(*lane_, op.arena_bytes());
  std::vector<LaneCounter> counters(1);
  auto bound = lane_->Bind({op.shared_graph(), op.ProgramOf(Halves(op)), 0, arena.host(), counters, {}});
  ASSERT_TRUE(bound.ok());
  EXPECT_TRUE((*bound)->timings().empty());
}

TEST_F(LaneTest, AnEmptyProgramIsOverAtOnce) {
  const OperatorCase op = Operator();
  auto program = op.ProgramOf({});
  program->steps[0] = {OperatorCase::SubmitStep()};
  Arena arena(*lane_, op.arena_bytes());
  std::vector<LaneCounter> counters(1);
  auto bound = lane_->Bind({op.shared_graph(), program, 0, arena.host(), counters, {}});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ(RunToEnd(**bound, 0), LaneState::kIdle);
  EXPECT_EQ(counters[0].finished.load(), 1u);
}

TEST_F(LaneTest, ManySegmentsInFlightKeepTheirOrder) {
  Rng rng(4);
  const OperatorCase op(ConvGraph(rng, {1, 32, 8, 16, 32, 3, 3, {.pad = {1, 1, 1, 1}}}), rng, true);
  auto program = op.ProgramOf({});
  program->steps[0].clear();
  for (int64_t row = 0; row < 32; ++row) {
    Region part = Region::Whole(op.output_shape());
    part.begin[1] = row, part.size[1] = 1;
    program->steps[0].push_back(op.ComputeStep(part));
    program->steps[0].push_back(OperatorCase::SubmitStep());
  }
  Arena arena(*lane_, op.arena_bytes());
  op.Fill(arena.host());
  std::vector<LaneCounter> counters(1);
  auto bound = lane_->Bind({op.shared_graph(), program, 0, arena.host(), counters, {}});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  for (uint64_t n = 0; n < 20; ++n) {
    (*bound)->Submit(n);
    uint64_t last = n * 64;
    while (true) {
      const LaneState state = (*bound)->Poll();
      ASSERT_NE(state, LaneState::kFailed);
      const uint64_t now = counters[0].finished.load();
      ASSERT_GE(now, last);
      ASSERT_EQ(now % 2, 0u);
      last = now;
      if (state == LaneState::kIdle) break;
    }
    EXPECT_EQ(last, (n + 1) * 64);
  }
  EXPECT_LE(RelativeError(op.Output(arena.host()), op.Reference()), 1e-5);
}

// Every way to share memory gives the same bits.
TEST(OpenClMemoryTest, AllPathsAgree) {
  std::string why;
  for (const OpenClMemory memory : {OpenClMemory::kSvm, OpenClMemory::kMapped, OpenClMemory::kCopied}) {
    SCOPED_TRACE(static_cast<int>(memory));
    OpenClLaneConfig config;
    config.memory = memory;
    const std::unique_ptr<Lane> lane = TestLane(config, &why);
    if (lane == nullptr && memory == OpenClMemory::kSvm) continue;  // not every device has it
    if (lane == nullptr) GTEST_SKIP() << why;
    EXPECT_EQ(lane->coherent(), memory == OpenClMemory::kSvm);
    for (const KernelCase& c : KernelCases()) {
      SCOPED_TRACE(c.name);
      Rng rng(9);
      const OperatorCase op(c.make(rng), rng, false);
      EXPECT_LE(RelativeError(op.Run(*lane, op.ProgramOf({Region::Whole(op.output_shape())})), op.Reference()), 1e-5);
    }
  }
}

class StrictTest : public OpenClTest {
 protected:
  void SetUp() override {
    std::string why;
    OpenClLaneConfig config;
    config.strict = true;
    lane_ = TestLane(config, &why);
    if (lane_ == nullptr) GTEST_SKIP() << why;
  }
  // The output of `program` under strict rules; NaNs where nothing was published.
  std::vector<float> Run(const OperatorCase& op, const std::shared_ptr<StepProgram>& program) const {
    return op.Run(*lane_, program, {.strict = true});
  }
};

TEST_F(StrictTest, IsNotCoherent) { EXPECT_FALSE(lane_->coherent()); }

TEST_F(StrictTest, WhatIsDeclaredIsMoved) {
  for (const KernelCase& c : KernelCases()) {
    SCOPED_TRACE(c.name);
    Rng rng(2);
    const OperatorCase op(c.make(rng), rng, false);
    const std::vector<float> out = Run(op, op.ProgramOf({Region::Whole(op.output_shape())}));
    EXPECT_LE(RelativeError(out, op.Reference()), 1e-5);
  }
}

TEST_F(StrictTest, AMissingAcquireOrPublishGivesWrongOutputs) {
  for (const KernelCase& c : KernelCases()) {
    for (const StepKind kind : {StepKind::kAcquire, StepKind::kPublish}) {
      SCOPED_TRACE(StrCat(c.name, " without ", Name(kind)));
      Rng rng(3);
      const OperatorCase op(c.make(rng), rng, true);
      auto program = op.ProgramOf({Region::Whole(op.output_shape())});
      std::erase_if(program->steps[0], [&](const Step& step) { return step.kind == kind; });
      EXPECT_GT(RelativeError(Run(op, program), op.Reference()), 1e-2);
    }
  }
}

TEST_F(StrictTest, ALineSharedWithTheHostIsOverwritten) {
  // The device computes channels [0, 8) of 16: half a cache line of every pixel. The host has written the other half.
  Rng rng(5);
  const OperatorCase op(OneInput({1, 4, 4, 16}, OpKind::kUnary, UnaryAttrs{UnaryKind::kSquare, {}}), rng, true);
  Region half = Region::Whole(op.output_shape());
  half.size[3] = 8;
  const std::vector<float> out = Run(op, op.ProgramOf({half}));
  const std::vector<float> expected = op.Reference();
  for (size_t i = 0; i < out.size(); ++i) {
    if (i % 16 < 8) {
      EXPECT_NEAR(out[i], expected[i], 1e-6);
    } else {
      EXPECT_TRUE(std::isnan(out[i]));  // the shadow's, not the host's
    }
  }
}

TEST_F(StrictTest, ALaterInferenceDoesNotSeeAnEarlierOnesData) {
  const Graph graph = OneInput({4, 64}, OpKind::kUnary, UnaryAttrs{UnaryKind::kNegate, {}});
  Rng rng(6);
  const OperatorCase op(graph, rng, true);
  Arena arena(*lane_, op.arena_bytes());
  std::vector<LaneCounter> counters(1);
  auto bound = lane_->Bind({op.shared_graph(), op.ProgramOf({Region::Whole(op.output_shape())}), 0, arena.host(), counters, {.strict = true}});
  ASSERT_TRUE(bound.ok());
  op.Fill(arena.host());
  ASSERT_EQ(RunToEnd(**bound, 0), LaneState::kIdle);
  // The host changes its input; what the device kept from before must not show.
  op.Fill(arena.host());
  float changed = 42.0f;
  std::memcpy(arena.host(), &changed, sizeof(changed));
  ASSERT_EQ(RunToEnd(**bound, 1), LaneState::kIdle);
  EXPECT_EQ(op.Output(arena.host())[0], -42.0f);
}

TEST(OpenClDevices, AreListedWithReasons) {
  for (const OpenClDeviceInfo& info : ListOpenClDevices()) {
    EXPECT_FALSE(info.platform.empty());
    if (info.refused.empty()) {
      EXPECT_FALSE(info.device.empty());
      EXPECT_GE(info.compute_units, 1);
    }
  }
}

TEST(OpenClDevices, ACpuDeviceIsTakenOnlyWhenAskedFor) {
  bool gpu = false;
  for (const OpenClDeviceInfo& info : ListOpenClDevices()) gpu |= info.refused.empty() && !info.is_cpu;
  if (gpu) GTEST_SKIP() << "this machine has a GPU, which is taken";
  const auto lane = CreateOpenClLane({});
  ASSERT_FALSE(lane.ok());
  EXPECT_TRUE(lane.status().code() == PLAIT_NOT_FOUND || lane.status().code() == PLAIT_UNSUPPORTED);
  EXPECT_NE(lane.status().message().find("OpenCL"), std::string::npos);
}

TEST(OpenClDevices, FiltersAreNamedInTheRefusal) {
  OpenClLaneConfig config;
  config.allow_cpu_device = true;
  config.platform_filter = "no such platform";
  EXPECT_FALSE(CreateOpenClLane(config).ok());
}

// Threads of this process, without the calling one, that may run on core `cpu` only.
int OtherThreadsOn(int cpu) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const int id = std::stoi(task.path().filename().string());
    cpu_set_t set;
    if (id == ::gettid() || ::sched_getaffinity(id, sizeof(set), &set) != 0) continue;
    count += CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set);
  }
  return count;
}

TEST(OpenClDevices, ACpuDeviceIsConfinedToItsCores) {
  std::string why;
  OpenClLaneConfig config;
  config.cpus = {0};
  const std::vector<int> before = ThreadAffinity();
  const std::unique_ptr<Lane> lane = TestLane(config, &why);
  if (lane == nullptr) GTEST_SKIP() << why;
  if (!OpenClDeviceOf(*lane).is_cpu) GTEST_SKIP() << "not a CPU device";
  EXPECT_EQ(OpenClDeviceOf(*lane).compute_units, 1);
  // A thread of the driver's runs on core 0 and nowhere else; this one runs where it did.
  EXPECT_EQ(ThreadAffinity(), before);
  EXPECT_GE(OtherThreadsOn(0), 1);
  Rng rng(8);
  const OperatorCase op(ConvGraph(rng, {1, 9, 9, 8, 16, 3, 3, {}}), rng, true);
  EXPECT_LE(RelativeError(op.Run(*lane, op.ProgramOf({Region::Whole(op.output_shape())})), op.Reference()), 1e-5);
  config.cpus = {100000};
  EXPECT_FALSE(CreateOpenClLane(config).ok());
}

// A table whose one function fails from some call on.
struct FaultyTable {
  inline static std::atomic<int> calls_left{1 << 30};
  inline static const ClApi* real = nullptr;
  static cl_int CL_API_CALL Enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t* offset, const size_t* global,
                                    const size_t* local, cl_uint waits, const cl_event* wait_list, cl_event* event) {
    if (calls_left.fetch_sub(1) <= 0) return CL_OUT_OF_RESOURCES;
    return real->clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, waits, wait_list, event);
  }
};

TEST(OpenClFaults, AFailedEnqueueNamesTheOperatorAndTheError) {
  const Result<const ClApi*> loaded = LoadSystemOpenCl();
  if (!loaded.ok()) GTEST_SKIP() << loaded.status().message();
  FaultyTable::real = *loaded;
  ClApi table = **loaded;
  table.clEnqueueNDRangeKernel = FaultyTable::Enqueue;
  OpenClLaneConfig config;
  config.api = &table;
  std::string why;
  const std::unique_ptr<Lane> lane = TestLane(config, &why);
  if (lane == nullptr) GTEST_SKIP() << why;
  Rng rng(1);
  const OperatorCase op(ConvGraph(rng, {1, 16, 4, 16, 32, 1, 1, {}}), rng, true);
  const auto program = op.ProgramOf(CutAt(op.output_shape(), 1, {4, 8}));
  for (int k = 0; k < 3; ++k) {
    SCOPED_TRACE(k);
    Arena arena(*lane, op.arena_bytes());
    op.Fill(arena.host());
    std::vector<LaneCounter> counters(1);
    FaultyTable::calls_left = k;
    auto bound = lane->Bind({op.shared_graph(), program, 0, arena.host(), counters, {}});
    ASSERT_TRUE(bound.ok()) << bound.status().message();
    EXPECT_EQ(RunToEnd(**bound, 0), LaneState::kFailed);
    EXPECT_EQ((*bound)->error().code(), PLAIT_DEVICE_LOST);
    EXPECT_NE((*bound)->error().message().find("operator conv"), std::string::npos) << (*bound)->error().message();
    EXPECT_NE((*bound)->error().message().find("CL_OUT_OF_RESOURCES"), std::string::npos);
    EXPECT_EQ((*bound)->Poll(), LaneState::kFailed);
    EXPECT_EQ(counters[0].finished.load(), 0u);
  }
  FaultyTable::calls_left = 1 << 30;
}

}  // namespace
}  // namespace plait
