// Columns that many rows have.

#include "window/hub_columns.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "matrices.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {
namespace {

// Rows of one nonzero in columns 0 to `hubs` - 1 by turns, and one in a column of their own.
CsrMatrix with_hubs(int rows, int hubs) {
  std::vector<std::vector<std::int32_t>> columns;
  for (int row = 0; row < rows; ++row) columns.push_back({row % hubs, hubs + row});
  return testing::from_rows(hubs + rows, columns);
}

TEST(HubColumns, AreThoseThatAnEighthOfTheRowsHave) {
  const HubColumns two = find_hub_columns(with_hubs(3000, 2));
  EXPECT_NEAR(two.share, 0.5, 0.03);
  EXPECT_EQ(two.count, 2);
  EXPECT_EQ(find_hub_columns(with_hubs(3000, 6)).count, 6);
  EXPECT_EQ(find_hub_columns(with_hubs(3000, 16)).count, 0);
}

TEST(HubColumns, EveryColumnOfADenseMatrixIsOne) {
  const HubColumns all = find_hub_columns(testing::from_rows(3, {{0, 1, 2}, {0, 1, 2}}));
  EXPECT_DOUBLE_EQ(all.share, 1);
  EXPECT_EQ(all.count, 3);
}

TEST(HubColumns, AreNotFoundByChanceInLongRows) {
  // 2048 columns, each in a twentieth of the rows.
  std::vector<std::vector<std::int32_t>> columns;
  for (int row = 0; row < 500; ++row) {
    columns.emplace_back();
    for (int col = 0; col < 2048; ++col)
      if (hash_position(1, static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(col)) % 20 ==
          0)
        columns.back().push_back(col);
  }
  EXPECT_LT(find_hub_columns(testing::from_rows(2048, columns)).share, 0.01);
}

TEST(HubColumns, AreNotLookedForInLongRowsNorWithoutNonzeros) {
  std::vector<std::int32_t> row(400);
  std::iota(row.begin(), row.end(), 0);
  EXPECT_EQ(find_hub_columns(testing::from_rows(400, {row, row})).count, 0);
  EXPECT_EQ(find_hub_columns(testing::from_rows(9, {{}, {}})).count, 0);
}

}  // namespace
}  // namespace spmmbench
