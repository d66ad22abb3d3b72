// Runs one operator whole and in parts, on memory with and without gaps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/reference/reference.h"
#include "backends/xnnpack/xnnpack.h"
#include "src/graph/builder.h"
#include "src/graph/operators.h"

namespace plait {

using Random = std::mt19937;

inline int64_t Pick(Random& random, int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }
inline std::vector<float> RandomFloats(Random& random, int64_t count, float low = -1, float high = 1) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& v : out) v = uniform(random);
  return out;
}

// A tensor's memory: dense, or with gaps before each innermost run (as in a concatenated tensor) and after each row of axis 1
// (as in a cropped image). Gaps hold a value that no kernel may change.
class TensorMemory {
 public:
  enum class Gaps { kNone, kChannels, kEverywhere };
  static constexpr float kGap = 12345.0f;

  TensorMemory(const Dims& shape, Gaps gaps, Random& random) : shape_(shape), strides_(DenseStrides(shape)) {
    if (gaps != Gaps::kNone && shape.rank() > 1) {
      int64_t stride = shape.back() + Pick(random, 1, 40);
      offset_ = Pick(random, 0, stride - shape.back());
      for (int axis = shape.rank() - 2; axis >= 0; --axis) {
        strides_[axis] = stride;
        stride *= shape[axis];
        if (gaps == Gaps::kEverywhere) stride += Pick(random, 0, 7);
      }
    }
    int64_t last = offset_;
    for (int axis = 0; axis < shape.rank(); ++axis) last += (shape[axis] - 1) * strides_[axis];
    data_ = ConstData::Allocate((last + 1) * 4 + kBufferSlack);
    size_ = last + 1;
    std::fill_n(data_->as<float>(), size_, kGap);
  }

  // The view of `region`, and its address.
  View ViewOf(TensorId tensor, const Region& region) const {
    View view;
    view.buffer = 0;
    view.tensor = tensor;
    view.region = region;
    view.strides = strides_;
    view.offset = OffsetOf(region.begin) * 4;
    return view;
  }
  void* At(const Dims& index) { return data_->as<float>() + OffsetOf(index); }

  void Fill(const std::vector<float>& values) {
    ForEach([&](int64_t i, float& v) { v = values[static_cast<size_t>(i)]; });
  }
  std::vector<float> Values() {
    std::vector<float> out;
    ForEach([&](int64_t, float& v) { out.push_back(v); });
    return out;
  }
  // Whether every element outside the tensor still has the gap's value.
  bool GapsIntact() {
    std::vector<float> all(data_->as<float>(), data_->as<float>() + size_);
    ForEach([&](int64_t, float& v) { all[static_cast<size_t>(&v - data_->as<float>())] = kGap; });
    for (const float v : all) {
      if (v != kGap) return false;
    }
    return true;
  }

 private:
  int64_t OffsetOf(const Dims& index) const {
    int64_t at = offset_;
    for (int axis = 0; axis < index.rank(); ++axis) at += index[axis] * strides_[axis];
    return at;
  }
  template <typename F>
  void ForEach(F f) {
    for (int64_t i = 0; i < shape_.Count(); ++i) {
      Dims index = shape_;
      int64_t rest = i;
      for (int axis = shape_.rank() - 1; axis >= 0; --axis) {
        index[axis] = rest % shape_[axis];
        rest /= shape_[axis];
      }
      f(i, *static_cast<float*>(At(index)));
    }
  }

  Dims shape_, strides_;
  int64_t offset_ = 0, size_ = 0;
  std::shared_ptr<ConstData> data_;
};

// One operator with memory for its operands.
class OperatorCase {
 public:
  // `graph` has one operator that is no view; its computed inputs are graph inputs, filled with seeded values.
  OperatorCase(Graph graph, TensorMemory::Gaps gaps, Random& random, float low = -1, float high = 1)
      : graph_(std::move(graph)), random_(random), gaps_(gaps) {
    const Operator& op = graph_.op(0);
    for (const TensorId id : op.inputs) {
      if (id == kNoTensor || graph_.tensor(id).is_constant()) {
        inputs_.emplace_back(nullptr);
        continue;
      }
      inputs_.push_back(std::make_unique<TensorMemory>(graph_.tensor(id).shape, gaps, random));
      inputs_.back()->Fill(RandomFloats(random, graph_.tensor(id).shape.Count(), low, high));
    }
  }

  const Graph& graph() const { return graph_; }
  const Dims& output_shape() const { return graph_.output(graph_.op(0)).shape; }

  // Computes the regions one after another into one output; a failed expectation names what failed.
  std::vector<float> Run(CpuBackend& backend, CpuContext* context, const std::vector<Region>& regions) {
    TensorMemory output(output_shape(), gaps_, random_);
    for (const Region& region : regions) {
      std::unique_ptr<CpuKernel> kernel = Kernel(backend, context, region, &output);
      if (kernel == nullptr) return {};
      for (int repeat = 0; repeat < 2; ++repeat) {
        const Status status = kernel->Run();
        EXPECT_TRUE(status.ok()) << status.message();
      }
    }
    EXPECT_TRUE(output.GapsIntact()) << "wrote outside its view";
    return output.Values();
  }
  std::vector<float> RunWhole(CpuBackend& backend, CpuContext* context) {
    return Run(backend, context, {Region::Whole(output_shape())});
  }

  std::unique_ptr<CpuKernel> Kernel(CpuBackend& backend, CpuContext* context, const Region& region, TensorMemory* output) {
    const Operator& op = graph_.op(0);
    std::vector<View> views(op.inputs.size() + 1);
    KernelRequest request;
    request.graph = &graph_;
    request.op = 0;
    request.region = region;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      views[i].tensor = op.inputs[i];
      void* data = nullptr;
      if (op.inputs[i] != kNoTensor) {
        const Region needed = InputRegion(graph_, op, static_cast<int>(i), region);
        if (inputs_[i] != nullptr) {
          views[i] = inputs_[i]->ViewOf(op.inputs[i], needed);
          data = inputs_[i]->At(needed.begin);
        } else {
          const Tensor& tensor = graph_.tensor(op.inputs[i]);
          views[i].region = needed;
          views[i].strides = DenseStrides(tensor.shape);
          int64_t at = 0;
          for (int axis = 0; axis < tensor.shape.rank(); ++axis) at += needed.begin[axis] * views[i].strides[axis];
          views[i].offset = at * 4;
          data = const_cast<float*>(tensor.data->as<float>()) + at;
        }
      }
      request.reads.push_back({&views[i], data});
    }
    views.back() = output->ViewOf(op.output, region);
    request.write = {&views.back(), output->At(region.begin)};
    Result<std::unique_ptr<CpuKernel>> kernel = backend.CreateKernel(context, request);
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    return kernel.ok() ? std::move(*kernel) : nullptr;
  }

  // A random cut of the output along a random axis that obeys `rules`; nullopt-like empty if there is none.
  std::vector<Region> RandomParts(const KernelRules& rules) {
    const std::vector<SplitAxis> axes = SplitAxes(graph_, graph_.op(0));
    if (axes.empty()) return {};
    const SplitAxis axis = axes[static_cast<size_t>(Pick(random_, 0, static_cast<int64_t>(axes.size()) - 1))];
    const CutRule rule = rules.Cut(graph_, 0, axis);
    const int64_t extent = output_shape()[axis.axis];
    if (rule.alignment <= 0) return {};
    std::vector<Region> parts;
    for (int64_t begin = 0; begin < extent;) {
      const int64_t least = RoundUp(rule.minimum, rule.alignment);
      int64_t end = begin + RoundUp(Pick(random_, 1, extent - begin), rule.alignment);
      if (end - begin < least) end = begin + least;
      if (extent - end < rule.minimum) end = extent;
      Region part = Region::Whole(output_shape());
      part.begin[axis.axis] = begin;
      part.size[axis.axis] = end - begin;
      parts.push_back(part);
      begin = end;
    }
    return parts;
  }

 private:
  static int64_t RoundUp(int64_t v, int64_t a) { return (v + a - 1) / a * a; }

  Graph graph_;
  Random& random_;
  TensorMemory::Gaps gaps_;
  std::vector<std::unique_ptr<TensorMemory>> inputs_;
};

// The largest difference relative to the largest expected magnitude.
inline double RelativeError(const std::vector<float>& actual, const std::vector<float>& expected) {
  double worst = 0, largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(actual[i]) - expected[i]);
    worst = std::max(worst, std::isfinite(difference) ? difference : 1e30);
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
  }
  return largest == 0 ? worst : worst / largest;
}

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace plait
