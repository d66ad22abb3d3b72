#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "src/base/checked.h"
#include "src/plan/clocks.h"
#include "src/plan/in_place.h"
#include "src/plan/plan.h"

namespace plait {
namespace {

// First and last step of one lane that touches a buffer.
struct LaneUse {
  LaneId lane;
  int64_t first, last;
};

// [buffer] -> by lane, with the uses of those that take its bytes over. Acquire and Publish touch the bytes that they move, too.
std::vector<std::vector<LaneUse>> UsesOf(const StepProgram& program, const std::vector<BufferId>& in_place) {
  std::vector<std::vector<LaneUse>> uses(program.buffers.size());
  for (size_t lane = 0; lane < program.steps.size(); ++lane) {
    for (size_t n = 0; n < program.steps[lane].size(); ++n) {
      const Step& step = program.steps[lane][n];
      auto use = [&](const View& view) {
        if (view.buffer < 0 || static_cast<size_t>(view.buffer) >= uses.size()) return;
        std::vector<LaneUse>& of = uses[static_cast<size_t>(in_place[static_cast<size_t>(view.buffer)])];
        if (of.empty() || of.back().lane != static_cast<LaneId>(lane)) {
          of.push_back({static_cast<LaneId>(lane), static_cast<int64_t>(n), 0});
        }
        of.back().last = static_cast<int64_t>(n);
      };
      for (const View& view : step.reads) use(view);
      if (step.kind == StepKind::kCompute || step.kind == StepKind::kConvert) use(step.write);
    }
  }
  return uses;
}

// Whether every use of `a` has finished before any use of `b` starts.
bool AllBefore(const Clocks& clocks, const std::vector<LaneUse>& a, const std::vector<LaneUse>& b) {
  for (const LaneUse& late : b) {
    for (const LaneUse& early : a) {
      if (!clocks.Before(early.lane, early.last, late.lane, late.first)) return false;
    }
  }
  return true;
}

struct Span {
  int64_t begin, end;
};

// The offset of the smallest gap between `taken` (sorted by begin) that holds `bytes`; behind all of them if none does.
int64_t BestFit(const std::vector<Span>& taken, int64_t bytes) {
  int64_t free_from = 0, best = -1, best_gap = std::numeric_limits<int64_t>::max();
  for (const Span& span : taken) {
    const int64_t gap = span.begin - free_from;
    if (gap >= bytes && gap < best_gap) {
      best = free_from;
      best_gap = gap;
    }
    free_from = std::max(free_from, span.end);
  }
  return best >= 0 ? best : free_from;
}

}  // namespace

Status PlanMemory(const Graph& graph, StepProgram* program) {
  PLAIT_ASSIGN_OR_RETURN(const Clocks clocks, Clocks::Of(*program));
  const size_t n = program->buffers.size();
  const std::vector<BufferId> in_place = BuffersInPlace(graph, *program, clocks);
  const std::vector<std::vector<LaneUse>> uses = UsesOf(*program, in_place);
  std::vector<size_t> by_size;
  for (size_t i = 0; i < n; ++i) {
    if (static_cast<size_t>(in_place[i]) == i) by_size.push_back(i);
  }
  std::sort(by_size.begin(), by_size.end(), [&](size_t a, size_t b) {
    const int64_t bytes_a = program->buffers[a].bytes, bytes_b = program->buffers[b].bytes;
    return bytes_a != bytes_b ? bytes_a > bytes_b : a < b;
  });

  program->arena_bytes = 0;
  std::vector<size_t> placed;  // by offset
  std::vector<Span> taken;
  for (size_t i : by_size) {
    BufferSpec& buffer = program->buffers[i];
    // Whole lines with slack: what a kernel reads beyond a buffer's end is never being written by another lane.
    const int64_t bytes = RoundUp(buffer.bytes, kBufferAlignment) + kBufferSlack;
    taken.clear();
    for (size_t j : placed) {
      const BufferSpec& other = program->buffers[j];
      const bool may_share = buffer.role == BufferRole::kActivation && other.role == BufferRole::kActivation &&
                             (AllBefore(clocks, uses[i], uses[j]) || AllBefore(clocks, uses[j], uses[i]));
      if (!may_share) taken.push_back({other.offset, other.offset + RoundUp(other.bytes, kBufferAlignment) + kBufferSlack});
    }
    buffer.offset = BestFit(taken, bytes);
    const std::optional<int64_t> end = CheckedAdd(buffer.offset, bytes);
    if (!end) return OutOfMemory("the plan's memory does not fit into 2^63 bytes");
    program->arena_bytes = std::max(program->arena_bytes, *end);
    const auto at = std::upper_bound(placed.begin(), placed.end(), buffer.offset,
                                     [&](int64_t offset, size_t j) { return offset < program->buffers[j].offset; });
    placed.insert(at, i);
  }
  for (size_t i = 0; i < n; ++i) program->buffers[i].offset = program->buffers[static_cast<size_t>(in_place[i])].offset;
  return Status();
}

}  // namespace plait
