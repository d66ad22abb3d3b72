// Program binaries on disk.
#pragma once

#include <optional>
#include <string>

#include "src/base/status.h"

namespace plait::opencl {

// What a binary depends on. Everything is part of the file's name and is checked again from its content.
struct ProgramKey {
  std::string source;
  std::string options;
  std::string device;   // platform, device, driver and their versions
  std::string plait;    // Plait's version

  std::string Text() const;      // a line a field, the source as its hash
  std::string FileName() const;  // "plait-opencl-0123456789abcdef.bin"
};

// The binary kept in `cache_dir` for `key`; nullopt if there is none or the file is not exactly what StoreProgram wrote for it.
std::optional<std::string> LoadProgram(const std::string& cache_dir, const ProgramKey& key);
// Keeps `binary`. Makes the folder (not its parents); an entry that stands there is replaced atomically.
Status StoreProgram(const std::string& cache_dir, const ProgramKey& key, const std::string& binary);

}  // namespace plait::opencl
