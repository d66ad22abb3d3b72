// Large memory comes from the application's allocator and goes back to it.
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>

#include "tests/api/sample.h"

namespace plait::testing {
namespace {

// Hands out memory and keeps account of it.
struct Account {
  std::mutex mutex;
  std::map<void*, size_t> out;
  size_t taken = 0;  // blocks ever
  int misuses = 0;   // releases of what is not out, or with another size; odd requests
  size_t left = static_cast<size_t>(-1);  // blocks until there is no more memory
  bool throws = false, misaligns = false;
};

void* Allocate(void* user, size_t bytes, size_t alignment) {
  Account& account = *static_cast<Account*>(user);
  const std::lock_guard lock(account.mutex);
  account.misuses += bytes == 0 || alignment != 64;
  if (account.throws) throw std::runtime_error("no");
  if (account.left == 0) return nullptr;
  --account.left;
  ++account.taken;
  char* data = static_cast<char*>(std::aligned_alloc(alignment, (bytes + 127) / 64 * 64));
  if (account.misaligns) data += 4;
  account.out[data] = bytes;
  return data;
}

void Release(void* user, void* data, size_t bytes) {
  Account& account = *static_cast<Account*>(user);
  const std::lock_guard lock(account.mutex);
  const auto found = account.out.find(data);
  if (found == account.out.end() || found->second != bytes) {
    ++account.misuses;
    return;
  }
  account.out.erase(found);
  std::free(account.misaligns ? static_cast<char*>(data) - 4 : data);
}

plait_allocator From(Account* account) {
  plait_allocator allocator = PLAIT_ALLOCATOR_INIT;
  allocator.allocate = Allocate;
  allocator.release = Release;
  allocator.user = account;
  return allocator;
}

size_t Held(Account* account) {
  const std::lock_guard lock(account->mutex);
  size_t bytes = 0;
  for (const auto& [data, size] : account->out) bytes += size;
  return bytes;
}

class CAllocator : public Sample {
 protected:
  void TearDown() override {
    Sample::TearDown();
    EXPECT_PLAIT_OK(plait_set_allocator(nullptr));
  }
  plait_model* Load(plait_status expected = PLAIT_OK) {
    plait_model* loaded = nullptr;
    EXPECT_EQ(plait_model_load_memory(json_.data(), json_.size(), nullptr, &loaded), expected) << plait_last_error();
    return loaded;
  }
  const std::string json_ = SampleJson();  // made of constants, which take memory, too
};

TEST_F(CAllocator, ServesWeightsAndSessionsAndGetsAllBack) {
  MakeSession();
  const std::vector<float> expected = RunOn(session, Wave(kInputs, 0.1f));
  const plait_session_stats stats = [&] {
    plait_session_stats filled = PLAIT_SESSION_STATS_INIT;
    EXPECT_PLAIT_OK(plait_session_get_stats(session, &filled));
    return filled;
  }();
  EXPECT_PLAIT_OK(plait_session_destroy(session));
  EXPECT_PLAIT_OK(plait_plan_destroy(plan));
  session = nullptr, plan = nullptr;
  EXPECT_PLAIT_OK(plait_model_destroy(model));
  model = nullptr;

  Account account;
  const plait_allocator allocator = From(&account);
  ASSERT_PLAIT_OK(plait_set_allocator(&allocator));
  model = Load();
  const size_t weights = (16 * 9 * 4 + 16 * 9 * 16) * sizeof(float), of_model = Held(&account);
  EXPECT_GE(of_model, weights);
  MakeSession();
  EXPECT_GE(Held(&account), of_model + stats.memory_bytes);
  EXPECT_EQ(RunOn(session, Wave(kInputs, 0.1f)), expected);
  const size_t taken = account.taken;
  RunOn(session, Wave(kInputs, 0.1f));
  EXPECT_EQ(account.taken, taken) << "a run takes no memory";

  // Another one takes over: what came from the first goes back to the first.
  ASSERT_PLAIT_OK(plait_set_allocator(nullptr));
  plait_model* const other = Load();
  EXPECT_EQ(account.taken, taken);
  EXPECT_PLAIT_OK(plait_model_destroy(other));
  EXPECT_PLAIT_OK(plait_session_destroy(session));
  EXPECT_PLAIT_OK(plait_plan_destroy(plan));
  EXPECT_PLAIT_OK(plait_model_destroy(model));
  EXPECT_PLAIT_OK(plait_lanes_destroy(lanes));
  session = nullptr, plan = nullptr, model = nullptr, lanes = nullptr;
  EXPECT_EQ(Held(&account), 0u);
  EXPECT_EQ(account.misuses, 0);
}

TEST_F(CAllocator, HavingNoMemoryIsAStatusWhereverItHappens) {
  EXPECT_PLAIT_OK(plait_model_destroy(model));
  model = nullptr;
  Account account;
  const plait_allocator allocator = From(&account);
  ASSERT_PLAIT_OK(plait_set_allocator(&allocator));
  plait_status status = PLAIT_OUT_OF_MEMORY;
  size_t blocks = 0;
  for (; status != PLAIT_OK; ++blocks) {
    ASSERT_LT(blocks, 200u);
    account.left = blocks;
    plait_model* loaded = nullptr;
    plait_plan* made = nullptr;
    plait_session* opened = nullptr;
    plait_plan_options options = PLAIT_PLAN_OPTIONS_INIT;
    options.strategy_name = "lane:cpu0";
    status = plait_model_load_memory(json_.data(), json_.size(), nullptr, &loaded);
    if (status == PLAIT_OK) status = plait_plan_make(loaded, lanes, &options, &made);
    if (status == PLAIT_OK) status = plait_session_create(made, nullptr, &opened);
    EXPECT_TRUE(status == PLAIT_OK || status == PLAIT_OUT_OF_MEMORY) << blocks << ": " << plait_status_name(status) << ", " << plait_last_error();
    EXPECT_PLAIT_OK(plait_session_destroy(opened));
    EXPECT_PLAIT_OK(plait_plan_destroy(made));
    EXPECT_PLAIT_OK(plait_model_destroy(loaded));
  }
  EXPECT_GT(blocks, 3u);
  EXPECT_EQ(account.misuses, 0);
  EXPECT_PLAIT_OK(plait_set_allocator(nullptr));
  EXPECT_PLAIT_OK(plait_lanes_destroy(lanes));
  lanes = nullptr;
  EXPECT_EQ(Held(&account), 0u);
}

TEST_F(CAllocator, WhatItDoesWrongIsCaught) {
  Account account;
  const plait_allocator good = From(&account);
  ASSERT_PLAIT_OK(plait_set_allocator(&good));
  account.throws = true;
  EXPECT_EQ(Load(PLAIT_OUT_OF_MEMORY), nullptr);
  account.throws = false;
  account.misaligns = true;
  EXPECT_EQ(Load(PLAIT_OUT_OF_MEMORY), nullptr);
  EXPECT_EQ(Held(&account), 0u) << "a misaligned block is given back";
  EXPECT_EQ(account.misuses, 0);
  plait_allocator half = good;
  half.release = nullptr;
  EXPECT_REFUSED(plait_set_allocator(&half), PLAIT_INVALID_ARGUMENT, "release is NULL");
  half = good;
  half.allocate = nullptr;
  EXPECT_REFUSED(plait_set_allocator(&half), PLAIT_INVALID_ARGUMENT, "allocate is NULL");
  half = good;
  half.size = 8;
  EXPECT_REFUSED(plait_set_allocator(&half), PLAIT_INVALID_ARGUMENT, "plait_allocator::size");
}

}  // namespace
}  // namespace plait::testing
