#include <algorithm>
#include <bit>
#include <cstring>

#include "src/graph/graph.h"

namespace plait {
namespace {

static_assert(std::endian::native == std::endian::little, "constant data is hashed as little-endian bytes");

constexpr uint64_t kPrime = 0x9e3779b97f4a7c15u;

constexpr uint64_t Mix(uint64_t state, uint64_t value) {
  uint64_t x = (state ^ value) * kPrime;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}

uint64_t HashBytes(const void* data, int64_t bytes) {
  // Independent accumulators: weights are hundreds of megabytes, and one chain of multiplications would be latency-bound.
  constexpr int kLanes = 4;
  constexpr int64_t kBlock = kLanes * 8;
  uint64_t lanes[kLanes] = {1, 2, 3, 4};
  const char* p = static_cast<const char*>(data);
  int64_t done = 0;
  for (; done + kBlock <= bytes; done += kBlock) {
    for (int i = 0; i < kLanes; ++i) {
      uint64_t word;
      std::memcpy(&word, p + done + 8 * i, 8);
      lanes[i] = Mix(lanes[i], word);
    }
  }
  uint64_t hash = static_cast<uint64_t>(bytes);
  for (const uint64_t lane : lanes) hash = Mix(hash, lane);
  for (; done < bytes; done += 8) {
    uint64_t word = 0;
    std::memcpy(&word, p + done, static_cast<size_t>(std::min<int64_t>(8, bytes - done)));
    hash = Mix(hash, word);
  }
  return hash;
}

class Hasher {
 public:
  void Add(uint64_t v) { state_ = Mix(state_, v); }
  void Add(float v) { Add(uint64_t{std::bit_cast<uint32_t>(v)}); }
  void AddInt(int64_t v) { Add(static_cast<uint64_t>(v)); }
  void Add(const Dims& dims) {
    AddInt(dims.rank());
    for (const int64_t d : dims) AddInt(d);
  }
  void Add(const std::vector<int32_t>& values) {
    Add(uint64_t{values.size()});
    for (const int32_t v : values) AddInt(v);
  }
  void Add(const Clamp& c) { Add(c.min), Add(c.max); }
  void Add(const Padding& p) { AddInt(p.top), AddInt(p.left), AddInt(p.bottom), AddInt(p.right); }

  void operator()(std::monostate) {}
  void operator()(const Conv2DAttrs& a) {
    for (const int32_t v : {a.stride_h, a.stride_w, a.dilation_h, a.dilation_w, a.groups}) AddInt(v);
    Add(a.pad), Add(a.clamp);
  }
  void operator()(const Pool2DAttrs& a) {
    for (const int32_t v : {a.kernel_h, a.kernel_w, a.stride_h, a.stride_w, static_cast<int32_t>(a.count_include_pad)}) AddInt(v);
    Add(a.pad), Add(a.clamp);
  }
  void operator()(const FullyConnectedAttrs& a) { Add(a.clamp); }
  void operator()(const MatMulAttrs& a) { AddInt(a.transpose_b); }
  void operator()(const BinaryAttrs& a) { AddInt(static_cast<int>(a.kind)), Add(a.clamp); }
  void operator()(const UnaryAttrs& a) { AddInt(static_cast<int>(a.kind)), Add(a.clamp); }
  void operator()(const ReduceAttrs& a) { Add(a.axes), AddInt(a.keep_dims); }
  void operator()(const SoftmaxAttrs&) {}
  void operator()(const NormAttrs& a) { Add(a.epsilon); }
  void operator()(const ConcatAttrs& a) { AddInt(a.axis); }
  void operator()(const SliceAttrs& a) { Add(a.begin), Add(a.size); }
  void operator()(const ReshapeAttrs& a) { Add(a.shape); }
  void operator()(const TransposeAttrs& a) { Add(a.perm); }
  void operator()(const PadAttrs& a) { Add(a.before), Add(a.after), Add(a.value); }

  uint64_t state() const { return state_; }

 private:
  uint64_t state_ = 0x706c616974u;
};

// Tensors count in the order in which inputs and operators name them, so that neither names nor ids matter.
uint64_t HashGraph(const Graph& graph, bool with_data) {
  Hasher hasher;
  std::vector<int64_t> number(graph.tensors.size(), -1);
  int64_t next = 0;
  const auto add_tensor = [&](TensorId id) {
    if (id == kNoTensor) return hasher.AddInt(-1);
    int64_t& n = number[static_cast<size_t>(id)];
    if (n >= 0) return hasher.AddInt(n);
    n = next++;
    const Tensor& tensor = graph.tensor(id);
    hasher.AddInt(n);
    hasher.AddInt(static_cast<int>(tensor.dtype));
    hasher.Add(tensor.shape);
    hasher.AddInt(tensor.is_constant());
    if (with_data && tensor.is_constant()) hasher.Add(HashBytes(tensor.data->data(), tensor.data->bytes()));
  };
  hasher.Add(uint64_t{graph.inputs.size()});
  for (const TensorId t : graph.inputs) add_tensor(t);
  hasher.Add(uint64_t{graph.ops.size()});
  for (const Operator& op : graph.ops) {
    hasher.AddInt(static_cast<int>(op.kind));
    std::visit(hasher, op.attrs);
    hasher.Add(uint64_t{op.inputs.size()});
    for (const TensorId t : op.inputs) add_tensor(t);
    add_tensor(op.output);
  }
  hasher.Add(uint64_t{graph.outputs.size()});
  for (const TensorId t : graph.outputs) add_tensor(t);
  return hasher.state();
}

}  // namespace

uint64_t Hash(const Graph& graph) { return HashGraph(graph, true); }
uint64_t StructureHash(const Graph& graph) { return HashGraph(graph, false); }

}  // namespace plait
