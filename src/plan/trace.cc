#include "src/plan/trace.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "src/plan/describe.h"

namespace plait {
namespace {

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class Tracer {
 public:
  Tracer(const Graph& graph, const StepProgram& program, std::span<const std::span<const StepTiming>> timings)
      : graph_(graph), program_(program), timings_(timings) {
    origin_ns_ = std::numeric_limits<int64_t>::max();
    for (size_t lane = 0; lane < program.steps.size(); ++lane) {
      for (size_t n = 0; n < program.steps[lane].size(); ++n) {
        if (const StepTiming* t = SliceOf(lane, n)) origin_ns_ = std::min(origin_ns_, t->start_ns);
      }
    }
  }

  std::string Text() {
    Event(StrCat(R"("ph":"M","pid":1,"name":"process_name","args":{"name":)",
                 Quoted(graph_.name.empty() ? "plait" : graph_.name), "}"));
    for (size_t lane = 0; lane < program_.lanes.size(); ++lane) {
      Event(StrCat(R"("ph":"M","pid":1,"tid":)", lane, R"(,"name":"thread_name","args":{"name":)",
                   Quoted(program_.lanes[lane].name), "}"));
      Event(StrCat(R"("ph":"M","pid":1,"tid":)", lane, R"(,"name":"thread_sort_index","args":{"sort_index":)", lane, "}"));
    }
    for (size_t lane = 0; lane < program_.steps.size(); ++lane) {
      for (size_t n = 0; n < program_.steps[lane].size(); ++n) {
        if (const StepTiming* t = SliceOf(lane, n)) AddSlice(lane, program_.steps[lane][n], *t);
        for (const Wait& wait : program_.steps[lane][n].waits) AddArrow(lane, n, wait);
      }
    }
    return StrCat("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", events_, "\n]}\n");
  }

 private:
  // The step's times; nullptr if it has none or took no time (bookkeeping).
  const StepTiming* SliceOf(size_t lane, size_t n) const {
    if (lane >= timings_.size() || n >= timings_[lane].size()) return nullptr;
    const StepTiming& t = timings_[lane][n];
    return t.end_ns > t.start_ns ? &t : nullptr;
  }

  void Event(const std::string& fields) {
    if (!events_.empty()) events_ += ",\n";
    events_ += '{';
    events_ += fields;
    events_ += '}';
  }

  std::string Time(int64_t ns) const {
    char text[40];
    std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns - origin_ns_) / 1e3);
    return text;
  }

  void AddSlice(size_t lane, const Step& step, const StepTiming& t) {
    std::string args;
    if (step.kind == StepKind::kCompute) {
      args = StrCat(R"("kind":")", Name(graph_.op(step.op).kind), R"(","part":)", Quoted(DescribePart(graph_, step)),
                    R"(,"kernel":)", Quoted(step.kernel),
                    R"(,"predicted_us":)", step.predicted_us);
    }
    char duration[40];
    std::snprintf(duration, sizeof duration, "%.3f", static_cast<double>(t.end_ns - t.start_ns) / 1e3);
    Event(StrCat(R"("ph":"X","pid":1,"tid":)", lane, R"(,"name":)", Quoted(StepName(graph_, step)), R"(,"cat":")",
                 Name(step.kind), R"(","ts":)", Time(t.start_ns),
                 R"(,"dur":)", duration, R"(,"args":{)", args, "}"));
  }

  // From the slice that ended last before the counter stood at `wait` to the first slice that could start after it.
  // Arrows bind to slices, and bookkeeping steps may have none.
  void AddArrow(size_t lane, size_t n, const Wait& wait) {
    const size_t from_lane = static_cast<size_t>(wait.lane);
    const StepTiming* from = nullptr;
    for (int64_t s = wait.steps - 1; s >= 0 && from == nullptr; --s) from = SliceOf(from_lane, static_cast<size_t>(s));
    const StepTiming* to = nullptr;
    for (size_t s = n; s < program_.steps[lane].size() && to == nullptr; ++s) to = SliceOf(lane, s);
    if (from == nullptr || to == nullptr) return;
    const int64_t id = ++arrows_;
    Event(StrCat(R"("ph":"s","pid":1,"tid":)", from_lane, R"(,"id":)", id, R"(,"name":"handoff","cat":"handoff","ts":)",
                 Time(from->end_ns - 1)));
    Event(StrCat(R"("ph":"f","bp":"e","pid":1,"tid":)", lane, R"(,"id":)", id,
                 R"(,"name":"handoff","cat":"handoff","ts":)", Time(to->start_ns)));
  }

  const Graph& graph_;
  const StepProgram& program_;
  const std::span<const std::span<const StepTiming>> timings_;
  std::string events_;
  int64_t origin_ns_ = 0;
  int64_t arrows_ = 0;
};

}  // namespace

std::string TraceJson(const Graph& graph, const StepProgram& program,
                      std::span<const std::span<const StepTiming>> timings) {
  return Tracer(graph, program, timings).Text();
}

}  // namespace plait
