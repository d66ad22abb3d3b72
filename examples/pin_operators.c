/* Annotations: one operator is pinned to a lane and kept whole, and what became of it is shown.
   pin_operators MODEL [OPERATOR] */
#include <plait/plait.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(plait_status status) {
  if (status == PLAIT_OK) return;
  fprintf(stderr, "%s: %s\n", plait_status_name(status), plait_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: pin_operators MODEL [OPERATOR]\n");
    return 2;
  }
  plait_lanes* lanes = NULL;
  plait_model* model = NULL;
  plait_plan* plan = NULL;
  check(plait_lanes_open(NULL, &lanes));
  check(plait_model_load_file(argv[1], NULL, &model));

  /* The last lane there is, for every operator whose name fits. */
  size_t lane_count = 0;
  plait_lane_info lane = PLAIT_LANE_INFO_INIT;
  check(plait_lanes_count(lanes, &lane_count));
  check(plait_lanes_get(lanes, lane_count - 1, &lane));
  const plait_annotation annotations[] = {{argc > 2 ? argv[2] : "s*", lane.name, NULL, 1, 0}};

  plait_plan_options options = PLAIT_PLAN_OPTIONS_INIT;
  options.tune = 0; /* the search's word is enough here */
  options.annotations = annotations;
  options.annotation_count = 1;
  check(plait_plan_make(model, lanes, &options, &plan));
  char* text = NULL;
  check(plait_plan_explain(plan, &text));
  printf("%s pinned to %s\n\n%s", annotations[0].operators, lane.name, text);
  plait_string_free(text);

  plait_plan_destroy(plan);
  plait_model_destroy(model);
  plait_lanes_destroy(lanes);
  return 0;
}
