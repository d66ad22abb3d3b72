#include "src/schedule/instance.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "src/base/file_io.h"
#include "src/schedule/timeline.h"

namespace plait {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxProfiles = 1 << 20;

std::string Shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

Result<const Json*> ArrayMember(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return InvalidArgument("\"", key, "\" is missing");
  if (!it->is_array()) return InvalidArgument("\"", key, "\" is ", Shown(*it), ", not an array");
  return &*it;
}

Result<std::string> StringMember(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return InvalidArgument("\"", key, "\" is missing");
  if (!it->is_string()) return InvalidArgument("\"", key, "\" is ", Shown(*it), ", not a string");
  return it->get<std::string>();
}

Result<int64_t> Integer(const Json& value, int64_t least, int64_t most) {
  if (!value.is_number_integer()) return InvalidArgument(Shown(value), " is not an integer");
  const bool huge = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(most);
  if (huge || value.get<int64_t>() < least || value.get<int64_t>() > most) {
    return InvalidArgument(Shown(value), " is outside ", least, "..", most);
  }
  return value.get<int64_t>();
}

// Microseconds, a multiple of 0.1, as ticks.
Result<Tick> Ticks(const Json& value, Tick least) {
  if (!value.is_number()) return InvalidArgument(Shown(value), " is not a number of microseconds");
  const double scaled = value.get<double>() * 10.0;
  if (!(scaled >= static_cast<double>(least) - 0.5 && scaled <= static_cast<double>(kMaxTick))) {
    return InvalidArgument(Shown(value), " us is outside ", TickText(least), "..", TickText(kMaxTick));
  }
  const double rounded = std::nearbyint(scaled);
  if (std::fabs(scaled - rounded) > 1e-6) return InvalidArgument(Shown(value), " is not a multiple of 0.1 us");
  if (static_cast<Tick>(rounded) < least) return InvalidArgument(Shown(value), " us is less than ", TickText(least));
  return static_cast<Tick>(rounded);
}

Result<double> Share(const Json& value, double most) {
  if (!value.is_number()) return InvalidArgument(Shown(value), " is not a number");
  const double v = value.get<double>();
  if (!(v >= 0 && v <= most)) return InvalidArgument(Shown(value), " is outside 0..", most);
  return v;
}

template <typename T, typename Parse>
Result<std::vector<T>> ParseVector(const Json& array, size_t length, const std::string& where, Parse parse) {
  if (!array.is_array()) return InvalidArgument(where, " is ", Shown(array), ", not an array");
  if (array.size() != length) return InvalidArgument(where, " has ", array.size(), " entries, not ", length);
  std::vector<T> out;
  out.reserve(length);
  for (size_t i = 0; i < length; ++i) {
    auto v = parse(array[i]);
    if (!v.ok()) return v.status().Annotated(StrCat(where, "[", i, "]"));
    out.push_back(std::move(v).value());
  }
  return out;
}

template <typename T, typename Parse>
Result<std::vector<std::vector<T>>> ParseSquare(const Json& array, size_t length, const std::string& where, Parse parse) {
  if (!array.is_array()) return InvalidArgument(where, " is ", Shown(array), ", not an array");
  if (array.size() != length) return InvalidArgument(where, " has ", array.size(), " rows for ", length, " devices");
  std::vector<std::vector<T>> out;
  for (size_t i = 0; i < length; ++i) {
    PLAIT_ASSIGN_OR_RETURN(auto row, ParseVector<T>(array[i], length, StrCat(where, "[", i, "]"), parse));
    out.push_back(std::move(row));
  }
  return out;
}

Status CheckHeader(const Json& root, const char* format) {
  if (!root.is_object()) return InvalidArgument("is not a JSON object");
  PLAIT_ASSIGN_OR_RETURN(const std::string name, StringMember(root, "format"));
  if (name != format) return InvalidArgument("\"format\" is \"", name, "\", not \"", format, "\"");
  const auto version = root.find("version");
  if (version == root.end() || !version->is_number_integer() || *version != 1) {
    return InvalidArgument("\"version\" is ", version == root.end() ? "missing" : Shown(*version), "; this program reads version 1");
  }
  return Status();
}

struct Profile {
  Mode mode;
  std::vector<double> memory_bound;
};

Result<Profile> ParseProfile(const Json& json, size_t lanes) {
  if (!json.is_object()) return InvalidArgument("is not an object");
  Profile out;
  const auto units = json.find("units");
  if (units == json.end()) return InvalidArgument("\"units\" is missing");
  auto u = Integer(*units, 1, kMaxUnits);
  if (!u.ok()) return u.status().Annotated("units");
  out.mode.units = static_cast<int>(*u);
  PLAIT_ASSIGN_OR_RETURN(const Json* rows, ArrayMember(json, "us"));
  if (rows->size() != lanes) return InvalidArgument("\"us\" has ", rows->size(), " rows for ", lanes, " devices");
  bool any = false;
  for (size_t d = 0; d < lanes; ++d) {
    if ((*rows)[d].is_null()) {
      out.mode.cost.insert(out.mode.cost.end(), static_cast<size_t>(out.mode.units), kForbidden);
      continue;
    }
    PLAIT_ASSIGN_OR_RETURN(auto row, ParseVector<Tick>((*rows)[d], static_cast<size_t>(out.mode.units), StrCat("us[", d, "]"),
                                                       [](const Json& v) { return Ticks(v, 1); }));
    out.mode.cost.insert(out.mode.cost.end(), row.begin(), row.end());
    any = true;
  }
  if (!any) return InvalidArgument("no device can run it: every row of \"us\" is null");
  if (const auto mem = json.find("mem"); mem != json.end()) {
    PLAIT_ASSIGN_OR_RETURN(out.memory_bound, ParseVector<double>(*mem, lanes, "mem", [](const Json& v) { return Share(v, 1.0); }));
  }
  return out;
}

Result<ProblemOp> ParseOp(const Json& json, size_t index, const std::vector<Profile>& profiles) {
  if (!json.is_object()) return InvalidArgument("is not an object");
  ProblemOp op;
  if (const auto name = json.find("name"); name != json.end()) {
    if (!name->is_string()) return InvalidArgument("\"name\" is ", Shown(*name), ", not a string");
    op.name = name->get<std::string>();
  }
  const auto profile = json.find("profile");
  if (profile == json.end()) return InvalidArgument("\"profile\" is missing");
  auto p = Integer(*profile, 0, static_cast<int64_t>(profiles.size()) - 1);
  if (!p.ok()) return p.status().Annotated("profile");
  op.modes.push_back(profiles[static_cast<size_t>(*p)].mode);
  op.memory_bound = profiles[static_cast<size_t>(*p)].memory_bound;
  const auto bytes = json.find("out_bytes");
  if (bytes == json.end()) return InvalidArgument("\"out_bytes\" is missing");
  auto b = Integer(*bytes, 0, kMaxOutBytes);
  if (!b.ok()) return b.status().Annotated("out_bytes");
  op.out_bytes = *b;
  PLAIT_ASSIGN_OR_RETURN(const Json* inputs, ArrayMember(json, "inputs"));
  for (const Json& input : *inputs) {
    auto in = Integer(input, 0, static_cast<int64_t>(index) - 1);
    if (!in.ok()) return InvalidArgument("input ", Shown(input), " is not an earlier operator (inputs have smaller numbers; there are no cycles)");
    op.inputs.push_back({static_cast<int>(*in), {}});
  }
  return op;
}

Status ParseLanes(const Json& root, Problem* problem) {
  PLAIT_ASSIGN_OR_RETURN(const Json* devices, ArrayMember(root, "devices"));
  if (devices->empty() || devices->size() > static_cast<size_t>(kMaxLanes)) {
    return InvalidArgument("\"devices\" has ", devices->size(), " entries, outside 1..", kMaxLanes);
  }
  for (size_t d = 0; d < devices->size(); ++d) {
    const Json& device = (*devices)[d];
    if (!device.is_object()) return InvalidArgument("devices[", d, "] is not an object");
    auto name = StringMember(device, "name");
    if (!name.ok()) return name.status().Annotated(StrCat("devices[", d, "]"));
    auto kind = StringMember(device, "kind");
    if (!kind.ok()) return kind.status().Annotated(StrCat("devices[", d, "]"));
    problem->lanes.push_back({*name, *kind == "gpu"});
  }
  const size_t lanes = problem->lanes.size();
  const auto time = [](const Json& v) { return Ticks(v, 0); };
  const auto bytes = [](const Json& v) { return Integer(v, 0, kMaxPsPerByte); };
  PLAIT_ASSIGN_OR_RETURN(const Json* entry, ArrayMember(root, "entry_us"));
  PLAIT_ASSIGN_OR_RETURN(problem->entry, ParseVector<Tick>(*entry, lanes, "entry_us", time));
  PLAIT_ASSIGN_OR_RETURN(const Json* exit, ArrayMember(root, "exit_us"));
  PLAIT_ASSIGN_OR_RETURN(problem->exit, ParseVector<Tick>(*exit, lanes, "exit_us", time));
  PLAIT_ASSIGN_OR_RETURN(const Json* sync, ArrayMember(root, "sync_us"));
  PLAIT_ASSIGN_OR_RETURN(problem->sync, ParseSquare<Tick>(*sync, lanes, "sync_us", time));
  PLAIT_ASSIGN_OR_RETURN(const Json* ps, ArrayMember(root, "ps_per_byte"));
  PLAIT_ASSIGN_OR_RETURN(problem->ps_per_byte, ParseSquare<int64_t>(*ps, lanes, "ps_per_byte", bytes));
  if (const auto contention = root.find("contention"); contention != root.end() && !contention->is_null()) {
    if (!contention->is_object() || !contention->contains("slow")) return InvalidArgument("\"contention\" has no \"slow\"");
    PLAIT_ASSIGN_OR_RETURN(problem->slow, ParseSquare<double>((*contention)["slow"], lanes, "contention.slow", [](const Json& v) { return Share(v, 1e6); }));
  }
  return Status();
}

Result<Problem> ParseRoot(const Json& root) {
  PLAIT_RETURN_IF_ERROR(CheckHeader(root, "plait-instance"));
  Problem problem;
  PLAIT_ASSIGN_OR_RETURN(problem.name, StringMember(root, "name"));
  PLAIT_RETURN_IF_ERROR(ParseLanes(root, &problem));
  PLAIT_ASSIGN_OR_RETURN(const Json* profiles_json, ArrayMember(root, "profiles"));
  if (profiles_json->size() > kMaxProfiles) return InvalidArgument("\"profiles\" has ", profiles_json->size(), " entries, more than ", kMaxProfiles);
  std::vector<Profile> profiles;
  for (size_t i = 0; i < profiles_json->size(); ++i) {
    auto profile = ParseProfile((*profiles_json)[i], problem.lanes.size());
    if (!profile.ok()) return profile.status().Annotated(StrCat("profiles[", i, "]"));
    profiles.push_back(std::move(profile).value());
  }
  PLAIT_ASSIGN_OR_RETURN(const Json* ops, ArrayMember(root, "ops"));
  for (size_t i = 0; i < ops->size(); ++i) {
    auto op = ParseOp((*ops)[i], i, profiles);
    if (!op.ok()) return op.status().Annotated(StrCat("ops[", i, "]"));
    problem.ops.push_back(std::move(op).value());
  }
  PLAIT_RETURN_IF_ERROR(ValidateProblem(problem));
  return problem;
}

Result<Assignment> ParseScheduleRoot(const Problem& problem, const Json& root) {
  PLAIT_RETURN_IF_ERROR(CheckHeader(root, "plait-schedule"));
  PLAIT_ASSIGN_OR_RETURN(const std::string instance, StringMember(root, "instance"));
  if (instance != problem.name) return InvalidArgument("\"instance\" is \"", instance, "\", not \"", problem.name, "\"");
  const auto lanes = root.find("lanes");
  if (lanes == root.end() || !lanes->is_object()) return InvalidArgument("\"lanes\" is not an object");
  Assignment out;
  out.choices.resize(problem.ops.size());
  out.order.resize(problem.lanes.size());
  for (auto& choice : out.choices) choice.units.assign(problem.lanes.size(), 0);
  for (const auto& [name, parts] : lanes->items()) {
    size_t d = 0;
    while (d < problem.lanes.size() && problem.lanes[d].name != name) ++d;
    if (d == problem.lanes.size()) return InvalidArgument("lanes: there is no device \"", name, "\"");
    if (!parts.is_array()) return InvalidArgument("lanes.", name, " is not an array");
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::string where = StrCat("lanes.", name, "[", i, "]");
      if (!parts[i].is_array() || parts[i].size() != 2) return InvalidArgument(where, " is ", Shown(parts[i]), ", not [operator, units]");
      auto op = Integer(parts[i][0], 0, static_cast<int64_t>(problem.ops.size()) - 1);
      if (!op.ok()) return op.status().Annotated(where + ", operator");
      auto units = Integer(parts[i][1], 1, kMaxUnits);
      if (!units.ok()) return units.status().Annotated(where + ", units");
      int& slot = out.choices[static_cast<size_t>(*op)].units[d];
      if (slot != 0) return InvalidArgument(where, ": operator ", *op, " stands there twice");
      slot = static_cast<int>(*units);
      out.order[d].push_back(static_cast<int>(*op));
    }
  }
  PLAIT_ASSIGN_OR_RETURN(const Timeline timeline, Evaluate(problem, out));
  out.makespan = timeline.makespan;
  if (const auto claim = root.find("makespan_us"); claim != root.end() && !claim->is_null()) {
    auto ticks = Ticks(*claim, 0);
    if (!ticks.ok()) return ticks.status().Annotated("makespan_us");
    if (*ticks != out.makespan) return InvalidArgument("claims makespan_us ", Shown(*claim), " but it is ", TickText(out.makespan));
  }
  return out;
}

}  // namespace

std::string TickText(Tick ticks) { return StrCat(ticks / 10, ".", ticks % 10); }

Result<Problem> ParseInstance(std::string_view text, const std::string& what) {
  PLAIT_ASSIGN_OR_RETURN(const Json root, ParseJson(text, what));
  auto problem = ParseRoot(root);
  if (!problem.ok()) return problem.status().Annotated(what);
  return problem;
}

Result<Problem> LoadInstance(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, int64_t{1} << 30));
  return ParseInstance(text, path);
}

Result<std::string> InstanceText(const Problem& problem) {
  const auto us = [](Tick t) { return static_cast<double>(t) / 10.0; };
  Json root = {{"format", "plait-instance"}, {"version", 1}, {"name", problem.name}};
  root["devices"] = Json::array();
  for (const ProblemLane& lane : problem.lanes) root["devices"].push_back({{"name", lane.name}, {"kind", lane.gpu ? "gpu" : "cpu"}});
  for (Tick t : problem.entry) root["entry_us"].push_back(us(t));
  for (Tick t : problem.exit) root["exit_us"].push_back(us(t));
  for (const auto& row : problem.sync) {
    Json cells = Json::array();
    for (Tick t : row) cells.push_back(us(t));
    root["sync_us"].push_back(std::move(cells));
  }
  root["ps_per_byte"] = problem.ps_per_byte;
  root["profiles"] = Json::array();
  root["ops"] = Json::array();
  for (size_t o = 0; o < problem.ops.size(); ++o) {
    const ProblemOp& op = problem.ops[o];
    if (op.modes.size() != 1) return Unsupported("operator ", o, " has ", op.modes.size(), " modes; instance files hold one");
    Json rows = Json::array();
    for (size_t d = 0; d < problem.lanes.size(); ++d) {
      Json row = Json::array();
      for (int u = 1; u <= op.modes[0].units; ++u) {
        const Tick t = op.modes[0].Cost(static_cast<int>(d), u);
        if (t != kForbidden) row.push_back(us(t));
      }
      if (!row.empty() && row.size() != static_cast<size_t>(op.modes[0].units)) return Unsupported("operator ", o, ": a lane can run some parts only");
      rows.push_back(row.empty() ? Json(nullptr) : row);
    }
    Json inputs = Json::array();
    for (const ProblemEdge& edge : op.inputs) {
      if (!edge.access.empty()) return Unsupported("operator ", o, " reads parts of its inputs; instance files cannot say so");
      inputs.push_back(edge.producer);
    }
    Json profile = {{"units", op.modes[0].units}, {"us", rows}};
    if (!op.memory_bound.empty()) profile["mem"] = op.memory_bound;
    root["profiles"].push_back(profile);
    root["ops"].push_back({{"name", op.name}, {"type", "operator"}, {"profile", o}, {"out_bytes", op.out_bytes}, {"inputs", inputs}});
  }
  if (!problem.slow.empty()) root["contention"]["slow"] = problem.slow;
  return root.dump() + "\n";
}

std::string ScheduleText(const Problem& problem, const Assignment& assignment) {
  std::string out = StrCat("{\"format\":\"plait-schedule\",\"version\":1,\"instance\":",
                           Json(problem.name).dump(-1, ' ', false, Json::error_handler_t::replace), ",\"makespan_us\":", TickText(assignment.makespan), ",\"lanes\":{");
  for (size_t d = 0; d < problem.lanes.size(); ++d) {
    out += StrCat(d == 0 ? "" : ",", "\n", Json(problem.lanes[d].name).dump(-1, ' ', false, Json::error_handler_t::replace), ":[");
    for (size_t i = 0; i < assignment.order[d].size(); ++i) {
      const int o = assignment.order[d][i];
      out += StrCat(i == 0 ? "" : ",", "[", o, ",", assignment.choices[static_cast<size_t>(o)].units[d], "]");
    }
    out += "]";
  }
  return out + "}}\n";
}

Result<Assignment> ParseSchedule(const Problem& problem, std::string_view text, const std::string& what) {
  PLAIT_ASSIGN_OR_RETURN(const Json root, ParseJson(text, what));
  auto out = ParseScheduleRoot(problem, root);
  if (!out.ok()) return out.status().Annotated(what);
  return out;
}

Result<Assignment> LoadScheduleFile(const Problem& problem, const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, int64_t{1} << 30));
  return ParseSchedule(problem, text, path);
}

Status SaveScheduleFile(const Problem& problem, const Assignment& assignment, const std::string& path) {
  return WriteFileAtomically(path, ScheduleText(problem, assignment));
}

}  // namespace plait
