#include "backends/interface/steps.h"

namespace plait {

bool View::IsDense() const {
  int64_t expected = 1;
  for (int i = region.size.rank() - 1; i >= 0; --i) {
    if (region.size[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= region.size[i];
  }
  return true;
}

int64_t View::EndOffset() const {
  if (region.IsEmpty()) return offset;
  int64_t last = 0;
  for (int i = 0; i < region.size.rank(); ++i) last += (region.size[i] - 1) * strides[i];
  return offset + (last + 1) * SizeOf(dtype);
}

std::string_view Name(StepKind kind) {
  switch (kind) {
    case StepKind::kCompute: return "compute";
    case StepKind::kConvert: return "convert";
    case StepKind::kAcquire: return "acquire";
    case StepKind::kPublish: return "publish";
    case StepKind::kSubmit: return "submit";
    case StepKind::kGang: return "gang";
  }
  return "unknown";
}

}  // namespace plait
