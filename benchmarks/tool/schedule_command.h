// plait schedule: solves instance files.
#pragma once

namespace CLI {
class App;
}

namespace plait {

// Registers the command; its callback leaves the exit code: 0 good, 1 failed (the message is on standard error).
void AddScheduleCommand(CLI::App* app, int* exit_code);

}  // namespace plait
