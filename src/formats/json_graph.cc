#include "src/formats/json_graph.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "src/base/checked.h"
#include "src/base/file_io.h"
#include "src/formats/attributes.h"
#include "src/formats/base64.h"
#include "src/formats/messages.h"
#include "src/graph/operators.h"

namespace plait {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "weights files are little-endian and are copied as they are");

constexpr char kFormat[] = "plait-graph";
constexpr int64_t kMostInlineValues = 16;  // longer constants go to the weights file
constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kI8, DType::kU8, DType::kI32, DType::kI64, DType::kBool};

// FNV-1a, 64 bits: it finds accidents, not forgery.
std::string Checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  char text[32];
  std::snprintf(text, sizeof(text), "fnv1a64:%016" PRIx64, hash);
  return text;
}

// --- writing

bool FitsInline(const Tensor& t) {
  if (t.dtype != DType::kF32 || t.shape.Count() > kMostInlineValues) return false;
  for (int64_t i = 0; i < t.shape.Count(); ++i) {
    const float v = t.data->as<float>()[i];
    if (!std::isfinite(v) || (v == 0 && std::signbit(v))) return false;
  }
  return true;
}

class GraphWriter {
 public:
  GraphWriter(const Graph& graph, std::string weights_file) : graph_(graph), weights_file_(std::move(weights_file)) {}

  GraphJson Run() {
    std::string tensors, operators;
    for (const Tensor& t : graph_.tensors) AppendLine(&tensors, EncodeTensor(t));
    for (const Operator& op : graph_.ops) AppendLine(&operators, EncodeOperator(op));
    std::string& text = out_.text;
    text = StrCat("{\n  \"format\": \"", kFormat, "\",\n  \"version\": ", kGraphJsonVersion,
                  ",\n  \"name\": ", Dump(graph_.name), ",\n");
    if (!out_.weights.empty()) {
      const json weights = {
          {"file", weights_file_}, {"bytes", out_.weights.size()}, {"checksum", Checksum(out_.weights)}};
      text += StrCat("  \"weights\": ", Dump(weights), ",\n");
    }
    text += StrCat("  \"inputs\": ", Dump(NamesOf(graph_.inputs)), ",\n  \"outputs\": ", Dump(NamesOf(graph_.outputs)),
                   ",\n");
    text += StrCat("  \"tensors\": [", tensors, "\n  ],\n  \"operators\": [", operators, "\n  ]\n}\n");
    return std::move(out_);
  }

 private:
  // Names that are no UTF-8 would make dump() throw; such bytes are replaced.
  static std::string Dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }
  static void AppendLine(std::string* list, const json& j) {
    *list += StrCat(list->empty() ? "\n    " : ",\n    ", Dump(j));
  }

  json NamesOf(const std::vector<TensorId>& ids) const {
    json names = json::array();
    for (const TensorId id : ids) names.push_back(id == kNoTensor ? json(nullptr) : json(graph_.tensor(id).name));
    return names;
  }

  json EncodeTensor(const Tensor& t) {
    json j = {
        {"name", t.name}, {"dtype", Name(t.dtype)}, {"shape", std::vector<int64_t>(t.shape.begin(), t.shape.end())}};
    if (!t.is_constant()) return j;
    const std::string_view bytes(static_cast<const char*>(t.data->data()), static_cast<size_t>(t.bytes()));
    if (FitsInline(t)) {
      j["values"] = std::vector<float>(t.data->as<float>(), t.data->as<float>() + t.shape.Count());
    } else if (weights_file_.empty()) {
      j["base64"] = EncodeBase64(bytes);
    } else {
      out_.weights.resize(static_cast<size_t>(RoundUp(static_cast<int64_t>(out_.weights.size()), kWeightAlignment)),
                          '\0');
      j["offset"] = out_.weights.size();
      out_.weights += bytes;
    }
    return j;
  }

  json EncodeOperator(const Operator& op) const {
    json j = {
        {"name", op.name}, {"kind", Name(op.kind)}, {"inputs", NamesOf(op.inputs)}, {"output", graph_.output(op).name}};
    json attributes = EncodeAttributes(op);
    if (!attributes.empty()) j["attributes"] = std::move(attributes);
    return j;
  }

  const Graph& graph_;
  const std::string weights_file_;
  GraphJson out_;
};

// --- reading

// One constant's bytes; ranges of the weights file that are read twice are shared, so that a small file cannot ask for much.
class Weights {
 public:
  Status Load(const json& description, const WeightsReader& read) {
    if (!description.is_object() || !description.contains("file") || !description["file"].is_string() ||
        !description.contains("checksum") || !description["checksum"].is_string()) {
      return Corrupt("\"weights\" must name a \"file\" and its \"checksum\"");
    }
    const std::string file = description["file"];
    PLAIT_ASSIGN_OR_RETURN(bytes_, read(file));
    if (description.contains("bytes") && description["bytes"] != bytes_.size()) {
      return Corrupt("the weights file '", file, "' has ", bytes_.size(), " bytes, not the ", description["bytes"].dump(),
                     " that the graph was written with; copy or export both again");
    }
    const std::string found = Checksum(bytes_);
    if (found != description["checksum"].get_ref<const std::string&>()) {
      return Corrupt("the weights file '", file, "' (", bytes_.size(),
                     " bytes) is not the one that the graph was written with: its checksum is ", found,
                     "; copy or export both again");
    }
    return Status();
  }

  Result<std::shared_ptr<const ConstData>> At(int64_t offset, int64_t bytes) {
    const auto size = static_cast<int64_t>(bytes_.size());
    if (offset < 0 || offset % kWeightAlignment != 0 || bytes > size || offset > size - bytes) {
      return Corrupt("its ", bytes, " bytes at offset ", offset, " are not in the ", size,
                     " bytes of weights, or not at a multiple of ", kWeightAlignment);
    }
    const auto found = shared_.find({offset, bytes});
    if (found != shared_.end()) return found->second;
    allocated_ += bytes;
    if (allocated_ > size) return Corrupt("its weights overlap those of other constants");
    std::shared_ptr<ConstData> data = ConstData::Allocate(bytes);
    if (data == nullptr) return OutOfMemory("no memory for ", bytes, " bytes of weights");
    std::memcpy(data->mutable_data(), bytes_.data() + offset, static_cast<size_t>(bytes));
    return shared_[{offset, bytes}] = std::move(data);
  }

 private:
  std::string bytes_;
  int64_t allocated_ = 0;
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<const ConstData>> shared_;
};

class GraphReader {
 public:
  explicit GraphReader(const json& root) : root_(root) {}

  Result<Graph> Run(const WeightsReader& read) {
    PLAIT_RETURN_IF_ERROR(CheckHeader());
    if (root_.contains("weights")) PLAIT_RETURN_IF_ERROR(weights_.Load(root_["weights"], read));
    if (root_.contains("name") && root_["name"].is_string()) graph_.name = root_["name"];
    PLAIT_RETURN_IF_ERROR(ForEach("tensors", [&](const json& j) { return DecodeTensor(j); }));
    PLAIT_RETURN_IF_ERROR(ForEach("operators", [&](const json& j) { return DecodeOperator(j); }));
    PLAIT_RETURN_IF_ERROR(ForEach("inputs", [&](const json& j) { return AddTo(&graph_.inputs, j, false); }));
    PLAIT_RETURN_IF_ERROR(ForEach("outputs", [&](const json& j) { return AddTo(&graph_.outputs, j, false); }));
    PLAIT_RETURN_IF_ERROR(Validate(graph_));
    return std::move(graph_);
  }

 private:
  Status CheckHeader() const {
    if (!root_.is_object() || root_.value("format", json()) != kFormat) {
      return Corrupt("is JSON, but no graph: \"format\" is not \"", kFormat, "\"");
    }
    const json version = root_.value("version", json());
    if (!version.is_number_integer()) return Corrupt("has no \"version\"");
    if (version != kGraphJsonVersion) {
      return Unsupported("is of version ", version.dump(), "; this build reads version ", kGraphJsonVersion);
    }
    for (const auto& [key, value] : root_.items()) {
      static constexpr std::string_view kKnown[] = {"format",  "version",   "name",   "weights",
                                                    "tensors", "operators", "inputs", "outputs"};
      if (std::find(std::begin(kKnown), std::end(kKnown), key) == std::end(kKnown)) {
        return Corrupt("\"", key.substr(0, 64), "\" is no field of a graph");
      }
    }
    return Status();
  }

  template <typename F>
  Status ForEach(const char* list, F&& f) const {
    const auto found = root_.find(list);
    if (found == root_.end() || !found->is_array()) return Corrupt("has no list \"", list, "\"");
    for (size_t i = 0; i < found->size(); ++i) {
      Status status = f((*found)[i]);
      if (!status.ok()) return status.Annotated(StrCat(list, "[", i, "]"));
    }
    return Status();
  }

  static Status CheckFields(const json& j, std::initializer_list<std::string_view> known) {
    if (!j.is_object()) return Corrupt("is no object");
    if (!j.contains("name") || !j["name"].is_string()) return Corrupt("has no name");
    for (const auto& [key, value] : j.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        return Corrupt("has an unknown field \"", key.substr(0, 64), "\"");
      }
    }
    return Status();
  }

  Status DecodeTensor(const json& j) {
    PLAIT_RETURN_IF_ERROR(CheckFields(j, {"name", "dtype", "shape", "values", "base64", "offset"}));
    Tensor t;
    t.name = j["name"];
    const auto dtype = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                    [&](DType d) { return j.value("dtype", json()) == std::string(Name(d)); });
    if (dtype == std::end(kDTypes)) return Corrupt("has an unknown \"dtype\"");
    t.dtype = *dtype;
    const json shape = j.value("shape", json());
    if (!shape.is_array() || shape.size() > static_cast<size_t>(kMaxRank)) {
      return Corrupt("has no \"shape\" of at most ", kMaxRank, " sizes");
    }
    std::optional<int64_t> bytes = SizeOf(t.dtype);
    for (const json& d : shape) {
      if (!d.is_number_unsigned() || d.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return Corrupt("its shape holds what is no size: ", d.dump().substr(0, 32));
      }
      t.shape.push_back(d.get<int64_t>());
      bytes = bytes ? CheckedMul(*bytes, t.shape.back()) : std::nullopt;
    }
    if (!bytes) return Corrupt("its size overflows");
    PLAIT_RETURN_IF_ERROR(DecodeData(j, *bytes, &t));
    if (!ids_.emplace(t.name, graph_.tensor_count()).second) {
      return Corrupt("the name '", t.name.substr(0, 80), "' is taken");
    }
    graph_.tensors.push_back(std::move(t));
    return Status();
  }

  Status DecodeData(const json& j, int64_t bytes, Tensor* t) {
    if (j.contains("offset")) {
      if (!j["offset"].is_number_unsigned()) return Corrupt("its offset is no number");
      PLAIT_ASSIGN_OR_RETURN(t->data, weights_.At(j["offset"].get<int64_t>(), bytes));
    } else if (j.contains("base64")) {
      if (!j["base64"].is_string()) return Corrupt("its base64 is no string");
      const std::optional<std::string> decoded = DecodeBase64(j["base64"].get_ref<const std::string&>());
      if (!decoded || static_cast<int64_t>(decoded->size()) != bytes) {
        return Corrupt("its base64 data is malformed, or not ", bytes, " bytes");
      }
      std::shared_ptr<ConstData> data = ConstData::Allocate(bytes);
      if (data == nullptr) return OutOfMemory("no memory for ", bytes, " bytes");
      if (bytes > 0) std::memcpy(data->mutable_data(), decoded->data(), decoded->size());
      t->data = std::move(data);
    } else if (j.contains("values")) {
      const json& values = j["values"];
      if (t->dtype != DType::kF32 || !values.is_array() ||
          static_cast<int64_t>(values.size()) != bytes / SizeOf(DType::kF32)) {
        return Corrupt("its \"values\" are not ", bytes / SizeOf(t->dtype), " numbers of f32");
      }
      std::shared_ptr<ConstData> data = ConstData::Allocate(bytes);
      if (data == nullptr) return OutOfMemory("no memory for ", bytes, " bytes");
      for (size_t i = 0; i < values.size(); ++i) {
        if (!values[i].is_number() || std::fabs(values[i].get<double>()) > std::numeric_limits<float>::max()) {
          return Corrupt("its value ", i, " is no number of f32");
        }
        data->as<float>()[i] = static_cast<float>(values[i].get<double>());
      }
      t->data = std::move(data);
    }
    return Status();
  }

  Status AddTo(std::vector<TensorId>* list, const json& name, bool optional) const {
    if (optional && name.is_null()) {
      list->push_back(kNoTensor);
      return Status();
    }
    if (!name.is_string()) return Corrupt("names no tensor");
    const auto found = ids_.find(name.get_ref<const std::string&>());
    if (found == ids_.end()) {
      return Corrupt("there is no tensor '", name.get_ref<const std::string&>().substr(0, 80), "'");
    }
    list->push_back(found->second);
    return Status();
  }

  Status DecodeOperator(const json& j) {
    PLAIT_RETURN_IF_ERROR(CheckFields(j, {"name", "kind", "inputs", "output", "attributes"}));
    Operator op;
    op.name = j["name"];
    const json kind = j.value("kind", json());
    int k = 0;
    while (k < kOpKindCount && kind != std::string(Name(static_cast<OpKind>(k)))) ++k;
    if (k == kOpKindCount) {
      return Unsupported("the operator '", op.name.substr(0, 80), "' is of the unknown kind ",
                         kind.dump().substr(0, 64));
    }
    op.kind = static_cast<OpKind>(k);
    const json inputs = j.value("inputs", json());
    if (!inputs.is_array()) return Corrupt("has no list of inputs");
    for (const json& name : inputs) PLAIT_RETURN_IF_ERROR(AddTo(&op.inputs, name, true));
    std::vector<TensorId> output;
    PLAIT_RETURN_IF_ERROR(AddTo(&output, j.value("output", json()), false));
    op.output = output[0];
    Status status = DecodeAttributes(j.value("attributes", json::object()), &op);
    if (!status.ok()) return status.Annotated(StrCat("the operator '", op.name.substr(0, 80), "'"));
    graph_.ops.push_back(std::move(op));
    return Status();
  }

  const json& root_;
  Weights weights_;
  Graph graph_;
  std::unordered_map<std::string, TensorId> ids_;
};

}  // namespace

WeightsReader ReadWeightsBeside(const std::string& json_path) {
  return [json_path](const std::string& file) -> Result<std::string> {
    const bool plain = !file.empty() && file != "." && file != ".." &&
                       file.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
    if (!plain) {
      return InvalidArgument("the weights file '", file.substr(0, 80),
                             "' must be a plain name in the graph's own folder");
    }
    const std::filesystem::path path = std::filesystem::path(json_path).replace_filename(file);
    std::error_code ignored;
    if (std::filesystem::is_symlink(path, ignored)) {
      return InvalidArgument("the weights file '", file, "' is a link; it must be a file in the graph's own folder");
    }
    Result<std::string> bytes = ReadFile(path.string());
    if (bytes.status().code() != PLAIT_NOT_FOUND) return bytes;
    return NotFound(bytes.status().message(), "; the graph's weights are in it: copy it to the graph's folder");
  };
}

Result<Graph> ImportGraphJson(std::string_view text, const WeightsReader& weights) {
  Result<json> root = ParseJson(text, "the graph");
  if (!root.ok()) return Readable(root.status());
  Result<Graph> graph = GraphReader(*root).Run(weights);
  if (!graph.ok()) return Readable(graph.status());
  return graph;
}

Result<Graph> ReadGraphJsonFile(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Result<Graph> graph = ImportGraphJson(text, ReadWeightsBeside(path));
  if (!graph.ok()) return graph.status().Annotated(path);
  return graph;
}

Result<GraphJson> ExportGraphJson(const Graph& graph, const std::string& weights_file) {
  PLAIT_RETURN_IF_ERROR(Validate(graph));
  return GraphWriter(graph, weights_file).Run();
}

Status WriteGraphJsonFile(const Graph& graph, const std::string& path) {
  const std::string weights_path = path + ".weights";
  PLAIT_ASSIGN_OR_RETURN(const GraphJson out,
                         ExportGraphJson(graph, std::filesystem::path(weights_path).filename().string()));
  // The weights first: a graph without its weights is worth nothing, and the checksum tells a mismatch.
  if (!out.weights.empty()) PLAIT_RETURN_IF_ERROR(WriteFileAtomically(weights_path, out.weights));
  return WriteFileAtomically(path, out.text);
}

}  // namespace plait
