/// Strategies of the application's own: a C function that sees operators, their options, costs and lanes, and writes the physical
/// schedule. The model itself stays as it is. Given to plait_plan_make() by plait_plan_options::strategy; conventions as in
/// plait.h. Everything here is for use inside that callback, on its thread: a problem or schedule that is used elsewhere, or
/// NULL, is PLAIT_INVALID_ARGUMENT.
#ifndef PLAIT_STRATEGY_H_
#define PLAIT_STRATEGY_H_

#include "plait/plait.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Operators are numbered from 0 in an order in which each comes after what it reads. Only those that compute are there: views
/// cost nothing and have no lane.
PLAIT_API plait_status plait_problem_operator_count(const plait_problem* problem, size_t* count);
PLAIT_API plait_status plait_problem_lane_count(const plait_problem* problem, size_t* count);
/// As plait_lanes_get(); strings live as long as the callback.
PLAIT_API plait_status plait_problem_lane(const plait_problem* problem, size_t lane, plait_lane_info* info);

typedef struct plait_operator_info {
  size_t size;
  const char* name;                  ///< As in plait_plan_explain(). Strings and `producers` live as long as the callback.
  const char* kind;                  ///< "Conv2D", ...
  int32_t rank;
  int32_t reserved;
  int64_t dims[PLAIT_MAX_RANK];      ///< Of the output; images NHWC.
  uint64_t macs;
  uint64_t input_bytes;
  uint64_t weight_bytes;
  uint64_t output_bytes;
  const uint32_t* producers;         ///< Operators whose outputs it reads, `producer_count` of them, ascending.
  size_t producer_count;
} plait_operator_info;
#define PLAIT_OPERATOR_INFO_INIT {sizeof(plait_operator_info), NULL, NULL, 0, 0, {0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, 0, 0, NULL, 0}

/// PLAIT_NOT_FOUND: there are fewer operators.
PLAIT_API plait_status plait_problem_operator(const plait_problem* problem, size_t op, plait_operator_info* info);

/// How an operator's output may be cut along one axis on one lane.
typedef struct plait_cut {
  size_t size;
  int64_t extent;     ///< Elements along the axis.
  int64_t alignment;  ///< Parts begin at multiples of it (and end so, or with the axis). 0: no cut; only the whole.
  int64_t minimum;    ///< Least elements of a part.
} plait_cut;
#define PLAIT_CUT_INIT {sizeof(plait_cut), 0, 0, 0}

/// Whether `lane` can run the operator at all: 1 or 0. Annotations count.
PLAIT_API plait_status plait_problem_can_run(const plait_problem* problem, size_t op, size_t lane, int32_t* can);
/// PLAIT_NOT_FOUND: no such operator, lane or axis. An axis that cannot be cut has alignment 0.
PLAIT_API plait_status plait_problem_cut(const plait_problem* problem, size_t op, size_t lane, int32_t axis, plait_cut* cut);
/// Microseconds of elements [begin, begin + count) along `axis` on `lane`; axis -1: the whole. PLAIT_NOT_FOUND: the lane cannot
/// run it, or nothing is known.
PLAIT_API plait_status plait_problem_cost(const plait_problem* problem, size_t op, size_t lane, int32_t axis, int64_t begin, int64_t count, double* us);
/// Microseconds from the end of a part on lane `from` until lane `to` can read `bytes` of it; 0 for the same lane.
PLAIT_API plait_status plait_problem_handoff(const plait_problem* problem, size_t from, size_t to, uint64_t bytes, double* us);

/// Appends a part to the work of `lane`: elements [begin, begin + count) of the operator's output along `axis`; axis -1: the
/// whole. A lane works in the order of these calls. The parts of each operator must tile its output; what they wait for follows
/// by itself. What is out of range is PLAIT_NOT_FOUND or PLAIT_INVALID_ARGUMENT at once; all other rules are checked when the
/// strategy has returned.
PLAIT_API plait_status plait_schedule_add(plait_schedule* schedule, size_t op, size_t lane, int32_t axis, int64_t begin, int64_t count);

#ifdef __cplusplus
}
#endif
#endif  // PLAIT_STRATEGY_H_
