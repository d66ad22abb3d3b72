// The factor of attention scores, whether it stands behind the product or before it at the queries, into the weights that compute the queries.
#include <algorithm>
#include <optional>

#include "src/graph/operators.h"
#include "src/graph/passes/constants.h"
#include "src/graph/passes/editor.h"

namespace plait {
namespace {

bool MovesOnly(OpKind kind) { return kind == OpKind::kReshape || kind == OpKind::kSlice || kind == OpKind::kTranspose; }

// What an operand is when followed back through operators that only move elements: a tensor and the box that is read of it.
struct Origin {
  TensorId tensor;
  Region region;
};

Origin OriginOf(const Editor& editor, TensorId tensor) {
  constexpr int kMostMoves = 8;  // heads are taken apart by four at most
  Origin out{tensor, Region::Whole(editor.tensor(tensor).shape)};
  for (int i = 0; i < kMostMoves; ++i) {
    const OpId p = editor.producer(out.tensor);
    if (p == kNoOp || !MovesOnly(editor.op(p).kind)) break;
    out.region = InputRegion(editor.graph(), editor.op(p), 0, out.region);
    out.tensor = editor.op(p).inputs[0];
  }
  return out;
}

// Whether nothing but `reader` sees the channels [begin, begin + count) of `tensor`. Everything that reads it through moves is looked at.
bool SeenOnlyBy(const Editor& editor, TensorId tensor, const Use& reader, int64_t begin, int64_t count) {
  constexpr size_t kMostTensors = 64;
  std::vector<TensorId> moved = {tensor};
  for (size_t next = 0; next < moved.size(); ++next) {
    if (moved.size() > kMostTensors) return false;
    bool seen_by_other = editor.is_output(moved[next]);
    for (const Use& use : editor.uses(moved[next])) {
      if (MovesOnly(editor.op(use.first).kind)) {
        moved.push_back(editor.op(use.first).output);
      } else {
        seen_by_other = seen_by_other || use != reader;
      }
    }
    if (!seen_by_other) continue;
    const Origin origin = OriginOf(editor, moved[next]);
    if (origin.tensor != tensor) return false;
    const int last = origin.region.size.rank() - 1;
    if (origin.region.begin[last] < begin + count && begin < origin.region.begin[last] + origin.region.size[last]) return false;
  }
  return true;
}

// Scales some output channels of a FullyConnected with constant weights.
bool ScaleChannels(Editor& editor, OpId id, int64_t begin, int64_t count, float factor) {
  const Operator op = editor.op(id);
  const auto scaled = [&](TensorId constant) {
    const Tensor old = editor.tensor(constant);
    const int64_t row = old.shape.Count() / old.shape[0];
    std::vector<float> values(old.data->as<float>(), old.data->as<float>() + old.shape.Count());
    for (int64_t i = begin * row; i < (begin + count) * row; ++i) values[static_cast<size_t>(i)] *= factor;
    return editor.AddConstant(old.name, old.shape, values);
  };
  std::vector<TensorId> inputs = {op.inputs[0], scaled(op.inputs[1])};
  if (op.inputs.size() > 2 && op.inputs[2] != kNoTensor) inputs.push_back(scaled(op.inputs[2]));
  if (std::find(inputs.begin(), inputs.end(), kNoTensor) != inputs.end()) return false;
  editor.Become(id, OpKind::kFullyConnected, std::move(inputs), op.attrs);
  return true;
}

void FoldScaleOf(Editor& editor, OpId scale) {
  std::optional<ScalarOperand> by = MatchScalar(editor, scale, BinaryKind::kMul);
  if (const auto div = MatchScalar(editor, scale, BinaryKind::kDiv); div && !div->scalar_first && div->value != 0) {
    by = ScalarOperand{div->other, 1.0f / div->value, false};
  }
  if (!by || !editor.op(scale).as<BinaryAttrs>().clamp.IsNone()) return;
  const OpId last = editor.producer(by->other);
  if (last == kNoOp || editor.OnlyReader(by->other) != scale) return;
  // Behind a product its left operand is scaled, else what the factor reads.
  const bool behind_product = editor.op(last).kind == OpKind::kMatMul;
  const TensorId scaled = behind_product ? editor.op(last).inputs[0] : by->other;
  const Use reader = behind_product ? Use{last, 0} : *editor.uses(by->other).begin();
  const Origin origin = OriginOf(editor, scaled);
  const OpId fc = editor.ProducerOfKind(origin.tensor, OpKind::kFullyConnected);
  if (fc == kNoOp || !editor.op(fc).as<FullyConnectedAttrs>().clamp.IsNone() || Floats(editor, editor.op(fc).inputs[1]) == nullptr) return;
  const bool has_bias = editor.op(fc).inputs.size() > 2 && editor.op(fc).inputs[2] != kNoTensor;
  if (has_bias && Floats(editor, editor.op(fc).inputs[2]) == nullptr) return;
  // The operand has to be those channels of all rows and nothing else of the box.
  const int axis = origin.region.size.rank() - 1;
  const int64_t begin = origin.region.begin[axis], count = origin.region.size[axis];
  if (origin.region.Count() != editor.tensor(scaled).shape.Count()) return;
  if (origin.region.Count() / count != editor.tensor(origin.tensor).shape.Count() / editor.tensor(origin.tensor).shape.back()) return;
  if (!SeenOnlyBy(editor, origin.tensor, reader, begin, count)) return;
  if (ScaleChannels(editor, fc, begin, count, by->value)) editor.TakeOver(last, scale);
}

}  // namespace

void FoldScales(Editor& editor) {
  for (const OpId id : editor.Order()) {
    if (editor.alive(id) && editor.op(id).kind == OpKind::kBinary) FoldScaleOf(editor, id);
  }
}

}  // namespace plait
