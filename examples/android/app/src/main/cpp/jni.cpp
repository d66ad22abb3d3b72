// From an asset of the package to a class and what it took. What fails is returned as text.
#include <android/asset_manager_jni.h>
#include <jni.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include <plait/plait.hpp>

namespace {

plait::Result<plait::Model> LoadAsset(AAssetManager* assets, const char* name) {
  AAsset* const asset = AAssetManager_open(assets, name, AASSET_MODE_RANDOM);
  if (asset == nullptr) return plait::Status(PLAIT_NOT_FOUND, std::string("there is no asset ") + name);
  off64_t offset = 0, length = 0;
  const int fd = AAsset_openFileDescriptor64(asset, &offset, &length);
  AAsset_close(asset);
  if (fd < 0) return plait::Status(PLAIT_IO_ERROR, std::string(name) + " is compressed in the package: see noCompress in build.gradle.kts");
  plait::Result<plait::Model> model = plait::Model::LoadDescriptor(fd, offset, length);
  ::close(fd);
  return model;
}

plait::Result<std::string> Run(AAssetManager* assets, const char* name, const char* cache) {
  plait_lanes_options options = PLAIT_LANES_OPTIONS_INIT;
  options.cache_dir = cache;  // only the first start measures
  plait::Result<plait::Lanes> lanes = plait::Lanes::Open(options);
  if (!lanes.ok()) return lanes.status();
  plait::Result<plait::Model> model = LoadAsset(assets, name);
  if (!model.ok()) return model.status();
  plait::Result<plait::Plan> plan = plait::Plan::Make(*model, *lanes);
  if (!plan.ok()) return plan.status();
  plait::Result<plait::Session> session = plait::Session::Create(*plan);
  if (!session.ok()) return session.status();
  plait::Result<std::span<float>> input = session->Input<float>(0);
  if (!input.ok()) return input.status();
  std::fill(input->begin(), input->end(), 0.5f);
  for (int i = 0; i < 20; ++i) {
    if (plait::Status status = session->Run(); !status.ok()) return status;
  }
  plait::Result<std::span<const float>> output = session->Output<float>(0);
  if (!output.ok()) return output.status();
  plait::Result<plait_session_stats> stats = session->Stats();
  if (!stats.ok()) return stats.status();
  const auto best = std::max_element(output->begin(), output->end()) - output->begin();
  char text[200];
  std::snprintf(text, sizeof text, "class %d; best of 20 runs: %.0f us, predicted: %.0f us\n\n", static_cast<int>(best), stats->min_us, stats->predicted_us);
  plait::Result<std::string> explained = plan->Explain();
  return std::string(text) + (explained.ok() ? *explained : "");
}

}  // namespace

extern "C" JNIEXPORT jstring JNICALL Java_io_plait_example_MainActivity_run(JNIEnv* env, jobject, jobject assets, jstring asset, jstring cache) {
  const char* const asset_name = env->GetStringUTFChars(asset, nullptr);
  const char* const cache_dir = env->GetStringUTFChars(cache, nullptr);
  std::string text = "out of memory";
  if (asset_name != nullptr && cache_dir != nullptr) {
    const plait::Result<std::string> result = Run(AAssetManager_fromJava(env, assets), asset_name, cache_dir);
    text = result.ok() ? *result : std::string(plait_status_name(result.status().code())) + ": " + result.status().message();
  }
  if (asset_name != nullptr) env->ReleaseStringUTFChars(asset, asset_name);
  if (cache_dir != nullptr) env->ReleaseStringUTFChars(cache, cache_dir);
  return env->NewStringUTF(text.c_str());
}
