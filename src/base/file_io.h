// Files as whole values: read with a size bound, written atomically; JSON parsed without exceptions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace plait {

// The whole content of a regular file. NotFound if it does not exist; IoError for anything but a readable regular file
// (directories, FIFOs, devices) and for files over `max_bytes`. The message names the path.
Result<std::string> ReadFile(const std::string& path, int64_t max_bytes = int64_t{2} << 30);

// `length` bytes at `offset` of an open regular file; a negative length: to its end. The descriptor's own position stays as it is. IoError for anything
// but a regular file, for a range that is not inside it, and for more than `max_bytes`. `what` is named in messages.
Result<std::string> ReadDescriptor(int fd, int64_t offset, int64_t length, const std::string& what, int64_t max_bytes = int64_t{2} << 30);

// Makes the folder and those above it where they are missing, for this user alone. IoError names the one that cannot be made or written.
Status MakeFolders(const std::string& path);

// Replaces `path` by `content` in one step: a temporary file beside it, flushed to disk, then renamed. On failure the
// old file is as it was. What is no regular file (a device, a pipe) is written to and stays what it is.
Status WriteFileAtomically(const std::string& path, std::string_view content);

// Parses JSON text (UTF-8). Corrupt with line and column for malformed text, duplicate keys, nesting deeper than
// `max_depth`, or non-finite numbers. `what` is named in messages, e.g. the path. Never throws.
Result<nlohmann::json> ParseJson(std::string_view text, const std::string& what, int max_depth = 64);

}  // namespace plait
