// The same in C++: loads a model, plans it for this machine's lanes, runs it twice, the second time in the background.   hello MODEL
#include <cstdio>
#include <plait/plait.hpp>
#include <vector>

namespace {

plait::Status Hello(const char* path) {
  auto lanes = plait::Lanes::Open();
  if (!lanes.ok()) return lanes.status();
  auto model = plait::Model::LoadFile(path);
  if (!model.ok()) return model.status();
  auto plan = plait::Plan::Make(*model, *lanes);
  if (!plan.ok()) return plan.status();
  auto session = plait::Session::Create(*plan);
  if (!session.ok()) return session.status();

  const auto input = session->Input<float>(0);
  if (!input.ok()) return input.status();
  for (size_t i = 0; i < input->size(); ++i) (*input)[i] = static_cast<float>(i % 255) / 255.0f;
  if (auto status = session->Run(); !status.ok()) return status;

  const auto output = session->Output<float>(0);
  if (!output.ok()) return output.status();
  std::vector<float> first(output->begin(), output->end());
  for (size_t i = 0; i < first.size() && i < 8; ++i) std::printf("%.4f ", static_cast<double>(first[i]));
  std::printf("\n");

  bool same = false;
  auto status = session->RunAsync([&](plait::Status outcome) { same = outcome.ok() && first == std::vector<float>(output->begin(), output->end()); });
  if (status.ok()) status = session->Wait();
  if (!status.ok()) return status;
  std::printf("the second run gave %s\n", same ? "the same" : "something else");
  return same ? plait::Status() : plait::Status(PLAIT_INTERNAL, "two runs differ");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: hello MODEL\n"), 2;
  const plait::Status status = Hello(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", plait_status_name(status.code()), status.message().c_str());
  return status.ok() ? 0 : 1;
}
