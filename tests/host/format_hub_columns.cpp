// The share of the nonzeros in columns that many rows have.

#include "format/hub_columns.hpp"

#include <gtest/gtest.h>

#include "matrices.hpp"

namespace spmmbench {
namespace {

// Rows of one nonzero in columns 0 to `hubs` - 1 by turns, and one in a column of their own.
CsrMatrix with_hubs(int rows, int hubs) {
  std::vector<std::vector<std::int32_t>> columns;
  for (int row = 0; row < rows; ++row) columns.push_back({row % hubs, hubs + row});
  return testing::from_rows(hubs + rows, columns);
}

TEST(HubColumnShare, CountsColumnsThatAQuarterOfTheRowsHave) {
  EXPECT_NEAR(hub_column_share(with_hubs(3000, 2)), 0.5, 0.03);
  EXPECT_EQ(hub_column_share(with_hubs(3000, 8)), 0);
}

TEST(HubColumnShare, EveryColumnOfADenseMatrixIsAHub) {
  EXPECT_EQ(hub_column_share(testing::from_rows(3, {{0, 1, 2}, {0, 1, 2}})), 1);
}

TEST(HubColumnShare, IsNothingWithoutNonzeros) {
  EXPECT_EQ(hub_column_share(testing::from_rows(9, {{}, {}})), 0);
}

}  // namespace
}  // namespace spmmbench
