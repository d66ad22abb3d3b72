// What channel blocks are worth: weight-heavy layers with the backend told of an L2 of several sizes. "none" never blocks.
// A block's packed weights take up to 60 % of the size; docs/xnnpack.md has the table.
#include <benchmark/benchmark.h>

#include "benchmarks/micro/prepared_kernel.h"

namespace plait {
namespace {

struct LayerShape {
  const char* name;
  int64_t kernel, inputs, outputs, side;  // side: image side; 0: fully connected with `rows`
  int64_t rows = 0;
};

constexpr LayerShape kLayers[] = {
    {"rn50_3x3_512@7", 3, 512, 512, 7},       {"rn50_3x3_256@14", 3, 256, 256, 14},     {"rn50_3x3_128@28", 3, 128, 128, 28},
    {"rn50_1x1_512-2048@7", 1, 512, 2048, 7}, {"rn50_1x1_2048-512@7", 1, 2048, 512, 7}, {"rn50_1x1_1024-256@14", 1, 1024, 256, 14},
    {"rn50_1x1_256-1024@14", 1, 256, 1024, 14}, {"mbv2_1x1_320-1280@7", 1, 320, 1280, 7}, {"mbv2_1x1_160-960@7", 1, 160, 960, 7},
    {"vit_fc_197x768-3072", 0, 768, 3072, 0, 197},
    {"vit_fc_197x3072-768", 0, 3072, 768, 0, 197}, {"vit_fc_197x768-768", 0, 768, 768, 0, 197}, {"vit_ti_fc_197x192-768", 0, 192, 768, 0, 197},
    {"fc_16x768-3072", 0, 768, 3072, 0, 16},
};

Graph LayerGraph(const LayerShape& s) {
  GraphBuilder b(s.name);
  if (s.rows > 0) {
    const TensorId x = b.Input("x", {s.rows, s.inputs});
    return Built(b, b.Add("fc", OpKind::kFullyConnected, {x, Weights(b, "w", {s.outputs, s.inputs}), Weights(b, "bias", {s.outputs})},
                          FullyConnectedAttrs{}));
  }
  Conv2DAttrs a;
  const auto pad = static_cast<int32_t>(s.kernel / 2);
  a.pad = {pad, pad, pad, pad};
  const TensorId x = b.Input("x", {1, s.side, s.side, s.inputs});
  return Built(b, b.Add("conv", OpKind::kConv2D,
                        {x, Weights(b, "w", {s.outputs, s.kernel, s.kernel, s.inputs}), Weights(b, "bias", {s.outputs})}, a));
}

void RunLayer(benchmark::State& state, const LayerShape* shape, int64_t l2_bytes) {
  PreparedKernel kernel(LayerGraph(*shape), l2_bytes, 1);
  for (auto _ : state) {
    if (!kernel.Run().ok()) state.SkipWithError("the kernel failed");
  }
}

void Register() {
  constexpr int64_t kNever = int64_t{1} << 40;
  for (const LayerShape& shape : kLayers) {
    for (const int64_t l2 : {kNever, int64_t{256} << 10, int64_t{512} << 10, int64_t{1} << 20}) {
      const std::string size = l2 == kNever ? "none" : std::to_string(l2 >> 10) + "K";
      benchmark::RegisterBenchmark((std::string(shape.name) + "/l2:" + size).c_str(), RunLayer, &shape, l2)->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace
}  // namespace plait

int main(int argc, char** argv) {
  plait::Register();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
