#include "src/schedule/costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "src/partition/dependencies.h"
#include "src/partition/strips.h"
#include "src/schedule/cache_lines.h"
#include "src/schedule/timeline.h"

namespace plait {
namespace {

// Ticks for a time in microseconds; at least `least`. Not-finite and huge times are refused by the caller.
Tick ToTicks(double us, Tick least) { return std::max(least, static_cast<Tick>(std::llround(us * 10.0))); }

Status CheckTime(double us, const char* what) {
  if (!(us >= 0) || us * 10.0 > static_cast<double>(kMaxTick)) return InvalidArgument(what, " is ", us, " us, outside 0..", kMaxTick / 10);
  return Status();
}

}  // namespace

class ProblemBuilder::Impl {
 public:
  Impl(const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, int max_units, CacheLines lines)
      : graph_(graph), lanes_(lanes), costs_(costs), max_units_(std::min(max_units, kMaxUnits)), lines_(std::move(lines)), producers_(graph.Producers()),
        readers_(ReadersOf(graph)) {
    std::map<std::string, int> known;
    for (const Operator& op : graph.ops) {
      signatures_.push_back(IsView(op.kind) ? -1 : known.emplace(OpSignature(graph, op), static_cast<int>(known.size())).first->second);
    }
    TieRoots();
  }

  Result<PlanningProblem> Build(const StripList& strips) {
    out_ = {};
    accesses_.clear();
    PLAIT_RETURN_IF_ERROR(AddLanes());
    std::vector<int> strip_of(static_cast<size_t>(graph_.op_count()), -1);
    for (size_t s = 0; s < strips.size(); ++s) {
      for (OpId o : strips[s]) strip_of[static_cast<size_t>(o)] = static_cast<int>(s);
    }
    std::vector<int> index(static_cast<size_t>(graph_.op_count()), -1);
    for (OpId o = 0; o < graph_.op_count(); ++o) {
      if (IsView(graph_.op(o).kind)) continue;
      const int s = strip_of[static_cast<size_t>(o)];
      if (s >= 0 && strips[static_cast<size_t>(s)].back() != o) continue;
      index[static_cast<size_t>(o)] = static_cast<int>(out_.ops.size());
      out_.ops.push_back(s >= 0 ? strips[static_cast<size_t>(s)] : std::vector<OpId>{o});
      if (s >= 0) {
        PLAIT_RETURN_IF_ERROR(AddStrip(strips[static_cast<size_t>(s)]));
      } else {
        PLAIT_RETURN_IF_ERROR(AddOp(o));
      }
      AddEdges(index);
    }
    PLAIT_RETURN_IF_ERROR(ValidateProblem(out_.problem));
    return std::move(out_);
  }

  Result<std::vector<Tick>> StripCosts(const std::vector<OpId>& ops) {
    const std::optional<StripCut> strip = CutOf(ops);
    if (!strip) return std::vector<Tick>();
    PLAIT_ASSIGN_OR_RETURN(std::optional<Mode> mode, StripMode(*strip));
    return mode ? std::move(mode->cost) : std::vector<Tick>();
  }

  Result<Schedule> ToSchedule(const PlanningProblem& planning, const Assignment& assignment);

 private:
  // Operators that can be a strip for the lanes that can run them all, and how the last one is cut.
  struct StripCut {
    std::vector<StripOperator> strip;
    std::vector<bool> able;  // [lane]
    CutAxis cut;
  };

  std::vector<bool> Able(OpId o) const {
    std::vector<bool> able(lanes_.size());
    bool host_able = false;
    for (size_t d = 0; d < lanes_.size(); ++d) {
      able[d] = lanes_[d].rules->Supports(graph_, o).supported;
      host_able |= able[d] && lanes_[d].spec.domain == kHostDomain;
    }
    for (size_t d = 0; d < lanes_.size() && tied_[static_cast<size_t>(o)] && host_able; ++d) able[d] = able[d] && lanes_[d].spec.domain == kHostDomain;
    return able;
  }

  std::optional<StripCut> CutOf(const std::vector<OpId>& ops) const {
    if (!CanBeStrip(graph_, readers_, ops)) return std::nullopt;
    StripCut out;
    out.able.assign(lanes_.size(), true);
    for (OpId o : ops) {
      const std::vector<bool> able = Able(o);
      for (size_t d = 0; d < able.size(); ++d) out.able[d] = out.able[d] && able[d];
    }
    auto strip = RowStrip(graph_, ops, [&](OpId op, const SplitAxis& axis) { return RuleOf(op, axis, out.able); });
    if (!strip) return std::nullopt;
    const std::optional<CutAxis> cut = CutFor(ops.back(), strip->back().axis, out.able);
    if (!cut) return std::nullopt;
    out.strip = std::move(*strip);
    out.cut = *cut;
    return out;
  }

  // What a lane's share of `u` units costs where it stands: the first lane's at one end, the last one's at the other, others between two neighbours.
  Result<Tick> StripTicks(const StripCut& strip, size_t lane, int u) {
    const int free = strip.cut.units - u;
    const int first = lane == 0 ? 0 : lane + 1 == lanes_.size() ? free : free / 2;
    const Region last = UnitRegion(graph_.output(graph_.op(strip.strip.back().op)).shape, strip.cut, first, u);
    const std::optional<std::vector<Region>> regions = StripRegions(graph_, strip.strip, last);
    if (!regions) return kForbidden;
    Tick sum = 0;
    for (size_t i = 0; i < strip.strip.size(); ++i) {
      PLAIT_ASSIGN_OR_RETURN(const Tick ticks, RowTicks(strip.strip[i], lane, (*regions)[i]));
      if (ticks == kForbidden) return ticks;
      sum += ticks;
    }
    return sum;
  }

  Result<Tick> RowTicks(const StripOperator& op, size_t lane, const Region& region) {
    const int axis = op.axis.axis;
    const int64_t extent = region.size[axis];
    const bool whole = extent == graph_.output(graph_.op(op.op)).shape[axis];
    return PartTicks(op.op, lane, whole ? -1 : axis, whole ? 0 : extent, region);
  }

  Result<std::optional<Mode>> StripMode(const StripCut& strip) {
    return FillMode(strip.cut, strip.able, [&](size_t lane, int u) { return StripTicks(strip, lane, u); });
  }

  Status AddStrip(const std::vector<OpId>& ops) {
    const std::optional<StripCut> strip = CutOf(ops);
    const std::string& name = graph_.op(ops.back()).name;
    if (!strip) return InvalidArgument("the operators up to '", name, "' cannot be a strip");
    ProblemOp out;
    out.name = name;
    out.out_bytes = graph_.output(graph_.op(ops.back())).bytes();
    Mode whole;
    for (size_t d = 0; d < lanes_.size(); ++d) {
      Tick sum = 0;
      for (OpId o : ops) {
        if (sum == kForbidden) break;
        Tick ticks = kForbidden;
        if (strip->able[d]) {
          PLAIT_ASSIGN_OR_RETURN(ticks, PartTicks(o, d, -1, 0, Region::Whole(graph_.output(graph_.op(o)).shape)));
        }
        sum = ticks == kForbidden ? kForbidden : sum + ticks;
      }
      whole.cost.push_back(sum);
    }
    PLAIT_ASSIGN_OR_RETURN(std::optional<Mode> rows, StripMode(*strip));
    if (!rows) return InvalidArgument("fewer than two lanes know what the strip up to '", name, "' takes");
    out.modes = {std::move(whole), std::move(*rows)};
    out_.cuts.push_back({std::nullopt, strip->cut});
    out_.problem.ops.push_back(std::move(out));
    return Status();
  }

  Status AddLanes() {
    Problem& p = out_.problem;
    p.name = graph_.name;
    const size_t n = lanes_.size();
    if (costs_.sync_us.size() != n || costs_.us_per_byte.size() != n || costs_.entry_us.size() != n || costs_.exit_us.size() != n) {
      return InvalidArgument("the costs are not those of ", n, " lanes");
    }
    for (size_t a = 0; a < n; ++a) {
      if (costs_.sync_us[a].size() != n || costs_.us_per_byte[a].size() != n) return InvalidArgument("the handoff costs are not square");
      p.lanes.push_back({lanes_[a].spec.name, lanes_[a].spec.kind == LaneKind::kGpu});
      PLAIT_RETURN_IF_ERROR(CheckTime(costs_.entry_us[a], "entry"));
      PLAIT_RETURN_IF_ERROR(CheckTime(costs_.exit_us[a], "exit"));
      PLAIT_RETURN_IF_ERROR(CheckTime(lanes_[a].host_segment_us, "host_segment_us"));
      PLAIT_RETURN_IF_ERROR(CheckTime(lanes_[a].host_step_us, "host_step_us"));
      p.entry.push_back(ToTicks(costs_.entry_us[a] + lanes_[a].host_segment_us, 0));
      p.exit.push_back(ToTicks(costs_.exit_us[a], 0));
      std::vector<Tick> sync;
      std::vector<int64_t> ps;
      for (size_t b = 0; b < n; ++b) {
        PLAIT_RETURN_IF_ERROR(CheckTime(costs_.sync_us[a][b], "sync"));
        PLAIT_RETURN_IF_ERROR(CheckTime(costs_.us_per_byte[a][b], "us_per_byte"));
        sync.push_back(a == b ? 0 : ToTicks(costs_.sync_us[a][b] + lanes_[b].host_segment_us, 0));
        ps.push_back(a == b ? 0 : std::min<int64_t>(kMaxPsPerByte, std::llround(costs_.us_per_byte[a][b] * 1e6)));
      }
      p.sync.push_back(std::move(sync));
      p.ps_per_byte.push_back(std::move(ps));
    }
    return Status();
  }

  // Operators that share a cache line with one another even when whole stay in the memory of lane 0's kind where lanes are not coherent.
  void TieRoots() {
    tied_.assign(static_cast<size_t>(graph_.op_count()), false);
    if (!lines_.matter()) return;
    std::map<TensorId, std::vector<Part>> written;
    for (OpId o = 0; o < graph_.op_count(); ++o) {
      if (IsView(graph_.op(o).kind)) continue;
      Part part;
      part.op = o;
      part.region = Region::Whole(graph_.output(graph_.op(o)).shape);
      auto& others = written[lines_.Root(graph_.op(o).output)];
      for (const Part& other : others) {
        if (!AnyClash(part, other)) continue;
        tied_[static_cast<size_t>(o)] = tied_[static_cast<size_t>(other.op)] = true;
      }
      others.push_back(std::move(part));
    }
  }

  // Whether the parts clash when they run on some two different lanes.
  bool AnyClash(Part a, Part b) const {
    for (size_t x = 0; x < lanes_.size(); ++x) {
      for (size_t y = 0; y < lanes_.size(); ++y) {
        a.lane = static_cast<LaneId>(x);
        b.lane = static_cast<LaneId>(y);
        if (x != y && lines_.Clash(a, b)) return true;
      }
    }
    return false;
  }

  Status AddOp(OpId o) {
    const Operator& op = graph_.op(o);
    ProblemOp out;
    out.name = op.name;
    out.out_bytes = graph_.output(op).bytes();
    std::vector<bool> able = Able(o);
    PLAIT_ASSIGN_OR_RETURN(Mode whole, WholeMode(o, &able));
    if (std::none_of(able.begin(), able.end(), [](bool a) { return a; })) {
      return Unsupported("no lane can run operator '", op.name, "' (", Name(op.kind), "), or none has a known time for it");
    }
    out.modes.push_back(std::move(whole));
    out_.cuts.push_back({std::nullopt});
    for (const SplitAxis& axis : SplitAxes(graph_, op)) {
      const std::optional<CutAxis> cut = CutFor(o, axis, able);
      if (!cut) continue;
      PLAIT_ASSIGN_OR_RETURN(std::optional<Mode> mode, SplitMode(o, *cut, able));
      if (!mode) continue;
      out.modes.push_back(std::move(*mode));
      out_.cuts.back().push_back(cut);
    }
    out_.problem.ops.push_back(std::move(out));
    return Status();
  }

  Result<Mode> WholeMode(OpId o, std::vector<bool>* able) {
    Mode mode;
    const Region region = Region::Whole(graph_.output(graph_.op(o)).shape);
    for (size_t d = 0; d < lanes_.size(); ++d) {
      Tick ticks = kForbidden;
      if ((*able)[d]) {
        PLAIT_ASSIGN_OR_RETURN(ticks, PartTicks(o, d, -1, 0, region));
      }
      (*able)[d] = ticks != kForbidden;
      mode.cost.push_back(ticks);
    }
    return mode;
  }

  // What the kernels of all lanes that are able ask of cuts.
  CutRule RuleOf(OpId o, const SplitAxis& axis, const std::vector<bool>& able) const {
    CutRule rule{1, 1};
    for (size_t d = 0; d < lanes_.size(); ++d) {
      if (able[d]) rule = Combine(rule, lanes_[d].rules->Cut(graph_, o, axis));
    }
    return rule;
  }

  std::optional<CutAxis> CutFor(OpId o, const SplitAxis& axis, const std::vector<bool>& able) const {
    if (std::count(able.begin(), able.end(), true) < 2) return std::nullopt;
    const Dims& shape = graph_.output(graph_.op(o)).shape;
    std::optional<CutAxis> cut = MakeCutAxis(shape, axis, RuleOf(o, axis, able), max_units_);
    if (!cut || !lines_.matter()) return cut;
    for (int u = 1; u < cut->units; ++u) {
      Part low, high;
      low.op = high.op = o;
      low.region = UnitRegion(shape, *cut, 0, u);
      high.region = UnitRegion(shape, *cut, u, cut->units - u);
      if (AnyClash(low, high)) return std::nullopt;
    }
    return cut;
  }

  // Latencies at some numbers of units, the others between them on straight lines: sources may be slow, and what a kernel's tile makes of
  // the extent is in the unit already.
  Result<std::optional<Mode>> SplitMode(OpId o, const CutAxis& cut, const std::vector<bool>& able) {
    const Dims& shape = graph_.output(graph_.op(o)).shape;
    return FillMode(cut, able, [&](size_t lane, int u) {
      const Region region = UnitRegion(shape, cut, 0, u);
      return PartTicks(o, lane, u == cut.units ? -1 : cut.axis, region.size[cut.axis], region);
    });
  }

  template <typename TicksOf>
  Result<std::optional<Mode>> FillMode(const CutAxis& cut, const std::vector<bool>& able, const TicksOf& ticks_of) {
    Mode mode;
    mode.axis = cut.axis;
    mode.units = cut.units;
    mode.min_units = cut.min_units;
    mode.cost.assign(lanes_.size() * static_cast<size_t>(cut.units), kForbidden);
    int lanes_known = 0;
    for (size_t d = 0; d < lanes_.size(); ++d) {
      if (!able[d]) continue;
      Tick* row = &mode.cost[d * static_cast<size_t>(cut.units)];
      int before = 0;
      Tick before_ticks = 0;
      bool known = true;
      for (int u = 1; u <= cut.units && known; ++u) {
        if (u < cut.min_units || !IsSampled(u, cut)) continue;
        PLAIT_ASSIGN_OR_RETURN(const Tick ticks, ticks_of(d, u));
        known = ticks != kForbidden;
        if (!known) break;
        for (int k = before + 1; k <= u; ++k) {
          row[k - 1] = before == 0 ? ticks : before_ticks + (ticks - before_ticks) * (k - before) / (u - before);
        }
        before = u;
        before_ticks = ticks;
      }
      if (!known) std::fill_n(row, cut.units, kForbidden);
      lanes_known += known;
    }
    if (lanes_known < 2) return std::optional<Mode>();
    return std::optional<Mode>(std::move(mode));
  }

  static bool IsSampled(int u, const CutAxis& cut) {
    if (u == cut.min_units || u == cut.units || u == cut.units - 1 || u <= 4) return true;
    return u <= 16 ? u % 2 == 0 : u % 4 == 0;
  }

  Result<Tick> PartTicks(OpId o, size_t lane, int axis, int64_t extent, const Region& region) {
    const auto key = std::make_tuple(signatures_[static_cast<size_t>(o)], lane, axis, extent);
    const auto known = times_.find(key);
    if (known != times_.end()) return known->second;
    const Latency latency = costs_.latency->PartLatency(graph_, o, lanes_[lane].spec.name, region);
    Tick ticks = kForbidden;
    if (latency.known) {
      const Status status = CheckTime(latency.us, "the predicted time");
      if (!status.ok()) return status.Annotated(StrCat("operator '", graph_.op(o).name, "' on lane '", lanes_[lane].spec.name, "'"));
      ticks = ToTicks(latency.us + lanes_[lane].host_step_us, 1);
    }
    times_.emplace(key, ticks);
    return ticks;
  }

  // What one unit of a problem operator reads of others. `strip`: how it is cut, if it is one.
  std::vector<Source> ReadsOfUnit(const std::vector<OpId>& ops, const std::optional<StripCut>& strip, const std::optional<CutAxis>& cut, int unit) const {
    const Dims& shape = graph_.output(graph_.op(ops.back())).shape;
    const Region last = cut ? UnitRegion(shape, *cut, unit, 1) : Region::Whole(shape);
    if (ops.size() == 1) return ReadsOf(graph_, producers_, ops.back(), last);
    std::optional<std::vector<Region>> regions;
    if (cut && strip) regions = StripRegions(graph_, strip->strip, last);
    std::vector<Source> reads;
    for (size_t i = 0; i < ops.size(); ++i) {
      const Region region = regions ? (*regions)[i] : Region::Whole(graph_.output(graph_.op(ops[i])).shape);
      for (Source& source : ReadsOf(graph_, producers_, ops[i], region)) {
        const OpId producer = producers_[static_cast<size_t>(source.tensor)];
        if (std::find(ops.begin(), ops.end(), producer) != ops.end()) continue;
        const auto known = std::find_if(reads.begin(), reads.end(), [&](const Source& s) { return s.tensor == source.tensor; });
        if (known == reads.end()) {
          reads.push_back(std::move(source));
        } else {
          known->region = Enclose(known->region, source.region);
        }
      }
    }
    return reads;
  }

  // Of the newest operator of the problem.
  void AddEdges(const std::vector<int>& index) {
    ProblemOp& consumer = out_.problem.ops.back();
    const std::vector<std::optional<CutAxis>>& cuts = out_.cuts.back();
    const std::vector<OpId>& ops = out_.ops.back();
    const std::optional<StripCut> strip = ops.size() > 1 ? CutOf(ops) : std::nullopt;
    // [mode][unit] -> what is read; units of a whole operator: one.
    std::vector<std::vector<std::vector<Source>>> reads;
    for (const auto& cut : cuts) {
      std::vector<std::vector<Source>> by_unit;
      for (int u = 0; u < (cut ? cut->units : 1); ++u) {
        by_unit.push_back(ReadsOfUnit(ops, strip, cut, u));
      }
      reads.push_back(std::move(by_unit));
    }
    for (const Source& source : reads[0][0]) {
      const OpId producer = producers_[static_cast<size_t>(source.tensor)];
      if (producer == kNoOp) continue;
      ProblemEdge edge;
      edge.producer = index[static_cast<size_t>(producer)];
      const auto& producer_cuts = out_.cuts[static_cast<size_t>(edge.producer)];
      bool everything = true;
      for (size_t mode = 0; mode < cuts.size(); ++mode) {
        for (const auto& producer_cut : producer_cuts) {
          edge.access.push_back(AccessIndex(source.tensor, reads[mode], producer_cut));
          everything &= edge.access.back() < 0;
        }
      }
      if (everything) edge.access.clear();
      consumer.inputs.push_back(std::move(edge));
    }
  }

  // The table that says which units of `tensor`, cut like `cut`, each unit of the reader reads; -1 where every unit reads all.
  int AccessIndex(TensorId tensor, const std::vector<std::vector<Source>>& by_unit, const std::optional<CutAxis>& cut) {
    const int units = cut ? cut->units : 1;
    Access access;
    bool everything = true;
    int16_t reached = 0;
    for (const std::vector<Source>& sources : by_unit) {
      int first = reached, last = reached;  // reads nothing of the tensor: an empty interval
      for (const Source& source : sources) {
        if (source.tensor != tensor || source.region.IsEmpty()) continue;
        first = cut ? static_cast<int>(source.region.begin[cut->axis] / cut->unit) : 0;
        last = cut ? static_cast<int>((source.region.begin[cut->axis] + source.region.size[cut->axis] - 1) / cut->unit) + 1 : 1;
      }
      reached = static_cast<int16_t>(std::max<int>(reached, last));
      access.first.push_back(static_cast<int16_t>(first));
      access.last.push_back(reached);
      everything &= first == 0 && reached == units;
    }
    if (everything) return -1;
    for (size_t u = access.first.size(); u-- > 1;) access.first[u - 1] = std::min(access.first[u - 1], access.first[u]);
    const auto [at, is_new] = accesses_.try_emplace({access.first, access.last}, static_cast<int>(out_.problem.accesses.size()));
    if (is_new) out_.problem.accesses.push_back(std::move(access));
    return at->second;
  }

  const Graph& graph_;
  const std::vector<PlanningLane>& lanes_;
  const PlanningCosts& costs_;
  int max_units_;
  CacheLines lines_;
  std::vector<OpId> producers_;
  std::vector<std::vector<OpId>> readers_;
  std::vector<int> signatures_;  // [op]: equal where operators are alike
  std::vector<bool> tied_;
  std::map<std::tuple<int, size_t, int, int64_t>, Tick> times_;  // by signature, lane, axis and extent
  std::map<std::pair<std::vector<int16_t>, std::vector<int16_t>>, int> accesses_;
  PlanningProblem out_;
};

Result<Schedule> ProblemBuilder::Impl::ToSchedule(const PlanningProblem& planning, const Assignment& assignment) {
  PLAIT_ASSIGN_OR_RETURN(const Timeline timeline, Evaluate(planning.problem, assignment));
  const size_t D = lanes_.size();
  Schedule out;
  out.lanes.resize(D);
  out.predicted_us = static_cast<double>(timeline.makespan) / 10.0;
  std::vector<std::vector<int>> parts_of(planning.ops.size() * D);
  for (size_t o = 0; o < planning.ops.size(); ++o) {
    const std::vector<OpId>& ops = planning.ops[o];
    const Assignment::Choice& choice = assignment.choices[o];
    const auto& cut = planning.cuts[o][static_cast<size_t>(choice.mode)];
    const std::optional<StripCut> strip = cut && ops.size() > 1 ? CutOf(ops) : std::nullopt;
    int first = 0;
    for (size_t d = 0; d < D; ++d) {
      const int count = choice.units[d];
      if (count == 0) continue;
      const Dims& shape = graph_.output(graph_.op(ops.back())).shape;
      std::vector<Region> regions;
      if (strip) {
        std::optional<std::vector<Region>> of_strip = StripRegions(graph_, strip->strip, UnitRegion(shape, *cut, first, count));
        if (!of_strip) return Internal("operator '", graph_.op(ops.back()).name, "': its strip on lane '", lanes_[d].spec.name, "' cannot be cut there");
        regions = std::move(*of_strip);
      } else {
        for (OpId op : ops) regions.push_back(Region::Whole(graph_.output(graph_.op(op)).shape));
        if (cut) regions.back() = UnitRegion(shape, *cut, first, count);
      }
      Tick start = timeline.start[o * D + d];
      const Tick end = timeline.end[o * D + d];
      for (size_t i = 0; i < ops.size(); ++i) {
        Part part;
        part.op = ops[i];
        part.lane = static_cast<LaneId>(d);
        part.region = regions[i];
        part.kernel = lanes_[d].rules->Supports(graph_, part.op).kernel;
        if (strip) part.strip = static_cast<int>(o * D + d);
        Tick stop = end;
        if (i + 1 < ops.size()) {
          Tick ticks = kForbidden;
          if (strip) {
            PLAIT_ASSIGN_OR_RETURN(ticks, RowTicks(strip->strip[i], d, regions[i]));
          } else {
            PLAIT_ASSIGN_OR_RETURN(ticks, PartTicks(part.op, d, -1, 0, regions[i]));
          }
          stop = ticks == kForbidden ? end : std::min(end, start + ticks);
        }
        part.predicted_us = static_cast<double>(stop - start) / 10.0;
        part.predicted_start_us = static_cast<double>(start) / 10.0;
        start = stop;
        parts_of[o * D + d].push_back(static_cast<int>(out.parts.size()));
        out.parts.push_back(std::move(part));
      }
      first += count;
    }
  }
  for (size_t d = 0; d < D; ++d) {
    for (int o : assignment.order[d]) {
      const std::vector<int>& parts = parts_of[static_cast<size_t>(o) * D + d];
      out.lanes[d].insert(out.lanes[d].end(), parts.begin(), parts.end());
    }
  }
  return out;
}

ProblemBuilder::ProblemBuilder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ProblemBuilder::ProblemBuilder(ProblemBuilder&&) noexcept = default;
ProblemBuilder::~ProblemBuilder() = default;

Result<ProblemBuilder> ProblemBuilder::Create(const Graph& graph, const std::vector<PlanningLane>& lanes, const PlanningCosts& costs, int max_units) {
  if (lanes.empty() || lanes.size() > static_cast<size_t>(kMaxLanes)) return InvalidArgument("there are ", lanes.size(), " lanes, outside 1..", kMaxLanes);
  if (costs.latency == nullptr) return InvalidArgument("the costs hold no latency source");
  PLAIT_ASSIGN_OR_RETURN(CacheLines lines, CacheLines::Create(graph, lanes));
  return ProblemBuilder(std::make_unique<Impl>(graph, lanes, costs, max_units, std::move(lines)));
}

Result<PlanningProblem> ProblemBuilder::Build(const StripList& strips) { return impl_->Build(strips); }
Result<std::vector<Tick>> ProblemBuilder::StripCosts(const std::vector<OpId>& ops) { return impl_->StripCosts(ops); }
Result<Schedule> ProblemBuilder::ToSchedule(const PlanningProblem& planning, const Assignment& assignment) { return impl_->ToSchedule(planning, assignment); }

}  // namespace plait
