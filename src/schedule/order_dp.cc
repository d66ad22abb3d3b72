#include "src/schedule/order_dp.h"

#include <algorithm>
#include <numeric>

#include "src/schedule/engine.h"
#include "src/schedule/split.h"

namespace plait {
namespace {

// Positions at which tensors are wanted, as slots of a label's state: slot 0 holds the lanes, others are reused when a tensor dies.
struct Slots {
  int count = 1;
  std::vector<int> of_op;                 // [op]; -1: nobody reads it
  std::vector<std::vector<int>> wanted;   // [position 0..n]: slots of tensors made before and read from there on

  Slots(const Net& net, const std::vector<int>& sequence) : of_op(static_cast<size_t>(net.n), -1), wanted(static_cast<size_t>(net.n) + 1) {
    std::vector<int> last(static_cast<size_t>(net.n), -1), free;
    for (int p = 0; p < net.n; ++p) {
      const size_t v = static_cast<size_t>(sequence[static_cast<size_t>(p)]);
      for (int e = net.in_begin[v]; e < net.in_begin[v + 1]; ++e) last[static_cast<size_t>(net.in_op[static_cast<size_t>(e)])] = p;
    }
    std::vector<int> live;
    for (int p = 0; p < net.n; ++p) {
      const size_t v = static_cast<size_t>(sequence[static_cast<size_t>(p)]);
      for (int e = net.in_begin[v]; e < net.in_begin[v + 1]; ++e) {
        const int input = net.in_op[static_cast<size_t>(e)];
        if (last[static_cast<size_t>(input)] != p) continue;
        free.push_back(of_op[static_cast<size_t>(input)]);
        live.erase(std::find(live.begin(), live.end(), free.back()));
      }
      if (last[v] >= 0) {
        if (free.empty()) free.push_back(count++);
        of_op[v] = free.back();
        free.pop_back();
        live.push_back(of_op[v]);
      }
      wanted[static_cast<size_t>(p) + 1] = live;
    }
  }
};

template <int kD>
class OrderDp {
 public:
  static constexpr int kWidth = kD > 0 ? kD : kMaxLanes;

  OrderDp(const Net& net, const SequencePlan& plan, const OrderDpOptions& options)
      : net_(net), plan_(plan), options_(options), slots_(net, plan.sequence), forward_(static_cast<size_t>(net.n) + 1), backward_(static_cast<size_t>(net.n) + 1) {
    row_ = static_cast<size_t>(slots_.count * lanes());
  }

  SequencePlan Run() {
    SeedForward();
    SeedBackward();
    Tick best = plan_.makespan;
    for (int pass = 0; pass < options_.passes; ++pass) {
      const bool ahead = pass % 2 == 0;
      if (ahead) {
        for (int p = 0; p < net_.n; ++p) Extend(p, true);
      } else {
        for (int p = net_.n - 1; p >= 0; --p) Extend(p, false);
      }
      const Tick now = Collect(ahead);
      if (pass > 0 && now >= best && pass % 2 == 1) break;
      best = now;
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
    std::vector<Tick> states;  // [label][slot][lane]
  };
  struct Candidate {
    Tick value = 0;
    int from = 0, with = 0;
    uint32_t used = 0;
    uint8_t mode = 0;
    uint8_t units[kWidth] = {};
  };

  int lanes() const { return kD > 0 ? kD : net_.lanes; }
  size_t At(int slot) const { return static_cast<size_t>(slot * lanes()); }
  int Op(int position) const { return plan_.sequence[static_cast<size_t>(position)]; }
  const Tick* State(const Labels& l, int index) const { return &l.states[static_cast<size_t>(index) * row_]; }

  void SeedForward() {
    forward_[0].labels.assign(1, Label());
    forward_[0].states.assign(row_, 0);
    for (int p = 0; p < net_.n; ++p) Follow(p, true);
  }
  void SeedBackward() {
    backward_[static_cast<size_t>(net_.n)].labels.assign(1, Label());
    backward_[static_cast<size_t>(net_.n)].states.assign(row_, 0);
    for (int p = net_.n - 1; p >= 0; --p) Follow(p, false);
  }
  // The given plan's own label.
  void Follow(int p, bool ahead) {
    const size_t v = static_cast<size_t>(Op(p));
    Labels& to = ahead ? forward_[static_cast<size_t>(p) + 1] : backward_[static_cast<size_t>(p)];
    const Labels& from = ahead ? forward_[static_cast<size_t>(p)] : backward_[static_cast<size_t>(p) + 1];
    Candidate c;
    c.mode = plan_.mode[v];
    std::copy_n(plan_.units.begin() + static_cast<std::ptrdiff_t>(v * static_cast<size_t>(lanes())), lanes(), c.units);
    to.labels.clear();
    to.states.clear();
    Push(p, ahead, from, c, &to);
  }

  void Push(int p, bool ahead, const Labels& from, const Candidate& c, Labels* to) {
    Label label;
    label.parent = c.from;
    label.mode = c.mode;
    std::copy_n(c.units, lanes(), label.units);
    to->labels.push_back(label);
    to->states.resize(to->states.size() + row_);
    Tick* state = &to->states[to->states.size() - row_];
    std::copy_n(State(from, c.from), row_, state);
    if (ahead) {
      StepForward(p, c, state);
    } else {
      StepBackward(p, c, state);
    }
  }

  void ReadyOf(int v, const Tick* state, Tick* ready) const {
    const int first = net_.in_begin[static_cast<size_t>(v)], last = net_.in_begin[static_cast<size_t>(v) + 1];
    if (first == last) {
      std::copy_n(net_.entry.begin(), lanes(), ready);
      return;
    }
    std::fill_n(ready, lanes(), 0);
    for (int e = first; e < last; ++e) {
      const Tick* release = state + At(slots_.of_op[static_cast<size_t>(net_.in_op[static_cast<size_t>(e)])]);
      for (int d = 0; d < lanes(); ++d) ready[d] = std::max(ready[d], release[d]);
    }
  }

  void StepForward(int p, const Candidate& c, Tick* state) const {
    const int v = Op(p), D = lanes(), own = slots_.of_op[static_cast<size_t>(v)];
    const NetMode& m = net_.Mode(v, c.mode);
    Tick release[kWidth] = {}, ready[kWidth];
    ReadyOf(v, state, ready);
    for (int e = 0; e < D; ++e) {
      if (c.units[e] == 0) continue;
      const Tick end = std::max(state[e], ready[e]) + net_.Cost(m, e, c.units[e]);
      state[e] = end;
      for (int d = 0; d < D; ++d) release[d] = std::max(release[d], d == e ? end : end + net_.Handoff(m, c.units[e], e, d));
    }
    // The slot of a tensor that dies here may be the new tensor's.
    if (own >= 0) std::copy_n(release, D, state + At(own));
  }

  void StepBackward(int p, const Candidate& c, Tick* state) const {
    const int v = Op(p), D = lanes(), own = slots_.of_op[static_cast<size_t>(v)];
    const NetMode& m = net_.Mode(v, c.mode);
    Surroundings<kWidth> s = After(v, state);
    Tick span[kWidth] = {};
    for (int d = 0; d < D; ++d) {
      s.start[d] = 0;
      if (c.units[d] > 0) state[d] = span[d] = PathOfPart(net_, m, s, D, d, c.units[d]);
    }
    if (own >= 0) std::fill_n(state + At(own), D, 0);
    for (int e = net_.in_begin[static_cast<size_t>(v)]; e < net_.in_begin[static_cast<size_t>(v) + 1]; ++e) {
      Tick* demand = state + At(slots_.of_op[static_cast<size_t>(net_.in_op[static_cast<size_t>(e)])]);
      for (int d = 0; d < D; ++d) demand[d] = std::max(demand[d], span[d]);
    }
  }

  // What follows `v` in a backward state of the position after it.
  Surroundings<kWidth> After(int v, const Tick* state) const {
    Surroundings<kWidth> s;
    const int own = slots_.of_op[static_cast<size_t>(v)];
    s.sink = own < 0;
    for (int d = 0; d < lanes(); ++d) {
      s.after[d] = state[d];
      s.demand[d] = own < 0 ? 0 : state[At(own) + static_cast<size_t>(d)];
    }
    return s;
  }

  // The longest path that joins a forward state before the operator at p with a backward state after it without touching the operator.
  Tick Around(int p, const Tick* before, const Tick* after, const uint8_t* units) const {
    const int own = slots_.of_op[static_cast<size_t>(Op(p))];
    Tick most = 0;
    for (int d = 0; d < lanes(); ++d) {
      if (units[d] == 0 && after[d] > 0) most = std::max(most, before[d] + after[d]);
    }
    for (int slot : slots_.wanted[static_cast<size_t>(p) + 1]) {
      if (slot == own) continue;
      for (int d = 0; d < lanes(); ++d) {
        if (after[At(slot) + static_cast<size_t>(d)] > 0) most = std::max(most, before[At(slot) + static_cast<size_t>(d)] + after[At(slot) + static_cast<size_t>(d)]);
      }
    }
    return most;
  }

  void Extend(int p, bool ahead) {
    const int v = Op(p), D = lanes();
    Labels& before = forward_[static_cast<size_t>(p)];
    Labels& after = backward_[static_cast<size_t>(p) + 1];
    const uint32_t all = (1u << D) - 1;
    candidates_.clear();
    const int nf = static_cast<int>(before.labels.size()), nb = static_cast<int>(after.labels.size());
    for (int f = 0; f < nf; ++f) {
      Tick ready[kWidth];
      ReadyOf(v, State(before, f), ready);
      for (int b = 0; b < nb; ++b) {
        Surroundings<kWidth> s = After(v, State(after, b));
        for (int d = 0; d < D; ++d) s.start[d] = std::max(ready[d], State(before, f)[d]);
        const int own_side = ahead ? f : b, other = ahead ? b : f, others = ahead ? nb : nf;
        // Every set of lanes once for each label that is extended, else all lanes; the other side's labels take turns.
        const bool every = own_side % others == other % others;
        for (int mode = 0; mode < net_.ModeCount(v); ++mode) {
          const NetMode& m = net_.Mode(v, mode);
          for (uint32_t mask = every ? 1 : all; mask <= all; ++mask) {
            const bool single = (mask & (mask - 1)) == 0;
            if (m.units == 1 && !single && mask != all) continue;
            const Split<kWidth> split = BestSplit(net_, m, s, D, mask);
            if (options_.evaluations != nullptr) ++*options_.evaluations;
            if (split.value >= kInfinite) continue;
            Candidate c;
            c.from = own_side;
            c.with = other;
            c.mode = static_cast<uint8_t>(mode);
            c.used = 0;
            std::copy_n(split.units, D, c.units);
            for (int d = 0; d < D; ++d) c.used |= static_cast<uint32_t>(split.units[d] > 0) << d;
            c.value = std::max(split.value, Around(p, State(before, f), State(after, b), split.units));
            candidates_.push_back(c);
          }
        }
      }
    }
    Select(p, ahead, ahead ? before : after, ahead ? nb : nf, ahead ? &forward_[static_cast<size_t>(p) + 1] : &backward_[static_cast<size_t>(p)]);
  }

  void Select(int p, bool ahead, const Labels& from, int others, Labels* to) {
    // `to` may hold the labels that guided the other direction before; they are not needed any more.
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) { return a.value < b.value; });
    to->labels.clear();
    to->states.clear();
    std::vector<char> served(static_cast<size_t>(others), 0);
    uint32_t sets = 0;
    for (int round = 0; round < 3; ++round) {
      for (Candidate& c : candidates_) {
        if (static_cast<int>(to->labels.size()) >= options_.width) return;
        if (c.from < 0) continue;
        if (round == 0 && served[static_cast<size_t>(c.with)]) continue;
        if (round == 1 && (sets >> c.used & 1)) continue;
        if (round == 0) served[static_cast<size_t>(c.with)] = 1;
        if (c.used < 32) sets |= 1u << c.used;
        Push(p, ahead, from, c, to);
        if (Dominated(*to)) {
          to->labels.pop_back();
          to->states.resize(to->states.size() - row_);
        }
        c.from = -1;
      }
    }
  }

  // Whether an earlier label is nowhere later than the last one.
  bool Dominated(const Labels& l) const {
    const size_t last = l.labels.size() - 1;
    const Tick* state = &l.states[last * row_];
    for (size_t i = 0; i < last; ++i) {
      const Tick* other = &l.states[i * row_];
      size_t k = 0;
      while (k < row_ && other[k] <= state[k]) ++k;
      if (k == row_) return true;
    }
    return false;
  }

  // The best complete label becomes the plan.
  Tick Collect(bool ahead) {
    const Labels& done = ahead ? forward_[static_cast<size_t>(net_.n)] : backward_[0];
    const int D = lanes();
    int best = 0;
    SequencePlan plan = plan_;
    Tick value = kInfinite;
    for (int i = 0; i < static_cast<int>(done.labels.size()); ++i) {
      ReadPlan(i, ahead, &plan);
      plan.makespan = MakespanOfPlan(plan);
      if (plan.makespan < value) {
        value = plan.makespan;
        best = i;
      }
      if (i > 4) break;
    }
    static_cast<void>(D);
    if (value < plan_.makespan) {
      ReadPlan(best, ahead, &plan_);
      plan_.makespan = value;
    }
    return plan_.makespan;
  }

  void ReadPlan(int index, bool ahead, SequencePlan* plan) const {
    for (int k = 0; k < net_.n; ++k) {
      const int p = ahead ? net_.n - 1 - k : k;
      const Label& label = ahead ? forward_[static_cast<size_t>(p) + 1].labels[static_cast<size_t>(index)] : backward_[static_cast<size_t>(p)].labels[static_cast<size_t>(index)];
      const size_t v = static_cast<size_t>(Op(p));
      plan->mode[v] = label.mode;
      std::copy_n(label.units, lanes(), plan->units.begin() + static_cast<std::ptrdiff_t>(v * static_cast<size_t>(lanes())));
      index = label.parent;
    }
  }

  Tick MakespanOfPlan(const SequencePlan& plan) {
    Engine<kD> engine(net_);
    engine.Load(plan);
    return engine.plan().makespan;
  }

  const Net& net_;
  SequencePlan plan_;
  OrderDpOptions options_;
  Slots slots_;
  size_t row_ = 0;
  std::vector<Labels> forward_, backward_;
  std::vector<Candidate> candidates_;
};

}  // namespace

SequencePlan SolveAlongOrder(const Net& net, const SequencePlan& plan, const OrderDpOptions& options) {
  return WithLanes(net.lanes, [&](auto lanes) { return OrderDp<lanes()>(net, plan, options).Run(); });
}

}  // namespace plait
