#include "gpu/clear_memory.hpp"

#include <gtest/gtest.h>

#include "fake_device.hpp"

namespace spmmbench {
namespace {

TEST(ClearMemory, GoesToWhoWantsAboutAsMuch) {
  FakeDevice device;
  ClearMemory clear;
  Buffer memory = device.allocate(ClearMemory::size_for(100'000));
  void* const data = memory.data();
  clear.keep(std::move(memory));
  EXPECT_EQ(clear.take(30'000).data(), nullptr) << "it is too large";
  EXPECT_EQ(clear.take(200'000).data(), nullptr) << "it is too small";
  memory = clear.take(101'000);
  EXPECT_EQ(memory.data(), data);
  EXPECT_GE(memory.bytes(), 101'000U);
  EXPECT_EQ(clear.take(100'000).data(), nullptr) << "somebody has it";
}

TEST(ClearMemory, GivesTheSmallestThatSuffices) {
  FakeDevice device;
  ClearMemory clear;
  for (const std::size_t bytes : {4096, 2048, 3072}) clear.keep(device.allocate(bytes));
  EXPECT_EQ(clear.take(2049).bytes(), 3072U);
  EXPECT_EQ(clear.take(2049).bytes(), 4096U);
}

TEST(ClearMemory, KeepsALimitedNumberAndNoneThatIsLarge) {
  FakeDevice device;
  ClearMemory clear;
  clear.keep(device.allocate(std::size_t{64} << 20));
  EXPECT_EQ(clear.take(std::size_t{64} << 20).data(), nullptr);
  for (int i = 0; i < 100; ++i) clear.keep(device.allocate(512));
  int kept = 0;
  while (clear.take(512).data() != nullptr) ++kept;
  EXPECT_GT(kept, 4);
  EXPECT_LT(kept, 100);
}

TEST(ClearMemory, IsAllocatedInSteps) {
  for (std::size_t bytes = 1; bytes < 5'000'000; bytes = bytes * 5 / 4 + 1) {
    EXPECT_GE(ClearMemory::size_for(bytes), bytes);
    EXPECT_LE(ClearMemory::size_for(bytes), bytes + std::max<std::size_t>(bytes / 8, 512)) << bytes;
  }
}

}  // namespace
}  // namespace spmmbench
