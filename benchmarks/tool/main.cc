// The plait command-line tool.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "benchmarks/tool/commands.h"
#include "benchmarks/tool/schedule_command.h"

namespace plait {

int ExitCode(const Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "plait: %s\n", status.message().c_str());
  return 1;
}

}  // namespace plait

int main(int argc, char** argv) {
  CLI::App app{"Plait runs one neural network on every lane of a chip at once: GPU and CPU clusters together.", "plait"};
  app.require_subcommand(1);
  app.set_version_flag("--version", PLAIT_VERSION);
  app.footer("MODEL is a file (.onnx, Plait JSON) or a zoo name; `plait inspect` lists the zoo.\n"
             "Example: plait bench mobilenet_v2 --clusters 0 --opencl-cpu 1");
  int exit_code = 0;
  plait::AddDevicesCommand(&app, &exit_code);
  plait::AddInspectCommand(&app, &exit_code);
  plait::AddCalibrateCommand(&app, &exit_code);
  plait::AddPlanCommand(&app, &exit_code);
  plait::AddRunCommand(&app, &exit_code);
  plait::AddBenchCommand(&app, &exit_code);
  plait::AddExportCommand(&app, &exit_code);
  plait::AddScheduleCommand(&app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plait: %s\n", error.what());
    return 1;
  }
  return exit_code;
}
