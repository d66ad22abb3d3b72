#include "src/formats/npy.h"

#include <gtest/gtest.h>

#include <cstring>

namespace plait {
namespace {

std::string Bytes(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

// A version 1.0 file with this header text.
std::string WithHeader(const std::string& header, const std::string& data) {
  std::string out = std::string("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header + data;
}

TEST(Npy, RoundTripsEveryShapeAndType) {
  for (const Dims& shape : {Dims{}, Dims{5}, Dims{2, 3}, Dims{1, 2, 3, 4}, Dims{0, 3}}) {
    for (const DType dtype :
         {DType::kF32, DType::kF16, DType::kI8, DType::kU8, DType::kI32, DType::kI64, DType::kBool}) {
      const std::string data(static_cast<size_t>(shape.Count() * SizeOf(dtype)), '\x2a');
      const std::string file = FormatNpy(dtype, shape, data);
      EXPECT_EQ((file.size() - data.size()) % 64, 0u);
      const Result<NpyArray> array = ParseNpy(file, "a.npy");
      ASSERT_TRUE(array.ok()) << array.status().message();
      EXPECT_EQ(array->dtype, dtype);
      EXPECT_TRUE(array->shape == shape);
      EXPECT_EQ(array->data, data);
    }
  }
}

TEST(Npy, WritesWhatNumPyWrites) {
  const std::string file = FormatNpy(DType::kF32, {2, 3}, Bytes({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(file.substr(10, 59), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
  EXPECT_EQ(file[127], '\n');
  EXPECT_EQ(FormatNpy(DType::kF32, {3}, Bytes({1, 2, 3})).find("'shape': (3,), }"), 51u);
}

TEST(Npy, ReadsOtherWritersHeaders) {
  const std::string data = Bytes({1, 2});
  for (const char* header : {"{'descr':'<f4','fortran_order':False,'shape':(2,)}\n",
                             "{\"shape\": (2,), \"descr\": \"<f4\", \"fortran_order\": False}",
                             "{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }   \n"}) {
    EXPECT_TRUE(ParseNpy(WithHeader(header, data), "a").ok()) << header;
  }
}

TEST(Npy, RefusesWhatItCannotUse) {
  const std::string data = Bytes({1, 2});
  struct Case {
    const char* header;
    plait_status code;
  };
  for (const Case& c :
       {Case{"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", PLAIT_UNSUPPORTED},
        Case{"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", PLAIT_UNSUPPORTED},
        Case{"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", PLAIT_UNSUPPORTED},
        Case{"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }", PLAIT_UNSUPPORTED},
        Case{"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", PLAIT_CORRUPT},
        Case{"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", PLAIT_CORRUPT},
        Case{"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", PLAIT_CORRUPT},
        Case{"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", PLAIT_CORRUPT},
        Case{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2), }", PLAIT_CORRUPT},
        Case{"{'descr': '<f4', 'shape': (2,), }", PLAIT_CORRUPT},
        Case{"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", PLAIT_CORRUPT},
        Case{"", PLAIT_CORRUPT}}) {
    const Status status = ParseNpy(WithHeader(c.header, data), "a.npy").status();
    EXPECT_EQ(status.code(), c.code) << c.header << ": " << status.message();
    EXPECT_NE(status.message().find("a.npy"), std::string::npos);
  }
}

TEST(Npy, EveryTruncationIsRefusedAndAnyByteMayBeWrong) {
  const std::string file = FormatNpy(DType::kF32, {2, 3}, Bytes({1, 2, 3, 4, 5, 6}));
  for (size_t n = 0; n < file.size(); ++n) {
    EXPECT_FALSE(ParseNpy(file.substr(0, n), "a").ok()) << n;
    std::string bad = file;
    bad[n] = static_cast<char>(bad[n] ^ 0xff);
    const Result<NpyArray> array = ParseNpy(bad, "a");
    if (array.ok()) {
      EXPECT_EQ(static_cast<int64_t>(array->data.size()), array->shape.Count() * SizeOf(array->dtype));
    }
  }
}

}  // namespace
}  // namespace plait
