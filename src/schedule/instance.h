// Scheduling problems and their solutions as files (docs/formats.md): plait-instance v1 and plait-schedule v1. Times in these
// files are microseconds, multiples of 0.1.
#pragma once

#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/schedule/problem.h"

namespace plait {

// A verified Problem. InvalidArgument or Corrupt names `what` (a path, say), the place in the file and the value.
Result<Problem> ParseInstance(std::string_view text, const std::string& what);
Result<Problem> LoadInstance(const std::string& path);

// The instance file of a problem whose operators have one mode each and read whole producers; Unsupported for others.
Result<std::string> InstanceText(const Problem& problem);

// A schedule file for `problem`. Parsing checks lanes, operators and units; the timeline (and a claimed makespan) is checked too.
std::string ScheduleText(const Problem& problem, const Assignment& assignment);
Result<Assignment> ParseSchedule(const Problem& problem, std::string_view text, const std::string& what);
Result<Assignment> LoadScheduleFile(const Problem& problem, const std::string& path);
Status SaveScheduleFile(const Problem& problem, const Assignment& assignment, const std::string& path);

// "123.4" for 1234 ticks.
std::string TickText(Tick ticks);

}  // namespace plait
