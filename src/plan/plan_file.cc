// Plan files hold the schedule and what it was made for; steps and memory are rebuilt by lowering when the file is read, so
// that no address and no wait is ever taken from a file.
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/file_io.h"
#include "src/plan/lower.h"
#include "src/plan/plan.h"

namespace plait {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "plait-plan";
constexpr int64_t kVersion = 1;
constexpr int64_t kMaxFileBytes = int64_t{256} << 20;

std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// FNV-1a: finds damage and edits, not malice; what is read is verified in any case.
std::string Checksum(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return Hex(hash);
}

// The text that the checksum is about: the same for equal values, whatever the file's white space.
std::string Canonical(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

json ToJson(const Dims& dims) {
  json out = json::array();
  for (const int64_t d : dims) out.push_back(d);
  return out;
}

json ToJson(const LaneSpec& lane) {
  return {{"name", lane.name}, {"kind", lane.kind == LaneKind::kCpu ? "cpu" : "gpu"}, {"domain", lane.domain},
          {"host", lane.host}};
}

// Reads values of one JSON object; the first mistake is kept and names the place.
class Reader {
 public:
  Reader(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object_.is_object()) Fail("is not an object");
  }

  const Status& status() const { return status_; }

  const json* Get(const char* key) {
    if (!status_.ok()) return nullptr;
    const auto at = object_.find(key);
    if (at != object_.end()) return &*at;
    Fail(StrCat("has no \"", key, "\""));
    return nullptr;
  }
  const json* Array(const char* key) {
    const json* value = Get(key);
    if (value != nullptr && value->is_array()) return value;
    if (value != nullptr) Fail(StrCat("\"", key, "\" is not a list"));
    return nullptr;
  }
  std::string String(const char* key) {
    const json* value = Get(key);
    if (value == nullptr) return "";
    if (value->is_string()) return value->get<std::string>();
    Fail(StrCat("\"", key, "\" is not a string"));
    return "";
  }
  double Time(const char* key) {
    const json* value = Get(key);
    if (value == nullptr) return 0;
    if (value->is_number()) {
      const double us = value->get<double>();
      if (us >= 0 && std::isfinite(us)) return us;
    }
    Fail(StrCat("\"", key, "\" is not a number of microseconds"));
    return 0;
  }
  int64_t Integer(const char* key, int64_t low, int64_t high) {
    const json* value = Get(key);
    return value == nullptr ? 0 : Integer(*value, key, low, high);
  }
  int64_t Integer(const json& value, const char* key, int64_t low, int64_t high) {
    if (value.is_number_integer()) {
      const bool fits = !value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
      const int64_t n = fits ? value.get<int64_t>() : 0;
      if (fits && n >= low && n <= high) return n;
    }
    Fail(StrCat("\"", key, "\" is not a whole number from ", low, " to ", high));
    return 0;
  }
  Dims Coordinates(const char* key) {
    const json* list = Array(key);
    Dims dims;
    if (list == nullptr) return dims;
    if (list->size() > kMaxRank) {
      Fail(StrCat("\"", key, "\" has ", list->size(), " axes, more than ", kMaxRank));
      return dims;
    }
    for (const json& value : *list) dims.push_back(Integer(value, key, 0, std::numeric_limits<int64_t>::max()));
    return dims;
  }
  void Fail(const std::string& what) {
    if (status_.ok()) status_ = Corrupt(where_, ": ", what);
  }

 private:
  const json& object_;
  std::string where_;
  Status status_;
};

constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max();

Result<std::vector<LaneSpec>> ReadLanes(const json& list, const std::string& path) {
  std::vector<LaneSpec> lanes;
  for (const json& item : list) {
    Reader in(item, StrCat(path, ": lane ", lanes.size()));
    LaneSpec lane;
    lane.name = in.String("name");
    const std::string kind = in.String("kind");
    if (kind != "cpu" && kind != "gpu") in.Fail(StrCat("\"kind\" is \"", kind, "\" instead of \"cpu\" or \"gpu\""));
    lane.kind = kind == "gpu" ? LaneKind::kGpu : LaneKind::kCpu;
    lane.domain = static_cast<DomainId>(in.Integer("domain", 0, kMaxId));
    lane.host = static_cast<LaneId>(in.Integer("host", -1, kMaxId));
    PLAIT_RETURN_IF_ERROR(in.status());
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

Result<Part> ReadPart(const json& item, const std::vector<std::string>& kernels, const std::string& where) {
  Reader in(item, where);
  Part part;
  part.op = static_cast<OpId>(in.Integer("op", 0, kMaxId));
  part.lane = static_cast<LaneId>(in.Integer("lane", 0, kMaxId));
  part.region.begin = in.Coordinates("begin");
  part.region.size = in.Coordinates("size");
  const int64_t kernel = in.Integer("kernel", 0, static_cast<int64_t>(kernels.size()) - 1);
  part.predicted_us = in.Time("us");
  part.predicted_start_us = in.Time("start_us");
  part.strip = static_cast<int>(in.Integer("strip", -1, kMaxId));
  PLAIT_RETURN_IF_ERROR(in.status());
  part.kernel = kernels[static_cast<size_t>(kernel)];
  return part;
}

Result<Schedule> ReadSchedule(Reader* in, const std::string& path) {
  Schedule schedule;
  schedule.strategy = in->String("strategy");
  schedule.by_operator = in->Integer("by_operator", 0, 1) != 0;
  schedule.predicted_us = in->Time("predicted_us");
  schedule.lower_bound_us = in->Time("lower_bound_us");
  const json* kernels = in->Array("kernels");
  const json* parts = in->Array("parts");
  const json* order = in->Array("order");
  PLAIT_RETURN_IF_ERROR(in->status());
  std::vector<std::string> kernel_names;
  for (const json& name : *kernels) {
    if (!name.is_string()) return Corrupt(path, ": a kernel's name is not a string");
    kernel_names.push_back(name.get<std::string>());
  }
  for (const json& item : *parts) {
    PLAIT_ASSIGN_OR_RETURN(Part part, ReadPart(item, kernel_names, StrCat(path, ": part ", schedule.parts.size())));
    schedule.parts.push_back(std::move(part));
  }
  for (const json& lane : *order) {
    if (!lane.is_array()) return Corrupt(path, ": \"order\" is not a list of lists");
    schedule.lanes.emplace_back();
    for (const json& part : lane) schedule.lanes.back().push_back(static_cast<int>(in->Integer(part, "order", 0, kMaxId)));
    PLAIT_RETURN_IF_ERROR(in->status());
  }
  return schedule;
}

}  // namespace

Status SavePlan(const Plan& plan, const std::string& path) {
  const Schedule& schedule = plan.schedule;
  json lanes = json::array(), parts = json::array(), kernels = json::array();
  for (const LaneSpec& lane : plan.program.lanes) lanes.push_back(ToJson(lane));
  std::map<std::string, size_t> kernel_ids;
  for (const Part& part : schedule.parts) {
    const auto [kernel, is_new] = kernel_ids.emplace(part.kernel, kernel_ids.size());
    if (is_new) kernels.push_back(part.kernel);
    if (!std::isfinite(part.predicted_us) || !std::isfinite(part.predicted_start_us)) {
      return InvalidArgument(path, ": a part's predicted time is not finite");
    }
    parts.push_back({{"op", part.op},
                     {"lane", part.lane},
                     {"begin", ToJson(part.region.begin)},
                     {"size", ToJson(part.region.size)},
                     {"kernel", kernel->second},
                     {"us", part.predicted_us},
                     {"start_us", part.predicted_start_us},
                     {"strip", part.strip}});
  }
  const json content = {{"plait_version", plan.plait_version},
                        {"soc", plan.soc},
                        {"graph", Hex(plan.graph_hash)},
                        {"lanes", std::move(lanes)},
                        {"strategy", schedule.strategy},
                        {"by_operator", schedule.by_operator ? 1 : 0},
                        {"predicted_us", schedule.predicted_us},
                        {"lower_bound_us", schedule.lower_bound_us},
                        {"kernels", std::move(kernels)},
                        {"parts", std::move(parts)},
                        {"order", schedule.lanes}};
  const std::string text = Canonical(content);
  return WriteFileAtomically(path, StrCat("{\"format\": \"", kFormat, "\", \"version\": ", kVersion,
                                          ", \"checksum\": \"", Checksum(text), "\",\n\"plan\": ", text, "}\n"));
}

Result<Plan> LoadPlan(const Graph& graph, const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  PLAIT_ASSIGN_OR_RETURN(const json file, ParseJson(text, path));
  Reader head(file, path);
  const std::string format = head.String("format");
  PLAIT_RETURN_IF_ERROR(head.status());
  if (format != kFormat) return Corrupt(path, ": is a \"", format, "\" file, not a plan");
  const int64_t version = head.Integer("version", 1, std::numeric_limits<int64_t>::max());
  PLAIT_RETURN_IF_ERROR(head.status());
  if (version > kVersion) {
    return Corrupt(path, ": has version ", version, ", but this Plait reads up to ", kVersion,
                   "; plan again or use a newer Plait");
  }
  const std::string checksum = head.String("checksum");
  const json* content = head.Get("plan");
  PLAIT_RETURN_IF_ERROR(head.status());
  if (checksum != Checksum(Canonical(*content))) {
    return Corrupt(path, ": the checksum does not fit; the file was damaged or edited; plan again");
  }

  Reader in(*content, path);
  const std::string plait_version = in.String("plait_version"), soc = in.String("soc"), hash = in.String("graph");
  const json* lane_list = in.Array("lanes");
  PLAIT_RETURN_IF_ERROR(in.status());
  if (hash != Hex(StructureHash(graph))) {
    return Corrupt(path, ": was made for another model (", hash, "), not for '", graph.name, "' (",
                   Hex(StructureHash(graph)), "); plan again");
  }
  PLAIT_ASSIGN_OR_RETURN(const std::vector<LaneSpec> lanes, ReadLanes(*lane_list, path));
  PLAIT_ASSIGN_OR_RETURN(const Schedule schedule, ReadSchedule(&in, path));
  Result<Plan> plan = LowerParts(graph, lanes, schedule);
  if (!plan.ok()) return Corrupt(path, ": ", plan.status().message());
  plan->soc = soc;
  plan->plait_version = plait_version;
  return plan;
}

}  // namespace plait
