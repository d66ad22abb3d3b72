// The logical model: a DAG of operators over tensors of fixed shape. It knows no lanes, kernels or schedules.
//
// Every operator has exactly one output tensor (importers lower several-output operators, e.g. Split becomes Slices), so
// "a region of an operator's output" needs no further index. Images are NHWC; layouts of other frameworks are made
// NHWC by importers with Transpose operators, which the passes cancel.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/base/memory.h"
#include "src/base/status.h"
#include "src/graph/dims.h"

namespace plait {

enum class DType : uint8_t { kF32, kF16, kI8, kU8, kI32, kI64, kBool };
int64_t SizeOf(DType dtype);  // bytes of one element
std::string_view Name(DType dtype);  // "f32", "f16", "i8", ...

using TensorId = int32_t;
using OpId = int32_t;
inline constexpr TensorId kNoTensor = -1;
inline constexpr OpId kNoOp = -1;

// Bytes of a constant tensor: dense, row-major, native byte order, 64-byte aligned, immutable once in a graph, shared between graphs.
class ConstData {
 public:
  // Zero-filled. `bytes` >= 0. nullptr if the memory cannot be had. XNNPACK reads up to 16 bytes beyond the end; they exist.
  static std::shared_ptr<ConstData> Allocate(int64_t bytes);
  ConstData(const ConstData&) = delete;
  ConstData& operator=(const ConstData&) = delete;

  const void* data() const { return block_.data(); }
  void* mutable_data() { return block_.data(); }
  int64_t bytes() const { return bytes_; }
  template <typename T>
  const T* as() const { return static_cast<const T*>(data()); }
  template <typename T>
  T* as() { return static_cast<T*>(mutable_data()); }

 private:
  ConstData(Block block, int64_t bytes) : block_(std::move(block)), bytes_(bytes) {}
  Block block_;
  int64_t bytes_;
};

struct Tensor {
  std::string name;  // unique in the graph
  DType dtype = DType::kF32;
  Dims shape;
  std::shared_ptr<const ConstData> data;  // nullptr: computed by an operator, or a graph input

  bool is_constant() const { return data != nullptr; }
  int64_t bytes() const { return shape.Count() * SizeOf(dtype); }
};

enum class OpKind : uint8_t {
  kConv2D,           // x[N,H,W,Ci], w[Co,kh,kw,Ci/groups], bias[Co]? -> [N,Ho,Wo,Co]
  kDepthwiseConv2D,  // x[N,H,W,C], w[kh,kw,C], bias[C]? -> [N,Ho,Wo,C]; 1x1 is a per-channel scale and shift
  kFullyConnected,   // x[...,Ci], w[Co,Ci], bias[Co]? -> [...,Co]
  kMatMul,           // a[...,M,K], b[...,K,N] (transpose_b: [...,N,K]) -> [...,M,N]; batch dims equal
  kBinary,           // a, b broadcast as numpy does
  kUnary,            // elementwise
  kMaxPool2D,        // x[N,H,W,C]
  kAveragePool2D,    // x[N,H,W,C]
  kReduceMean,       // over ReduceAttrs::axes
  kSoftmax,          // over the innermost axis
  kLayerNorm,        // x[...,C], gamma[C], beta[C]: over the innermost axis
  kBatchNorm,        // x[...,C], gamma[C], beta[C], mean[C], variance[C]; the passes remove it
  kConcat,           // along ConcatAttrs::axis; always a view after PlaceCopies (src/partition/storage.h)
  kSlice,            // SliceAttrs::begin and the output's shape; step 1; a view
  kReshape,          // same elements, row-major; a view
  kTranspose,        // TransposeAttrs::perm: output axis i is input axis perm[i]
  kPad,              // constant padding
};
std::string_view Name(OpKind kind);  // "Conv2D", "DepthwiseConv2D", ...
inline constexpr int kOpKindCount = static_cast<int>(OpKind::kPad) + 1;

// The clamp that Conv2D, DepthwiseConv2D, FullyConnected, Binary and the pools apply to their result.
struct Clamp {
  float min = -std::numeric_limits<float>::infinity();
  float max = std::numeric_limits<float>::infinity();
  bool IsNone() const { return min == -std::numeric_limits<float>::infinity() && max == std::numeric_limits<float>::infinity(); }
  friend bool operator==(const Clamp&, const Clamp&) = default;
};
inline constexpr Clamp kRelu{0.0f, std::numeric_limits<float>::infinity()};
inline constexpr Clamp kRelu6{0.0f, 6.0f};

// Explicit padding, in elements; padded elements are zero for convolutions and absent for pools.
struct Padding {
  int32_t top = 0, left = 0, bottom = 0, right = 0;
  friend bool operator==(const Padding&, const Padding&) = default;
};

struct Conv2DAttrs {  // also DepthwiseConv2D, which ignores groups
  int32_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, groups = 1;
  Padding pad;
  Clamp clamp;
  friend bool operator==(const Conv2DAttrs&, const Conv2DAttrs&) = default;
};
struct Pool2DAttrs {
  int32_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
  Padding pad;
  bool count_include_pad = false;  // average pool: divide by the whole window
  Clamp clamp;
  friend bool operator==(const Pool2DAttrs&, const Pool2DAttrs&) = default;
};
struct FullyConnectedAttrs {
  Clamp clamp;
  friend bool operator==(const FullyConnectedAttrs&, const FullyConnectedAttrs&) = default;
};
struct MatMulAttrs {
  bool transpose_b = false;
  friend bool operator==(const MatMulAttrs&, const MatMulAttrs&) = default;
};
enum class BinaryKind : uint8_t { kAdd, kSub, kMul, kDiv, kMax, kMin };
struct BinaryAttrs {
  BinaryKind kind = BinaryKind::kAdd;
  Clamp clamp;
  friend bool operator==(const BinaryAttrs&, const BinaryAttrs&) = default;
};
enum class UnaryKind : uint8_t {
  kCopy, kClamp, kSigmoid, kHardSigmoid /* clamp(x/6 + 1/2, 0, 1) */, kHardSwish /* x * HardSigmoid(x) */,
  kSilu /* x * sigmoid(x) */, kGelu /* x/2 * (1 + erf(x / sqrt 2)) */, kTanh, kExp, kSqrt, kErf, kNegate, kAbs, kSquare, kReciprocal, kLog
};
struct UnaryAttrs {
  UnaryKind kind = UnaryKind::kCopy;
  Clamp clamp;  // kClamp only
  friend bool operator==(const UnaryAttrs&, const UnaryAttrs&) = default;
};
struct ReduceAttrs {
  std::vector<int32_t> axes;  // ascending, non-negative
  bool keep_dims = true;
  friend bool operator==(const ReduceAttrs&, const ReduceAttrs&) = default;
};
struct SoftmaxAttrs {
  friend bool operator==(const SoftmaxAttrs&, const SoftmaxAttrs&) = default;
};
struct NormAttrs {  // LayerNorm, BatchNorm
  float epsilon = 1e-5f;
  friend bool operator==(const NormAttrs&, const NormAttrs&) = default;
};
struct ConcatAttrs {
  int32_t axis = 0;  // non-negative
  friend bool operator==(const ConcatAttrs&, const ConcatAttrs&) = default;
};
struct SliceAttrs {
  Dims begin;
  Dims size;
  friend bool operator==(const SliceAttrs&, const SliceAttrs&) = default;
};
struct ReshapeAttrs {
  Dims shape;
  friend bool operator==(const ReshapeAttrs&, const ReshapeAttrs&) = default;
};
struct TransposeAttrs {
  std::vector<int32_t> perm;
  friend bool operator==(const TransposeAttrs&, const TransposeAttrs&) = default;
};
struct PadAttrs {
  Dims before, after;
  float value = 0.0f;
  friend bool operator==(const PadAttrs&, const PadAttrs&) = default;
};

using OpAttrs = std::variant<std::monostate, Conv2DAttrs, Pool2DAttrs, FullyConnectedAttrs, MatMulAttrs, BinaryAttrs, UnaryAttrs,
                             ReduceAttrs, SoftmaxAttrs, NormAttrs, ConcatAttrs, SliceAttrs, ReshapeAttrs, TransposeAttrs, PadAttrs>;

struct Operator {
  std::string name;  // unique in the graph
  OpKind kind = OpKind::kUnary;
  std::vector<TensorId> inputs;  // kNoTensor for an absent optional one (bias)
  TensorId output = kNoTensor;
  OpAttrs attrs;

  template <typename T>
  const T& as() const { return *std::get_if<T>(&attrs); }  // the caller knows the kind
};

// A whole model. Value type: copies share constant data. A Graph that Validate() accepted is immutable by convention and
// may be read from any number of threads. Operators stand in topological order.
class Graph {
 public:
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Operator> ops;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<size_t>(id)]; }
  const Operator& op(OpId id) const { return ops[static_cast<size_t>(id)]; }
  const Tensor& input(const Operator& o, int i) const { return tensor(o.inputs[static_cast<size_t>(i)]); }
  const Tensor& output(const Operator& o) const { return tensor(o.output); }
  int op_count() const { return static_cast<int>(ops.size()); }
  int tensor_count() const { return static_cast<int>(tensors.size()); }

  // For each tensor the operator that computes it (kNoOp for inputs and constants), and the operators that read it.
  std::vector<OpId> Producers() const;
  std::vector<std::vector<OpId>> Consumers() const;
};

// Checks everything that later rooms rely on: ids in range, unique names, one producer a tensor, topological order,
// supported ranks and dtypes, attribute ranges, shapes equal to the inferred ones, sizes without overflow and constants of the
// right length. InvalidArgument names operator, tensor and values.
Status Validate(const Graph& graph);

// A 64-bit hash of structure, attributes, shapes and constant data; independent of names and of the machine. Two graphs
// with the same hash can share plans.
uint64_t Hash(const Graph& graph);
// The same without constant data: graphs of one architecture share plans' costs.
uint64_t StructureHash(const Graph& graph);

}  // namespace plait
