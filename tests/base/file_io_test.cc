#include "src/base/file_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace plait {
namespace {

class WriteFile : public testing::Test {
 protected:
  void TearDown() override {
    ::unlink(path_.c_str());
    ::rmdir(path_.c_str());
  }
  bool Has(mode_t type) const {
    struct stat info;
    return ::lstat(path_.c_str(), &info) == 0 && (info.st_mode & S_IFMT) == type;
  }
  const std::string path_ = StrCat(testing::TempDir(), "file_io_test.", ::getpid());
};

TEST_F(WriteFile, ReplacesTheFile) {
  ASSERT_TRUE(WriteFileAtomically(path_, "a longer text").ok());
  ASSERT_TRUE(WriteFileAtomically(path_, "text").ok());
  EXPECT_EQ(ReadFile(path_).value(), "text");
}

TEST_F(WriteFile, WritesToAPipeAndLeavesItOne) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const Status status = WriteFileAtomically(path_, "text");
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(Has(S_IFIFO));
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 4);
  EXPECT_STREQ(text, "text");
  ::close(reader);
}

TEST_F(WriteFile, LeavesADirectoryAlone) {
  ASSERT_EQ(::mkdir(path_.c_str(), 0700), 0);
  const Status status = WriteFileAtomically(path_, "text");
  EXPECT_EQ(status.code(), PLAIT_IO_ERROR);
  EXPECT_NE(status.message().find(path_), std::string::npos) << status.message();
  EXPECT_TRUE(Has(S_IFDIR));
}

}  // namespace
}  // namespace plait
