#include "src/plan/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "src/graph/operators.h"
#include "src/partition/storage.h"
#include "src/plan/boxes.h"
#include "src/schedule/part_graph.h"

namespace plait {
namespace {

constexpr size_t kMaxPlanLanes = 64;

size_t Index(int64_t id) { return static_cast<size_t>(id); }

// Turns regions of tensors into views of the buffers that their roots lie in.
class ViewMaker {
 public:
  static Result<ViewMaker> Create(const Graph& graph, const Schedule& schedule) {
    ViewMaker maker(graph);
    PLAIT_ASSIGN_OR_RETURN(maker.storage_, AssignStorage(graph));
    const PrivateResults results(graph, schedule);
    maker.MakeBuffers(results);
    for (const Part& part : schedule.parts) {
      if (results.Contains(part.op)) maker.AddPrivate(graph, part);
    }
    return maker;
  }

  View Make(TensorId tensor, const Region& region) const {
    const Tensor& t = graph_->tensor(tensor);
    const TensorStorage& s = storage_[Index(tensor)];
    int64_t element = s.offset;
    for (int i = 0; i < region.begin.rank(); ++i) element += region.begin[i] * s.strides[i];
    return {t.is_constant() ? kConstantBuffer : buffer_of_[Index(s.root)], tensor, region, element * SizeOf(t.dtype),
            s.strides, t.dtype};
  }
  // The buffer in which the part's strip keeps its result to itself.
  void AddPrivate(const Graph& graph, const Part& part) {
    const TensorId tensor = graph.op(part.op).output;
    private_.emplace(std::pair(part.strip, tensor), static_cast<BufferId>(buffers_.size()));
    const int64_t bytes = part.region.size.Count() * SizeOf(graph.tensor(tensor).dtype);
    buffers_.push_back({tensor, BufferRole::kActivation, bytes, 0, part.strip, part.region});
  }
  // As Make(), of the strip's private result if `tensor` is one.
  View MakeIn(int strip, TensorId tensor, const Region& region) const {
    const auto at = private_.find({strip, tensor});
    if (at == private_.end()) return Make(tensor, region);
    const Region& stored = buffers_[Index(at->second)].region;
    const DType dtype = graph_->tensor(tensor).dtype;
    const Dims strides = DenseStrides(stored.size);
    int64_t element = 0;
    if (!region.IsEmpty()) {
      for (int i = 0; i < region.begin.rank(); ++i) element += (region.begin[i] - stored.begin[i]) * strides[i];
    }
    return {at->second, tensor, region, element * SizeOf(dtype), strides, dtype};
  }
  const std::vector<BufferSpec>& buffers() const { return buffers_; }
  bool IsInOutput(TensorId tensor) const {
    const BufferId buffer = buffer_of_[Index(storage_[Index(tensor)].root)];
    return buffer != kConstantBuffer && buffers_[Index(buffer)].role == BufferRole::kOutput;
  }

 private:
  explicit ViewMaker(const Graph& graph) : graph_(&graph) {}

  // One for every root but private results.
  void MakeBuffers(const PrivateResults& results) {
    const std::vector<OpId> producers = graph_->Producers();
    std::vector<BufferRole> role(graph_->tensors.size(), BufferRole::kActivation);
    for (TensorId t : graph_->inputs) role[Index(t)] = BufferRole::kInput;
    for (TensorId t : graph_->outputs) role[Index(t)] = BufferRole::kOutput;
    buffer_of_.assign(graph_->tensors.size(), kConstantBuffer);
    for (TensorId t = 0; t < graph_->tensor_count(); ++t) {
      if (storage_[Index(t)].root != t || graph_->tensor(t).is_constant()) continue;
      if (producers[Index(t)] != kNoOp && results.Contains(producers[Index(t)])) continue;
      buffer_of_[Index(t)] = static_cast<BufferId>(buffers_.size());
      buffers_.push_back({t, role[Index(t)], graph_->tensor(t).bytes(), 0});
    }
  }

  const Graph* graph_;
  std::vector<TensorStorage> storage_;
  std::vector<BufferSpec> buffers_;
  std::vector<BufferId> buffer_of_;  // by root tensor
  std::map<std::pair<int, TensorId>, BufferId> private_;  // by strip
};

// A GPU lane's steps since its last Submit.
struct OpenSegment {
  std::vector<Wait> waits;
  std::map<std::pair<int, TensorId>, Region> acquired;  // by producing part (-1: graph input) and its tensor
  std::vector<Step> computes;
  std::vector<int> parts;
};

class Lowering {
 public:
  Lowering(const Graph& graph, const std::vector<LaneSpec>& lanes, const Schedule& schedule, ViewMaker views)
      : graph_(graph), lanes_(lanes), schedule_(schedule), views_(std::move(views)),
        reads_(ReadsOfParts(graph, schedule)) {}

  Result<StepProgram> Run() {
    PLAIT_ASSIGN_OR_RETURN(const std::vector<int> order, ExecutionOrder(graph_, schedule_, reads_));
    const size_t lane_count = lanes_.size();
    program_.lanes = lanes_;
    program_.steps.resize(lane_count);
    program_.buffers = views_.buffers();
    known_.assign(lane_count, std::vector<int64_t>(lane_count, 0));
    finish_.resize(lane_count);
    open_.resize(lane_count);
    visible_.resize(lane_count);
    finished_at_.assign(schedule_.parts.size(), 0);
    MarkSegmentEnds();
    MarkPublished();
    for (int p : order) {
      if (lanes_[Index(PartOf(p).lane)].kind == LaneKind::kGpu) {
        LowerGpuPart(p);
      } else {
        LowerCpuPart(p);
      }
    }
    return std::move(program_);
  }

 private:
  const Part& PartOf(int p) const { return schedule_.parts[Index(p)]; }
  DomainId DomainOf(int p) const { return p < 0 ? kHostDomain : lanes_[Index(PartOf(p).lane)].domain; }

  // A segment ends behind a part that another lane has to wait for: for each lane, those that lie behind everything
  // that it has waited for before.
  void MarkSegmentEnds() {
    ends_segment_.assign(schedule_.parts.size(), false);
    std::vector<int64_t> position(schedule_.parts.size(), 0);
    for (const std::vector<int>& lane : schedule_.lanes) {
      for (size_t i = 0; i < lane.size(); ++i) position[Index(lane[i])] = static_cast<int64_t>(i);
      if (!lane.empty()) ends_segment_[Index(lane.back())] = true;
    }
    for (size_t lane = 0; lane < schedule_.lanes.size(); ++lane) {
      std::vector<int64_t> waited(lanes_.size(), -1);
      for (int p : schedule_.lanes[lane]) {
        std::map<LaneId, int> latest;
        for (const PartRead& read : reads_[Index(p)]) {
          if (read.producer < 0 || Index(PartOf(read.producer).lane) == lane) continue;
          const auto [at, is_new] = latest.emplace(PartOf(read.producer).lane, read.producer);
          if (!is_new && position[Index(read.producer)] > position[Index(at->second)]) at->second = read.producer;
        }
        for (const auto& [other, q] : latest) {
          if (position[Index(q)] <= waited[Index(other)]) continue;
          waited[Index(other)] = position[Index(q)];
          ends_segment_[Index(q)] = true;
        }
      }
    }
  }

  // What of each part is read in another domain or belongs to a graph output.
  void MarkPublished() {
    published_.resize(schedule_.parts.size());
    for (size_t p = 0; p < schedule_.parts.size(); ++p) {
      for (const PartRead& read : reads_[p]) {
        if (read.producer < 0 || DomainOf(read.producer) == DomainOf(static_cast<int>(p))) continue;
        std::optional<Region>& box = published_[Index(read.producer)];
        box = box ? Enclose(*box, read.region) : read.region;
      }
    }
    for (size_t p = 0; p < schedule_.parts.size(); ++p) {
      const Part& part = schedule_.parts[p];
      if (views_.IsInOutput(graph_.op(part.op).output)) published_[p] = part.region;
    }
  }

  // The fewest waits after which everything that the part reads from other lanes is finished.
  std::vector<Wait> WaitsFor(int p) const {
    const size_t lane = Index(PartOf(p).lane);
    std::vector<int64_t> need(lanes_.size(), 0);
    for (const PartRead& read : reads_[Index(p)]) {
      if (read.producer < 0 || Index(PartOf(read.producer).lane) == lane) continue;
      int64_t& n = need[Index(PartOf(read.producer).lane)];
      n = std::max(n, finished_at_[Index(read.producer)]);
    }
    std::vector<Wait> wanted;
    for (size_t other = 0; other < need.size(); ++other) {
      if (need[other] > known_[lane][other]) wanted.push_back({static_cast<LaneId>(other), need[other]});
    }
    std::vector<Wait> waits;
    for (const Wait& w : wanted) {
      const bool implied = std::any_of(wanted.begin(), wanted.end(), [&](const Wait& v) {
        return v.lane != w.lane && finish_[Index(v.lane)][Index(v.steps - 1)][Index(w.lane)] >= w.steps;
      });
      if (!implied) waits.push_back(w);
    }
    return waits;
  }

  // From now on the lane knows what its waits imply.
  void Learn(size_t lane, const std::vector<Wait>& waits) {
    for (const Wait& w : waits) {
      const std::vector<int64_t>& finished = finish_[Index(w.lane)][Index(w.steps - 1)];
      for (size_t l = 0; l < finished.size(); ++l) {
        if (l != lane) known_[lane][l] = std::max(known_[lane][l], finished[l]);
      }
    }
  }

  void Emit(size_t lane, Step step) {
    program_.steps[lane].push_back(std::move(step));
    known_[lane][lane] = static_cast<int64_t>(program_.steps[lane].size());
    finish_[lane].push_back(known_[lane]);
  }

  Step ComputeStep(int p) const {
    const Part& part = PartOf(p);
    const Operator& op = graph_.op(part.op);
    Step step;
    step.kind = StepKind::kCompute;
    step.op = part.op;
    step.kernel = part.kernel;
    step.region = part.region;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      step.reads.push_back(op.inputs[i] == kNoTensor
                               ? View()
                               : views_.MakeIn(part.strip, op.inputs[i], InputRegion(graph_, op, static_cast<int>(i), part.region)));
    }
    step.write = views_.MakeIn(part.strip, op.output, part.region);
    step.predicted_us = part.predicted_us;
    step.predicted_start_us = part.predicted_start_us;
    return step;
  }

  void LowerCpuPart(int p) {
    const size_t lane = Index(PartOf(p).lane);
    Step step = ComputeStep(p);
    step.waits = WaitsFor(p);
    Learn(lane, step.waits);
    Emit(lane, std::move(step));
    finished_at_[Index(p)] = static_cast<int64_t>(program_.steps[lane].size());
  }

  void LowerGpuPart(int p) {
    const size_t lane = Index(PartOf(p).lane);
    OpenSegment& segment = open_[lane];
    std::vector<Wait> waits = WaitsFor(p);
    if (!waits.empty()) {
      if (!segment.computes.empty()) CloseSegment(lane);
      Learn(lane, waits);
      segment.waits = std::move(waits);
    }
    for (const PartRead& read : reads_[Index(p)]) {
      if (DomainOf(read.producer) != DomainOf(p)) Acquire(lane, read);
    }
    segment.computes.push_back(ComputeStep(p));
    segment.parts.push_back(p);
    if (ends_segment_[Index(p)]) CloseSegment(lane);
  }

  // Adds to the open segment's Acquire what of the read is not visible in the lane's domain.
  void Acquire(size_t lane, const PartRead& read) {
    std::vector<Region>& visible = visible_[lane][{read.producer, read.tensor}];
    std::vector<Region> missing{read.region};
    for (const Region& box : visible) SubtractBox(box, &missing);
    if (missing.empty()) return;
    Region box = missing.front();
    for (const Region& m : missing) box = Enclose(box, m);
    const auto [at, is_new] = open_[lane].acquired.emplace(std::pair(read.producer, read.tensor), box);
    if (!is_new) at->second = Enclose(at->second, box);
    visible.push_back(at->second);
  }

  void CloseSegment(size_t lane) {
    OpenSegment segment = std::exchange(open_[lane], {});
    const double start_us = segment.computes.front().predicted_start_us;
    const double end_us = segment.computes.back().predicted_start_us + segment.computes.back().predicted_us;
    if (!segment.acquired.empty()) {
      Step acquire;
      acquire.kind = StepKind::kAcquire;
      acquire.predicted_start_us = start_us;
      std::map<TensorId, std::vector<Region>> boxes;
      for (const auto& [from, box] : segment.acquired) boxes[from.second].push_back(box);
      acquire.reads = ViewsOf(&boxes);
      acquire.waits = std::move(segment.waits);
      Emit(lane, std::move(acquire));
    } else {
      segment.computes.front().waits = std::move(segment.waits);
    }
    for (Step& step : segment.computes) Emit(lane, std::move(step));
    std::map<TensorId, std::vector<Region>> published;
    for (int p : segment.parts) {
      if (published_[Index(p)]) published[graph_.op(PartOf(p).op).output].push_back(*published_[Index(p)]);
    }
    if (!published.empty()) {
      Step publish;
      publish.kind = StepKind::kPublish;
      publish.predicted_start_us = end_us;
      publish.reads = ViewsOf(&published);
      Emit(lane, std::move(publish));
    }
    Step submit;
    submit.kind = StepKind::kSubmit;
    submit.predicted_start_us = end_us;
    Emit(lane, std::move(submit));
    for (int p : segment.parts) finished_at_[Index(p)] = static_cast<int64_t>(program_.steps[lane].size());
  }

  std::vector<View> ViewsOf(std::map<TensorId, std::vector<Region>>* boxes) const {
    std::vector<View> views;
    for (auto& [tensor, regions] : *boxes) {
      JoinBoxes(&regions);
      for (const Region& region : regions) views.push_back(views_.Make(tensor, region));
    }
    return views;
  }

  const Graph& graph_;
  const std::vector<LaneSpec>& lanes_;
  const Schedule& schedule_;
  const ViewMaker views_;
  const std::vector<std::vector<PartRead>> reads_;
  StepProgram program_;
  std::vector<bool> ends_segment_;                         // [part]
  std::vector<std::optional<Region>> published_;           // [part]
  std::vector<int64_t> finished_at_;                       // [part] -> its lane's counter when others may rely on it
  std::vector<std::vector<int64_t>> known_;                // [lane][lane] -> steps known to be finished
  std::vector<std::vector<std::vector<int64_t>>> finish_;  // [lane][step] -> known_ when the step has finished
  std::vector<OpenSegment> open_;                          // [lane]
  std::vector<std::map<std::pair<int, TensorId>, std::vector<Region>>> visible_;  // [lane] -> what it has acquired
};

Status CheckLaneSpecs(const std::vector<LaneSpec>& lanes) {
  if (lanes.empty() || lanes.size() > kMaxPlanLanes) {
    return InvalidArgument("a plan has 1 to ", kMaxPlanLanes, " lanes, not ", lanes.size());
  }
  for (size_t l = 0; l < lanes.size(); ++l) {
    const LaneSpec& lane = lanes[l];
    if ((lane.kind == LaneKind::kCpu) != (lane.domain == kHostDomain)) {
      return InvalidArgument("lane '", lane.name, "' is in domain ", lane.domain, "; CPU lanes are in the host's (",
                             kHostDomain, "), GPU lanes in one of their own");
    }
    for (size_t k = 0; k < l; ++k) {
      if (lanes[k].name == lane.name) return InvalidArgument("two lanes are named '", lane.name, "'");
      if (lane.kind == LaneKind::kGpu && lanes[k].domain == lane.domain) {
        return InvalidArgument("lanes '", lanes[k].name, "' and '", lane.name, "' are both in domain ", lane.domain,
                               "; each GPU lane has its own");
      }
    }
    const bool has_host = lane.host != -1;
    if (has_host && (lane.host < 0 || Index(lane.host) >= lanes.size() || lane.kind != LaneKind::kGpu ||
                     lanes[Index(lane.host)].kind != LaneKind::kCpu)) {
      return InvalidArgument("lane '", lane.name, "' has lane ", lane.host,
                             " as its host; only a GPU lane has one, and it is a CPU lane");
    }
  }
  return Status();
}

}  // namespace

Result<Plan> LowerParts(const Graph& graph, const std::vector<LaneSpec>& lanes, const Schedule& schedule) {
  PLAIT_RETURN_IF_ERROR(CheckLaneSpecs(lanes));
  PLAIT_RETURN_IF_ERROR(CheckParts(graph, lanes.size(), schedule));
  PLAIT_ASSIGN_OR_RETURN(ViewMaker views, ViewMaker::Create(graph, schedule));
  Plan plan;
  plan.graph_hash = StructureHash(graph);
  plan.plait_version = PLAIT_VERSION;
  plan.schedule = schedule;
  PLAIT_ASSIGN_OR_RETURN(plan.program, Lowering(graph, lanes, schedule, std::move(views)).Run());
  PLAIT_RETURN_IF_ERROR(PlanMemory(graph, &plan.program));
  PLAIT_RETURN_IF_ERROR(VerifyProgram(graph, plan.program));
  return plan;
}

Result<Plan> Lower(const Graph& graph, const std::vector<PlanningLane>& lanes, const Schedule& schedule) {
  std::vector<LaneSpec> specs;
  for (const PlanningLane& lane : lanes) specs.push_back(lane.spec);
  PLAIT_RETURN_IF_ERROR(CheckParts(graph, lanes.size(), schedule));
  Schedule named = schedule;
  for (Part& part : named.parts) {
    if (!part.kernel.empty()) continue;
    const PlanningLane& lane = lanes[Index(part.lane)];
    const KernelSupport support = lane.rules->Supports(graph, part.op);
    if (!support.supported) {
      return InvalidArgument("lane '", lane.spec.name, "' has no kernel for operator '", graph.op(part.op).name, "': ",
                             support.reason);
    }
    part.kernel = support.kernel;
  }
  return LowerParts(graph, specs, named);
}

}  // namespace plait
