#include "src/graph/passes.h"

#include "src/graph/passes/editor.h"

namespace plait {

void RemoveDeadCode(Editor& editor) {
  std::vector<bool> needed(static_cast<size_t>(editor.graph().op_count()), false);
  std::vector<TensorId> pending = editor.graph().outputs;
  while (!pending.empty()) {
    const TensorId t = pending.back();
    pending.pop_back();
    const OpId p = t == kNoTensor ? kNoOp : editor.producer(t);
    if (p == kNoOp || needed[static_cast<size_t>(p)]) continue;
    needed[static_cast<size_t>(p)] = true;
    pending.insert(pending.end(), editor.op(p).inputs.begin(), editor.op(p).inputs.end());
  }
  for (OpId id = editor.graph().op_count() - 1; id >= 0; --id) {
    if (editor.alive(id) && !needed[static_cast<size_t>(id)]) editor.Erase(id);
  }
  editor.DropUnreadConstants();
}

bool FoldConstants(Graph* graph) { return RunPass(graph, FoldConstants); }
bool FoldBatchNorm(Graph* graph) { return RunPass(graph, FoldBatchNorm); }
bool FoldScales(Graph* graph) { return RunPass(graph, FoldScales); }
bool FuseClamps(Graph* graph) { return RunPass(graph, FuseClamps); }
bool FusePadding(Graph* graph) { return RunPass(graph, FusePadding); }
bool FuseBias(Graph* graph) { return RunPass(graph, FuseBias); }
bool RecognizeGelu(Graph* graph) { return RunPass(graph, RecognizeGelu); }
bool RecognizeLayerNorm(Graph* graph) { return RunPass(graph, RecognizeLayerNorm); }
bool RecognizeActivations(Graph* graph) { return RunPass(graph, RecognizeActivations); }
bool CancelTransposes(Graph* graph) { return RunPass(graph, CancelTransposes); }
bool SimplifyViews(Graph* graph) { return RunPass(graph, SimplifyViews); }
bool RemoveDeadCode(Graph* graph) { return RunPass(graph, RemoveDeadCode); }

Result<Graph> Optimize(const Graph& graph) {
  PLAIT_RETURN_IF_ERROR(Validate(graph));
  // Transposes go first, so that convolutions, norms, clamps and paddings come to stand side by side; what stands for one
  // activation is recognised before a clamp inside it is fused away.
  constexpr void (*kPasses[])(Editor&) = {RemoveDeadCode,       FoldConstants, CancelTransposes, SimplifyViews, RecognizeGelu, RecognizeLayerNorm,
                                          RecognizeActivations, FoldBatchNorm, FuseBias,         FoldScales,    FusePadding,
                                          FuseClamps};
  constexpr int kMostRounds = 32;  // two or three are the rule; the bound is for graphs that are made to be slow
  Editor editor(graph);
  for (int round = 0; round < kMostRounds; ++round) {
    editor.ClearChanged();
    for (const auto pass : kPasses) pass(editor);
    if (!editor.changed()) break;
  }
  Graph optimized = editor.Finish();
  PLAIT_RETURN_IF_ERROR(Validate(optimized));
  return optimized;
}

}  // namespace plait
