// Binary, Unary and BatchNorm.
#include <cmath>

#include "backends/reference/kernels.h"

namespace plait::reference {
namespace {

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
float HardSigmoid(float x) { return std::min(std::max(x / 6.0f + 0.5f, 0.0f), 1.0f); }

// The first element that an output row reads of an operand that numpy's rules broadcast, and its stride along the row.
struct BroadcastRow {
  const float* data;
  int64_t stride;
};
BroadcastRow RowOf(const Operand& in, const Dims& shape, const Dims& at) {
  const int rank = shape.rank(), shift = at.rank() - rank;
  Dims from = Dims::Filled(rank, 0);
  for (int i = 0; i < rank; ++i) from[i] = shape[i] == 1 ? 0 : at[i + shift];
  const bool repeats = rank == 0 || shape.back() == 1;
  return {in.At(from), repeats ? 0 : 1};
}

template <typename F>
std::unique_ptr<CpuKernel> BinaryKernel(KernelArgs args, F f) {
  const Clamp clamp = args.op->as<BinaryAttrs>().clamp;
  return MakeKernel([args = std::move(args), clamp, f] {
    const int64_t count = RowLength(args.region);
    ForEachRow(args.region, [&](const Dims& at) {
      const BroadcastRow a = RowOf(args.in[0], args.in_shape(0), at);
      const BroadcastRow b = RowOf(args.in[1], args.in_shape(1), at);
      float* to = args.out.At(at);
      if (a.stride == 1 && b.stride == 1) {
        for (int64_t i = 0; i < count; ++i) to[i] = Apply(clamp, f(a.data[i], b.data[i]));
      } else {
        for (int64_t i = 0; i < count; ++i) to[i] = Apply(clamp, f(a.data[i * a.stride], b.data[i * b.stride]));
      }
    });
  });
}

template <typename F>
std::unique_ptr<CpuKernel> UnaryKernel(KernelArgs args, F f) {
  return MakeKernel([args = std::move(args), f] {
    const int64_t count = RowLength(args.region);
    ForEachRow(args.region, [&](const Dims& at) {
      const float* from = args.in[0].At(at);
      float* to = args.out.At(at);
      for (int64_t i = 0; i < count; ++i) to[i] = f(from[i]);
    });
  });
}

}  // namespace

std::unique_ptr<CpuKernel> MakeBinary(KernelArgs args) {
  const BinaryKind kind = args.op->as<BinaryAttrs>().kind;
  switch (kind) {
    case BinaryKind::kAdd: return BinaryKernel(std::move(args), [](float a, float b) { return a + b; });
    case BinaryKind::kSub: return BinaryKernel(std::move(args), [](float a, float b) { return a - b; });
    case BinaryKind::kMul: return BinaryKernel(std::move(args), [](float a, float b) { return a * b; });
    case BinaryKind::kDiv: return BinaryKernel(std::move(args), [](float a, float b) { return a / b; });
    case BinaryKind::kMax: return BinaryKernel(std::move(args), [](float a, float b) { return std::max(a, b); });
    case BinaryKind::kMin: return BinaryKernel(std::move(args), [](float a, float b) { return std::min(a, b); });
  }
  return nullptr;
}

std::unique_ptr<CpuKernel> MakeUnary(KernelArgs args) {
  const UnaryAttrs attrs = args.op->as<UnaryAttrs>();
  const auto make = [&args](auto f) { return UnaryKernel(std::move(args), f); };
  switch (attrs.kind) {
    case UnaryKind::kCopy: return make([](float x) { return x; });
    case UnaryKind::kClamp: return make([clamp = attrs.clamp](float x) { return Apply(clamp, x); });
    case UnaryKind::kSigmoid: return make([](float x) { return Sigmoid(x); });
    case UnaryKind::kHardSigmoid: return make([](float x) { return HardSigmoid(x); });
    case UnaryKind::kHardSwish: return make([](float x) { return x * HardSigmoid(x); });
    case UnaryKind::kSilu: return make([](float x) { return x * Sigmoid(x); });
    case UnaryKind::kGelu: return make([](float x) { return 0.5f * x * (1.0f + std::erf(x * 0.70710678f)); });
    case UnaryKind::kTanh: return make([](float x) { return std::tanh(x); });
    case UnaryKind::kExp: return make([](float x) { return std::exp(x); });
    case UnaryKind::kSqrt: return make([](float x) { return std::sqrt(x); });
    case UnaryKind::kErf: return make([](float x) { return std::erf(x); });
    case UnaryKind::kNegate: return make([](float x) { return -x; });
    case UnaryKind::kAbs: return make([](float x) { return std::abs(x); });
    case UnaryKind::kSquare: return make([](float x) { return x * x; });
    case UnaryKind::kReciprocal: return make([](float x) { return 1.0f / x; });
    case UnaryKind::kLog: return make([](float x) { return std::log(x); });
  }
  return nullptr;
}

std::unique_ptr<CpuKernel> MakeBatchNorm(KernelArgs args) {
  const float epsilon = args.op->as<NormAttrs>().epsilon;
  std::vector<float> scales(static_cast<size_t>(RowLength(args.region)));
  return MakeKernel([args = std::move(args), epsilon, scales = std::move(scales)]() mutable {
    const int64_t first = args.region.begin.back(), count = args.region.size.back();
    const float *gamma = args.in[1].At(first), *beta = args.in[2].At(first);
    const float *mean = args.in[3].At(first), *variance = args.in[4].At(first);
    float* scale = scales.data();
    for (int64_t c = 0; c < count; ++c) scale[c] = gamma[c] / std::sqrt(variance[c] + epsilon);
    ForEachRow(args.region, [&](const Dims& at) {
      const float* from = args.in[0].At(at);
      float* to = args.out.At(at);
      for (int64_t c = 0; c < count; ++c) to[c] = (from[c] - mean[c]) * scale[c] + beta[c];
    });
  });
}

}  // namespace plait::reference
