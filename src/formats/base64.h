// Base64 (RFC 4648, with padding).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plait {

std::string EncodeBase64(std::string_view bytes);
// nullopt for anything but whole, padded base64 without line breaks.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace plait
