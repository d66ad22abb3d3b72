#include "src/formats/npy.h"

#include <bit>
#include <optional>

#include "src/base/checked.h"
#include "src/base/file_io.h"

namespace plait {
namespace {

static_assert(std::endian::native == std::endian::little, "the data of .npy files is copied as it is");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;       // of the data in the file, as NumPy writes it
constexpr size_t kMaxHeader = 1 << 16;  // far more than any header of plain numbers

struct TypeName {
  DType dtype;
  std::string_view name;
};
constexpr TypeName kTypes[] = {{DType::kF32, "<f4"}, {DType::kF16, "<f2"}, {DType::kI8, "|i1"},  {DType::kU8, "|u1"},
                               {DType::kI32, "<i4"}, {DType::kI64, "<i8"}, {DType::kBool, "|b1"}};

// The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  bool Parse() {
    if (!Take('{')) return false;
    while (!Take('}')) {
      std::string_view key;
      if (!String(&key) || !Take(':')) return false;
      const bool known = key == "descr"           ? String(&descr)
                         : key == "fortran_order" ? Boolean()
                                                  : key == "shape" && Tuple();
      if (!known) return false;
      Take(',');
    }
    return !descr.empty() && has_order && shape.has_value();
  }

  std::string_view descr;
  bool fortran_order = false;
  bool has_order = false;
  std::optional<Dims> shape;

 private:
  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool String(std::string_view* out) {
    SkipSpace();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return false;
    *out = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  bool Word(std::string_view word) {
    SkipSpace();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  bool Boolean() {
    fortran_order = Word("True");
    has_order = fortran_order || Word("False");
    return has_order;
  }
  bool Tuple() {
    Dims dims;
    if (!Take('(')) return false;
    while (!Take(')')) {
      int64_t value = 0;
      SkipSpace();
      const size_t first = at_;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        const auto next = CheckedMul(value, 10);
        const auto sum = next ? CheckedAdd(*next, text_[at_] - '0') : std::nullopt;
        if (!sum) return false;
        value = *sum;
      }
      if (at_ == first || dims.rank() == kMaxRank) return false;
      dims.push_back(value);
      Take(',');
    }
    shape = dims;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

Result<DType> TypeOf(std::string_view descr, const std::string& what) {
  for (const TypeName& t : kTypes) {
    if (descr == t.name || (SizeOf(t.dtype) == 1 && descr.size() == 3 && descr.substr(1) == t.name.substr(1))) {
      return t.dtype;
    }
  }
  return Unsupported(what, ": holds the type '", std::string(descr.substr(0, 16)),
                     "'; save it as float32 (array.astype('<f4'))");
}

uint32_t LittleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

}  // namespace

Result<NpyArray> ParseNpy(std::string_view bytes, const std::string& what) {
  if (bytes.substr(0, kMagic.size()) != kMagic) return Corrupt(what, ": is not a .npy file; write one with numpy.save");
  if (bytes.size() < 10) return Corrupt(what, ": is truncated after ", bytes.size(), " bytes");
  const int version = static_cast<uint8_t>(bytes[6]);
  if (version < 1 || version > 3) return Unsupported(what, ": is of .npy version ", version, "; 1 to 3 are read");
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t start = 8 + length_bytes;
  const size_t length = LittleEndian(bytes.substr(8, length_bytes));
  if (bytes.size() < start || length > bytes.size() - start || length > kMaxHeader) {
    return Corrupt(what, ": is truncated: its header should have ", length, " bytes");
  }
  HeaderParser header(bytes.substr(start, length));
  if (!header.Parse()) {
    return Corrupt(what, ": its header is not that of an array of numbers with at most ", kMaxRank, " dimensions");
  }
  NpyArray array;
  PLAIT_ASSIGN_OR_RETURN(array.dtype, TypeOf(header.descr, what));
  array.shape = *header.shape;
  if (header.fortran_order && array.shape.rank() > 1) {
    return Unsupported(what, ": is in Fortran order; save numpy.ascontiguousarray(array)");
  }
  std::optional<int64_t> size = SizeOf(array.dtype);
  for (const int64_t d : array.shape) size = size ? CheckedMul(*size, d) : std::nullopt;
  const std::string_view data = bytes.substr(start + length);
  if (!size || *size != static_cast<int64_t>(data.size())) {
    return Corrupt(what, ": has the shape ", ToString(array.shape), " of ", Name(array.dtype), ", but ", data.size(),
                   " bytes of data");
  }
  array.data = std::string(data);
  return array;
}

Result<NpyArray> ReadNpyFile(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  return ParseNpy(bytes, path);
}

std::string FormatNpy(DType dtype, const Dims& shape, std::string_view data) {
  std::string_view name;
  for (const TypeName& t : kTypes) {
    if (t.dtype == dtype) name = t.name;
  }
  std::string dims;
  for (int i = 0; i < shape.rank(); ++i) {
    dims += StrCat(i > 0 ? " " : "", shape[i], shape.rank() == 1 || i + 1 < shape.rank() ? "," : "");
  }
  std::string header = StrCat("{'descr': '", name, "', 'fortran_order': False, 'shape': (", dims, "), }");
  header.append(RoundUp(static_cast<int64_t>(10 + header.size() + 1), kAlignment) - (10 + header.size() + 1), ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\1';
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  out += data;
  return out;
}

Status WriteNpyFile(const std::string& path, DType dtype, const Dims& shape, std::string_view data) {
  return WriteFileAtomically(path, FormatNpy(dtype, shape, data));
}

}  // namespace plait
