#include "core/row_lengths.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "matrices.hpp"

namespace spmmbench {
namespace {

TEST(RowLengths, AreThoseOfEveryRow) {
  const RowLengths lengths = row_lengths(testing::from_rows(9, {{1, 2, 3}, {}, {4}, {}}));
  EXPECT_EQ(lengths.longest, 3);
  EXPECT_EQ(lengths.empty, 2);
  EXPECT_EQ(lengths.mean, 1);
  EXPECT_DOUBLE_EQ(lengths.variation, std::sqrt(1.5));
  EXPECT_EQ(longest_row(testing::from_rows(9, {{1}, {1, 2, 3}, {4}})), 3);
  EXPECT_EQ(longest_row(testing::from_rows(9, {})), 0);
}

TEST(RowLengths, TheShareOfEmptyRowsOfASmallMatrixIsExact) {
  EXPECT_DOUBLE_EQ(share_of_empty_rows(testing::from_rows(9, {{1, 2, 3}, {}, {4}, {}})), 0.5);
  EXPECT_EQ(share_of_empty_rows(testing::from_rows(9, {{1}})), 0);
  std::vector<std::vector<std::int32_t>> nine(9);
  nine[4] = {1};
  EXPECT_DOUBLE_EQ(share_of_empty_rows(testing::from_rows(9, nine)), 8.0 / 9)
      << "no row is read twice";
}

TEST(RowLengths, OfAMatrixWithoutNonzerosAreZero) {
  const RowLengths lengths = row_lengths(testing::from_rows(9, {{}, {}}));
  EXPECT_EQ(lengths.longest, 0);
  EXPECT_EQ(lengths.empty, 2);
  EXPECT_EQ(lengths.mean, 0);
  EXPECT_EQ(lengths.variation, 0);
}

}  // namespace
}  // namespace spmmbench
