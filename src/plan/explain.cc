#include "src/plan/explain.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "src/graph/operators.h"
#include "src/plan/describe.h"
#include "src/plan/predicted.h"

namespace plait {
namespace {

constexpr size_t kMostHandoffs = 10;

std::string Us(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", static_cast<double>(ns) / 1e3);
  return text;
}
std::string Us(double us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", us);
  return text;
}
std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

// Rows of cells; columns as wide as their widest cell, numbers to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string Text() const {
    std::vector<size_t> width(rows_.front().size(), 0);
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
    }
    std::string out;
    for (const auto& row : rows_) {
      std::string line = " ";
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string blank(width[i] - row[i].size(), ' ');
        const bool is_number = i < kNumberColumns;
        line += ' ';
        line += is_number ? blank + row[i] : row[i] + blank;
      }
      out += line.substr(0, line.find_last_not_of(' ') + 1);
      out += '\n';
    }
    return out;
  }

 private:
  static constexpr size_t kNumberColumns = 3;
  std::vector<std::vector<std::string>> rows_;
};

struct At {
  LaneId lane;
  int64_t step;
};

class Explanation {
 public:
  Explanation(const Graph& graph, const Plan& plan, std::vector<std::vector<StepTiming>> timings)
      : graph_(graph), plan_(plan), program_(plan.program), timings_(std::move(timings)) {
    for (const auto& lane : timings_) {
      for (const StepTiming& t : lane) makespan_ns_ = std::max(makespan_ns_, t.end_ns);
    }
  }

  std::string Text() const { return Summary() + Utilisation() + CriticalPath() + Handoffs() + Lanes(); }

 private:
  const Step& StepAt(At a) const { return program_.steps[static_cast<size_t>(a.lane)][static_cast<size_t>(a.step)]; }
  const StepTiming& TimeAt(At a) const { return timings_[static_cast<size_t>(a.lane)][static_cast<size_t>(a.step)]; }
  int64_t EndOf(const Wait& wait) const { return TimeAt({wait.lane, wait.steps - 1}).end_ns; }
  const std::string& LaneName(LaneId lane) const { return program_.lanes[static_cast<size_t>(lane)].name; }

  std::string Summary() const {
    const ProgramStats stats = StatsOf(program_);
    const double predicted_us = plan_.schedule.predicted_us > 0 ? plan_.schedule.predicted_us : static_cast<double>(makespan_ns_) / 1e3;
    std::string out = StrCat("plan for ", graph_.name.empty() ? "the model" : graph_.name, " by ",
                             plan_.schedule.strategy.empty() ? "an unnamed strategy" : plan_.schedule.strategy, ", ",
                             stats.compute_steps, " parts of ", OperatorCount(), " operators\npredicted latency ", Us(predicted_us), " us");
    const double bound_us = plan_.schedule.lower_bound_us;
    if (bound_us > 0) out += StrCat(", lower bound ", Us(bound_us), " us, gap ", Percent(predicted_us / bound_us - 1));
    out += StrCat("\n", stats.handoffs, " handoffs, ", stats.segments, " GPU segments, ", stats.acquires, " acquires, ",
                  stats.publishes, " publishes, ",
                  (program_.arena_bytes + 1023) / 1024, " KiB of memory\n");
    return out;
  }

  int OperatorCount() const {
    return static_cast<int>(std::count_if(graph_.ops.begin(), graph_.ops.end(),
                                          [](const Operator& op) { return !IsView(op.kind); }));
  }

  std::string Utilisation() const {
    std::string out = "\nlanes\n";
    for (size_t lane = 0; lane < timings_.size(); ++lane) {
      int64_t busy_ns = 0;
      int parts = 0;
      for (size_t n = 0; n < timings_[lane].size(); ++n) {
        busy_ns += timings_[lane][n].end_ns - timings_[lane][n].start_ns;
        parts += program_.steps[lane][n].kind == StepKind::kCompute;
      }
      const double share = makespan_ns_ > 0 ? static_cast<double>(busy_ns) / static_cast<double>(makespan_ns_) : 0;
      out += StrCat("  ", LaneName(static_cast<LaneId>(lane)), ": ", parts, " parts, busy ", Us(busy_ns), " us (",
                    Percent(share), ")\n");
    }
    return out;
  }

  // What the step had to wait for last: the step before it on its lane or one that it waits for.
  std::optional<At> LatestBefore(At a) const {
    std::optional<At> latest;
    auto consider = [&](At b) {
      if (!latest || TimeAt(b).end_ns > TimeAt(*latest).end_ns) latest = b;
    };
    if (a.step > 0) consider({a.lane, a.step - 1});
    for (const Wait& wait : StepAt(a).waits) consider({wait.lane, wait.steps - 1});
    return latest;
  }

  std::string CriticalPath() const {
    std::optional<At> at;
    for (size_t lane = 0; lane < timings_.size(); ++lane) {
      if (timings_[lane].empty()) continue;
      const At last{static_cast<LaneId>(lane), static_cast<int64_t>(timings_[lane].size()) - 1};
      if (!at || TimeAt(last).end_ns > TimeAt(*at).end_ns) at = last;
    }
    std::vector<At> path;
    for (; at; at = LatestBefore(*at)) {
      if (StepAt(*at).kind == StepKind::kCompute) path.push_back(*at);
    }
    std::reverse(path.begin(), path.end());
    Table table({"start us", "us", "gap us", "lane", "operator", "part"});
    int64_t free_ns = 0;
    for (const At& a : path) {
      const StepTiming& t = TimeAt(a);
      table.Add({Us(t.start_ns), Us(t.end_ns - t.start_ns), Us(std::max<int64_t>(0, t.start_ns - free_ns)),
                 LaneName(a.lane), StepName(graph_, StepAt(a)),
                 DescribePart(graph_, StepAt(a))});
      free_ns = t.end_ns;
    }
    return StrCat("\ncritical path, ", path.size(), " parts (gap: handoff before the part)\n", table.Text());
  }

  std::string Handoffs() const {
    struct Idle {
      int64_t ns;
      At at, from;
    };
    std::vector<Idle> idles;
    for (size_t lane = 0; lane < timings_.size(); ++lane) {
      int64_t free_ns = 0;  // when the lane's last part ended
      for (size_t n = 0; n < timings_[lane].size(); ++n) {
        const At a{static_cast<LaneId>(lane), static_cast<int64_t>(n)};
        const Wait* latest = nullptr;
        for (const Wait& wait : StepAt(a).waits) {
          if (latest == nullptr || EndOf(wait) > EndOf(*latest)) latest = &wait;
        }
        const int64_t idle_ns = timings_[lane][n].start_ns - free_ns;
        if (latest != nullptr && idle_ns > 0) {
          idles.push_back({idle_ns, ComputeFrom(a), LastCompute({latest->lane, latest->steps - 1})});
        }
        free_ns = timings_[lane][n].end_ns;
      }
    }
    std::stable_sort(idles.begin(), idles.end(), [](const Idle& a, const Idle& b) { return a.ns > b.ns; });
    std::string out = StrCat("\nhandoffs that matter: ", idles.size(), " of ", StatsOf(program_).handoffs,
                             " waits leave a lane idle\n");
    for (size_t i = 0; i < std::min(idles.size(), kMostHandoffs); ++i) {
      const Idle& idle = idles[i];
      out += StrCat("  ", LaneName(idle.at.lane), " idles ", Us(idle.ns), " us before ",
                    StepName(graph_, StepAt(idle.at)), " for ", LaneName(idle.from.lane), "'s ",
                    StepName(graph_, StepAt(idle.from)), "\n");
    }
    return out;
  }

  // The part that an Acquire stands before, and the part that a Publish or Submit stands behind.
  At ComputeFrom(At a) const {
    while (StepAt(a).kind != StepKind::kCompute && a.step + 1 < program_.step_count(a.lane)) ++a.step;
    return a;
  }
  At LastCompute(At a) const {
    while (StepAt(a).kind != StepKind::kCompute && a.step > 0) --a.step;
    return a;
  }

  std::string Lanes() const {
    std::string out;
    for (size_t lane = 0; lane < timings_.size(); ++lane) {
      Table table({"step", "start us", "us", "operator", "part", "kernel", "waits for"});
      for (size_t n = 0; n < timings_[lane].size(); ++n) {
        const Step& step = program_.steps[lane][n];
        const StepTiming& t = timings_[lane][n];
        std::string waits;
        for (const Wait& wait : step.waits) {
          waits += StrCat(waits.empty() ? "" : ", ", LaneName(wait.lane), ' ', wait.steps - 1);
        }
        table.Add({std::to_string(n), Us(t.start_ns), Us(t.end_ns - t.start_ns), StepName(graph_, step),
                   step.kind == StepKind::kCompute ? DescribePart(graph_, step) : Moved(step),
                   step.kernel, waits});
      }
      out += StrCat("\nlane ", LaneName(static_cast<LaneId>(lane)), "\n", table.Text());
    }
    return out;
  }

  static std::string Moved(const Step& step) {
    int64_t bytes = 0;
    for (const View& view : step.reads) bytes += view.region.Count() * SizeOf(view.dtype);
    return bytes == 0 ? "" : StrCat(bytes, " bytes in ", step.reads.size(), step.reads.size() == 1 ? " view" : " views");
  }

  const Graph& graph_;
  const Plan& plan_;
  const StepProgram& program_;
  const std::vector<std::vector<StepTiming>> timings_;
  int64_t makespan_ns_ = 0;
};

}  // namespace

std::string ExplainPlan(const Graph& graph, const Plan& plan) {
  Result<std::vector<std::vector<StepTiming>>> timings = PredictedTimings(plan.program);
  if (!timings.ok()) return timings.status().message() + "\n";
  return Explanation(graph, plan, std::move(timings).value()).Text();
}

}  // namespace plait
