#include "backends/opencl/program_cache.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "src/base/file_io.h"

namespace plait::opencl {
namespace {

constexpr int64_t kMaxBinaryBytes = int64_t{64} << 20;
constexpr char kMagic[] = "plait-opencl-program 2\n";

std::string HashText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char hex[17];
  std::snprintf(hex, sizeof(hex), "%016llx", static_cast<unsigned long long>(hash));
  return hex;
}

// The bytes before the binary.
std::string Header(const ProgramKey& key, std::string_view binary) {
  return StrCat(kMagic, key.Text(), "bytes ", binary.size(), "\nhash ", HashText(binary), "\n\n");
}

}  // namespace

std::string ProgramKey::Text() const {
  return StrCat("plait ", plait, "\ndevice ", device, "\noptions ", options, "\nsource ", HashText(source), " ", source.size(), "\n");
}

std::string ProgramKey::FileName() const { return StrCat("plait-opencl-", HashText(Text()), ".bin"); }

std::optional<std::string> LoadProgram(const std::string& cache_dir, const ProgramKey& key) {
  if (cache_dir.empty()) return std::nullopt;
  const Result<std::string> file = ReadFile(cache_dir + "/" + key.FileName(), kMaxBinaryBytes);
  if (!file.ok()) return std::nullopt;
  const size_t end = file->find("\n\n");
  if (end == std::string::npos) return std::nullopt;
  const std::string_view binary = std::string_view(*file).substr(end + 2);
  if (binary.empty() || file->substr(0, end + 2) != Header(key, binary)) return std::nullopt;
  return std::string(binary);
}

Status StoreProgram(const std::string& cache_dir, const ProgramKey& key, const std::string& binary) {
  if (cache_dir.empty()) return Status();
  if (::mkdir(cache_dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return IoError(cache_dir, ": cannot be made: ", std::strerror(errno));
  }
  return WriteFileAtomically(cache_dir + "/" + key.FileName(), Header(key, binary) + binary);
}

}  // namespace plait::opencl
