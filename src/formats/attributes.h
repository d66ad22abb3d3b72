// The attributes of every operator kind as named JSON fields, declared once for reading and writing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/graph/graph.h"

namespace plait {

// A JSON object; fields with their default values are left out.
nlohmann::json EncodeAttributes(const Operator& op);

// Sets `op->attrs` for op->kind. Corrupt names the field that is missing, unknown or out of range; whether the values fit the
// operator is Validate()'s business.
Status DecodeAttributes(const nlohmann::json& object, Operator* op);

}  // namespace plait
