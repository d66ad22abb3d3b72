#include <array>
#include <charconv>
#include <span>
#include <string>
#include <type_traits>
#include <variant>

#include "predictors/latency.h"

namespace plait {
namespace {

void Append(std::string* out, int64_t value) {
  std::array<char, 24> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out->append(digits.data(), end);
}

template <typename Range>
void AppendList(std::string* out, char tag, const Range& values, char separator = ',') {
  out->push_back(tag);
  bool is_first = true;
  for (int64_t value : values) {
    if (!is_first) out->push_back(separator);
    is_first = false;
    Append(out, value);
  }
}

// Kernels are chosen by whether there are bounds, not by their values.
void AppendClamp(std::string* out, const Clamp& clamp) { out->append(clamp.IsNone() ? "" : clamp == kRelu ? ";relu" : ";clamp"); }

void AppendPadding(std::string* out, const Padding& pad) {
  AppendList(out, 'p', std::array<int64_t, 4>{pad.top, pad.left, pad.bottom, pad.right});
}

struct AttrWriter {
  std::string* out;
  void operator()(std::monostate) const {}
  void operator()(const Conv2DAttrs& a) const {
    AppendList(out, 's', std::array<int64_t, 2>{a.stride_h, a.stride_w});
    AppendList(out, 'd', std::array<int64_t, 2>{a.dilation_h, a.dilation_w});
    AppendList(out, 'g', std::array<int64_t, 1>{a.groups});
    AppendPadding(out, a.pad);
    AppendClamp(out, a.clamp);
  }
  void operator()(const Pool2DAttrs& a) const {
    AppendList(out, 'k', std::array<int64_t, 2>{a.kernel_h, a.kernel_w});
    AppendList(out, 's', std::array<int64_t, 2>{a.stride_h, a.stride_w});
    AppendPadding(out, a.pad);
    if (a.count_include_pad) out->push_back('i');
    AppendClamp(out, a.clamp);
  }
  void operator()(const FullyConnectedAttrs& a) const { AppendClamp(out, a.clamp); }
  void operator()(const MatMulAttrs& a) const { out->append(a.transpose_b ? "t" : ""); }
  void operator()(const BinaryAttrs& a) const {
    AppendList(out, 'b', std::array<int64_t, 1>{static_cast<int64_t>(a.kind)});
    AppendClamp(out, a.clamp);
  }
  void operator()(const UnaryAttrs& a) const { AppendList(out, 'u', std::array<int64_t, 1>{static_cast<int64_t>(a.kind)}); }
  void operator()(const ReduceAttrs& a) const { AppendList(out, 'r', a.axes); }
  void operator()(const SoftmaxAttrs&) const {}
  void operator()(const NormAttrs&) const {}
  void operator()(const ConcatAttrs& a) const { AppendList(out, 'a', std::array<int64_t, 1>{a.axis}); }
  void operator()(const SliceAttrs& a) const { AppendList(out, 'o', a.begin); }
  void operator()(const ReshapeAttrs&) const {}
  void operator()(const TransposeAttrs& a) const { AppendList(out, 'm', a.perm); }
  void operator()(const PadAttrs& a) const {
    AppendList(out, 'l', a.before);
    AppendList(out, 'h', a.after);
  }
};

void AppendTensor(std::string* out, const Tensor& tensor) {
  out->append(tensor.is_constant() ? "*" : "").append(Name(tensor.dtype));
  AppendList(out, ':', tensor.shape, 'x');
}

}  // namespace

std::string OpSignature(const Graph& graph, const Operator& op) {
  std::string out(Name(op.kind));
  out.reserve(128);
  for (TensorId input : op.inputs) {
    out.push_back(';');
    if (input == kNoTensor) {
      out.push_back('-');
    } else {
      AppendTensor(&out, graph.tensor(input));
    }
  }
  out.push_back('>');
  AppendTensor(&out, graph.output(op));
  out.push_back(';');
  std::visit(AttrWriter{&out}, op.attrs);
  return out;
}

}  // namespace plait
