/* The public headers as C99, every initialiser used. */
#include "plait/plait.h"
#include "plait/strategy.h"

int plait_test_c99(void);

int plait_test_c99(void) {
  const plait_lanes_options lanes = PLAIT_LANES_OPTIONS_INIT;
  const plait_lane_info lane = PLAIT_LANE_INFO_INIT;
  const plait_model_options model = PLAIT_MODEL_OPTIONS_INIT;
  const plait_tensor_info tensor = PLAIT_TENSOR_INFO_INIT;
  const plait_model_info model_info = PLAIT_MODEL_INFO_INIT;
  const plait_plan_options plan = PLAIT_PLAN_OPTIONS_INIT;
  const plait_plan_info plan_info = PLAIT_PLAN_INFO_INIT;
  const plait_calibrate_options calibrate = PLAIT_CALIBRATE_OPTIONS_INIT;
  const plait_calibration calibration = PLAIT_CALIBRATION_INIT;
  const plait_session_options session = PLAIT_SESSION_OPTIONS_INIT;
  const plait_session_stats stats = PLAIT_SESSION_STATS_INIT;
  const plait_lane_stats lane_stats = PLAIT_LANE_STATS_INIT;
  const plait_operator_info op = PLAIT_OPERATOR_INFO_INIT;
  const plait_cut cut = PLAIT_CUT_INIT;
  const size_t sizes[] = {lanes.size,     lane.size,        model.size,   tensor.size, model_info.size, plan.size, plan_info.size,
                          calibrate.size, calibration.size, session.size, stats.size,  lane_stats.size, op.size,   cut.size};
  size_t i = 0, known = 0;
  for (i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) known += sizes[i] >= sizeof(size_t);
  return known == 14 && plan.tune == 1 && plan.calibration_seconds_per_lane == 30.0 && session.timeout_us == 10e6 && lanes.gpu == PLAIT_GPU_IF_PRESENT;
}
