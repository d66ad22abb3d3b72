#include "src/schedule/order_dp.h"

#include <algorithm>

#include "src/schedule/engine.h"
#include "src/schedule/order_state.h"
#include "src/schedule/split.h"

namespace plait {

OrderSlots::OrderSlots(const Net& net, const std::vector<int>& sequence)
    : of_op(static_cast<size_t>(net.n), -1),
      of_edge(net.in_op.size(), -1),
      wanted(static_cast<size_t>(net.n) + 1),
      wanted_edges(static_cast<size_t>(net.n) + 1),
      dying(static_cast<size_t>(net.n)) {
  std::vector<int> last(static_cast<size_t>(net.n), -1), free, free_edges, live, live_edges;
  for (int p = 0; p < net.n; ++p) {
    const size_t v = static_cast<size_t>(sequence[static_cast<size_t>(p)]);
    for (int e = net.in_begin[v]; e < net.in_begin[v + 1]; ++e) last[static_cast<size_t>(net.in_op[static_cast<size_t>(e)])] = p;
  }
  for (int p = 0; p < net.n; ++p) {
    const int op = sequence[static_cast<size_t>(p)];
    const size_t v = static_cast<size_t>(op);
    for (int e = net.in_begin[v]; e < net.in_begin[v + 1]; ++e) {
      const int input = net.in_op[static_cast<size_t>(e)];
      if (of_edge[static_cast<size_t>(e)] >= 0) {
        free_edges.push_back(of_edge[static_cast<size_t>(e)]);
        live_edges.erase(std::find(live_edges.begin(), live_edges.end(), e));
      }
      if (last[static_cast<size_t>(input)] != p) continue;
      free.push_back(of_op[static_cast<size_t>(input)]);
      live.erase(std::find(live.begin(), live.end(), input));
      dying[static_cast<size_t>(p)].push_back(input);
    }
    if (last[v] >= 0) {
      if (free.empty()) free.push_back(tensors++);
      of_op[v] = free.back();
      free.pop_back();
      live.push_back(op);
    }
    for (int k = net.out_begin[v]; k < net.out_begin[v + 1]; ++k) {
      const size_t e = static_cast<size_t>(net.out_edge[static_cast<size_t>(k)]);
      if (net.in_access[e] < 0) continue;
      if (free_edges.empty()) free_edges.push_back(edges++);
      of_edge[e] = free_edges.back();
      free_edges.pop_back();
      live_edges.push_back(static_cast<int>(e));
    }
    wanted[static_cast<size_t>(p) + 1] = live;
    wanted_edges[static_cast<size_t>(p) + 1] = live_edges;
  }
}

namespace {

template <int kD>
class OrderDp {
 public:
  static constexpr int kWidth = kD > 0 ? kD : kMaxLanes;

  OrderDp(const Net& net, const SequencePlan& plan, const OrderDpOptions& options)
      : net_(net),
        plan_(plan),
        options_(options),
        state_(net, plan_.sequence),
        forward_(static_cast<size_t>(net.n) + 1),
        backward_(static_cast<size_t>(net.n) + 1) {}

  SequencePlan Run() {
    Seed();
    for (int pass = 0; pass < options_.passes; ++pass) {
      const Tick before = plan_.makespan;
      const bool ahead = pass % 2 == 0;
      for (int k = 0; k < net_.n; ++k) Extend(ahead ? k : net_.n - 1 - k, ahead);
      Collect(ahead);
      if (pass > 0 && plan_.makespan == before) break;
    }
    return plan_;
  }

 private:
  struct Label {
    int parent = 0;           // in the neighbouring position's labels
    uint8_t mode = 0;
    uint8_t units[kWidth] = {};  // of the operator between here and the parent
  };
  struct Labels {
    std::vector<Label> labels;
    std::vector<Tick> rows;
  };
  struct Candidate {
    Tick value = 0;  // makespan together with the label `with` of the other side
    int from = 0, with = 0;
    uint8_t mode = 0;
    uint8_t units[kWidth] = {};
  };

  int lanes() const { return kD > 0 ? kD : net_.lanes; }
  size_t RowSize(bool ahead) const { return ahead ? state_.forward_row() : state_.backward_row(); }
  const Tick* Row(bool ahead, const Labels& l, int index) const { return &l.rows[static_cast<size_t>(index) * RowSize(ahead)]; }
  Labels& Target(int p, bool ahead) { return ahead ? forward_[static_cast<size_t>(p) + 1] : backward_[static_cast<size_t>(p)]; }
  const Labels& Origin(int p, bool ahead) const { return ahead ? forward_[static_cast<size_t>(p)] : backward_[static_cast<size_t>(p) + 1]; }

  // The given plan's own labels.
  void Seed() {
    forward_[0].labels.assign(1, Label());
    forward_[0].rows.assign(state_.forward_row(), 0);
    backward_[static_cast<size_t>(net_.n)].labels.assign(1, Label());
    backward_[static_cast<size_t>(net_.n)].rows.assign(state_.backward_row(), 0);
    for (bool ahead : {true, false}) {
      for (int k = 0; k < net_.n; ++k) {
        const int p = ahead ? k : net_.n - 1 - k;
        const size_t v = static_cast<size_t>(state_.Op(p));
        Candidate c;
        c.mode = plan_.mode[v];
        std::copy_n(plan_.units.begin() + static_cast<std::ptrdiff_t>(v * static_cast<size_t>(lanes())), lanes(), c.units);
        Push(p, ahead, c);
      }
    }
  }

  void Push(int p, bool ahead, const Candidate& c) {
    Labels& to = Target(p, ahead);
    Label label;
    label.parent = c.from;
    label.mode = c.mode;
    std::copy_n(c.units, lanes(), label.units);
    to.labels.push_back(label);
    const size_t size = RowSize(ahead);
    to.rows.resize(to.labels.size() * size);
    Tick* row = &to.rows[(to.labels.size() - 1) * size];
    std::copy_n(Row(ahead, Origin(p, ahead), c.from), size, row);
    if (ahead) {
      state_.StepForward(p, c.mode, c.units, row);
    } else {
      state_.StepBackward(p, c.mode, c.units, row);
    }
  }

  void Extend(int p, bool ahead) {
    const int v = state_.Op(p), D = lanes();
    const Labels& before = forward_[static_cast<size_t>(p)];
    const Labels& after = backward_[static_cast<size_t>(p) + 1];
    candidates_.clear();
    const int nf = static_cast<int>(before.labels.size()), nb = static_cast<int>(after.labels.size());
    const int own_count = ahead ? nf : nb, others = ahead ? nb : nf;
    const uint32_t all = (1u << D) - 1;
    for (int own = 0; own < own_count; ++own) {
      for (int other = 0; other < others; ++other) {
        const Tick* row_before = Row(true, before, ahead ? own : other);
        const Tick* row_after = Row(false, after, ahead ? other : own);
        Surroundings<kWidth> s = state_.After(v, row_after);
        Tick ready[kWidth];
        state_.ReadyWhole(v, row_before, ready);
        for (int d = 0; d < D; ++d) s.start[d] = std::max(ready[d], row_before[d]);
        Candidate c;
        c.from = own;
        c.with = other;
        // Sets of lanes other than all, once for each label that is extended; the other side's labels take turns.
        const bool every = own % others == other;
        for (int mode = 0; mode < net_.ModeCount(v); ++mode) {
          c.mode = static_cast<uint8_t>(mode);
          const NetMode& m = net_.Mode(v, mode);
          for (uint32_t mask = every ? 1 : all; mask <= all; ++mask) {
            if (m.units == 1 && mask != all && (mask & (mask - 1)) != 0) continue;
            Consider(p, c, m, s, mask, mask == all, row_before, row_after);
          }
        }
      }
    }
    Select(p, ahead, others);
  }

  // Adds the best split over the lanes in `mask`.
  void Consider(int p, Candidate c, const NetMode& m, const Surroundings<kWidth>& s, uint32_t mask, bool all, const Tick* before, const Tick* after) {
    const int v = state_.Op(p);
    if (options_.evaluations != nullptr) ++*options_.evaluations;
    Split<kWidth> split;
    if (all) std::copy_n(warm_, lanes(), split.units);
    Splitter<kWidth>(net_, m, s, lanes(), mask).Run(&split);
    if (split.value >= kInfinite) return;
    if (all) std::copy_n(split.units, lanes(), warm_);
    if (state_.ByRegion(v)) {
      split.value = state_.Through(v, c.mode, split.units, before, after);
      if (all && m.units > 1) Align(v, c.mode, m, before, after, &split);
    }
    std::copy_n(split.units, lanes(), c.units);
    c.value = std::max(split.value, state_.Around(p, split.units, before, after));
    candidates_.push_back(c);
  }

  // Cuts where the neighbours that are read by region are cut, and some units beside.
  void Align(int v, int mode, const NetMode& m, const Tick* before, const Tick* after, Split<kWidth>* best) const {
    const int D = lanes();
    const auto consider = [&](const uint8_t* units) {
      for (int d = 0; d < D; ++d) {
        if (units[d] > 0 && (units[d] < m.min_units || net_.Cost(m, d, units[d]) >= kInfinite)) return;
      }
      const Tick value = state_.Through(v, mode, units, before, after);
      if (value >= best->value) return;
      best->value = value;
      std::copy_n(units, D, best->units);
    };
    state_.NeighbourCuts(v, before, after, [&](const Tick* cut, int total) {
      uint8_t units[kWidth];
      int sum = 0, reached = 0;
      for (int d = 0; d < D; ++d) {
        sum += static_cast<int>(cut[d]);
        const int boundary = (2 * sum * m.units + total) / (2 * total);
        units[d] = static_cast<uint8_t>(boundary - reached);
        reached = boundary;
      }
      consider(units);
    });
    // Unit by unit from there, in the direction that helps.
    for (bool better = true; better;) {
      better = false;
      const Split<kWidth> start = *best;
      for (int a = 0; a < D; ++a) {
        for (int b = 0; b < D; ++b) {
          if (a == b || start.units[a] == 0) continue;
          uint8_t units[kWidth];
          std::copy_n(start.units, D, units);
          const int step = start.units[b] == 0 || start.units[a] == m.min_units ? m.min_units : 1;
          if (units[a] < step) continue;
          units[a] = static_cast<uint8_t>(units[a] - step);
          units[b] = static_cast<uint8_t>(units[b] + step);
          consider(units);
        }
      }
      better = best->value < start.value;
    }
  }

  // Keeps the best label for every label of the other side, then the best for every set of lanes, then the best.
  void Select(int p, bool ahead, int others) {
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) { return a.value < b.value; });
    Labels& to = Target(p, ahead);
    to.labels.clear();
    to.rows.clear();
    std::vector<char> served(static_cast<size_t>(others), 0);
    std::vector<uint32_t> sets;
    for (int round = 0; round < 3; ++round) {
      for (Candidate& c : candidates_) {
        if (static_cast<int>(to.labels.size()) >= options_.width) return;
        if (c.from < 0) continue;
        uint32_t set = static_cast<uint32_t>(c.mode) << kMaxLanes;
        for (int d = 0; d < lanes(); ++d) set |= static_cast<uint32_t>(c.units[d] > 0) << d;
        const bool known = std::find(sets.begin(), sets.end(), set) != sets.end();
        if (round == 0 && served[static_cast<size_t>(c.with)]) continue;
        if (round == 1 && known) continue;
        if (round == 0) served[static_cast<size_t>(c.with)] = 1;
        if (!known) sets.push_back(set);
        Push(p, ahead, c);
        if (Dominated(to, ahead)) {
          to.labels.pop_back();
          to.rows.resize(to.labels.size() * RowSize(ahead));
        }
        c.from = -1;
      }
    }
  }

  // Whether an earlier label is nowhere worse than the last one.
  bool Dominated(const Labels& l, bool ahead) const {
    const int last = static_cast<int>(l.labels.size()) - 1;
    for (int i = 0; i < last; ++i) {
      if (state_.Dominates(ahead, Row(ahead, l, i), Row(ahead, l, last))) return true;
    }
    return false;
  }

  // The best complete label becomes the plan if it is better. Complete labels hold lanes' times only; exits are in the candidates' values.
  void Collect(bool ahead) {
    SequencePlan plan = plan_;
    Read(ahead, &plan);
    Engine<kD> engine(net_);
    engine.Load(plan);
    if (engine.plan().makespan < plan_.makespan) plan_ = engine.plan();
  }

  void Read(bool ahead, SequencePlan* plan) const {
    int index = 0;  // Select puts the best first
    for (int k = 0; k < net_.n; ++k) {
      const int p = ahead ? net_.n - 1 - k : k;
      const Label& label = (ahead ? forward_[static_cast<size_t>(p) + 1] : backward_[static_cast<size_t>(p)]).labels[static_cast<size_t>(index)];
      const size_t v = static_cast<size_t>(state_.Op(p));
      plan->mode[v] = label.mode;
      std::copy_n(label.units, lanes(), plan->units.begin() + static_cast<std::ptrdiff_t>(v * static_cast<size_t>(lanes())));
      index = label.parent;
    }
  }

  const Net& net_;
  SequencePlan plan_;
  OrderDpOptions options_;
  OrderState<kD> state_;
  std::vector<Labels> forward_, backward_;
  std::vector<Candidate> candidates_;
  uint8_t warm_[kWidth] = {};  // the last split over all lanes: neighbouring labels split alike
};

}  // namespace

SequencePlan SolveAlongOrder(const Net& net, const SequencePlan& plan, const OrderDpOptions& options) {
  return WithLanes(net.lanes, [&](auto lanes) { return OrderDp<lanes()>(net, plan, options).Run(); });
}

}  // namespace plait
