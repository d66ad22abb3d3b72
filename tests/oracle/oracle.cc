#include "tests/oracle/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "backends/reference/reference.h"
#include "src/base/checked.h"

#ifdef PLAIT_HAVE_ONNXRUNTIME
#include <onnxruntime_c_api.h>
#endif

namespace plait {

#ifdef PLAIT_HAVE_ONNXRUNTIME
namespace {

const OrtApi& Api() {
  static const OrtApi* const api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  return *api;
}

Status Check(OrtStatus* status) {
  if (status == nullptr) return Status();
  const std::string message = Api().GetErrorMessage(status);
  Api().ReleaseStatus(status);
  return InvalidArgument("ONNX Runtime: ", message);
}

// One run's objects, released together.
class OracleRun {
 public:
  ~OracleRun() {
    for (OrtValue* v : values_) Api().ReleaseValue(v);
    if (memory_ != nullptr) Api().ReleaseMemoryInfo(memory_);
    if (session_ != nullptr) Api().ReleaseSession(session_);
    if (options_ != nullptr) Api().ReleaseSessionOptions(options_);
  }

  Status Load(std::string_view model) {
    static OrtEnv* const environment = [] {
      OrtEnv* env = nullptr;
      if (OrtStatus* status = Api().CreateEnv(ORT_LOGGING_LEVEL_ERROR, "plait", &env)) Api().ReleaseStatus(status);
      return env;
    }();
    PLAIT_RETURN_IF_ERROR(Check(Api().CreateSessionOptions(&options_)));
    PLAIT_RETURN_IF_ERROR(Check(Api().SetIntraOpNumThreads(options_, 1)));
    PLAIT_RETURN_IF_ERROR(Check(Api().SetSessionGraphOptimizationLevel(options_, ORT_DISABLE_ALL)));
    PLAIT_RETURN_IF_ERROR(
        Check(Api().CreateSessionFromArray(environment, model.data(), model.size(), options_, &session_)));
    return Check(Api().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory_));
  }

  Result<std::vector<OracleTensor>> Run(const std::vector<OracleTensor>& inputs) {
    std::vector<const char*> input_names;
    for (const OracleTensor& t : inputs) {
      OrtValue* value = nullptr;
      PLAIT_RETURN_IF_ERROR(Check(Api().CreateTensorWithDataAsOrtValue(
          memory_, const_cast<float*>(t.values.data()), t.values.size() * sizeof(float), t.shape.data(), t.shape.size(),
          ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value)));
      values_.push_back(value);
      input_names.push_back(t.name.c_str());
    }
    PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> names, OutputNames());
    std::vector<const char*> output_names;
    for (const std::string& n : names) output_names.push_back(n.c_str());
    std::vector<OrtValue*> outputs(names.size(), nullptr);
    const Status status = Check(Api().Run(session_, nullptr, input_names.data(), values_.data(), inputs.size(),
                                          output_names.data(), names.size(), outputs.data()));
    values_.insert(values_.end(), outputs.begin(), outputs.end());
    if (!status.ok()) return status;
    std::vector<OracleTensor> out;
    for (size_t i = 0; i < names.size(); ++i) {
      PLAIT_ASSIGN_OR_RETURN(OracleTensor tensor, Read(outputs[i]));
      tensor.name = names[i];
      out.push_back(std::move(tensor));
    }
    return out;
  }

 private:
  Result<std::vector<std::string>> OutputNames() {
    OrtAllocator* allocator = nullptr;
    PLAIT_RETURN_IF_ERROR(Check(Api().GetAllocatorWithDefaultOptions(&allocator)));
    size_t count = 0;
    PLAIT_RETURN_IF_ERROR(Check(Api().SessionGetOutputCount(session_, &count)));
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      PLAIT_RETURN_IF_ERROR(Check(Api().SessionGetOutputName(session_, i, allocator, &name)));
      names.emplace_back(name);
      PLAIT_RETURN_IF_ERROR(Check(Api().AllocatorFree(allocator, name)));
    }
    return names;
  }

  static Result<OracleTensor> Read(OrtValue* value) {
    OrtTensorTypeAndShapeInfo* info = nullptr;
    PLAIT_RETURN_IF_ERROR(Check(Api().GetTensorTypeAndShape(value, &info)));
    OracleTensor tensor;
    size_t rank = 0, count = 0;
    Status status = Check(Api().GetDimensionsCount(info, &rank));
    tensor.shape.resize(rank);
    if (status.ok()) status = Check(Api().GetDimensions(info, tensor.shape.data(), rank));
    if (status.ok()) status = Check(Api().GetTensorShapeElementCount(info, &count));
    Api().ReleaseTensorTypeAndShapeInfo(info);
    if (!status.ok()) return status;
    void* data = nullptr;
    PLAIT_RETURN_IF_ERROR(Check(Api().GetTensorMutableData(value, &data)));
    tensor.values.resize(count);
    std::memcpy(tensor.values.data(), data, count * sizeof(float));
    return tensor;
  }

  OrtSessionOptions* options_ = nullptr;
  OrtSession* session_ = nullptr;
  OrtMemoryInfo* memory_ = nullptr;
  std::vector<OrtValue*> values_;
};

}  // namespace

bool HasOracle() { return true; }

Result<std::vector<OracleTensor>> RunOracle(std::string_view model, const std::vector<OracleTensor>& inputs) {
  OracleRun run;
  PLAIT_RETURN_IF_ERROR(run.Load(model));
  return run.Run(inputs);
}
#else
bool HasOracle() { return false; }

Result<std::vector<OracleTensor>> RunOracle(std::string_view, const std::vector<OracleTensor>&) {
  return Unsupported("these tests were built without ONNX Runtime");
}
#endif

Result<std::vector<OracleTensor>> RunReference(const Graph& graph, const std::vector<OracleTensor>& inputs) {
  std::vector<const void*> pointers;
  for (const TensorId id : graph.inputs) {
    const Tensor& t = graph.tensor(id);
    const auto found =
        std::find_if(inputs.begin(), inputs.end(), [&](const OracleTensor& i) { return i.name == t.name; });
    if (found == inputs.end()) return InvalidArgument("no input '", t.name, "'");
    if (static_cast<int64_t>(found->values.size()) != t.shape.Count()) {
      return InvalidArgument("the input '", t.name, "' has another size");
    }
    pointers.push_back(found->values.data());
  }
  std::vector<std::vector<std::byte>> bytes;
  PLAIT_RETURN_IF_ERROR(EvaluateReference(graph, pointers, &bytes));
  std::vector<OracleTensor> out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const Tensor& t = graph.tensor(graph.outputs[i]);
    OracleTensor tensor{t.name, std::vector<int64_t>(t.shape.begin(), t.shape.end()),
                        std::vector<float>(bytes[i].size() / sizeof(float))};
    std::memcpy(tensor.values.data(), bytes[i].data(), bytes[i].size());
    out.push_back(std::move(tensor));
  }
  return out;
}

std::vector<OracleTensor> RandomInputs(const Graph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<OracleTensor> inputs;
  for (const TensorId id : graph.inputs) {
    const Tensor& t = graph.tensor(id);
    OracleTensor tensor{t.name, std::vector<int64_t>(t.shape.begin(), t.shape.end()),
                        std::vector<float>(static_cast<size_t>(t.shape.Count()))};
    for (float& v : tensor.values) v = static_cast<float>(random() >> 40) / static_cast<float>(1 << 23) - 1.0f;
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

double RelativeError(std::span<const float> expected, std::span<const float> actual) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (expected.size() != actual.size()) return kInfinity;
  double largest = 0, difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(expected[i]) || !std::isfinite(actual[i])) return kInfinity;
    largest = std::max<double>(largest, std::fabs(expected[i]));
    difference = std::max<double>(difference, std::fabs(static_cast<double>(expected[i]) - actual[i]));
  }
  return largest > 0 ? difference / largest : kInfinity;
}

double RelativeError(const std::vector<OracleTensor>& expected, const std::vector<OracleTensor>& actual) {
  double worst = expected.size() == actual.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    if (expected[i].shape != actual[i].shape) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, RelativeError(expected[i].values, actual[i].values));
  }
  return worst;
}

}  // namespace plait
