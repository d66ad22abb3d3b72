#include "backends/opencl/program_cache.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "backends/opencl/cl_api.h"
#include "src/base/file_io.h"
#include "tests/opencl/cases.h"

namespace plait {
namespace {

using opencl::LoadProgram;
using opencl::ProgramKey;
using opencl::StoreProgram;

// The system's OpenCL, counting the programs that are compiled from source.
const ClApi* g_system = nullptr;
int g_compiled = 0;

cl_program CL_API_CALL CountedCreateProgramWithSource(cl_context context, cl_uint count, const char** strings, const size_t* lengths, cl_int* error) {
  ++g_compiled;
  return g_system->clCreateProgramWithSource(context, count, strings, lengths, error);
}

class ProgramCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "plait-cache-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(dir_)) files.push_back(entry.path().string());
    return files;
  }
  const ProgramKey key_{"source", "-DVW=8", "platform | device | driver 1", "1.2.3"};
  std::string dir_;
};

TEST_F(ProgramCacheTest, GivesBackWhatWasStored) {
  const std::string binary("\0binary\n\nwith everything\xff", 25);
  EXPECT_FALSE(LoadProgram(dir_, key_).has_value());
  ASSERT_TRUE(StoreProgram(dir_, key_, binary).ok());
  EXPECT_EQ(LoadProgram(dir_, key_), binary);
}

TEST_F(ProgramCacheTest, EveryPartOfTheKeyCounts) {
  ASSERT_TRUE(StoreProgram(dir_, key_, "binary").ok());
  ProgramKey other = key_;
  other.source += " ";
  EXPECT_FALSE(LoadProgram(dir_, other).has_value());
  other = key_;
  other.options = "-DVW=4";
  EXPECT_FALSE(LoadProgram(dir_, other).has_value());
  other = key_;
  other.device = "platform | device | driver 2";
  EXPECT_FALSE(LoadProgram(dir_, other).has_value());
  other = key_;
  other.plait = "1.2.4";
  EXPECT_FALSE(LoadProgram(dir_, other).has_value());
}

TEST_F(ProgramCacheTest, DamagedEntriesAreNotUsed) {
  ASSERT_TRUE(StoreProgram(dir_, key_, "a binary of some length").ok());
  const std::string path = Files().at(0);
  const std::string good = ReadFile(path).value();
  for (size_t i = 0; i < good.size(); ++i) {
    ASSERT_TRUE(WriteFileAtomically(path, good.substr(0, i)).ok());
    EXPECT_FALSE(LoadProgram(dir_, key_).has_value()) << "cut at byte " << i;
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x20);
    ASSERT_TRUE(WriteFileAtomically(path, flipped).ok());
    EXPECT_FALSE(LoadProgram(dir_, key_).has_value()) << "byte " << i << " changed";
  }
}

TEST_F(ProgramCacheTest, AFolderThatCannotBeWrittenIsAnErrorNotACrash) {
  EXPECT_FALSE(StoreProgram("/proc/no/such/folder", key_, "binary").ok());
  EXPECT_FALSE(LoadProgram("/proc/no/such/folder", key_).has_value());
}

TEST_F(ProgramCacheTest, TheLaneUsesGoodEntriesAndReplacesBadOnes) {
  OpenClLaneConfig config;
  config.cache_dir = dir_;
  const Result<const ClApi*> system = LoadSystemOpenCl();
  if (!system.ok()) GTEST_SKIP() << system.status().message();
  g_system = *system;
  ClApi counting = **system;
  counting.clCreateProgramWithSource = CountedCreateProgramWithSource;
  config.api = &counting;
  std::string why;
  Rng rng(1);
  const OperatorCase op(OneInput({4, 20}, OpKind::kSoftmax, SoftmaxAttrs{}), rng, true);
  const auto run = [&] {
    g_compiled = 0;
    const std::unique_ptr<Lane> lane = TestLane(config, &why);
    if (lane == nullptr) return false;
    EXPECT_LE(RelativeError(op.Run(*lane, op.ProgramOf({Region::Whole(op.output_shape())})), op.Reference()), 1e-5);
    return true;
  };
  if (!run()) GTEST_SKIP() << why;
  // The softmax's program, and on a CPU device that of the lane's signals.
  const std::vector<std::string> paths = Files();
  ASSERT_GE(paths.size(), 1u);
  ASSERT_LE(paths.size(), 2u);
  EXPECT_EQ(g_compiled, static_cast<int>(paths.size()));
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const std::string good = ReadFile(path).value();
    ASSERT_TRUE(run());
    EXPECT_EQ(g_compiled, 0);
    EXPECT_EQ(ReadFile(path).value(), good);
    ASSERT_TRUE(WriteFileAtomically(path, good.substr(0, good.size() / 2)).ok());
    ASSERT_TRUE(run());
    EXPECT_EQ(g_compiled, 1) << "only the damaged entry is compiled";
    EXPECT_EQ(ReadFile(path).value().size(), good.size());
    EXPECT_EQ(Files(), paths);
  }
}

}  // namespace
}  // namespace plait
