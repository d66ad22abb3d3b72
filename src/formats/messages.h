// Messages that quote files.
#pragma once

#include <algorithm>
#include <utility>

#include "src/base/status.h"

namespace plait {

// The same outcome fit for a terminal: names in files may be megabytes long or hold control characters.
inline Status Readable(const Status& status) {
  constexpr size_t kLongest = 2000;
  std::string text = status.message().substr(0, kLongest);
  if (text.size() < status.message().size()) text += " ...";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return Status(status.code(), std::move(text));
}

}  // namespace plait
