// One function a command: registers it with `app`; its callback leaves the exit code (0 good, 1 failed, 2 wrong use).
#pragma once

#include "src/base/status.h"

namespace CLI {
class App;
}

namespace plait {

void AddDevicesCommand(CLI::App* app, int* exit_code);
void AddInspectCommand(CLI::App* app, int* exit_code);
void AddCalibrateCommand(CLI::App* app, int* exit_code);
void AddPlanCommand(CLI::App* app, int* exit_code);
void AddRunCommand(CLI::App* app, int* exit_code);
void AddBenchCommand(CLI::App* app, int* exit_code);
void AddExportCommand(CLI::App* app, int* exit_code);

// Prints the message on standard error; 2 for wrong use of options, 1 for anything else, 0 if ok.
int ExitCode(const Status& status);

}  // namespace plait
