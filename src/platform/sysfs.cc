#include "src/platform/sysfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "src/platform/cpu_list.h"

namespace plait {

std::optional<std::string> SysFs::Text(const std::string& path) const {
  // Not blocking: a FIFO in the place of a file must not hang the process.
  const int fd = ::open((root_ + "/" + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  constexpr size_t kMaxBytes = 64 << 10;
  std::string text(kMaxBytes, '\0');
  size_t size = 0;
  ssize_t got = 1;
  while (size < kMaxBytes && got > 0) {
    got = ::read(fd, text.data() + size, kMaxBytes - size);
    if (got > 0) size += static_cast<size_t>(got);
  }
  ::close(fd);
  if (got < 0) return std::nullopt;
  text.resize(size);
  const size_t last = text.find_last_not_of(" \t\r\n");
  text.resize(last == std::string::npos ? 0 : last + 1);
  return text;
}

std::optional<int64_t> SysFs::Number(const std::string& path) const {
  const std::optional<std::string> text = Text(path);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

std::optional<std::vector<int>> SysFs::CpuList(const std::string& path) const {
  std::optional<std::string> text = Text(path);
  if (!text) return std::nullopt;
  // cpufreq writes "0 1 2 3".
  std::replace(text->begin(), text->end(), ' ', ',');
  Result<std::vector<int>> cpus = ParseCpuList(*text);
  if (!cpus.ok()) return std::nullopt;
  return std::move(cpus).value();
}

std::vector<std::string> SysFs::Names(const std::string& folder) const {
  std::vector<std::string> names;
  DIR* dir = ::opendir((root_ + "/" + folder).c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace plait
