// NumPy's .npy files: one array each.
#pragma once

#include <string>
#include <string_view>

#include "src/graph/graph.h"

namespace plait {

struct NpyArray {
  DType dtype = DType::kF32;
  Dims shape;
  std::string data;  // dense, row-major, little-endian; shape.Count() * SizeOf(dtype) bytes
};

// Reads versions 1.0 to 3.0 in C order: f2, f4, i1, u1, i4, i8 and b1. Corrupt: no such file, or one whose data does not fit its
// shape; Unsupported: another type, byte order or Fortran order, with what to do. `what` is named in messages.
Result<NpyArray> ParseNpy(std::string_view bytes, const std::string& what);
Result<NpyArray> ReadNpyFile(const std::string& path);

// Version 1.0. `data` has the shape's bytes.
std::string FormatNpy(DType dtype, const Dims& shape, std::string_view data);
Status WriteNpyFile(const std::string& path, DType dtype, const Dims& shape, std::string_view data);

}  // namespace plait
