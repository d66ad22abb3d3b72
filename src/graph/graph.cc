#include "src/graph/graph.h"

#include <algorithm>
#include <utility>

#include "src/base/checked.h"

namespace plait {

int64_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32: return 4;
    case DType::kF16: return 2;
    case DType::kI64: return 8;
    case DType::kI8:
    case DType::kU8:
    case DType::kBool: return 1;
  }
  return 1;
}

std::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "f32";
    case DType::kF16: return "f16";
    case DType::kI8: return "i8";
    case DType::kU8: return "u8";
    case DType::kI32: return "i32";
    case DType::kI64: return "i64";
    case DType::kBool: return "bool";
  }
  return "unknown";
}

std::shared_ptr<ConstData> ConstData::Allocate(int64_t bytes) {
  constexpr int64_t kAlignment = kBlockAlignment, kSlack = 64, kLargest = int64_t{1} << 46;
  if (bytes < 0 || bytes > kLargest) return nullptr;
  Block block = Block::Allocate(static_cast<size_t>(RoundUp(bytes, kAlignment) + kSlack));
  if (block.data() == nullptr) return nullptr;
  return std::shared_ptr<ConstData>(new ConstData(std::move(block), bytes));
}

std::vector<OpId> Graph::Producers() const {
  std::vector<OpId> producers(tensors.size(), kNoOp);
  for (OpId o = 0; o < op_count(); ++o) producers[static_cast<size_t>(op(o).output)] = o;
  return producers;
}

std::vector<std::vector<OpId>> Graph::Consumers() const {
  std::vector<std::vector<OpId>> consumers(tensors.size());
  for (OpId o = 0; o < op_count(); ++o) {
    for (const TensorId t : op(o).inputs) {
      if (t == kNoTensor) continue;
      std::vector<OpId>& readers = consumers[static_cast<size_t>(t)];
      if (readers.empty() || readers.back() != o) readers.push_back(o);
    }
  }
  return consumers;
}

}  // namespace plait
