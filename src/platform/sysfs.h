// The kernel's text files about cores, clocks and heat, read below a root folder so that tests can bring trees of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plait {

// Every read may fail at any time (missing file, no permission, a core that vanished): that is an ordinary answer, nullopt. Thread-safe.
class SysFs {
 public:
  explicit SysFs(std::string root = "/") : root_(std::move(root)) {}

  // At most 64 KiB of the file, without blanks at its end. `path` is relative to the root: "sys/devices/system/cpu/possible".
  std::optional<std::string> Text(const std::string& path) const;
  // A whole number, if that is all the file holds.
  std::optional<int64_t> Number(const std::string& path) const;
  // A CPU list (cpu_list.h), or core numbers parted by blanks; nullopt also for garbage.
  std::optional<std::vector<int>> CpuList(const std::string& path) const;
  // Names in a folder, sorted; empty if there is none.
  std::vector<std::string> Names(const std::string& folder) const;

 private:
  std::string root_;
};

}  // namespace plait
