#include "rsh/format.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <bit>

#include "matrices.hpp"

namespace spmmbench::rsh {
namespace {

std::vector<Options> variants() {
  std::vector<Options> out;
  for (const char* window : {"8", "16", "32"})
    for (const char* rule : {"printed", "overlap"})
      for (const char* members : {"collected", "consecutive"})
        for (const char* tau : {"0", "2", "32"})
          out.push_back(Options({{"window", window},
                                 {"rule", rule},
                                 {"members", members},
                                 {"tau_nnz", tau},
                                 {"tau_delta", "3"}}));
  out.emplace_back();
  return out;
}

std::string describe(const Options& options) { return Spec{"rs_tile", options}.to_string(); }

TEST(RsTile, UnpackGivesBackTheMatrix) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const Options& options : variants())
      EXPECT_TRUE(RsTile::build(matrix, options).unpack() == matrix)
          << name << " " << describe(options);
}

TEST(RsTile, FarMoreColumnsThanNonzerosAreNoDifference) {
  CsrMatrix matrix = testing::random_matrix(600, 900, 12, 1, 13);
  const RsTile compact = RsTile::build(matrix);
  matrix.cols = std::int64_t{1} << 30;
  for (std::int32_t& column : matrix.col_idx) column *= 1 << 20;
  const RsTile spread = RsTile::build(matrix);
  EXPECT_EQ(spread.windows, compact.windows);
  EXPECT_EQ(spread.bitmap, compact.bitmap);
  EXPECT_TRUE(spread.unpack() == matrix);
}

TEST(RsTile, EveryNonemptyRowHasExactlyOnePlace) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const Options& options : variants()) {
      const RsTile tile = RsTile::build(matrix, options);
      std::vector<int> places(matrix.rows, 0);
      for (std::int64_t w = 0; w < tile.window_count(); ++w) {
        const std::vector<std::int32_t> rows = tile.rows_of(w);
        ASSERT_FALSE(rows.empty()) << name << " " << describe(options);
        EXPECT_LE(static_cast<int>(rows.size()), tile.window_rows);
        EXPECT_LT(rows.back() - rows.front(), 64);
        for (const std::int32_t row : rows) ++places[row];
      }
      for (const std::int32_t row : tile.residual_row) ++places[row];
      for (std::int64_t row = 0; row < matrix.rows; ++row)
        if (matrix.row_length(row) > 0)
          ASSERT_EQ(places[row], 1) << name << " row " << row << " " << describe(options);
        else ASSERT_LE(places[row], 1) << name << " row " << row << " " << describe(options);
    }
}

TEST(RsTile, ResidualRowsStandByLengthAndWithinTheThreshold) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const Options& options : variants()) {
      const RsTile tile = RsTile::build(matrix, options);
      for (int length = 0; length <= RsTile::kMaxResidualLength; ++length)
        for (std::int32_t i = tile.residual_offset[length]; i < tile.residual_offset[length + 1];
             ++i)
          EXPECT_EQ(matrix.row_length(tile.residual_row[i]), length) << name;
      if (options.get("tau_nnz", "") == "0") {
        EXPECT_TRUE(tile.residual_value.empty()) << name;
      }
    }
}

TEST(RsTile, BitsCountTheValuesAndColumnsAreInRange) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const Options& options : variants()) {
      const RsTile tile = RsTile::build(matrix, options);
      std::int64_t bits = 0;
      for (const std::uint64_t word : tile.bitmap) bits += std::popcount(word);
      EXPECT_EQ(bits, static_cast<std::int64_t>(tile.values.size())) << name;
      for (const std::int32_t col : tile.col_id) {
        EXPECT_GE(col, 0) << name;
        EXPECT_LT(col, matrix.cols) << name;
      }
    }
}

TEST(RsTile, TheThreadCountDoesNotChangeIt) {
  const CsrMatrix matrix = testing::random_matrix(150000, 40000, 3, 2, 11);
  const int threads = omp_get_max_threads();
  for (const Options& options : variants()) {
    omp_set_num_threads(1);
    const RsTile one = RsTile::build(matrix, options);
    omp_set_num_threads(5);
    const RsTile five = RsTile::build(matrix, options);
    omp_set_num_threads(threads);
    EXPECT_EQ(one.windows, five.windows) << describe(options);
    EXPECT_EQ(one.col_id, five.col_id) << describe(options);
    EXPECT_EQ(one.row_bits, five.row_bits) << describe(options);
    EXPECT_EQ(one.values, five.values) << describe(options);
    EXPECT_EQ(one.residual_row, five.residual_row) << describe(options);
  }
}

TEST(RsTile, TheRulesDisagreeOnAShortRowBesideALongOneThatCoversIt) {
  // Row 0 brings no new column: low impact, and strong overlap.
  const CsrMatrix matrix = testing::from_rows(8, {{1, 2}, {0, 1, 2, 3, 4, 5, 6, 7}});
  const auto residual_rows = [&](const char* rule) {
    const RsTile tile =
        RsTile::build(matrix, Options({{"rule", rule}, {"tau_nnz", "2"}, {"tau_delta", "0"}}));
    return tile.residual_row.size();
  };
  EXPECT_EQ(residual_rows("printed"), 1U);
  EXPECT_EQ(residual_rows("overlap"), 0U);
}

}  // namespace
}  // namespace spmmbench::rsh
