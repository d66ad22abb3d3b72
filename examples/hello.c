/* Loads a model, plans it for this machine's lanes, runs it once.   hello MODEL [CACHE_FOLDER] */
#include <plait/plait.h>
#include <stdio.h>
#include <stdlib.h>

static void check(plait_status status) {
  if (status == PLAIT_OK) return;
  fprintf(stderr, "%s: %s\n", plait_status_name(status), plait_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: hello MODEL [CACHE_FOLDER]\n");
    return 2;
  }
  plait_lanes_options options = PLAIT_LANES_OPTIONS_INIT;
  options.cache_dir = argc > 2 ? argv[2] : NULL; /* with a folder, only the first start measures */
  plait_lanes* lanes = NULL;
  plait_model* model = NULL;
  plait_plan* plan = NULL;
  plait_session* session = NULL;
  check(plait_lanes_open(&options, &lanes));
  check(plait_model_load_file(argv[1], NULL, &model));
  check(plait_plan_make(model, lanes, NULL, &plan));
  check(plait_session_create(plan, NULL, &session));

  /* Inputs are written and outputs read in place: nothing is copied. */
  void* input = NULL;
  const void* output = NULL;
  size_t input_bytes = 0, output_bytes = 0;
  check(plait_session_input_data(session, 0, &input, &input_bytes));
  for (size_t i = 0; i < input_bytes / sizeof(float); ++i) ((float*)input)[i] = (float)(i % 255) / 255.0f;
  check(plait_session_run(session));
  check(plait_session_output_data(session, 0, &output, &output_bytes));

  plait_tensor_info info = PLAIT_TENSOR_INFO_INIT;
  check(plait_model_get_output(model, 0, &info));
  printf("%s:", info.name);
  for (size_t i = 0; i < output_bytes / sizeof(float) && i < 8; ++i) printf(" %.4f", ((const float*)output)[i]);
  printf("\n");

  plait_session_destroy(session);
  plait_plan_destroy(plan);
  plait_model_destroy(model);
  plait_lanes_destroy(lanes);
  return 0;
}
