#include "core/matrix_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>

namespace spmmbench {
namespace {

TEST(MatrixMemory, SufficesForASmallCopyAndNotForEveryOne) {
  const CsrMatrix a{2, 3, {0, 1, 2}, {0, 2}, {1, 2}, {1, 2}};
  EXPECT_EQ(memory_bytes(a), 3 * 8U + 2 * (4 + 4 + 8U));
  EXPECT_NO_THROW(require_host_memory(memory_bytes(a)));
  EXPECT_THROW(require_host_memory(SIZE_MAX - 1), std::bad_alloc);
}

}  // namespace
}  // namespace spmmbench
