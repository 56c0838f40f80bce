#include "measure/summary.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "matrices.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

TEST(Summary, HasTheQuantilesOfTheRowLengths) {
  std::vector<std::vector<std::int32_t>> rows(103);
  std::vector<double> lengths;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::int32_t col = 0; col < static_cast<std::int32_t>(row * row % 37); ++col)
      rows[row].push_back(col);
    lengths.push_back(static_cast<double>(rows[row].size()));
  }
  const MatrixSummary summary =
      summarise_matrix(testing::from_rows(40, rows), "m", "./m.mtx", "00ff");
  EXPECT_DOUBLE_EQ(*summary.q1_row, quantile(lengths, 0.25));
  EXPECT_DOUBLE_EQ(*summary.median_row, quantile(lengths, 0.5));
  EXPECT_DOUBLE_EQ(*summary.q3_row, quantile(lengths, 0.75));
  EXPECT_DOUBLE_EQ(*summary.p99_row, quantile(lengths, 0.99));
  EXPECT_EQ(summary.max_row, 36);
  EXPECT_EQ(summary.source, "./m.mtx");
}

TEST(Summary, CountsTheBlocksThatHaveANonzero) {
  std::vector<std::vector<std::int32_t>> rows(20);
  rows[0] = {0, 15};
  rows[15] = {0};
  EXPECT_DOUBLE_EQ(*summarise_matrix(testing::from_rows(33, rows), "", "", "").block_fill,
                   3.0 / 256);
  rows[16] = {15, 16, 32};  // three blocks of the second band
  EXPECT_DOUBLE_EQ(*summarise_matrix(testing::from_rows(33, rows), "", "", "").block_fill,
                   6.0 / (4 * 256));
  EXPECT_EQ(*summarise_matrix(testing::from_rows(33, {{}, {}}), "", "", "").block_fill, 1);
}

}  // namespace
}  // namespace spmmbench
