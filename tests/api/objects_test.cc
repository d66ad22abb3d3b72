// Models, lanes, plans, calibration.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "tests/api/sample.h"

namespace plait::testing {
namespace {

TEST(CBasics, VersionsAndNames) {
  EXPECT_STREQ(plait_version(), "0.1.0");
  EXPECT_EQ(plait_abi_version(), static_cast<uint32_t>(PLAIT_ABI_VERSION));
  EXPECT_STREQ(plait_status_name(PLAIT_BUSY), "busy");
  EXPECT_NE(plait_features(), nullptr);
  EXPECT_STREQ(plait_zoo_name(10'000), nullptr);
  bool has_resnet = false;
  for (size_t i = 0; plait_zoo_name(i) != nullptr; ++i) has_resnet = has_resnet || std::strcmp(plait_zoo_name(i), "resnet50") == 0;
  EXPECT_TRUE(has_resnet);
  plait_string_free(nullptr);
}

void Collect(void* user, plait_log_level level, const char* message) { *static_cast<std::string*>(user) += std::to_string(level) + message; }

TEST(CBasics, TheLogGoesToTheCallback) {
  const Folder folder;
  std::string log;
  ASSERT_PLAIT_OK(plait_set_log_callback(Collect, &log));
  const std::string json = SampleJson();
  plait_model* model = nullptr;
  plait_lanes* lanes = nullptr;
  plait_plan* plan = nullptr;
  ASSERT_PLAIT_OK(plait_model_load_memory(json.data(), json.size(), nullptr, &model));
  // Without any cost to go by, planning fails; a damaged profile is warned of first.
  const std::string cache = folder / "cache";
  plait_lanes_options options = PLAIT_LANES_OPTIONS_INIT;
  options.gpu = PLAIT_GPU_OFF;
  options.clusters = "0";
  options.cache_dir = cache.c_str();
  ASSERT_PLAIT_OK(plait_lanes_open(&options, &lanes));
  ASSERT_PLAIT_OK(plait_calibrate(model, lanes, nullptr, nullptr));
  ASSERT_EQ(::system(("for f in " + cache + "/profile-*; do echo '{' > $f; done").c_str()), 0);
  plait_plan_options planning = PLAIT_PLAN_OPTIONS_INIT;
  planning.calibration_seconds_per_lane = 0;
  planning.tune = 0;
  EXPECT_NE(plait_plan_make(model, lanes, &planning, &plan), PLAIT_OK);
  EXPECT_NE(log.find("1the kept SoC profile is measured anew"), std::string::npos) << log;
  ASSERT_PLAIT_OK(plait_set_log_callback(nullptr, nullptr));
  plait_lanes_destroy(lanes);
  plait_model_destroy(model);
}

TEST(CModel, LoadsFromFileMemoryAndDescriptorAlike) {
  const Folder folder;
  const std::string json = SampleJson(), path = folder / "sample.json", packed = folder / "packed";
  std::ofstream(path) << json;
  std::ofstream(packed) << "some asset before" << json << "and one behind";
  plait_model *file = nullptr, *memory = nullptr, *part = nullptr, *whole = nullptr;
  ASSERT_PLAIT_OK(plait_model_load_file(path.c_str(), nullptr, &file));
  ASSERT_PLAIT_OK(plait_model_load_memory(json.data(), json.size(), nullptr, &memory));
  const int packed_fd = ::open(packed.c_str(), O_RDONLY), fd = ::open(path.c_str(), O_RDONLY);
  ASSERT_PLAIT_OK(plait_model_load_fd(packed_fd, 17, static_cast<int64_t>(json.size()), nullptr, &part));
  ASSERT_PLAIT_OK(plait_model_load_fd(fd, 0, -1, nullptr, &whole));
  EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 0);
  plait_model_info expected = PLAIT_MODEL_INFO_INIT;
  ASSERT_PLAIT_OK(plait_model_get_info(file, &expected));
  EXPECT_EQ(expected.operator_count, 3u);
  EXPECT_EQ(expected.macs, 64u * 16 * 9 * (4 + 16));
  EXPECT_EQ(expected.parameters, 16u * 9 * (4 + 16));
  for (plait_model* other : {memory, part, whole}) {
    plait_model_info info = PLAIT_MODEL_INFO_INIT;
    ASSERT_PLAIT_OK(plait_model_get_info(other, &info));
    EXPECT_EQ(info.hash, expected.hash);
    EXPECT_STREQ(info.name, "sample");
  }
  plait_model* none = nullptr;
  EXPECT_REFUSED(plait_model_load_fd(packed_fd, 17, 1'000'000'000, nullptr, &none), PLAIT_IO_ERROR, "do not lie inside");
  EXPECT_REFUSED(plait_model_load_fd(packed_fd, -1, 10, nullptr, &none), PLAIT_IO_ERROR, "do not lie inside");
  EXPECT_REFUSED(plait_model_load_fd(packed_fd, 0, -1, nullptr, &none), PLAIT_CORRUPT, "descriptor");
  EXPECT_EQ(plait_model_load_fd(-1, 0, -1, nullptr, &none), PLAIT_IO_ERROR);
  EXPECT_EQ(none, nullptr);
  ::close(fd);
  ::close(packed_fd);
  for (plait_model* model : {file, memory, part, whole}) EXPECT_PLAIT_OK(plait_model_destroy(model));
}

TEST(CModel, RefusesWhatIsNoModel) {
  plait_model* model = nullptr;
  EXPECT_REFUSED(plait_model_load_file("/no/such/file.onnx", nullptr, &model), PLAIT_NOT_FOUND, "/no/such/file.onnx");
  EXPECT_REFUSED(plait_model_load_memory("hello", 5, nullptr, &model), PLAIT_CORRUPT, "text");
  EXPECT_REFUSED(plait_model_load_memory(nullptr, 0, nullptr, &model), PLAIT_CORRUPT, "empty");
  EXPECT_REFUSED(plait_model_load_zoo("no_such_net", &model), PLAIT_NOT_FOUND, "resnet50");
  std::string json = SampleJson();
  for (size_t cut = 0; cut < json.size(); cut += 97) {
    EXPECT_NE(plait_model_load_memory(json.data(), cut, nullptr, &model), PLAIT_OK) << cut;
  }
  json.insert(json.find("\"inputs\""), R"("weights": {"file": "w", "bytes": 64, "checksum": "fnv1a64:0000000000000000"}, )");
  EXPECT_REFUSED(plait_model_load_memory(json.data(), json.size(), nullptr, &model), PLAIT_UNSUPPORTED, "another file");
  EXPECT_EQ(model, nullptr);
}

class CObjects : public Sample {};

TEST_F(CObjects, DescribeTensorsAndLanes) {
  plait_tensor_info tensor = PLAIT_TENSOR_INFO_INIT;
  ASSERT_PLAIT_OK(plait_model_get_input(model, 0, &tensor));
  EXPECT_STREQ(tensor.name, "image");
  EXPECT_EQ(tensor.dtype, PLAIT_F32);
  EXPECT_EQ(tensor.rank, 4);
  EXPECT_EQ(tensor.dims[3], 4);
  EXPECT_EQ(tensor.bytes, kInputs * sizeof(float));
  ASSERT_PLAIT_OK(plait_model_get_output(model, 0, &tensor));
  EXPECT_STREQ(tensor.name, "sum");
  EXPECT_EQ(plait_model_get_input(model, 1, &tensor), PLAIT_NOT_FOUND);
  size_t i = 7;
  ASSERT_PLAIT_OK(plait_model_find_input(model, "image", &i));
  EXPECT_EQ(i, 0u);
  EXPECT_REFUSED(plait_model_find_output(model, "nothing", &i), PLAIT_NOT_FOUND, "it has: sum");

  plait_lane_info lane = PLAIT_LANE_INFO_INIT;
  ASSERT_PLAIT_OK(plait_lanes_get(lanes, 0, &lane));
  EXPECT_STREQ(lane.name, "cpu0");
  EXPECT_EQ(lane.is_gpu, 0);
  EXPECT_GE(lane.cpu_count, 1u);
  EXPECT_EQ(plait_lanes_get(lanes, lane_count, &lane), PLAIT_NOT_FOUND);
  char* refused = nullptr;
  ASSERT_PLAIT_OK(plait_lanes_refused(lanes, &refused));
  EXPECT_NE(std::string(refused).find("gpu0: switched off"), std::string::npos) << refused;
  plait_string_free(refused);
}

TEST_F(CObjects, LanesThatCannotBeHadAreRefused) {
  plait_lanes* other = nullptr;
  plait_lanes_options options = PLAIT_LANES_OPTIONS_INIT;
  options.clusters = "0-x";
  EXPECT_REFUSED(plait_lanes_open(&options, &other), PLAIT_INVALID_ARGUMENT, "0-x");
  options = PLAIT_LANES_OPTIONS_INIT;
  options.gpu = 3;
  EXPECT_REFUSED(plait_lanes_open(&options, &other), PLAIT_INVALID_ARGUMENT, "gpu is 3");
  options = PLAIT_LANES_OPTIONS_INIT;
  options.cache_dir = "/proc/nothing/here";
  EXPECT_REFUSED(plait_lanes_open(&options, &other), PLAIT_IO_ERROR, "/proc");
}

TEST_F(CObjects, AStructOfAnotherSizeIsRefusedUnlessOnlyZerosAreNew) {
  struct {
    plait_session_options options;
    char more[64];
  } newer = {PLAIT_SESSION_OPTIONS_INIT, {}};
  MakePlan();
  plait_session_options wrong = PLAIT_SESSION_OPTIONS_INIT;
  wrong.size = 3;
  EXPECT_REFUSED(plait_session_create(plan, &wrong, &session), PLAIT_INVALID_ARGUMENT, "plait_session_options::size is 3");
  wrong.size = static_cast<size_t>(-1);
  EXPECT_EQ(plait_session_create(plan, &wrong, &session), PLAIT_INVALID_ARGUMENT);
  newer.options.size = sizeof newer;
  newer.more[63] = 1;
  EXPECT_REFUSED(plait_session_create(plan, &newer.options, &session), PLAIT_UNSUPPORTED, "newer Plait");
  newer.more[63] = 0;
  EXPECT_PLAIT_OK(plait_session_create(plan, &newer.options, &session));

  struct {
    plait_plan_info info;
    char more[8];
  } larger = {PLAIT_PLAN_INFO_INIT, {1, 1}};
  larger.info.size = sizeof larger;
  ASSERT_PLAIT_OK(plait_plan_get_info(plan, &larger.info));
  EXPECT_EQ(larger.info.size, sizeof larger);
  EXPECT_EQ(larger.more[1], 0);
  EXPECT_EQ(larger.info.part_count, 3u);
  larger.info.size = 1;
  EXPECT_EQ(plait_plan_get_info(plan, &larger.info), PLAIT_INVALID_ARGUMENT);
}

TEST_F(CObjects, PlansAreSavedLoadedAndExplained) {
  const Folder folder;
  const std::string path = folder / "plan.json";
  MakePlan("random:1");
  ASSERT_PLAIT_OK(plait_plan_save(plan, path.c_str()));
  plait_plan* loaded = nullptr;
  ASSERT_PLAIT_OK(plait_plan_load(model, lanes, path.c_str(), &loaded));
  char *before = nullptr, *after = nullptr, *json = nullptr;
  ASSERT_PLAIT_OK(plait_plan_explain(plan, &before));
  ASSERT_PLAIT_OK(plait_plan_explain(loaded, &after));
  ASSERT_PLAIT_OK(plait_plan_explain_json(loaded, &json));
  EXPECT_STREQ(before, after);
  EXPECT_NE(std::string(before).find("critical path"), std::string::npos);
  EXPECT_NE(std::string(json).find("\"operator\": \"second\""), std::string::npos) << json;
  for (char* text : {before, after, json}) plait_string_free(text);

  ASSERT_PLAIT_OK(plait_session_create(plan, nullptr, &session));
  plait_session* other = nullptr;
  ASSERT_PLAIT_OK(plait_session_create(loaded, nullptr, &other));
  EXPECT_EQ(RunOn(session, Wave(kInputs, 0.1f)), RunOn(other, Wave(kInputs, 0.1f)));
  EXPECT_PLAIT_OK(plait_session_destroy(other));
  EXPECT_PLAIT_OK(plait_plan_destroy(loaded));

  std::ofstream(path, std::ios::app) << "x";
  loaded = nullptr;
  EXPECT_EQ(plait_plan_load(model, lanes, path.c_str(), &loaded), PLAIT_CORRUPT);
  EXPECT_EQ(plait_plan_load(model, lanes, (folder / "none").c_str(), &loaded), PLAIT_NOT_FOUND);
  EXPECT_EQ(plait_plan_save(plan, (folder / "no/such/folder").c_str()), PLAIT_IO_ERROR);
  EXPECT_EQ(loaded, nullptr);
}

int32_t Stop(void* user, const char*, double, double) { return ++*static_cast<int*>(user) > 0; }
int32_t Watch(void* user, const char* what, double done, double) {
  EXPECT_STRNE(what, "");
  EXPECT_GE(done, 0);
  EXPECT_LE(done, 1);
  ++*static_cast<int*>(user);
  return 0;
}

TEST_F(CObjects, CalibratesOnceAndPlansFromTheCache) {
  const Folder folder;
  const std::string cache = folder / "deep/cache";
  plait_lanes_options options = PLAIT_LANES_OPTIONS_INIT;
  options.gpu = PLAIT_GPU_OFF;
  options.clusters = "0";
  options.cache_dir = cache.c_str();
  plait_lanes* kept = nullptr;
  ASSERT_PLAIT_OK(plait_lanes_open(&options, &kept));
  plait_calibration report = PLAIT_CALIBRATION_INIT;
  int calls = 0;
  plait_calibrate_options calibration = PLAIT_CALIBRATE_OPTIONS_INIT;
  calibration.progress_user = &calls;
  calibration.progress = Stop;
  EXPECT_EQ(plait_calibrate(model, kept, &calibration, &report), PLAIT_CANCELLED);
  EXPECT_EQ(calls, 1);
  calibration.progress = Watch;
  ASSERT_PLAIT_OK(plait_calibrate(model, kept, &calibration, &report));
  EXPECT_GT(report.measured, 0u);
  EXPECT_GT(calls, 1);
  ASSERT_PLAIT_OK(plait_calibrate(model, kept, nullptr, &report));
  EXPECT_EQ(report.measured, 0u);
  EXPECT_GT(report.known, 0u);
  EXPECT_REFUSED(plait_calibrate(model, lanes, nullptr, &report), PLAIT_INVALID_ARGUMENT, "cache_dir");
  calibration.seconds_per_lane = 0;
  EXPECT_REFUSED(plait_calibrate(model, kept, &calibration, &report), PLAIT_INVALID_ARGUMENT, "seconds_per_lane");

  plait_plan_options planning = PLAIT_PLAN_OPTIONS_INIT;
  planning.tune = 0;
  plait_plan_info info = PLAIT_PLAN_INFO_INIT;
  for (uint32_t from_cache : {0u, 1u}) {
    ASSERT_PLAIT_OK(plait_plan_make(model, kept, &planning, &plan));
    ASSERT_PLAIT_OK(plait_plan_get_info(plan, &info));
    EXPECT_EQ(info.from_cache, from_cache);
    EXPECT_GT(info.predicted_us, 0);
    EXPECT_PLAIT_OK(plait_plan_destroy(plan));
  }
  planning.strategy_name = "lane:cpu0";
  ASSERT_PLAIT_OK(plait_plan_make(model, kept, &planning, &plan));
  ASSERT_PLAIT_OK(plait_plan_get_info(plan, &info));
  EXPECT_GT(info.predicted_us, 0);
  EXPECT_STREQ(info.strategy, "lane:cpu0");
  EXPECT_PLAIT_OK(plait_lanes_destroy(kept));
}

TEST_F(CObjects, TheSearchPlansAndTunes) {
  ASSERT_PLAIT_OK(plait_plan_make(model, lanes, nullptr, &plan));
  plait_plan_info info = PLAIT_PLAN_INFO_INIT;
  ASSERT_PLAIT_OK(plait_plan_get_info(plan, &info));
  EXPECT_GT(info.measured_us, 0);
  EXPECT_GE(info.part_count, 3u);
  ASSERT_PLAIT_OK(plait_session_create(plan, nullptr, &session));
  RunOn(session, Wave(kInputs, 0.1f));
}

TEST_F(CObjects, PlanOptionsThatMakeNoSenseAreRefused) {
  const auto refused = [&](auto change, plait_status code, const char* text) {
    plait_plan_options options = PLAIT_PLAN_OPTIONS_INIT;
    options.strategy_name = "lane:cpu0";
    change(&options);
    EXPECT_REFUSED(plait_plan_make(model, lanes, &options, &plan), code, text);
  };
  refused([](plait_plan_options* o) { o->effort = 9; }, PLAIT_INVALID_ARGUMENT, "effort is 9");
  refused([](plait_plan_options* o) { o->calibration_seconds_per_lane = -1; }, PLAIT_INVALID_ARGUMENT, "calibration_seconds_per_lane");
  refused([](plait_plan_options* o) { o->annotation_count = 1; }, PLAIT_INVALID_ARGUMENT, "annotations is NULL");
  refused([](plait_plan_options* o) { o->strategy_name = "magic"; }, PLAIT_NOT_FOUND, "'magic'");
  refused([](plait_plan_options* o) { o->strategy_name = "lane:npu7"; }, PLAIT_NOT_FOUND, "cpu0");
  refused([](plait_plan_options* o) { o->strategy_name = "random:x"; }, PLAIT_INVALID_ARGUMENT, "random:x");
  refused([](plait_plan_options* o) { o->strategy_name = "random:"; }, PLAIT_INVALID_ARGUMENT, "random:");
}

}  // namespace
}  // namespace plait::testing
