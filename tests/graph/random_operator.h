// Graphs of one random operator, for property tests of declarations and kernels.
#pragma once

#include <random>

#include "src/graph/builder.h"
#include "tests/graph/naive.h"

namespace plait::naive {

class RandomOperator {
 public:
  explicit RandomOperator(uint32_t seed) : random_(seed), builder_("random") {}

  // The graph, or the reason why these attributes fit no operator (some do not: a kernel that is larger than the image).
  Result<Graph> Make(OpKind kind) {
    switch (kind) {
      case OpKind::kConv2D: AddConv(); break;
      case OpKind::kDepthwiseConv2D: AddDepthwise(); break;
      case OpKind::kFullyConnected: AddFullyConnected(); break;
      case OpKind::kMatMul: AddMatMul(); break;
      case OpKind::kBinary: AddBinary(); break;
      case OpKind::kUnary: Finish(kind, {Input(Shape(1, 4))}, UnaryAttrs{UnaryKind::kTanh}); break;
      case OpKind::kMaxPool2D:
      case OpKind::kAveragePool2D: AddPool(kind); break;
      case OpKind::kReduceMean: AddReduce(); break;
      case OpKind::kSoftmax: Finish(kind, {Input(Shape(1, 4))}, SoftmaxAttrs{}); break;
      case OpKind::kLayerNorm: AddNorm(kind, 2); break;
      case OpKind::kBatchNorm: AddNorm(kind, 4); break;
      case OpKind::kConcat: AddConcat(); break;
      case OpKind::kSlice: AddSlice(); break;
      case OpKind::kReshape: AddReshape(); break;
      case OpKind::kTranspose: AddTranspose(); break;
      case OpKind::kPad: AddPad(); break;
    }
    return builder_.Build();
  }

  int Pick(int low, int high) { return low + static_cast<int>(random_() % static_cast<uint32_t>(high - low + 1)); }
  Dims Shape(int low_rank, int high_rank) {
    Dims shape;
    for (int rank = Pick(low_rank, high_rank); rank > 0; --rank) shape.push_back(Pick(1, 5));
    return shape;
  }
  Region RegionOf(const Dims& shape) {
    Region region = Region::Whole(shape);
    for (int i = 0; i < shape.rank(); ++i) {
      region.begin[i] = Pick(0, static_cast<int>(shape[i]) - 1);
      region.size[i] = Pick(1, static_cast<int>(shape[i] - region.begin[i]));
      if (Pick(0, 2) == 0) region.begin[i] = 0, region.size[i] = shape[i];
    }
    return region;
  }

 private:
  TensorId Input(const Dims& shape) { return builder_.Input(StrCat("x", ++count_), shape); }
  TensorId Weights(const Dims& shape) {
    return builder_.Constant(StrCat("w", ++count_), shape, RandomValues(random_, shape.Count(), 0.25f, 1));
  }
  void Finish(OpKind kind, std::vector<TensorId> inputs, OpAttrs attrs) {
    builder_.Output(builder_.Add("op", kind, std::move(inputs), std::move(attrs)));
  }
  Dims Image(int64_t channels) { return {Pick(1, 2), Pick(1, 9), Pick(1, 9), channels}; }
  Padding Pads(int most) { return {Pick(0, most), Pick(0, most), Pick(0, most), Pick(0, most)}; }
  Conv2DAttrs ConvAttrs(int groups) {
    return {.stride_h = Pick(1, 3), .stride_w = Pick(1, 3), .dilation_h = Pick(1, 2), .dilation_w = Pick(1, 2), .groups = groups, .pad = Pads(2)};
  }

  void AddConv() {
    const int groups = Pick(1, 3), in = Pick(1, 3), out = Pick(1, 3);
    std::vector<TensorId> inputs = {Input(Image(int64_t{in} * groups)), Weights({int64_t{out} * groups, Pick(1, 3), Pick(1, 3), in})};
    if (Pick(0, 1) == 0) inputs.push_back(Weights({int64_t{out} * groups}));
    Finish(OpKind::kConv2D, std::move(inputs), ConvAttrs(groups));
  }
  void AddDepthwise() {
    const int64_t channels = Pick(1, 4);
    std::vector<TensorId> inputs = {Input(Image(channels)), Weights({Pick(1, 3), Pick(1, 3), channels})};
    if (Pick(0, 1) == 0) inputs.push_back(Weights({channels}));
    Finish(OpKind::kDepthwiseConv2D, std::move(inputs), ConvAttrs(1));
  }
  void AddFullyConnected() {
    const Dims x = Shape(1, 4);
    const int64_t out = Pick(1, 5);
    Finish(OpKind::kFullyConnected, {Input(x), Weights({out, x.back()}), Pick(0, 1) == 0 ? kNoTensor : Weights({out})}, FullyConnectedAttrs{});
  }
  void AddMatMul() {
    Dims a = Shape(2, 4), b = a;
    const bool transposed = Pick(0, 1) == 0;
    const int64_t n = Pick(1, 5);
    b[b.rank() - 2] = transposed ? n : a.back();
    b[b.rank() - 1] = transposed ? a.back() : n;
    Finish(OpKind::kMatMul, {Input(a), Input(b)}, MatMulAttrs{transposed});
  }
  void AddBinary() {
    const Dims whole = Shape(1, 4);
    const auto operand = [&](bool full) {
      Dims shape;
      for (int i = full ? 0 : Pick(0, whole.rank()); i < whole.rank(); ++i) shape.push_back(Pick(0, 2) == 0 ? 1 : whole[i]);
      return Input(shape);
    };
    const bool first_full = Pick(0, 1) == 0;
    Finish(OpKind::kBinary, {operand(first_full), operand(!first_full)}, BinaryAttrs{BinaryKind::kAdd});
  }
  void AddPool(OpKind kind) {
    Pool2DAttrs attrs{.kernel_h = Pick(1, 3), .kernel_w = Pick(1, 3), .stride_h = Pick(1, 3), .stride_w = Pick(1, 3), .pad = Pads(1)};
    attrs.count_include_pad = Pick(0, 1) == 0;
    Finish(kind, {Input(Image(Pick(1, 4)))}, attrs);
  }
  void AddReduce() {
    const Dims shape = Shape(1, 4);
    ReduceAttrs attrs{{}, Pick(0, 1) == 0};
    for (int i = 0; i < shape.rank(); ++i) {
      if (Pick(0, 1) == 0) attrs.axes.push_back(i);
    }
    if (attrs.axes.empty()) attrs.axes.push_back(shape.rank() - 1);
    Finish(OpKind::kReduceMean, {Input(shape)}, attrs);
  }
  void AddNorm(OpKind kind, int vectors) {
    const Dims shape = Shape(1, 4);
    std::vector<TensorId> inputs = {Input(shape)};
    for (int i = 0; i < vectors; ++i) inputs.push_back(Weights({shape.back()}));
    Finish(kind, std::move(inputs), NormAttrs{});
  }
  void AddConcat() {
    const Dims shape = Shape(1, 4);
    const int axis = Pick(0, shape.rank() - 1);
    std::vector<TensorId> inputs;
    for (int i = Pick(1, 4); i > 0; --i) {
      Dims part = shape;
      part[axis] = Pick(1, 4);
      inputs.push_back(Input(part));
    }
    Finish(OpKind::kConcat, std::move(inputs), ConcatAttrs{axis});
  }
  void AddSlice() {
    const Dims shape = Shape(1, 4);
    const Region region = RegionOf(shape);
    Finish(OpKind::kSlice, {Input(shape)}, SliceAttrs{region.begin, region.size});
  }
  void AddReshape() {
    // Factors dealt to the axes of both shapes in the same order, so that the counts are equal.
    const auto deal = [&](const std::vector<int>& factors) {
      Dims shape;
      for (size_t i = 0; i < factors.size();) {
        if (Pick(0, 4) == 0 && shape.rank() < 3) shape.push_back(1);
        int64_t size = factors[i++];
        while (i < factors.size() && Pick(0, 1) == 0) size *= factors[i++];
        shape.push_back(size);
      }
      return shape;
    };
    std::vector<int> factors;
    for (int i = Pick(1, 4); i > 0; --i) factors.push_back(Pick(2, 3));
    const Dims x = deal(factors);
    if (Pick(0, 3) == 0) std::shuffle(factors.begin(), factors.end(), random_);
    Finish(OpKind::kReshape, {Input(x)}, ReshapeAttrs{deal(factors)});
  }
  void AddTranspose() {
    const Dims shape = Shape(1, 4);
    TransposeAttrs attrs;
    for (int i = 0; i < shape.rank(); ++i) attrs.perm.push_back(i);
    std::shuffle(attrs.perm.begin(), attrs.perm.end(), random_);
    Finish(OpKind::kTranspose, {Input(shape)}, attrs);
  }
  void AddPad() {
    const Dims shape = Shape(1, 4);
    PadAttrs attrs{{}, {}, 0.5f};
    for (int i = 0; i < shape.rank(); ++i) {
      attrs.before.push_back(Pick(0, 2));
      attrs.after.push_back(Pick(0, 2));
    }
    Finish(OpKind::kPad, {Input(shape)}, attrs);
  }

  std::mt19937 random_;
  GraphBuilder builder_;
  int count_ = 0;
};

}  // namespace plait::naive
