// What every lane certainly has finished when a step starts: happens-before as vector clocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/interface/steps.h"
#include "src/base/status.h"

namespace plait {

class Clocks {
 public:
  // Corrupt if a wait is out of range or can never hold.
  static Result<Clocks> Of(const StepProgram& program);

  // [lane] -> number of steps finished before step `n` of `lane` starts.
  std::span<const int32_t> At(LaneId lane, int64_t n) const {
    return {clocks_.data() + (first_[static_cast<size_t>(lane)] + static_cast<size_t>(n)) * lanes_, lanes_};
  }
  // Whether step `a` of `lane_a` has finished whenever step `b` of `lane_b` starts.
  bool Before(LaneId lane_a, int64_t a, LaneId lane_b, int64_t b) const {
    return At(lane_b, b)[static_cast<size_t>(lane_a)] > a;
  }
  // All steps, in an order in which each comes after those before it on its lane and those that it waits for.
  struct Position {
    LaneId lane;
    int64_t step;
  };
  const std::vector<Position>& order() const { return order_; }

 private:
  size_t lanes_ = 0;
  std::vector<size_t> first_;
  std::vector<int32_t> clocks_;
  std::vector<Position> order_;
};

}  // namespace plait
