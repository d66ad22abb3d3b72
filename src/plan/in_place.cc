#include "src/plan/in_place.h"

#include <algorithm>

#include "src/base/checked.h"
#include "src/graph/operators.h"

namespace plait {
namespace {

constexpr size_t kMostMembers = 64;  // buffers in the same bytes; a longer chain takes further ones, so that time stays linear

size_t Index(int64_t id) { return static_cast<size_t>(id); }

struct Use {
  LaneId lane;
  int64_t step;
  const View* view;
};

bool SameCells(const View& a, const View& b) {
  return a.offset == b.offset && a.strides == b.strides && a.region.size == b.region.size && a.dtype == b.dtype;
}

// The offset of the element at the tensor's origin, were it there.
int64_t OriginOf(const View& view) {
  int64_t element = 0;
  for (int i = 0; i < view.strides.rank(); ++i) element += view.region.begin[i] * view.strides[i];
  return view.offset - element * SizeOf(view.dtype);
}

class Finder {
 public:
  Finder(const Graph& graph, const StepProgram& program, const Clocks& clocks)
      : graph_(graph), program_(program), clocks_(clocks), uses_(program.buffers.size()), members_(program.buffers.size()), root_(program.buffers.size()) {}

  std::vector<BufferId> Run() {
    CollectUses();
    for (size_t b = 0; b < root_.size(); ++b) {
      root_[b] = static_cast<BufferId>(b);
      members_[b] = {static_cast<BufferId>(b)};
    }
    std::vector<bool> tried(root_.size(), false);
    for (const Clocks::Position& at : clocks_.order()) {
      const Step& step = program_.steps[Index(at.lane)][Index(at.step)];
      if (step.kind != StepKind::kCompute || step.write.buffer < 0 || tried[Index(step.write.buffer)]) continue;
      tried[Index(step.write.buffer)] = true;
      const Operator& op = graph_.op(step.op);
      for (size_t k = 0; k < step.reads.size(); ++k) {
        if (step.reads[k].buffer < 0 || !MayWriteOver(graph_, op, static_cast<int>(k))) continue;
        if (Join(step.reads[k].buffer, step.write.buffer)) break;
      }
    }
    return root_;
  }

 private:
  void CollectUses() {
    for (size_t lane = 0; lane < program_.steps.size(); ++lane) {
      for (size_t n = 0; n < program_.steps[lane].size(); ++n) {
        const Step& step = program_.steps[lane][n];
        auto add = [&](const View& view) {
          if (view.buffer >= 0 && !view.region.IsEmpty()) uses_[Index(view.buffer)].push_back({static_cast<LaneId>(lane), static_cast<int64_t>(n), &view});
        };
        for (const View& view : step.reads) add(view);
        if (step.kind == StepKind::kCompute) add(step.write);
      }
    }
  }

  // Puts `newer` over `older` if nobody can tell.
  bool Join(BufferId older, BufferId newer) {
    const BufferId root = root_[Index(older)];
    const BufferSpec& a = program_.buffers[Index(root)];
    const BufferSpec& b = program_.buffers[Index(newer)];
    if (root == newer || members_[Index(root)].size() >= kMostMembers || a.role != BufferRole::kActivation || b.role != BufferRole::kActivation || a.bytes != b.bytes) return false;
    for (BufferId member : members_[Index(root)]) {
      for (const Use& early : uses_[Index(member)]) {
        for (const Use& late : uses_[Index(newer)]) {
          if (!MayFollow(early, late)) return false;
        }
      }
    }
    root_[Index(newer)] = root;
    members_[Index(root)].push_back(newer);
    return true;
  }

  bool MayFollow(const Use& early, const Use& late) const {
    if (clocks_.Before(early.lane, early.step, late.lane, late.step) || AreApart(early, late)) return true;
    if (early.lane != late.lane || early.step != late.step) return false;
    const Step& step = program_.steps[Index(early.lane)][Index(early.step)];
    if (step.kind != StepKind::kCompute || late.view != &step.write || early.view == &step.write) return false;
    const int operand = static_cast<int>(early.view - step.reads.data());
    return SameCells(*early.view, step.write) && MayWriteOver(graph_, graph_.op(step.op), operand);
  }

  // Whether the two touch different bytes; different cache lines where their lanes see each other's memory only by handoffs.
  bool AreApart(const Use& a, const Use& b) const {
    const bool one_domain = program_.lanes[Index(a.lane)].domain == program_.lanes[Index(b.lane)].domain;
    const int64_t grain = one_domain ? 1 : kBufferAlignment;
    if (RoundUp(a.view->EndOffset(), grain) <= b.view->offset / grain * grain) return true;
    if (RoundUp(b.view->EndOffset(), grain) <= a.view->offset / grain * grain) return true;
    if (!one_domain || !(a.view->strides == b.view->strides) || a.view->dtype != b.view->dtype || OriginOf(*a.view) != OriginOf(*b.view)) return false;
    return graph_.tensor(a.view->tensor).shape == graph_.tensor(b.view->tensor).shape && Intersect(a.view->region, b.view->region).IsEmpty();
  }

  const Graph& graph_;
  const StepProgram& program_;
  const Clocks& clocks_;
  std::vector<std::vector<Use>> uses_;          // by buffer
  std::vector<std::vector<BufferId>> members_;  // by root
  std::vector<BufferId> root_;
};

}  // namespace

std::vector<BufferId> BuffersInPlace(const Graph& graph, const StepProgram& program, const Clocks& clocks) { return Finder(graph, program, clocks).Run(); }

}  // namespace plait
