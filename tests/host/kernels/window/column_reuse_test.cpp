#include "window/column_reuse.hpp"

#include <gtest/gtest.h>

#include "matrices.hpp"

namespace spmmbench {
namespace {

Permutation random_order(const CsrMatrix& matrix) {
  StageTimer stages;
  return make_row_orders(matrix, {"none", {}})->get("random", stages);
}

// A band of eight columns: in its own order a row brings one new column, in a random one eight.
TEST(ColumnReuse, RowsThatShareColumnsAskForFewNewOnes) {
  constexpr std::int32_t kRows = 20'000, kBand = 8;
  std::vector<std::vector<std::int32_t>> rows(kRows);
  for (std::int32_t row = 0; row < kRows; ++row)
    for (std::int32_t i = 0; i < kBand; ++i) rows[row].push_back(row + i);
  const CsrMatrix matrix = testing::from_rows(kRows + kBand, rows);
  const Permutation natural, random = random_order(matrix);
  const std::vector<double> shares = new_column_shares(matrix, {&natural, &random}, 1000);
  EXPECT_NEAR(shares[0], 1.0 / kBand, 0.01);
  EXPECT_GT(shares[1], 0.9);
  constexpr std::int64_t kFew = 100;  // fewer than 1024 entries in random order name
  EXPECT_GT(new_column_shares(matrix, {&random}, kFew)[0], 0.9);
  EXPECT_EQ(new_column_shares(testing::from_rows(9, {{}, {}}), {&natural}, 1000)[0], 0);
}

}  // namespace
}  // namespace spmmbench
