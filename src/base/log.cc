#include "src/base/log.h"

#include <cstdio>
#include <mutex>
#include <utility>

namespace plait {
namespace {

std::mutex& SinkMutex() {
  static std::mutex mutex;
  return mutex;
}

std::function<void(LogLevel, const std::string&)>& Sink() {
  static std::function<void(LogLevel, const std::string&)> sink;
  return sink;
}

}  // namespace

void SetLogSink(std::function<void(LogLevel, const std::string&)> sink) {
  std::lock_guard<std::mutex> lock(SinkMutex());
  Sink() = std::move(sink);
}

void Log(LogLevel level, const std::string& message) {
  std::lock_guard<std::mutex> lock(SinkMutex());
  if (Sink()) {
    Sink()(level, message);
  } else if (level != LogLevel::kInfo) {
    std::fprintf(stderr, "plait: %s: %s\n", level == LogLevel::kWarning ? "warning" : "error", message.c_str());
  }
}

}  // namespace plait
