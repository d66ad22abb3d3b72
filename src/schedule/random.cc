#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "src/partition/cuts.h"
#include "src/partition/strips.h"
#include "src/schedule/cache_lines.h"
#include "src/schedule/part_graph.h"
#include "src/schedule/schedule.h"

namespace plait {
namespace {

class RandomScheduler {
 public:
  RandomScheduler(const Graph& graph, const std::vector<PlanningLane>& lanes, CacheLines lines, uint64_t seed)
      : graph_(graph), lanes_(lanes), lines_(std::move(lines)), random_(seed), readers_(ReadersOf(graph)), in_strip_(graph.ops.size(), false) {}

  Result<Schedule> Run() {
    if (lines_.matter()) PLAIT_RETURN_IF_ERROR(TieRoots());
    for (OpId o = 0; o < graph_.op_count(); ++o) {
      if (IsView(graph_.op(o).kind) || in_strip_[static_cast<size_t>(o)]) continue;
      if (!AddStrip(o)) PLAIT_RETURN_IF_ERROR(AddOp(o));
    }
    schedule_.strategy = "random";
    Order();
    return std::move(schedule_);
  }

 private:
  int Pick(size_t n) { return static_cast<int>(random_() % n); }  // mt19937_64 itself is the same everywhere; distributions are not

  std::vector<LaneId> Supporting(OpId op) const {
    std::vector<LaneId> out;
    const auto tied = domain_.find(lines_.Root(graph_.op(op).output));
    for (size_t l = 0; l < lanes_.size(); ++l) {
      if (tied != domain_.end() && lanes_[l].spec.domain != tied->second) continue;
      if (lanes_[l].rules->Supports(graph_, op).supported) out.push_back(static_cast<LaneId>(l));
    }
    return out;
  }

  Part Whole(OpId op, LaneId lane) const {
    Part part;
    part.op = op;
    part.lane = lane;
    part.region = Region::Whole(graph_.output(graph_.op(op)).shape);
    part.kernel = lanes_[static_cast<size_t>(lane)].rules->Supports(graph_, op).kernel;
    return part;
  }

  // Operators whose outputs lie so close in one root that they share a cache line even when left whole all go to one
  // domain.
  Status TieRoots() {
    std::map<TensorId, std::vector<OpId>> writers;
    for (OpId o = 0; o < graph_.op_count(); ++o) {
      if (!IsView(graph_.op(o).kind)) writers[lines_.Root(graph_.op(o).output)].push_back(o);
    }
    for (const auto& [root, ops] : writers) {
      if (ops.size() < 2 || AreApart(ops)) continue;
      std::vector<DomainId> domains;
      for (const PlanningLane& lane : lanes_) {
        const bool all = std::all_of(ops.begin(), ops.end(), [&](OpId o) {
          return std::any_of(lanes_.begin(), lanes_.end(), [&](const PlanningLane& l) {
            return l.spec.domain == lane.spec.domain && l.rules->Supports(graph_, o).supported;
          });
        });
        if (all) domains.push_back(lane.spec.domain);
      }
      if (domains.empty()) {
        return Unsupported("no lane, nor the lanes of one memory, can run all operators that write to tensor '",
                           graph_.tensor(root).name, "'");
      }
      domain_[root] = domains[static_cast<size_t>(Pick(domains.size()))];
    }
    return Status();
  }

  bool AreApart(const std::vector<OpId>& ops) const {
    // Stand-ins for lanes of two domains, one of which is not coherent.
    const auto loner = std::find_if(lanes_.begin(), lanes_.end(), [](const PlanningLane& l) { return !l.coherent; });
    const auto other = std::find_if(lanes_.begin(), lanes_.end(),
                                    [&](const PlanningLane& l) { return l.spec.domain != loner->spec.domain; });
    if (other == lanes_.end()) return true;
    for (size_t i = 0; i < ops.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (lines_.Clash(Whole(ops[i], static_cast<LaneId>(loner - lanes_.begin())),
                         Whole(ops[j], static_cast<LaneId>(other - lanes_.begin())))) {
          return false;
        }
      }
    }
    return true;
  }

  // The operators that start a strip of a random length with `first`; fewer than two: there is none.
  std::vector<OpId> RandomStrip(OpId first) {
    std::vector<OpId> ops{first};
    const size_t most = 2 + static_cast<size_t>(Pick(5));
    for (OpId o = first + 1; o < graph_.op_count() && ops.size() < most; ++o) {
      if (IsView(graph_.op(o).kind)) continue;
      if (in_strip_[static_cast<size_t>(o)]) break;
      ops.push_back(o);
    }
    while (ops.size() >= 2 && !CanBeStrip(graph_, readers_, ops)) ops.pop_back();
    return ops;
  }

  // Runs some operators from `first` on as strips; false, and nothing has changed, if it does not.
  bool AddStrip(OpId first) {
    if (Pick(4) != 0) return false;
    const std::vector<OpId> ops = RandomStrip(first);
    if (ops.size() < 2) return false;
    std::vector<LaneId> able = Supporting(first);
    for (OpId op : ops) {
      const std::vector<LaneId> also = Supporting(op);
      std::erase_if(able, [&](LaneId lane) { return std::find(also.begin(), also.end(), lane) == also.end(); });
    }
    if (able.empty()) return false;
    const auto strip = RowStrip(graph_, ops, [&](OpId op, const SplitAxis& axis) { return RuleOf(op, axis, able); });
    if (!strip) return false;
    std::vector<Part> parts;
    for (const Part& part : PartsAlong(ops.back(), strip->back().axis, able)) {
      const std::optional<std::vector<Region>> regions = StripRegions(graph_, *strip, part.region);
      if (!regions) return false;
      ++strips_;
      for (size_t i = 0; i < ops.size(); ++i) {
        parts.push_back(Whole(ops[i], part.lane));
        parts.back().region = (*regions)[i];
        parts.back().strip = strips_;
      }
    }
    std::vector<Part> shared = parts;
    std::erase_if(shared, [&](const Part& part) { return part.op != ops.back(); });
    if (parts.empty() || !Fit(shared)) return false;
    for (const Part& part : shared) lines_.Add(part);
    for (Part& part : parts) schedule_.parts.push_back(std::move(part));
    for (OpId op : ops) in_strip_[static_cast<size_t>(op)] = true;
    return true;
  }

  Status AddOp(OpId op) {
    const std::vector<LaneId> able = Supporting(op);
    if (able.empty()) {
      return Unsupported("no lane can run operator '", graph_.op(op).name, "' (", Name(graph_.op(op).kind), ")");
    }
    for (int tries = 0; tries < 4; ++tries) {
      std::vector<Part> parts = RandomParts(op, able);
      if (parts.empty() || !Fit(parts)) continue;
      for (Part& part : parts) Keep(std::move(part));
      return Status();
    }
    Keep(Whole(op, able[static_cast<size_t>(Pick(able.size()))]));
    return Status();
  }

  bool Fit(const std::vector<Part>& parts) const {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (lines_.Conflict(parts[i]) != nullptr) return false;
      for (size_t j = 0; j < i; ++j) {
        if (lines_.Clash(parts[i], parts[j])) return false;
      }
    }
    return true;
  }

  void Keep(Part part) {
    lines_.Add(part);
    schedule_.parts.push_back(std::move(part));
  }

  // The operator cut along a random axis for a random set of lanes; empty if it cannot be cut like that.
  std::vector<Part> RandomParts(OpId op, const std::vector<LaneId>& able) {
    const std::vector<SplitAxis> axes = SplitAxes(graph_, graph_.op(op));
    if (axes.empty() || Pick(4) == 0) return {Whole(op, able[static_cast<size_t>(Pick(able.size()))])};
    const SplitAxis axis = axes[static_cast<size_t>(Pick(axes.size()))];
    std::vector<LaneId> chosen;
    for (LaneId lane : able) {
      if (Pick(3) != 0) chosen.push_back(lane);
    }
    if (chosen.empty()) chosen = able;
    return PartsAlong(op, axis, chosen);
  }

  // What the kernels of all these lanes ask of cuts.
  CutRule RuleOf(OpId op, const SplitAxis& axis, const std::vector<LaneId>& lanes) const {
    CutRule rule{1, 1};
    for (LaneId lane : lanes) rule = Combine(rule, lanes_[static_cast<size_t>(lane)].rules->Cut(graph_, op, axis));
    return rule;
  }

  // The operator cut along `axis` at random places for these lanes; empty if it cannot be cut there.
  std::vector<Part> PartsAlong(OpId op, const SplitAxis& axis, const std::vector<LaneId>& chosen) {
    const Dims& shape = graph_.output(graph_.op(op)).shape;
    const std::optional<CutAxis> cut = MakeCutAxis(shape, axis, RuleOf(op, axis, chosen), 2 + Pick(15));
    if (!cut) return {};
    std::vector<Part> parts;
    for (int first = 0; first < cut->units;) {
      const int left = cut->units - first;
      int count = cut->min_units + Pick(static_cast<size_t>(left));
      if (count > left - cut->min_units || parts.size() == 3) count = left;
      Part part = Whole(op, chosen[static_cast<size_t>(Pick(chosen.size()))]);
      part.region = UnitRegion(shape, *cut, first, count);
      parts.push_back(std::move(part));
      first += count;
    }
    return parts;
  }

  // A random topological order of the parts; each lane follows it.
  void Order() {
    const std::vector<std::vector<PartRead>> reads = ReadsOfParts(graph_, schedule_);
    std::vector<int> open(schedule_.parts.size(), 0);
    std::vector<std::vector<int>> readers(schedule_.parts.size());
    std::vector<int> ready;
    for (size_t p = 0; p < reads.size(); ++p) {
      for (const PartRead& read : reads[p]) {
        if (read.producer < 0) continue;
        readers[static_cast<size_t>(read.producer)].push_back(static_cast<int>(p));
        ++open[p];
      }
      if (open[p] == 0) ready.push_back(static_cast<int>(p));
    }
    schedule_.lanes.assign(lanes_.size(), {});
    while (!ready.empty()) {
      // Mostly what became ready last, so that depth and breadth mix.
      const size_t at = static_cast<size_t>(std::max(Pick(ready.size()), Pick(ready.size())));
      const int p = ready[at];
      ready[at] = ready.back();
      ready.pop_back();
      schedule_.lanes[static_cast<size_t>(schedule_.parts[static_cast<size_t>(p)].lane)].push_back(p);
      for (int reader : readers[static_cast<size_t>(p)]) {
        if (--open[static_cast<size_t>(reader)] == 0) ready.push_back(reader);
      }
    }
  }

  const Graph& graph_;
  const std::vector<PlanningLane>& lanes_;
  CacheLines lines_;
  std::mt19937_64 random_;
  std::map<TensorId, DomainId> domain_;  // root -> the only domain that may write it
  std::vector<std::vector<OpId>> readers_;
  std::vector<bool> in_strip_;           // [op]
  int strips_ = 0;                       // ids given so far
  Schedule schedule_;
};

}  // namespace

Result<Schedule> RandomSchedule(const Graph& graph, const std::vector<PlanningLane>& lanes, uint64_t seed) {
  if (lanes.empty()) return InvalidArgument("there are no lanes");
  PLAIT_ASSIGN_OR_RETURN(CacheLines lines, CacheLines::Create(graph, lanes));
  return RandomScheduler(graph, lanes, std::move(lines), seed).Run();
}

}  // namespace plait
