// How fast the search prices: splits optimised a second at default effort, on a seeded wide graph and on a chain.
#include <benchmark/benchmark.h>

#include "src/schedule/random.h"
#include "src/schedule/search.h"

namespace plait {
namespace {

// `operators` with tables for `lanes`; each reads one or two of the `reach` before it.
Problem MakeProblem(int operators, int lanes, int reach) {
  Random random(1);
  Problem p;
  p.name = "benchmark";
  const size_t D = static_cast<size_t>(lanes);
  for (int d = 0; d < lanes; ++d) p.lanes.push_back({"lane" + std::to_string(d), d == 0});
  p.entry = p.exit = std::vector<Tick>(D, 0);
  p.sync.assign(D, std::vector<Tick>(D, 100));
  p.ps_per_byte.assign(D, std::vector<int64_t>(D, 20));
  for (size_t d = 0; d < D; ++d) p.sync[d][d] = p.ps_per_byte[d][d] = 0;
  for (int o = 0; o < operators; ++o) {
    ProblemOp op;
    op.out_bytes = 100000;
    op.modes.emplace_back();
    op.modes[0].units = 16;
    const Tick work = 20 + random.Below(200);
    for (int d = 0; d < lanes; ++d) {
      for (int u = 1; u <= 16; ++u) op.modes[0].cost.push_back(30 + work * u * (d + 1) / 2);
    }
    if (o > 0) op.inputs.push_back({o - 1 - static_cast<int>(random.Below(static_cast<uint32_t>(std::min(o, reach)))), {}});
    p.ops.push_back(std::move(op));
  }
  return p;
}

void BM_Search(benchmark::State& state) {
  const Problem problem = MakeProblem(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), static_cast<int>(state.range(2)));
  int64_t evaluations = 0;
  for (auto _ : state) {
    const auto solution = Solve(problem, {});
    if (!solution.ok()) state.SkipWithError(solution.status().message().c_str());
    evaluations += solution->evaluations;
  }
  state.counters["splits_per_s"] = benchmark::Counter(static_cast<double>(evaluations), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Search)->ArgNames({"operators", "lanes", "reach"})->Args({150, 2, 1})->Args({150, 4, 1})->Args({500, 3, 6})->Args({1000, 3, 6})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plait

BENCHMARK_MAIN();
