// The headers as C99 and as C++ without exceptions (c99.c, no_exceptions.cc).
#include "tests/api/sample.h"

extern "C" int plait_test_c99(void);

namespace plait::testing {

Status UseCppApi(const std::string& json);

namespace {

TEST(CLanguages, C99) { EXPECT_EQ(plait_test_c99(), 1); }

TEST(CLanguages, CppWithoutExceptionsAndRtti) {
  const Status status = UseCppApi(SampleJson());
  EXPECT_TRUE(status.ok()) << plait_status_name(status.code()) << ": " << status.message();
}

}  // namespace
}  // namespace plait::testing
