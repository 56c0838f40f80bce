#include "gpu/memory_pool.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace spmmbench {
namespace {

struct Memory {
  std::size_t taken = 0, given = 0;  // blocks
  bool is_full = false;
  MemoryPool pool{[this](std::size_t bytes) {
                    if (is_full) return static_cast<void*>(nullptr);
                    ++taken;
                    return std::malloc(bytes > 1 << 20 ? 1 : bytes);  // large ones are not used
                  },
                  [this](void* data) {
                    ++given;
                    std::free(data);
                  }};
};

TEST(MemoryPool, GivesAFreedBlockToTheNextAllocationOfItsSize) {
  Memory memory;
  const auto first = memory.pool.allocate(5000);
  EXPECT_FALSE(first.in_use);
  memory.pool.release(first.data);
  const auto second = memory.pool.allocate(4990);
  EXPECT_EQ(second.data, first.data);
  EXPECT_TRUE(second.in_use);
  EXPECT_EQ(memory.taken, 1U);
  memory.pool.release(second.data);
}

TEST(MemoryPool, GivesABlockThatIsAtMostAQuarterLarger) {
  Memory memory;
  const auto first = memory.pool.allocate(100'000);
  memory.pool.release(first.data);
  const auto much_less = memory.pool.allocate(60'000);
  EXPECT_NE(much_less.data, first.data);
  const auto less = memory.pool.allocate(85'000);
  EXPECT_EQ(less.data, first.data);
  EXPECT_EQ(memory.pool.kept_bytes(), 0U);
  memory.pool.release(less.data);
  EXPECT_GE(memory.pool.kept_bytes(), 100'000U);
  memory.pool.release(much_less.data);
}

TEST(MemoryPool, WaitsOnceForAllThatWasFreedBefore) {
  Memory memory;
  void* const blocks[] = {memory.pool.allocate(100).data, memory.pool.allocate(100).data,
                          memory.pool.allocate(100).data};
  memory.pool.release(blocks[0]);
  memory.pool.release(blocks[1]);
  int waits = 0;
  memory.pool.wait_for_freed([&] {
    ++waits;
    memory.pool.release(blocks[2]);  // by another thread: its work may run on
  });
  EXPECT_EQ(waits, 1);
  const MemoryPool::Block again[] = {memory.pool.allocate(100), memory.pool.allocate(100),
                                     memory.pool.allocate(100)};
  EXPECT_FALSE(again[0].in_use);
  EXPECT_FALSE(again[1].in_use);
  EXPECT_EQ(again[2].data, blocks[2]);
  EXPECT_TRUE(again[2].in_use);
  for (const auto& block : again) memory.pool.release(block.data);
}

TEST(MemoryPool, DoesNotGiveABlockTwice) {
  Memory memory;
  const auto first = memory.pool.allocate(100);
  const auto second = memory.pool.allocate(100);
  EXPECT_NE(first.data, second.data);
  memory.pool.release(first.data);
  memory.pool.release(second.data);
  const auto third = memory.pool.allocate(100), fourth = memory.pool.allocate(100);
  EXPECT_NE(third.data, fourth.data);
  memory.pool.release(third.data);
  memory.pool.release(fourth.data);
}

TEST(MemoryPool, GivesBackWhatItKeepsWhereMemoryRunsOut) {
  Memory memory;
  memory.pool.release(memory.pool.allocate(1000).data);
  EXPECT_GT(memory.pool.kept_bytes(), 0U);
  memory.is_full = true;
  EXPECT_EQ(memory.pool.allocate(100'000).data, nullptr);
  EXPECT_EQ(memory.given, 1U);
  EXPECT_EQ(memory.pool.kept_bytes(), 0U);
}

TEST(MemoryPool, KeepsNoLargeBlocks) {
  Memory memory;
  memory.pool.release(memory.pool.allocate(std::size_t{1} << 30).data);
  EXPECT_EQ(memory.given, 1U);
  EXPECT_EQ(memory.pool.kept_bytes(), 0U);
}

TEST(MemoryPool, GivesBackWhatItKeepsAtItsEnd) {
  std::size_t given = 0;
  {
    MemoryPool pool([](std::size_t bytes) { return std::malloc(bytes); },
                    [&](void* data) {
                      ++given;
                      std::free(data);
                    });
    pool.release(pool.allocate(300).data);
    EXPECT_EQ(given, 0U);
  }
  EXPECT_EQ(given, 1U);
}

}  // namespace
}  // namespace spmmbench
