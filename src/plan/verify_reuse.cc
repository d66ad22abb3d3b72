#include "src/plan/verify_reuse.h"

#include <algorithm>
#include <vector>

#include "src/base/checked.h"
#include "src/graph/operators.h"

namespace plait {
namespace {

size_t Index(int64_t id) { return static_cast<size_t>(id); }

// First and last step of one lane that touches a buffer.
struct LaneUse {
  LaneId lane;
  int64_t first, last;
};

struct ViewUse {
  StepRef at;
  const View* view;
  int operand;  // -1: written
};

class ReuseCheck {
 public:
  ReuseCheck(const Graph& graph, const StepProgram& program, const std::function<bool(StepRef, StepRef)>& before)
      : graph_(graph), program_(program), before_(before) {}

  Status Run() const {
    const size_t n = program_.buffers.size();
    std::vector<std::vector<LaneUse>> uses(n);
    for (size_t lane = 0; lane < program_.steps.size(); ++lane) {
      for (size_t i = 0; i < program_.steps[lane].size(); ++i) {
        const Step& step = program_.steps[lane][i];
        auto use = [&](const View& view) {
          if (view.buffer == kConstantBuffer) return;
          std::vector<LaneUse>& of = uses[Index(view.buffer)];
          if (of.empty() || Index(of.back().lane) != lane) {
            of.push_back({static_cast<LaneId>(lane), static_cast<int64_t>(i), 0});
          }
          of.back().last = static_cast<int64_t>(i);
        };
        for (const View& view : step.reads) use(view);
        if (step.kind == StepKind::kCompute) use(step.write);
      }
    }
    std::vector<size_t> by_offset(n);
    for (size_t b = 0; b < n; ++b) by_offset[b] = b;
    std::sort(by_offset.begin(), by_offset.end(),
              [&](size_t a, size_t b) { return program_.buffers[a].offset < program_.buffers[b].offset; });
    std::vector<size_t> open;                 // buffers that reach beyond the current offset
    std::vector<std::vector<ViewUse>> views;  // by buffer; collected once they are needed
    for (size_t b : by_offset) {
      const BufferSpec& buffer = program_.buffers[b];
      // Whole cache lines: Acquire and Publish move no less.
      std::erase_if(open, [&](size_t a) {
        return RoundUp(program_.buffers[a].offset + program_.buffers[a].bytes, kBufferAlignment) <= buffer.offset;
      });
      for (size_t a : open) {
        const BufferSpec& other = program_.buffers[a];
        if (buffer.role == BufferRole::kActivation && other.role == BufferRole::kActivation &&
            (InOrder(uses[a], uses[b]) || InOrder(uses[b], uses[a]))) {
          continue;
        }
        if (views.empty()) views = ViewUses();
        if (IsWrittenOver(views, a, b) || IsWrittenOver(views, b, a)) continue;
        return Corrupt("the buffers of tensors '", graph_.tensor(other.tensor).name, "' and '",
                       graph_.tensor(buffer.tensor).name,
                       "' share memory at offset ", buffer.offset, " while both are in use");
      }
      open.push_back(b);
    }
    return Status();
  }

 private:
  // Whether `newer` takes over the bytes of `older`: whatever touches an element of the older one is over before anything touches the newer one there, but for
  // the steps that write the one over the other.
  bool IsWrittenOver(const std::vector<std::vector<ViewUse>>& uses, size_t older, size_t newer) const {
    const BufferSpec& a = program_.buffers[older];
    const BufferSpec& b = program_.buffers[newer];
    if (a.role != BufferRole::kActivation || b.role != BufferRole::kActivation || a.offset != b.offset || a.bytes != b.bytes) return false;
    return std::all_of(uses[older].begin(), uses[older].end(), [&](const ViewUse& x) {
      return std::all_of(uses[newer].begin(), uses[newer].end(), [&](const ViewUse& y) { return before_(x.at, y.at) || Miss(x, y) || WritesOver(x, y); });
    });
  }

  std::vector<std::vector<ViewUse>> ViewUses() const {
    std::vector<std::vector<ViewUse>> uses(program_.buffers.size());
    for (size_t lane = 0; lane < program_.steps.size(); ++lane) {
      for (size_t n = 0; n < program_.steps[lane].size(); ++n) {
        const Step& step = program_.steps[lane][n];
        const StepRef at{static_cast<LaneId>(lane), static_cast<int64_t>(n)};
        for (size_t k = 0; k < step.reads.size(); ++k) {
          const View& view = step.reads[k];
          if (view.buffer != kConstantBuffer && !view.region.IsEmpty()) uses[Index(view.buffer)].push_back({at, &view, static_cast<int>(k)});
        }
        if (step.kind == StepKind::kCompute) uses[Index(step.write.buffer)].push_back({at, &step.write, -1});
      }
    }
    return uses;
  }

  // No byte of one lies between first and last byte of the other, or they are different regions of tensors that lie alike. Between domains whole lines count.
  bool Miss(const ViewUse& x, const ViewUse& y) const {
    const bool one_domain = DomainOf(x.at.lane) == DomainOf(y.at.lane);
    const int64_t grain = one_domain ? 1 : kBufferAlignment;
    auto ends_before = [&](const View& a, const View& b) { return RoundUp(a.EndOffset(), grain) <= b.offset / grain * grain; };
    if (ends_before(*x.view, *y.view) || ends_before(*y.view, *x.view)) return true;
    const Tensor& a = graph_.tensor(x.view->tensor);
    const Tensor& b = graph_.tensor(y.view->tensor);
    if (!one_domain || !(a.shape == b.shape) || a.dtype != b.dtype || !(x.view->strides == y.view->strides)) return false;
    int64_t shift = y.view->offset - x.view->offset;
    for (int i = 0; i < a.shape.rank(); ++i) shift -= (y.view->region.begin[i] - x.view->region.begin[i]) * x.view->strides[i] * SizeOf(a.dtype);
    return shift == 0 && Intersect(x.view->region, y.view->region).IsEmpty();
  }

  bool WritesOver(const ViewUse& read, const ViewUse& write) const {
    if (read.at.lane != write.at.lane || read.at.step != write.at.step || read.operand < 0 || write.operand >= 0) return false;
    const Step& step = At(write.at);
    if (step.kind != StepKind::kCompute || !MayWriteOver(graph_, graph_.op(step.op), read.operand)) return false;
    return read.view->offset == step.write.offset && read.view->strides == step.write.strides && read.view->region.size == step.write.region.size;
  }

  bool InOrder(const std::vector<LaneUse>& early, const std::vector<LaneUse>& late) const {
    return std::all_of(early.begin(), early.end(), [&](const LaneUse& a) {
      return std::all_of(late.begin(), late.end(),
                         [&](const LaneUse& b) { return before_({a.lane, a.last}, {b.lane, b.first}); });
    });
  }

  const Step& At(StepRef s) const { return program_.steps[Index(s.lane)][Index(s.step)]; }
  DomainId DomainOf(LaneId lane) const { return program_.lanes[Index(lane)].domain; }

  const Graph& graph_;
  const StepProgram& program_;
  const std::function<bool(StepRef, StepRef)>& before_;
};

}  // namespace

Status CheckMemoryReuse(const Graph& graph, const StepProgram& program, const std::function<bool(StepRef, StepRef)>& before) {
  return ReuseCheck(graph, program, before).Run();
}

}  // namespace plait
