#include "select/row_overlap.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "matrices.hpp"
#include "select/rank.hpp"

namespace spmmbench {
namespace {

using List = std::vector<std::int32_t>;

// `count` rows of 20 columns. Row r begins at column `begin(r)`, and its columns are `step` apart.
template <class Begin>
CsrMatrix combs(std::int64_t count, std::int64_t cols, std::int32_t step, Begin begin) {
  std::vector<List> rows(count, List(20));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::int32_t i = 0; i < 20; ++i)
      rows[r][i] =
          static_cast<std::int32_t>((begin(static_cast<std::int32_t>(r)) + i * step) % cols);
    std::ranges::sort(rows[r]);
  }
  return testing::from_rows(cols, rows);
}

TEST(RowOverlap, IsOneForEqualRowsWhereverTheyAre) {
  EXPECT_EQ(row_overlap(combs(300, 1000, 7, [](auto) { return 3; })), 1);
  EXPECT_EQ(row_overlap(combs(300, 3000, 7, [](auto r) { return r % 10; })), 1);
}

TEST(RowOverlap, IsTheShareOfTheMostSimilarRowFound) {
  // Row 2 k + 1 has the last 10 of the columns of row 2 k, and 10 of its own.
  const CsrMatrix a = combs(400, 20000, 1, [](auto r) { return r / 2 * 100 + r % 2 * 10; });
  EXPECT_NEAR(row_overlap(a), 9.0 / 19, 1e-12);
}

TEST(RowOverlap, IsSmallForScatteredNonzeros) {
  std::vector<List> rows(5000);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::uint64_t i = 0; i < 20; ++i)
      rows[r].push_back(static_cast<std::int32_t>(hash_position(1, r, i) % 5000));
    std::ranges::sort(rows[r]);
    rows[r].erase(std::ranges::unique(rows[r]).begin(), rows[r].end());
  }
  EXPECT_LT(row_overlap(testing::from_rows(5000, rows)), 0.02);
}

TEST(RowOverlap, IsUnknownWhereTooFewRowsShareAColumn) {
  std::vector<List> rows(500);
  for (std::int32_t r = 0; r < 500; ++r) rows[r] = {3 * r, 3 * r + 1, 3 * r + 2};
  EXPECT_EQ(row_overlap(testing::from_rows(1500, rows)), kUnknownRowOverlap);
}

TEST(RowOverlap, IsUnknownWhereNoRowHasTwoColumns) {
  EXPECT_EQ(row_overlap(testing::from_rows(5, {})), kUnknownRowOverlap);
  EXPECT_EQ(row_overlap(testing::from_rows(0, {{}, {}})), kUnknownRowOverlap);
  EXPECT_EQ(row_overlap(testing::from_rows(3, {{0}, {1}, {}, {2}})), kUnknownRowOverlap);
}

TEST(RowOverlap, IsAShareOnAnyMatrix) {
  for (const auto& [name, matrix] : testing::adversarial_matrices()) {
    const double overlap = row_overlap(matrix);
    EXPECT_GE(overlap, 0) << name;
    EXPECT_LE(overlap, 1) << name;
  }
}

Standing standing_in(const std::vector<Candidate>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Candidate::spec);
  return found == all.end() ? Standing::left_out : found->standing;
}

TEST(RowOverlap, DecidesWhetherSlicesMayTakeRowsInAnotherOrder) {
  MatrixFeatures features;
  features.rows = features.cols = 20000;
  features.nnz = 400000;
  features.mean_row = 20;
  features.gathered_32 = 0.9;
  const DeviceModel h200 = {4e6, 9.3e6, 760e6, 50e6, 132};
  const auto reorders = [&](std::int64_t n, double overlap) {
    features.row_overlap = overlap;
    return standing_in(candidates_of(Product(features, Shape{.n = n}, Precision::fp16, h200)),
                       "jagged_slices?order=search");
  };
  EXPECT_EQ(reorders(8, 0.3), Standing::full);
  EXPECT_EQ(reorders(8, 0.01), Standing::trial);
  EXPECT_EQ(reorders(1, 0.3), Standing::full);
  EXPECT_EQ(reorders(64, 0.3), Standing::left_out) << "the kernel has no tiles for so many columns";
  features.mean_row = 8;
  EXPECT_EQ(reorders(8, 0.3), Standing::full);
  EXPECT_EQ(reorders(1, 0.3), Standing::left_out)
      << "short rows keep their order in products with a vector";
  features.gathered_32 = 0.1;
  EXPECT_EQ(reorders(8, 0.3), Standing::left_out)
      << "neighbours share rows of B in the natural order";
}

TEST(RowOverlap, DecidesWhetherRowsMayBeReordered) {
  MatrixFeatures features;
  features.rows = features.cols = 20000;
  features.nnz = 400000;
  const DeviceModel h200 = {4e6, 9.3e6, 760e6, 50e6, 132};
  const auto reorders = [&](double overlap) {
    features.row_overlap = overlap;
    return standing_in(candidates_of(Product(features, Shape{.n = 64}, Precision::fp16, h200)),
                       "async_wcsr?order=search");
  };
  EXPECT_EQ(reorders(1), Standing::full);
  EXPECT_EQ(reorders(0.3), Standing::full);
  EXPECT_EQ(reorders(0.01), Standing::trial);
  features.mean_row = 2000;  // random rows share a tenth of their columns
  EXPECT_EQ(reorders(0.15), Standing::trial);
  features.cv_row = 1;
  EXPECT_EQ(reorders(0.01), Standing::full);
}

}  // namespace
}  // namespace spmmbench
