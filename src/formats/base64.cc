#include "src/formats/base64.h"

#include <cstdint>

namespace plait {
namespace {
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t group = 0;
    size_t digits = 0;
    for (size_t k = 0; k < 4; ++k) {
      const bool padding = text[i + k] == '=' && k >= 2 && i + 4 == text.size();
      const size_t digit = padding ? 0 : kAlphabet.find(text[i + k]);
      if (digit == std::string_view::npos || (!padding && digits < k)) return std::nullopt;
      if (!padding) ++digits;
      group = group << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t k = 0; k + 1 < digits; ++k) out += static_cast<char>(group >> (16 - 8 * k) & 0xff);
    if (digits < 4 && (group & (digits == 3 ? 0xffu : 0xffffu)) != 0) {
      return std::nullopt;  // bits that say nothing must be zero
    }
  }
  return out;
}

}  // namespace plait
