#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "predictors/soc_profile.h"
#include "src/base/file_io.h"

namespace plait {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "plait-soc-profile";
constexpr int kVersion = 1;
constexpr int64_t kMaxFileBytes = int64_t{256} << 20;
constexpr size_t kMaxLanes = 64;
constexpr int64_t kMaxExtent = int64_t{1} << 48;
constexpr int kMaxRepeats = 1 << 30;
constexpr int kMaxCpu = 65535;

// Reads fields and remembers the first fault, with the place where it is.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  const Status& status() const { return status_; }
  void Fail(const std::string& place, const std::string& what) {
    if (status_.ok()) status_ = Corrupt(path_, ": ", place, " ", what);
  }
  // A field of an object; null (and a fault) if there is none.
  const json& Field(const json& object, const std::string& place, const char* name) {
    static const json null;
    if (!object.is_object()) {
      Fail(place, "is not an object");
      return null;
    }
    const auto found = object.find(name);
    if (found == object.end()) {
      Fail(place + "." + name, "is missing");
      return null;
    }
    return *found;
  }
  double Number(const json& value, const std::string& place) {
    if (value.is_number()) {
      const double number = value.get<double>();
      if (std::isfinite(number) && number >= 0) return number;
    }
    Fail(place, "is not a finite number of at least 0");
    return 0;
  }
  int64_t Integer(const json& value, const std::string& place, int64_t low, int64_t high) {
    if (value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(high))) {
      const int64_t number = value.get<int64_t>();
      if (number >= low && number <= high) return number;
    }
    Fail(place, StrCat("is not a whole number from ", low, " to ", high));
    return low;
  }
  std::string Text(const json& value, const std::string& place) {
    if (value.is_string()) return value.get<std::string>();
    Fail(place, "is not text");
    return "";
  }
  bool Flag(const json& value, const std::string& place) {
    if (value.is_boolean()) return value.get<bool>();
    Fail(place, "is neither true nor false");
    return false;
  }
  const json& Array(const json& value, const std::string& place) {
    static const json empty = json::array();
    if (value.is_array()) return value;
    Fail(place, "is not a list");
    return empty;
  }

 private:
  const std::string path_;
  Status status_;
};

Measurement ReadMeasurement(Reader* in, const json& row, const std::string& place) {
  Measurement m;
  if (!row.is_array() || row.size() != 5) {
    in->Fail(place, "is not a list [axis, extent, us, spread, repeats]");
    return m;
  }
  m.axis = static_cast<int>(in->Integer(row[0], place + "[0] (axis)", -1, kMaxRank - 1));
  m.extent = in->Integer(row[1], place + "[1] (extent)", 0, kMaxExtent);
  m.us = in->Number(row[2], place + "[2] (us)");
  m.spread = in->Number(row[3], place + "[3] (spread)");
  m.repeats = static_cast<int>(in->Integer(row[4], place + "[4] (repeats)", 0, kMaxRepeats));
  if ((m.axis < 0) != (m.extent == 0)) in->Fail(place, "has an extent without an axis, or an axis without an extent");
  return m;
}

void ReadMeasurements(Reader* in, const json& object, const std::string& place, LaneProfile* lane) {
  if (!object.is_object()) {
    in->Fail(place, "is not an object");
    return;
  }
  for (const auto& [signature, rows] : object.items()) {
    const std::string here = place + "[\"" + signature + "\"]";
    std::vector<Measurement>& list = lane->measurements[signature];
    std::set<std::pair<int, int64_t>> seen;
    for (const json& row : in->Array(rows, here)) {
      list.push_back(ReadMeasurement(in, row, here + "[" + std::to_string(list.size()) + "]"));
      if (!seen.insert({list.back().axis, list.back().extent}).second) in->Fail(here, "measures one cut twice");
      if (!in->status().ok()) return;
    }
  }
}

LaneProfile ReadLane(Reader* in, const json& object, const std::string& place) {
  LaneProfile lane;
  const auto field = [&](const char* name) -> const json& { return in->Field(object, place, name); };
  const auto number = [&](const char* name) { return in->Number(field(name), place + "." + name); };
  lane.name = in->Text(field("name"), place + ".name");
  const std::string kind = in->Text(field("kind"), place + ".kind");
  if (kind != "cpu" && kind != "gpu") in->Fail(place + ".kind", "is neither \"cpu\" nor \"gpu\"");
  lane.kind = kind == "gpu" ? LaneKind::kGpu : LaneKind::kCpu;
  lane.device = in->Text(field("device"), place + ".device");
  for (const json& cpu : in->Array(field("cpus"), place + ".cpus")) {
    lane.cpus.push_back(static_cast<int>(in->Integer(cpu, place + ".cpus", 0, kMaxCpu)));
  }
  lane.coherent = in->Flag(field("coherent"), place + ".coherent");
  lane.network_factor = number("network_factor");
  if (lane.network_factor <= 0) in->Fail(place + ".network_factor", "is 0");
  lane.dispatch_us = number("dispatch_us");
  lane.host_step_us = number("host_step_us");
  lane.host_segment_us = number("host_segment_us");
  ReadMeasurements(in, field("measurements"), place + ".measurements", &lane);
  return lane;
}

void ReadHandoffs(Reader* in, const json& value, SocProfile* profile) {
  const json& rows = in->Array(value, "handoffs");
  if (rows.size() != profile->lanes.size()) in->Fail("handoffs", "does not have a row for each lane");
  for (const json& row : rows) {
    const std::string place = "handoffs[" + std::to_string(profile->handoffs.size()) + "]";
    std::vector<HandoffProfile>& out = profile->handoffs.emplace_back();
    if (in->Array(row, place).size() != profile->lanes.size()) in->Fail(place, "does not have an entry for each lane");
    for (const json& entry : in->Array(row, place)) {
      const std::string here = place + "[" + std::to_string(out.size()) + "]";
      out.push_back({in->Number(in->Field(entry, here, "sync_us"), here + ".sync_us"),
                     in->Number(in->Field(entry, here, "us_per_byte"), here + ".us_per_byte")});
      if (out.size() == profile->handoffs.size() && (out.back().sync_us != 0 || out.back().us_per_byte != 0)) {
        in->Fail(here, "is a lane's handoff to itself and is not zero");
      }
    }
  }
}

}  // namespace

Result<SocProfile> LoadSocProfile(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  PLAIT_ASSIGN_OR_RETURN(const json root, ParseJson(text, path));
  Reader in(path);
  if (in.Text(in.Field(root, "the file", "format"), "format") != kFormat) in.Fail("format", StrCat("is not \"", kFormat, "\""));
  if (in.status().ok() && root.contains("version") && root["version"].is_number_integer() && root["version"].get<int64_t>() > kVersion) {
    return Corrupt(path, ": version ", root["version"].get<int64_t>(), " is newer than this Plait reads (", kVersion, "); calibrate again");
  }
  in.Integer(in.Field(root, "the file", "version"), "version", kVersion, kVersion);
  SocProfile profile;
  profile.soc = in.Text(in.Field(root, "the file", "soc"), "soc");
  profile.plait_version = in.Text(in.Field(root, "the file", "plait_version"), "plait_version");
  const json& lanes = in.Array(in.Field(root, "the file", "lanes"), "lanes");
  if (lanes.size() > kMaxLanes) in.Fail("lanes", StrCat("has more than ", kMaxLanes, " entries"));
  std::set<std::string> names;
  for (const json& lane : lanes) {
    if (!in.status().ok()) return in.status();
    const std::string place = "lanes[" + std::to_string(profile.lanes.size()) + "]";
    profile.lanes.push_back(ReadLane(&in, lane, place));
    if (!names.insert(profile.lanes.back().name).second) in.Fail(place + ".name", "is another lane's, too");
  }
  ReadHandoffs(&in, in.Field(root, "the file", "handoffs"), &profile);
  PLAIT_RETURN_IF_ERROR(in.status());
  return profile;
}

Status SaveSocProfile(const SocProfile& profile, const std::string& path) {
  json root = {{"format", kFormat}, {"version", kVersion}, {"soc", profile.soc}, {"plait_version", profile.plait_version}};
  root["lanes"] = json::array();
  for (const LaneProfile& lane : profile.lanes) {
    json measurements = json::object();
    for (const auto& [signature, list] : lane.measurements) {
      json& rows = measurements[signature] = json::array();
      for (const Measurement& m : list) rows.push_back({m.axis, m.extent, m.us, m.spread, m.repeats});
    }
    root["lanes"].push_back({{"name", lane.name},
                             {"kind", lane.kind == LaneKind::kGpu ? "gpu" : "cpu"},
                             {"device", lane.device},
                             {"cpus", lane.cpus},
                             {"coherent", lane.coherent},
                             {"network_factor", lane.network_factor},
                             {"dispatch_us", lane.dispatch_us},
                             {"host_step_us", lane.host_step_us},
                             {"host_segment_us", lane.host_segment_us},
                             {"measurements", std::move(measurements)}});
  }
  root["handoffs"] = json::array();
  for (const std::vector<HandoffProfile>& row : profile.handoffs) {
    json& out = root["handoffs"].emplace_back(json::array());
    for (const HandoffProfile& handoff : row) out.push_back({{"sync_us", handoff.sync_us}, {"us_per_byte", handoff.us_per_byte}});
  }
  // Device names come from drivers and need not be UTF-8.
  return WriteFileAtomically(path, root.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

}  // namespace plait
