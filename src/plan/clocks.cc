#include "src/plan/clocks.h"

#include <algorithm>

namespace plait {

Result<Clocks> Clocks::Of(const StepProgram& program) {
  Clocks out;
  out.lanes_ = program.steps.size();
  size_t total = 0;
  for (const std::vector<Step>& lane : program.steps) {
    out.first_.push_back(total);
    total += lane.size();
  }
  out.clocks_.assign(total * out.lanes_, 0);
  out.order_.reserve(total);
  std::vector<int64_t> next(out.lanes_, 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t lane = 0; lane < out.lanes_; ++lane) {
      const std::vector<Step>& steps = program.steps[lane];
      for (; next[lane] < static_cast<int64_t>(steps.size()); ++next[lane]) {
        const Step& step = steps[static_cast<size_t>(next[lane])];
        const bool in_range = std::all_of(step.waits.begin(), step.waits.end(), [&](const Wait& w) {
          return w.lane >= 0 && static_cast<size_t>(w.lane) < out.lanes_ && w.steps >= 1 && w.steps <= program.step_count(w.lane);
        });
        if (!in_range) return Corrupt("step ", next[lane], " of lane ", lane, " waits for a step that does not exist");
        const bool ready = std::all_of(step.waits.begin(), step.waits.end(),
                                       [&](const Wait& w) { return next[static_cast<size_t>(w.lane)] >= w.steps; });
        if (!ready) break;
        int32_t* clock = out.clocks_.data() + (out.first_[lane] + static_cast<size_t>(next[lane])) * out.lanes_;
        auto join = [&](LaneId other, int64_t finished) {
          const std::span<const int32_t> before = out.At(other, finished - 1);
          for (size_t l = 0; l < out.lanes_; ++l) clock[l] = std::max(clock[l], before[l]);
          int32_t& own = clock[static_cast<size_t>(other)];
          own = std::max(own, static_cast<int32_t>(finished));
        };
        if (next[lane] > 0) join(static_cast<LaneId>(lane), next[lane]);
        for (const Wait& w : step.waits) join(w.lane, w.steps);
        out.order_.push_back({static_cast<LaneId>(lane), next[lane]});
        progress = true;
      }
    }
  }
  if (out.order_.size() != total) return Corrupt("the lanes wait for each other for ever");
  return out;
}

}  // namespace plait
