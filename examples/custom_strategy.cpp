// A strategy of one's own: operators in order, each whole on the lane where it would end first, handoffs counted.   custom_strategy MODEL
#include <algorithm>
#include <cstdio>
#include <limits>
#include <plait/plait.hpp>
#include <vector>

namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

plait::Status EarliestEnd(const plait::Problem& problem, plait::Schedule* schedule) {
  std::vector<double> free_us(problem.lane_count(), 0);           // when each lane is free
  std::vector<double> end_us(problem.operator_count(), 0);        // when each operator ends
  std::vector<size_t> lane_of(problem.operator_count(), 0);
  for (size_t op = 0; op < problem.operator_count(); ++op) {
    const plait_operator_info info = problem.op(op);
    double best_us = kUnknown;
    for (size_t lane = 0; lane < problem.lane_count(); ++lane) {
      if (!problem.CanRun(op, lane)) continue;
      double start_us = free_us[lane];
      for (size_t i = 0; i < info.producer_count; ++i) {
        const size_t producer = info.producers[i];
        start_us = std::max(start_us, end_us[producer] + problem.HandoffUs(lane_of[producer], lane, problem.op(producer).output_bytes));
      }
      const double lane_end_us = start_us + problem.CostUs(op, lane, /*unknown=*/1e6);
      if (lane_end_us >= best_us) continue;
      best_us = lane_end_us;
      lane_of[op] = lane;
    }
    if (best_us == kUnknown) return plait::Status(PLAIT_UNSUPPORTED, std::string("no lane runs ") + info.name);
    end_us[op] = free_us[lane_of[op]] = best_us;
    if (auto status = schedule->Add(op, lane_of[op]); !status.ok()) return status;
  }
  return plait::Status();
}

plait::Status PlanAndRun(const char* path) {
  auto lanes = plait::Lanes::Open();
  if (!lanes.ok()) return lanes.status();
  auto model = plait::Model::LoadFile(path);
  if (!model.ok()) return model.status();
  plait_plan_options options = PLAIT_PLAN_OPTIONS_INIT;
  options.strategy_name = "earliest end";
  auto plan = plait::Plan::MakeBy(EarliestEnd, *model, *lanes, options);
  if (!plan.ok()) return plan.status();
  auto session = plait::Session::Create(*plan);
  if (!session.ok()) return session.status();
  if (auto status = session->Run(); !status.ok()) return status;
  const auto info = plan->Info();
  const auto stats = session->Stats();
  if (!info.ok()) return info.status();
  if (!stats.ok()) return stats.status();
  std::printf("%s: predicted %.1f us, first run %.1f us, %u handoffs\n", info->strategy, info->predicted_us, stats->last_us, info->handoff_count);
  return plait::Status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: custom_strategy MODEL\n"), 2;
  const plait::Status status = PlanAndRun(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", plait_status_name(status.code()), status.message().c_str());
  return status.ok() ? 0 : 1;
}
