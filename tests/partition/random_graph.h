// Random small graphs for property tests: every operator kind that has no bearing on values, many views.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "src/graph/builder.h"
#include "src/graph/operators.h"

namespace plait {

struct RandomGraphOptions {
  int ops = 20;
  int max_extent = 6;         // of an image axis
  int channel_multiple = 1;   // channels are multiples of this
  int view_percent = 50;      // share of Concat, Slice and Reshape
};

class RandomGraphMaker {
 public:
  RandomGraphMaker(uint64_t seed, const RandomGraphOptions& options)
      : random_(seed), options_(options), builder_("random") {}

  Graph Make() {
    const int inputs = 1 + Pick(2);
    for (int i = 0; i < inputs; ++i) pool_.push_back(builder_.Input(StrCat("in", i), Image()));
    for (int i = 0; i < options_.ops; ++i) {
      const TensorId made = Pick(100) < options_.view_percent ? AddView(i) : AddKernel(i);
      EXPECT_TRUE(builder_.ok()) << builder_.status().message();
      pool_.push_back(made);
    }
    std::vector<bool> read(builder_.graph().tensors.size(), false);
    for (const Operator& op : builder_.graph().ops) {
      for (TensorId t : op.inputs) {
        if (t != kNoTensor) read[static_cast<size_t>(t)] = true;
      }
    }
    const std::vector<Operator> ops = builder_.graph().ops;
    for (const Operator& op : ops) {
      // Everything that nobody reads, and a few others.
      if (!read[static_cast<size_t>(op.output)] || Pick(10) == 0) builder_.Output(op.output);
    }
    Result<Graph> graph = builder_.Build();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return std::move(graph).value();
  }

 private:
  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  TensorId Any() {
    const int n = static_cast<int>(pool_.size());
    return pool_[static_cast<size_t>(std::max(Pick(n), Pick(n)))];
  }
  Dims shape(TensorId t) const { return builder_.shape(t); }
  int64_t Channels() { return int64_t{options_.channel_multiple} * (1 + Pick(3)); }
  Dims Image() {
    const int extent = std::max(2, options_.max_extent - Pick(2));
    return {1, extent, extent, Channels()};
  }

  TensorId Weights(const std::string& name, Dims dims) {
    return builder_.Constant(name, dims, std::vector<float>(static_cast<size_t>(dims.Count()), 0.5f));
  }

  // The tensor as an image, through a Reshape if it has another rank.
  TensorId AsImage(TensorId t, const std::string& name) {
    const Dims& s = shape(t);
    if (s.rank() == 4) return t;
    Dims image{1, 1, s.Count() / s.back(), s.back()};
    return builder_.Add(name + "_image", OpKind::kReshape, {t}, ReshapeAttrs{image});
  }

  TensorId AddKernel(int i) {
    const std::string name = StrCat("k", i);
    const TensorId x = Any();
    switch (Pick(7)) {
      case 0: {
        const TensorId image = AsImage(x, name);
        const Dims& s = shape(image);
        const bool is_large = s[1] >= 3 && s[2] >= 3;
        const int64_t k = is_large ? 3 : 1, co = Channels();
        Conv2DAttrs attrs;
        attrs.stride_h = is_large ? 1 + Pick(2) : 1;
        if (is_large) attrs.pad = {1, 1, 1, 1};
        return builder_.Add(name, OpKind::kConv2D, {image, Weights(name + "_w", {co, k, k, s[3]}), kNoTensor}, attrs);
      }
      case 1: {
        const TensorId image = AsImage(x, name);
        const Dims& s = shape(image);
        return builder_.Add(name, OpKind::kDepthwiseConv2D,
                            {image, Weights(name + "_w", {1, 1, s[3]}), Weights(name + "_b", {s[3]})}, Conv2DAttrs{});
      }
      case 2: {
        for (int tries = 0; tries < 8; ++tries) {
          const TensorId y = Any();
          if (shape(y) == shape(x)) return builder_.Add(name, OpKind::kBinary, {x, y}, BinaryAttrs{});
        }
        return builder_.Add(name, OpKind::kBinary, {x, x}, BinaryAttrs{});
      }
      case 3:
        return builder_.Add(name, OpKind::kFullyConnected,
                            {x, Weights(name + "_w", {Channels(), shape(x).back()}), kNoTensor}, FullyConnectedAttrs{});
      case 4:
        return builder_.Add(name, OpKind::kSoftmax, {x}, SoftmaxAttrs{});
      case 5: {
        TransposeAttrs attrs;
        for (int a = 0; a < shape(x).rank(); ++a) attrs.perm.push_back(a);
        if (attrs.perm.size() > 1) std::swap(attrs.perm[attrs.perm.size() - 1], attrs.perm[attrs.perm.size() - 2]);
        return builder_.Add(name, OpKind::kTranspose, {x}, attrs);
      }
      default:
        return builder_.Add(name, OpKind::kUnary, {x}, UnaryAttrs{UnaryKind::kTanh, {}});
    }
  }

  TensorId AddView(int i) {
    const std::string name = StrCat("v", i);
    const TensorId x = Any();
    const Dims s = shape(x);
    switch (Pick(4)) {
      case 0: {
        SliceAttrs attrs{Dims::Filled(s.rank(), 0), s};
        const int axis = Pick(s.rank());
        if (s[axis] > 1) {
          attrs.begin[axis] = Pick(static_cast<int>(s[axis] - 1));
          attrs.size[axis] = 1 + Pick(static_cast<int>(s[axis] - attrs.begin[axis]));
        }
        return builder_.Add(name, OpKind::kSlice, {x}, attrs);
      }
      case 1: {
        Dims flat;
        const int64_t count = s.Count();
        const int64_t inner = s.back();
        switch (Pick(3)) {
          case 0: flat = {1, count / inner, inner}; break;
          case 1: flat = {1, count}; break;
          default: flat = inner % 2 == 0 ? Dims{count / inner, 2, inner / 2} : Dims{count / inner, inner}; break;
        }
        return builder_.Add(name, OpKind::kReshape, {x}, ReshapeAttrs{flat});
      }
      default: {
        std::vector<TensorId> operands{x};
        const int axis = Pick(3) == 0 ? Pick(s.rank()) : s.rank() - 1;
        for (int tries = 0; tries < 12; ++tries) {
          const TensorId y = Any();
          bool fits = shape(y).rank() == s.rank();
          for (int a = 0; fits && a < s.rank(); ++a) fits = a == axis || shape(y)[a] == s[a];
          if (fits && operands.size() < 4) operands.push_back(y);
        }
        if (operands.size() == 1) operands.push_back(x);
        int64_t total = 0;
        for (TensorId t : operands) total += shape(t)[axis];
        if (total > 64) operands.resize(1);
        return builder_.Add(name, OpKind::kConcat, operands, ConcatAttrs{axis});
      }
    }
  }

  std::mt19937_64 random_;
  RandomGraphOptions options_;
  GraphBuilder builder_;
  std::vector<TensorId> pool_;
};

inline Graph MakeRandomGraph(uint64_t seed, const RandomGraphOptions& options = {}) {
  return RandomGraphMaker(seed, options).Make();
}

}  // namespace plait
