#include "src/base/status.h"

#include <sstream>

namespace plait {

std::string Join(const Piece* pieces, size_t count) {
  std::ostringstream out;
  for (size_t i = 0; i < count; ++i) pieces[i].write(out, pieces[i].value);
  return out.str();
}

Status Failure(plait_status code, const Piece* pieces, size_t count) { return Status(code, Join(pieces, count)); }

}  // namespace plait
