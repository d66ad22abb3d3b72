// The log: one process-wide sink, replaceable by the application.
#pragma once

#include <functional>
#include <string>

namespace plait {

enum class LogLevel { kInfo, kWarning, kError };

// Replaces the sink; an empty function restores the default (standard error for warnings and errors, nothing for info).
// Thread-safe; the sink itself is called under a lock and must not log.
void SetLogSink(std::function<void(LogLevel, const std::string&)> sink);
void Log(LogLevel level, const std::string& message);

}  // namespace plait
