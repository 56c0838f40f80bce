#include "jagged_slices/gathered_sectors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace spmmbench::jagged {
namespace {

// `rows` rows; row i has the eight columns from 8 * group(i) on.
template <class Group>
CsrMatrix with_groups(std::int64_t rows, Group group) {
  CsrMatrix m{rows, 8 * rows, {0}, {}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (int i = 0; i < 8; ++i) m.col_idx.push_back(static_cast<std::int32_t>(8 * group(row) + i));
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  m.values.assign(m.col_idx.size(), 1.0F);
  return m;
}

TEST(GatheredSectors, ARowOfBCountsOnceForTheRowsOfABlock) {
  const CsrMatrix apart = with_groups(1024, [](std::int64_t row) { return row; });
  EXPECT_DOUBLE_EQ(gathered_sector_share(apart, {}, 1), 1);
  const CsrMatrix together = with_groups(1024, [](std::int64_t row) { return row / 512; });
  EXPECT_DOUBLE_EQ(gathered_sector_share(together, {}, 1), 1.0 / 512);
}

TEST(GatheredSectors, RowsOfBThatShareASectorCountOnce) {
  const CsrMatrix apart = with_groups(1024, [](std::int64_t row) { return row; });
  EXPECT_DOUBLE_EQ(gathered_sector_share(apart, {}, 2), 1.0 / 2);
  EXPECT_DOUBLE_EQ(gathered_sector_share(apart, {}, 16), 1.0 / 16);
}

TEST(GatheredSectors, FollowsTheRowOrder) {
  const CsrMatrix mixed = with_groups(1024, [](std::int64_t row) { return row % 2; });
  EXPECT_DOUBLE_EQ(gathered_sector_share(mixed, {}, 1), 2.0 / 512);
  Permutation order(1024);
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [](std::int32_t row) { return row % 2 == 0; });
  EXPECT_DOUBLE_EQ(gathered_sector_share(mixed, order, 1), 1.0 / 512);
}

TEST(GatheredSectors, LooksAtBlocksFromAllOverTheMatrix) {
  constexpr std::int64_t kRows = 1 << 16;
  const CsrMatrix matrix =
      with_groups(kRows, [](std::int64_t row) { return row < kRows / 2 ? row : kRows / 2; });
  EXPECT_NEAR(gathered_sector_share(matrix, {}, 1), 0.5, 0.01);
}

TEST(GatheredSectors, TheLastBlockMayHaveFewerRows) {
  for (const std::int64_t rows : {1, 511, 513, 16 * 512, 16 * 512 + 1, 17 * 512}) {
    const CsrMatrix apart = with_groups(rows, [](std::int64_t row) { return row; });
    EXPECT_DOUBLE_EQ(gathered_sector_share(apart, {}, 1), 1) << rows;
  }
  const CsrMatrix together = with_groups(513, [](std::int64_t) { return 0; });
  EXPECT_DOUBLE_EQ(gathered_sector_share(together, {}, 1), 2.0 / 513);
}

TEST(GatheredSectors, NothingIsGatheredWithoutNonzeros) {
  EXPECT_EQ(gathered_sector_share({3, 4, {0, 0, 0, 0}, {}, {}}, {}, 1), 0);
  EXPECT_EQ(gathered_sector_share({}, {}, 1), 0);
}

}  // namespace
}  // namespace spmmbench::jagged
