// A machine that knows nothing of happens-before: it runs programs step by step in random orders that the counters
// allow, on memories in which every element remembers whose it is, and looks at each element that a kernel reads. What
// the verifier accepts must be right in every order; a deletion that it refuses shows as a wrong element in some order.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "src/graph/builder.h"
#include "src/partition/storage.h"
#include "tests/partition/random_graph.h"
#include "tests/plan/test_lanes.h"
#include "tests/plan/without_step.h"

namespace plait {
namespace {

constexpr int64_t kElementBytes = 4;  // all tensors here are f32
constexpr int64_t kLineElements = kBufferAlignment / kElementBytes;

class Machine {
 public:
  Machine(const Graph& graph, const StepProgram& program, bool whole_lines)
      : graph_(graph), program_(program), whole_lines_(whole_lines), storage_(AssignStorage(graph).value()) {}

  // Runs one inference; returns whether every kernel read, and the caller finds in the outputs, what belongs there.
  bool Run(std::mt19937_64* random) {
    right_ = true;
    for (const LaneSpec& lane : program_.lanes) {
      memories_[lane.domain].assign(static_cast<size_t>(program_.arena_bytes / kElementBytes), -1);
    }
    std::vector<int64_t> counters(program_.steps.size(), 0);
    for (TensorId t : graph_.inputs) {
      for (size_t b = 0; b < program_.buffers.size(); ++b) {
        if (program_.buffers[b].tensor == t) Write(kHostDomain, Whole(t, static_cast<BufferId>(b)));
      }
    }
    while (true) {
      std::vector<size_t> ready;
      for (size_t lane = 0; lane < counters.size(); ++lane) {
        if (counters[lane] == program_.step_count(static_cast<LaneId>(lane))) continue;
        const std::vector<Wait>& waits = program_.steps[lane][static_cast<size_t>(counters[lane])].waits;
        const bool may_start = std::all_of(waits.begin(), waits.end(),
                                           [&](const Wait& w) { return counters[static_cast<size_t>(w.lane)] >= w.steps; });
        if (may_start) ready.push_back(lane);
      }
      if (ready.empty()) break;
      const size_t lane = ready[(*random)() % ready.size()];
      Execute(program_.lanes[lane].domain, program_.steps[lane][static_cast<size_t>(counters[lane]++)]);
    }
    for (size_t b = 0; b < program_.buffers.size(); ++b) {
      if (program_.buffers[b].role == BufferRole::kOutput) {
        Check(kHostDomain, Whole(program_.buffers[b].tensor, static_cast<BufferId>(b)));
      }
    }
    return right_;
  }

 private:
  // [element of the arena] -> which element of which root tensor it holds; -1: nothing yet.
  using Memory = std::vector<int64_t>;

  View Whole(TensorId t, BufferId buffer) const {
    return {buffer, t, Region::Whole(graph_.tensor(t).shape), 0, DenseStrides(graph_.tensor(t).shape), DType::kF32};
  }

  // Calls f(place in the arena, what belongs there) for every element of the view.
  template <typename F>
  void ForEach(const View& view, const F& f) const {
    if (view.buffer == kConstantBuffer || view.region.IsEmpty()) return;
    const int64_t base = (program_.buffers[static_cast<size_t>(view.buffer)].offset + view.offset) / kElementBytes;
    const TensorStorage& s = storage_[static_cast<size_t>(view.tensor)];
    for (int64_t i = 0; i < view.region.Count(); ++i) {
      int64_t rest = i, place = base, in_root = s.offset;
      for (int axis = view.region.size.rank() - 1; axis >= 0; --axis) {
        const int64_t at = rest % view.region.size[axis];
        rest /= view.region.size[axis];
        place += at * view.strides[axis];
        in_root += (view.region.begin[axis] + at) * s.strides[axis];
      }
      f(static_cast<size_t>(place), (int64_t{s.root} << 32) + in_root);
    }
  }

  void Write(DomainId domain, const View& view) {
    ForEach(view, [&](size_t place, int64_t owner) { memories_[domain][place] = owner; });
  }
  void Check(DomainId domain, const View& view) {
    ForEach(view, [&](size_t place, int64_t owner) { right_ = right_ && memories_[domain][place] == owner; });
  }
  void Copy(DomainId from, DomainId to, const View& view) {
    ForEach(view, [&](size_t place, int64_t) {
      const size_t first = whole_lines_ ? place / kLineElements * kLineElements : place;
      const size_t count = whole_lines_ ? kLineElements : 1;
      for (size_t i = first; i < first + count; ++i) memories_[to][i] = memories_[from][i];
    });
  }

  void Execute(DomainId domain, const Step& step) {
    for (const View& view : step.reads) {
      if (step.kind == StepKind::kCompute) Check(domain, view);
      if (step.kind == StepKind::kAcquire) Copy(kHostDomain, domain, view);
      if (step.kind == StepKind::kPublish) Copy(domain, kHostDomain, view);
    }
    if (step.kind == StepKind::kCompute) Write(domain, step.write);
  }

  const Graph& graph_;
  const StepProgram& program_;
  const bool whole_lines_;
  const std::vector<TensorStorage> storage_;
  std::map<DomainId, Memory> memories_;
  bool right_ = true;
};

bool IsRightInEveryOrderTried(const Graph& graph, const StepProgram& program, bool whole_lines, std::mt19937_64* random,
                              int orders) {
  Machine machine(graph, program, whole_lines);
  for (int i = 0; i < orders; ++i) {
    if (!machine.Run(random)) return false;
  }
  return true;
}

struct Case {
  Graph graph;
  StepProgram program;
};
Case MakeCase(uint64_t seed, LaneSet set, bool coherent) {
  Case made;
  const TestRules rules(8);
  made.graph = Place(MakeRandomGraph(seed, {.ops = 6 + static_cast<int>(seed % 14), .channel_multiple = 8}), rules).value();
  const std::vector<PlanningLane> lanes = Lanes(set, coherent, rules);
  Result<Plan> plan = Lower(made.graph, lanes, RandomSchedule(made.graph, lanes, seed).value());
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  made.program = std::move(plan).value().program;
  return made;
}

TEST(Machine, AcceptedProgramsAreRightInEveryOrder) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    for (LaneSet set : kAllLaneSets) {
      for (const bool coherent : {true, false}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << " lanes " << static_cast<int>(set) << " coherent " << coherent);
        const Case made = MakeCase(seed, set, coherent);
        // Lanes without coherence see whole lines move.
        ASSERT_TRUE(IsRightInEveryOrderTried(made.graph, made.program, !coherent, &random, 6));
      }
    }
  }
}

TEST(Machine, RefusedDeletionsAreWrongInSomeOrder) {
  int deletions = 0, seen = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    const Case made = MakeCase(seed, LaneSet::kTwoCpusGpu, true);
    auto judge = [&](const StepProgram& bad) {
      ASSERT_FALSE(VerifyProgram(made.graph, bad).ok());
      ++deletions;
      seen += !IsRightInEveryOrderTried(made.graph, bad, false, &random, 40);
    };
    for (size_t lane = 0; lane < made.program.steps.size(); ++lane) {
      for (size_t n = 0; n < made.program.steps[lane].size(); ++n) {
        const Step& step = made.program.steps[lane][n];
        for (size_t w = 0; w < step.waits.size(); ++w) {
          StepProgram bad = made.program;
          std::vector<Wait>& waits = bad.steps[lane][n].waits;
          waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(w));
          judge(bad);
        }
        if (step.kind != StepKind::kAcquire && step.kind != StepKind::kPublish) continue;
        judge(WithoutStep(made.program, static_cast<LaneId>(lane), static_cast<int64_t>(n)));
      }
    }
  }
  EXPECT_GT(deletions, 150);
  EXPECT_GT(seen, deletions * 9 / 10) << "of " << deletions;
}

// Neighbours on a lane change places: whatever the verifier still accepts is right.
TEST(Machine, AcceptedSwapsAreRight) {
  int accepted = 0, refused = 0;
  for (uint64_t seed = 0; seed < 25; ++seed) {
    std::mt19937_64 random(seed);
    const Case made = MakeCase(seed, LaneSet::kTwoCpusGpu, true);
    for (size_t lane = 0; lane < made.program.steps.size(); ++lane) {
      for (size_t n = 0; n + 1 < made.program.steps[lane].size(); ++n) {
        StepProgram changed = made.program;
        std::swap(changed.steps[lane][n], changed.steps[lane][n + 1]);
        if (!VerifyProgram(made.graph, changed).ok()) {
          ++refused;
          continue;
        }
        ++accepted;
        EXPECT_TRUE(IsRightInEveryOrderTried(made.graph, changed, false, &random, 10))
            << "seed " << seed << " lane " << lane << " step " << n;
      }
    }
  }
  EXPECT_GT(accepted, 20);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace plait
