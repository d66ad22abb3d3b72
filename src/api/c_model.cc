#include <map>

#include "src/api/c_objects.h"
#include "src/api/models.h"
#include "src/base/file_io.h"
#include "src/formats/load.h"
#include "src/graph/operators.h"
#include "src/zoo/zoo.h"

namespace plait::c_api {
namespace {

Result<ImportOptions> ReadModelOptions(const plait_model_options* options) {
  PLAIT_ASSIGN_OR_RETURN(const plait_model_options given, ReadOptions<plait_model_options>(options, PLAIT_MODEL_OPTIONS_INIT, "plait_model_options"));
  ImportOptions import;
  if (given.shape_count > 0 && given.shapes == nullptr) return NullArgument("plait_model_options::shapes");
  for (size_t i = 0; i < given.shape_count; ++i) {
    const plait_shape& shape = given.shapes[i];
    if (shape.input == nullptr || (shape.rank > 0 && shape.dims == nullptr)) return InvalidArgument("plait_model_options::shapes[", i, "] has a NULL name or NULL dims");
    if (shape.rank > kMaxRank) return InvalidArgument("plait_model_options::shapes[", i, "]: rank ", shape.rank, "; at most ", kMaxRank);
    Dims dims;
    for (size_t k = 0; k < shape.rank; ++k) {
      if (shape.dims[k] < 1) return InvalidArgument("plait_model_options::shapes[", i, "]: size ", shape.dims[k], " of axis ", k, " is not positive");
      dims.push_back(shape.dims[k]);
    }
    if (!import.shapes.emplace(shape.input, dims).second) return InvalidArgument("plait_model_options::shapes: input '", shape.input, "' stands there twice");
  }
  return import;
}

Status Keep(Result<Graph> graph, plait_model** model) {
  if (!graph.ok()) return graph.status();
  auto object = std::make_shared<plait_model>();
  object->graph = std::make_shared<const Graph>(std::move(graph).value());
  Publish(std::move(object), model);
  return Status();
}

Status Fill(const plait_model* model, bool is_input, size_t i, plait_tensor_info* info) {
  PLAIT_ASSIGN_OR_RETURN(const auto object, Find(model, "model"));
  const Graph& graph = *object->graph;
  const std::vector<TensorId>& ids = is_input ? graph.inputs : graph.outputs;
  if (i >= ids.size()) return NotFound(is_input ? "input " : "output ", i, ": the model has ", ids.size());
  const Tensor& tensor = graph.tensor(ids[i]);
  plait_tensor_info filled = PLAIT_TENSOR_INFO_INIT;
  filled.name = tensor.name.c_str();
  filled.dtype = static_cast<plait_dtype>(tensor.dtype);
  filled.rank = tensor.shape.rank();
  for (int k = 0; k < filled.rank; ++k) filled.dims[k] = tensor.shape[k];
  filled.bytes = static_cast<uint64_t>(tensor.bytes());
  return WriteInfo(filled, info, "plait_tensor_info");
}

Status FindByName(const plait_model* model, bool is_input, const char* name, size_t* i) {
  if (i == nullptr) return NullArgument("i");
  PLAIT_ASSIGN_OR_RETURN(const auto object, Find(model, "model"));
  const Graph& graph = *object->graph;
  PLAIT_ASSIGN_OR_RETURN(*i, FindTensor(graph, is_input ? graph.inputs : graph.outputs, name, is_input ? "input" : "output"));
  return Status();
}

static_assert(PLAIT_MAX_RANK == kMaxRank);
static_assert(PLAIT_F32 == static_cast<int>(DType::kF32) && PLAIT_F16 == static_cast<int>(DType::kF16) && PLAIT_I8 == static_cast<int>(DType::kI8) &&
              PLAIT_U8 == static_cast<int>(DType::kU8) && PLAIT_I32 == static_cast<int>(DType::kI32) && PLAIT_I64 == static_cast<int>(DType::kI64) &&
              PLAIT_BOOL == static_cast<int>(DType::kBool));

}  // namespace

Result<size_t> FindTensor(const Graph& graph, const std::vector<TensorId>& ids, const char* name, const char* what) {
  if (name == nullptr) return NullArgument("name");
  std::string names;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (graph.tensor(ids[i]).name == name) return i;
    names += (names.empty() ? "" : ", ") + graph.tensor(ids[i]).name;
  }
  return NotFound("the model has no ", what, " '", name, "'; it has: ", names);
}

}  // namespace plait::c_api

using namespace plait;
using namespace plait::c_api;

plait_status plait_model_load_file(const char* path, const plait_model_options* options, plait_model** model) {
  return Guarded([&]() -> Status {
    if (path == nullptr) return NullArgument("path");
    if (model == nullptr) return NullArgument("model");
    PLAIT_ASSIGN_OR_RETURN(const ImportOptions import, ReadModelOptions(options));
    return Keep(LoadModelFile(path, import), model);
  });
}

plait_status plait_model_load_memory(const void* data, size_t bytes, const plait_model_options* options, plait_model** model) {
  return Guarded([&]() -> Status {
    if (data == nullptr && bytes > 0) return NullArgument("data");
    if (model == nullptr) return NullArgument("model");
    PLAIT_ASSIGN_OR_RETURN(const ImportOptions import, ReadModelOptions(options));
    return Keep(LoadModelBytes({static_cast<const char*>(data), bytes}, import), model).Annotated("the model in memory");
  });
}

plait_status plait_model_load_fd(int fd, int64_t offset, int64_t length, const plait_model_options* options, plait_model** model) {
  return Guarded([&]() -> Status {
    if (model == nullptr) return NullArgument("model");
    PLAIT_ASSIGN_OR_RETURN(const ImportOptions import, ReadModelOptions(options));
    const std::string what = StrCat("file descriptor ", fd);
    PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadDescriptor(fd, offset, length, what));
    return Keep(LoadModelBytes(bytes, import), model).Annotated(what);
  });
}

plait_status plait_model_load_zoo(const char* name, plait_model** model) {
  return Guarded([&]() -> Status {
    if (name == nullptr) return NullArgument("name");
    if (model == nullptr) return NullArgument("model");
    return Keep(BuildZooModel(name), model);
  });
}

const char* plait_zoo_name(size_t i) {
  const std::span<const ZooEntry> entries = ZooEntries();
  return i < entries.size() ? entries[i].name.data() : nullptr;  // literals: they end with NUL
}

plait_status plait_model_destroy(plait_model* model) { return Destroy(model, "model"); }

plait_status plait_model_get_info(const plait_model* model, plait_model_info* info) {
  return Guarded([&]() -> Status {
    PLAIT_ASSIGN_OR_RETURN(const auto object, Find(model, "model"));
    const Graph& graph = *object->graph;
    plait_model_info filled = PLAIT_MODEL_INFO_INIT;
    filled.name = graph.name.c_str();
    std::call_once(object->hash_once, [&] { object->hash = Hash(graph); });
    filled.hash = object->hash;
    filled.parameters = static_cast<uint64_t>(ParameterCount(graph));
    filled.macs = static_cast<uint64_t>(TotalMacs(graph));
    filled.input_count = static_cast<uint32_t>(graph.inputs.size());
    filled.output_count = static_cast<uint32_t>(graph.outputs.size());
    filled.operator_count = static_cast<uint32_t>(graph.ops.size());
    return WriteInfo(filled, info, "plait_model_info");
  });
}

plait_status plait_model_get_input(const plait_model* model, size_t i, plait_tensor_info* info) {
  return Guarded([&] { return Fill(model, true, i, info); });
}

plait_status plait_model_get_output(const plait_model* model, size_t i, plait_tensor_info* info) {
  return Guarded([&] { return Fill(model, false, i, info); });
}

plait_status plait_model_find_input(const plait_model* model, const char* name, size_t* i) {
  return Guarded([&] { return FindByName(model, true, name, i); });
}

plait_status plait_model_find_output(const plait_model* model, const char* name, size_t* i) {
  return Guarded([&] { return FindByName(model, false, name, i); });
}
