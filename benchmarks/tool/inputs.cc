#include "benchmarks/tool/inputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "src/formats/npy.h"

namespace plait {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
uint64_t NextRandom(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void FillRandom(std::span<std::byte> bytes, DType dtype, uint64_t seed) {
  if (dtype != DType::kF32) {
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    return;
  }
  uint64_t state = seed;
  float* values = reinterpret_cast<float*>(bytes.data());
  for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
    values[i] = static_cast<float>(static_cast<double>(NextRandom(&state) >> 40) / (1 << 23) - 1.0);
  }
}

}  // namespace

Status FillInputs(const Graph& graph, const std::vector<std::string>& files, uint64_t seed, Session* session) {
  std::map<std::string, std::string> by_name;
  for (const std::string& option : files) {
    const size_t equals = option.find('=');
    if (equals == std::string::npos) return InvalidArgument("--input ", option, ": expected NAME=FILE.npy");
    if (!by_name.emplace(option.substr(0, equals), option.substr(equals + 1)).second) {
      return InvalidArgument("--input ", option, ": this input is given twice");
    }
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Tensor& tensor = graph.tensor(graph.inputs[i]);
    const std::span<std::byte> memory = session->input(static_cast<int>(i));
    const auto given = by_name.find(tensor.name);
    if (given == by_name.end()) {
      FillRandom(memory, tensor.dtype, seed + i);
      continue;
    }
    PLAIT_ASSIGN_OR_RETURN(const NpyArray array, ReadNpyFile(given->second));
    if (array.dtype != tensor.dtype || array.data.size() != memory.size()) {
      return InvalidArgument("input ", tensor.name, " wants ", Name(tensor.dtype), " ", ToString(tensor.shape), ", but ", given->second, " holds ",
                             Name(array.dtype), " ", ToString(array.shape));
    }
    std::memcpy(memory.data(), array.data.data(), memory.size());
    by_name.erase(given);
  }
  if (by_name.empty()) return Status();
  std::string names;
  for (TensorId id : graph.inputs) names += (names.empty() ? "" : ", ") + graph.tensor(id).name;
  return NotFound("--input ", by_name.begin()->first, ": the model has no such input; it has: ", names);
}

Status SaveOutputs(const Graph& graph, const Session& session, const std::string& dir) {
  if (::mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) return IoError(dir, ": cannot be created: ", std::strerror(errno));
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const Tensor& tensor = graph.tensor(graph.outputs[i]);
    std::string name = tensor.name;
    std::replace_if(name.begin(), name.end(), [](char c) { return c == '/' || c == ':'; }, '_');
    const std::span<const std::byte> memory = session.output(static_cast<int>(i));
    PLAIT_RETURN_IF_ERROR(WriteNpyFile(dir + "/" + name + ".npy", tensor.dtype, tensor.shape,
                                       std::string_view(reinterpret_cast<const char*>(memory.data()), memory.size())));
  }
  return Status();
}

double MaxRelativeError(const std::vector<std::vector<std::byte>>& a, const std::vector<std::vector<std::byte>>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const float* x = reinterpret_cast<const float*>(a[i].data());
    const float* y = reinterpret_cast<const float*>(b[i].data());
    const size_t count = std::min(a[i].size(), b[i].size()) / sizeof(float);
    double difference = 0, magnitude = 0;
    for (size_t k = 0; k < count; ++k) {
      const double d = std::fabs(static_cast<double>(x[k]) - y[k]);
      if (!std::isfinite(d)) return std::numeric_limits<double>::infinity();
      difference = std::max(difference, d);
      magnitude = std::max(magnitude, std::fabs(static_cast<double>(y[k])));
    }
    if (difference > 0) worst = std::max(worst, magnitude > 0 ? difference / magnitude : std::numeric_limits<double>::infinity());
  }
  return worst;
}

std::vector<std::vector<std::byte>> CopyOutputs(const Graph& graph, const Session& session) {
  std::vector<std::vector<std::byte>> outputs;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const std::span<const std::byte> memory = session.output(static_cast<int>(i));
    outputs.emplace_back(memory.begin(), memory.end());
  }
  return outputs;
}

}  // namespace plait
