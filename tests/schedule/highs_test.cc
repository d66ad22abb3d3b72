// The search against a mixed-integer program that HiGHS solves to its optimum: a second, independent statement of the
// problem, and one that reaches further than trying everything does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/schedule/search.h"
#include "tests/schedule/random_problem.h"

#ifdef PLAIT_HAVE_HIGHS
#include <Highs.h>
#endif

namespace plait {
namespace {

#ifdef PLAIT_HAVE_HIGHS

// The rules as rows over three kinds of columns: which number of units an operator has on a lane (binary), when that
// part starts, and which of two independent operators goes first on a lane (binary). For problems with one mode an
// operator whose parts read whole producers.
class MixedIntegerProgram {
 public:
  // No schedule slower than `at_most` is looked for.
  MixedIntegerProgram(const Problem& problem, Tick at_most)
      : p_(problem), lanes_(static_cast<int>(problem.lanes.size())), at_most_(static_cast<double>(at_most)) {
    highs_.setOptionValue("output_flag", false);
    highs_.setOptionValue("threads", 1);
    highs_.setOptionValue("mip_rel_gap", 0.0);
    highs_.setOptionValue("mip_abs_gap", 0.5);  // makespans are whole ticks
    makespan_ = AddColumn(0, at_most_, false);
    highs_.changeColCost(makespan_, 1);
    for (size_t o = 0; o < p_.ops.size(); ++o) AddOperator(static_cast<int>(o));
    for (size_t o = 0; o < p_.ops.size(); ++o) {
      for (const ProblemEdge& edge : p_.ops[o].inputs) AddEdge(edge.producer, static_cast<int>(o));
    }
    AddLanes();
  }

  // The optimum; -1 if it was not proven.
  Tick Solve() {
    if (highs_.run() != HighsStatus::kOk || highs_.getModelStatus() != HighsModelStatus::kOptimal) return -1;
    return std::llround(highs_.getInfo().objective_function_value);
  }

 private:
  struct Part {
    int start = 0;
    int units = 0;  // column of "u units here" is units + u
  };

  int AddColumn(double lower, double upper, bool binary) {
    highs_.addCol(0, lower, upper, 0, nullptr, nullptr);
    const int column = static_cast<int>(highs_.getNumCol()) - 1;
    if (binary) highs_.changeColIntegrality(column, HighsVarType::kInteger);
    return column;
  }
  void AddRow(double lower, double upper, const std::vector<HighsInt>& columns, const std::vector<double>& values) {
    highs_.addRow(lower, upper, static_cast<HighsInt>(columns.size()), columns.data(), values.data());
  }
  const Mode& ModeOf(int o) const { return p_.ops[static_cast<size_t>(o)].modes[0]; }
  const Part& At(int o, int d) const { return parts_[static_cast<size_t>(o * lanes_ + d)]; }

  void AddOperator(int o) {
    const Mode& mode = ModeOf(o);
    const bool sink = std::none_of(p_.ops.begin(), p_.ops.end(), [&](const ProblemOp& op) {
      return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const ProblemEdge& e) { return e.producer == o; });
    });
    std::vector<HighsInt> all;
    std::vector<double> counts;
    for (int d = 0; d < lanes_; ++d) {
      Part part;
      part.start = AddColumn(0, at_most_, false);
      std::vector<HighsInt> one;
      std::vector<HighsInt> end{makespan_, part.start};
      std::vector<double> end_values{1, -1};
      for (int u = 0; u <= mode.units; ++u) {
        const bool can = u == 0 || mode.Cost(d, u) != kForbidden;
        const int column = AddColumn(0, can ? 1 : 0, true);
        if (u == 0) part.units = column;
        one.push_back(column);
        all.push_back(column);
        counts.push_back(u);
        if (u == 0 || !can) continue;
        end.push_back(column);
        end_values.push_back(-static_cast<double>(mode.Cost(d, u) + (sink ? p_.exit[static_cast<size_t>(d)] : 0)));
      }
      parts_.push_back(part);
      AddRow(1, 1, one, std::vector<double>(one.size(), 1));
      AddRow(0, kHighsInf, end, end_values);
      if (p_.ops[static_cast<size_t>(o)].inputs.empty()) {
        const double entry = static_cast<double>(p_.entry[static_cast<size_t>(d)]);
        AddRow(entry, kHighsInf, {part.start, part.units}, {1, entry});
      }
    }
    AddRow(mode.units, mode.units, all, counts);
  }

  // The part of `o` on `d` starts after the part of `before` on `e`, with its handoff if `handoff`; as far as both
  // exist and `order`, if there is one, is `value`.
  void AddPrecedence(int before, int e, int o, int d, bool handoff, int order, int value) {
    const Part &first = At(before, e), &second = At(o, d);
    const ProblemOp& op = p_.ops[static_cast<size_t>(before)];
    const size_t from = static_cast<size_t>(e), to = static_cast<size_t>(d);
    std::vector<Tick> time;
    for (int u = 1; u <= ModeOf(before).units; ++u) {
      const Tick cost = ModeOf(before).Cost(e, u);
      const Tick bytes_time = op.out_bytes * u * p_.ps_per_byte[from][to] / (ModeOf(before).units * kPsPerTick);
      const Tick hand = handoff && e != d ? p_.sync[from][to] + bytes_time : 0;
      time.push_back(cost == kForbidden ? 0 : cost + hand);
    }
    const double big = at_most_ + static_cast<double>(*std::max_element(time.begin(), time.end()));
    // start(o) - start(before) - time + big * (what does not hold) >= 0
    std::vector<HighsInt> columns{second.start, first.start, first.units, second.units};
    std::vector<double> values{1, -1, big, big};
    for (size_t u = 0; u < time.size(); ++u) {
      columns.push_back(first.units + static_cast<int>(u) + 1);
      values.push_back(-static_cast<double>(time[u]));
    }
    double least = 0;
    if (order >= 0) {
      columns.push_back(order);
      values.push_back(value == 1 ? -big : big);
      least = value == 1 ? -big : 0;
    }
    AddRow(least, kHighsInf, columns, values);
  }

  void AddEdge(int producer, int consumer) {
    for (int e = 0; e < lanes_; ++e) {
      for (int d = 0; d < lanes_; ++d) AddPrecedence(producer, e, consumer, d, true, -1, 0);
    }
  }

  // Independent operators share a lane one after the other, on every lane in an order of its own.
  void AddLanes() {
    const int n = static_cast<int>(p_.ops.size());
    std::vector<std::vector<bool>> after(static_cast<size_t>(n), std::vector<bool>(static_cast<size_t>(n), false));
    for (int o = 0; o < n; ++o) {
      for (const ProblemEdge& edge : p_.ops[static_cast<size_t>(o)].inputs) {
        after[static_cast<size_t>(o)][static_cast<size_t>(edge.producer)] = true;
        for (int a = 0; a < n; ++a) {
          const bool earlier = after[static_cast<size_t>(edge.producer)][static_cast<size_t>(a)];
          if (earlier) after[static_cast<size_t>(o)][static_cast<size_t>(a)] = true;
        }
      }
      for (int a = 0; a < o; ++a) {
        if (after[static_cast<size_t>(o)][static_cast<size_t>(a)]) continue;
        for (int d = 0; d < lanes_; ++d) {
          const int order = AddColumn(0, 1, true);
          AddPrecedence(a, d, o, d, false, order, 1);
          AddPrecedence(o, d, a, d, false, order, 0);
        }
      }
    }
  }

  const Problem& p_;
  int lanes_;
  double at_most_;
  Highs highs_;
  int makespan_ = 0;
  std::vector<Part> parts_;  // [op * lanes + lane]
};

Tick Proven(const Problem& problem, Tick at_most) { return MixedIntegerProgram(problem, at_most).Solve(); }

#else

Tick Proven(const Problem&, Tick) { return -1; }

#endif

class HighsProof : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef PLAIT_HAVE_HIGHS
    GTEST_SKIP() << "built without HiGHS (libhighs-dev), which proves the optima";
#endif
  }
};

TEST_F(HighsProof, AgreesWithTryingEverything) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed * 101);
    const Problem p = RandomProblem(&random, {seed % 2 == 0 ? 3 : 2, 4, 2});
    const auto solution = Solve(p, {});
    ASSERT_TRUE(solution.ok()) << solution.status().message();
    EXPECT_EQ(Proven(p, solution->assignment.makespan), BruteForce(p).Run(solution->assignment.makespan));
  }
}

TEST_F(HighsProof, NothingIsFasterThanHighEffort) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed * 211);
    const Problem p = RandomProblem(&random, {3, 7, 4});
    SearchOptions options;
    options.effort = Effort::kHigh;
    options.evaluations = 100000;
    const auto solution = Solve(p, options);
    ASSERT_TRUE(solution.ok()) << solution.status().message();
    EXPECT_EQ(Proven(p, solution->assignment.makespan), solution->assignment.makespan);
  }
}

}  // namespace
}  // namespace plait
