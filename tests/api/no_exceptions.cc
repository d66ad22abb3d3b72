// The C++ API built without exceptions and RTTI, every template of it used; run by languages_test.cc.
#include <cstdlib>
#include <memory>
#include <vector>

#include "plait/plait.hpp"

namespace plait::testing {

Status UseCppApi(const std::string& json);

namespace {

struct Counter {
  int calls = 0;
  Status operator()(const Problem& problem, Schedule* schedule) {
    ++calls;
    for (size_t op = 0; op < problem.operator_count(); ++op) {
      const size_t lane = op % problem.lane_count();
      if (!problem.CanRun(op, lane) || problem.Cut(op, lane, 1).extent < 1 || problem.lane(lane).name == nullptr) return Status(PLAIT_INTERNAL, "the problem is odd");
      if (problem.CostUs(op, lane, -7) == 0 || problem.HandoffUs(lane, lane, 1) != 0) return Status(PLAIT_INTERNAL, "costs are odd");
      if (Status status = schedule->Add(op, lane); !status.ok()) return status;
    }
    return Status();
  }
};

Status Expect(bool holds, const char* what) { return holds ? Status() : Status(PLAIT_INTERNAL, what); }

Status UseSession(Session* session) {
  const Result<std::span<float>> input = session->Input<float>(0);
  if (!input.ok()) return input.status();
  std::vector<float> values(input->size(), 0.25f);
  if (Status status = session->SetInput<float>("image", values); !status.ok()) return status;
  if (Status status = session->SetInput<float>(0, values); !status.ok()) return status;
  if (Status status = session->Run(); !status.ok()) return status;
  const Result<std::span<const float>> output = session->Output<float>(0);
  if (!output.ok()) return output.status();
  std::vector<float> first(output->size()), second(output->size());
  if (Status status = session->GetOutput<float>("sum", first); !status.ok()) return status;
  Status outcome(PLAIT_INTERNAL, "the callback was not called");
  auto token = std::make_unique<int>(7);  // callbacks may be move-only
  Status status = session->RunAsync([&outcome, mine = std::move(token)](Status ended) { outcome = *mine == 7 ? ended : Status(PLAIT_INTERNAL, "lost"); });
  if (status.ok()) status = session->Wait();
  if (!status.ok()) return status;
  if (!outcome.ok()) return outcome;
  if (Status got = session->GetOutput<float>(0, second); !got.ok()) return got;
  if (Status same = Expect(first == second, "two runs differ"); !same.ok()) return same;
  if (Status bound = session->BindBuffers({}, {}); !bound.ok()) return bound;
  if (Status cancelled = session->Cancel(); !cancelled.ok()) return cancelled;
  const Result<plait_session_stats> stats = session->Stats();
  if (!stats.ok()) return stats.status();
  return Expect(stats->runs == 2 && session->LaneStats(0).ok() && session->Trace("/dev/null").code() == PLAIT_INVALID_ARGUMENT, "statistics are odd");
}

}  // namespace

Status UseCppApi(const std::string& json) {
  plait_lanes_options options = PLAIT_LANES_OPTIONS_INIT;
  options.gpu = PLAIT_GPU_OFF;
  Result<Lanes> lanes = Lanes::Open(options);
  if (!lanes.ok()) return lanes.status();
  Result<Model> model = Model::LoadMemory(std::as_bytes(std::span(json)));
  if (!model.ok()) return model.status();
  if (Status status = Expect(lanes->Count().ok() && lanes->Get(0).ok() && lanes->Refused().ok() && model->Info().ok() && model->Input(0).ok() &&
                                 model->Output(0).ok() && model->FindInput("image").ok() && !model->FindOutput("image").ok(),
                             "lanes or model are odd");
      !status.ok()) {
    return status;
  }
  Counter strategy;
  plait_plan_options planning = PLAIT_PLAN_OPTIONS_INIT;
  planning.calibration_seconds_per_lane = 0;
  Result<Plan> plan = Plan::MakeBy(strategy, *model, *lanes, planning);
  if (!plan.ok()) return plan.status();
  const Status refusal = Plan::MakeBy([](const Problem&, Schedule*) { return Status(PLAIT_NOT_FOUND, "mine"); }, *model, *lanes, planning).status();
  if (refusal.code() != PLAIT_NOT_FOUND || refusal.message() != "mine") return Status(PLAIT_INTERNAL, "a strategy's own Status was lost");
  if (Status status = Expect(strategy.calls == 1 && plan->Info().ok() && plan->Explain().ok() && plan->ExplainJson().ok() && !plan->Save("/dev/null/x").ok() &&
                                 !Plan::Load(*model, *lanes, "/nowhere").ok() && !Model::LoadFile("/nowhere").ok() && !Model::LoadZoo("nothing").ok() &&
                                 !Model::LoadDescriptor(-1, 0, 0).ok() && !Calibrate(*model, *lanes).ok(),
                             "plans are odd");
      !status.ok()) {
    return status;
  }
  Result<Session> session = Session::Create(*plan);
  if (!session.ok()) return session.status();
  Session moved = std::move(*session);
  if (session->Run().code() != PLAIT_INVALID_ARGUMENT) return Status(PLAIT_INTERNAL, "a moved-from session ran");
  return UseSession(&moved);
}

}  // namespace plait::testing
