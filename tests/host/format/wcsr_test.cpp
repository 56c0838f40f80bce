#include "format/wcsr.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>

#include "format/wcsr_estimate.hpp"
#include "matrices.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

std::vector<WcsrShape> shapes(ElementType type) {
  return {{8, 16, type}, {16, 16, type}, {32, 16, type}, {64, 64, type}};
}

Permutation order_of(const CsrMatrix& matrix, const std::string& name) {
  StageTimer stages;
  return make_row_orders(matrix, {"none", {}})->get(name, stages);
}

TEST(Wcsr, UnpackGivesBackTheMatrix) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const Precision precision : {Precision::tf32, Precision::fp16, Precision::bf16})
      for (const WcsrShape& shape : shapes(storage_type(precision))) {
        const CsrMatrix a = testing::rounded(matrix, precision);
        for (const char* order : {"natural", "degree", "random"})
          EXPECT_TRUE(Wcsr::build(a, shape, order_of(a, order)).unpack() == a)
              << name << " window " << shape.window_rows << " " << to_string(precision) << " "
              << order;
      }
}

TEST(Wcsr, WindowsOfTheRowsThatAreNotEmptyGiveBackTheMatrix) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const WcsrShape& shape : shapes(ElementType::f32))
      for (const char* order : {"natural", "degree", "random"}) {
        const auto nonempty = leave_out_empty_rows(matrix, order_of(matrix, order));
        if (!nonempty) continue;
        const Wcsr wcsr = Wcsr::build(matrix, shape, nonempty->row_order);
        EXPECT_TRUE(wcsr.unpack() == matrix) << name << " " << order;
        Permutation all = nonempty->row_order;
        EXPECT_EQ(wcsr.windows(), (std::ssize(all) + shape.window_rows - 1) / shape.window_rows);
        all.insert(all.end(), nonempty->empty.begin(), nonempty->empty.end());
        EXPECT_NO_THROW(validate_permutation(all, matrix.rows)) << name << " " << order;
      }
}

TEST(Wcsr, EmptyRowsAreLeftOutWhereTheyAreAtLeastAnEighth) {
  const CsrMatrix many = testing::from_rows(9, {{}, {1}, {2}, {}, {0, 3}, {4}, {}});
  const auto natural = leave_out_empty_rows(many, {});
  ASSERT_TRUE(natural);
  EXPECT_EQ(natural->row_order, (Permutation{1, 2, 4, 5}));
  EXPECT_EQ(natural->empty, (std::vector<std::int32_t>{0, 3, 6}));
  EXPECT_EQ(leave_out_empty_rows(many, {6, 5, 4, 3, 2, 1, 0})->row_order,
            (Permutation{5, 4, 2, 1}));
  std::vector<std::vector<std::int32_t>> rows(8, {0});
  rows[3] = {};
  EXPECT_TRUE(leave_out_empty_rows(testing::from_rows(9, rows), {}));
  rows.push_back({1});
  EXPECT_FALSE(leave_out_empty_rows(testing::from_rows(9, rows), {}));
  EXPECT_FALSE(leave_out_empty_rows(testing::from_rows(9, {{}, {}}), {}));
}

TEST(Wcsr, ExplicitZerosStayEntries) {
  CsrMatrix a = testing::from_rows(40, {{0, 3, 17}, {}, {3, 39}});
  a.values = {0.0F, 1.0F, -0.0F, 2.0F, 0.0F};
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16})
    for (const WcsrShape& shape : shapes(type)) EXPECT_TRUE(Wcsr::build(a, shape).unpack() == a);
}

TEST(Wcsr, WindowsPackDistinctColumnsAscendingAndPadTheirLastTile) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const WcsrShape& shape : shapes(ElementType::f32)) {
      const Wcsr wcsr = Wcsr::build(matrix, shape);
      const int width = shape.tile_columns;
      ASSERT_EQ(wcsr.windows(), (matrix.rows + shape.window_rows - 1) / shape.window_rows);
      for (std::int64_t w = 0; w < wcsr.windows(); ++w) {
        const auto first = wcsr.col_idx.begin() + std::int64_t{wcsr.window_ptr[w]} * width;
        const auto last = wcsr.col_idx.begin() + std::int64_t{wcsr.window_ptr[w + 1]} * width;
        const auto padding = std::find(first, last, Wcsr::kPadding);
        EXPECT_GE(last - first, width) << name;
        EXPECT_LT(last - padding, padding == first ? width + 1 : width) << name;
        EXPECT_EQ(std::count(padding, last, Wcsr::kPadding), last - padding) << name;
        EXPECT_TRUE(std::is_sorted(first, padding, std::less_equal<>())) << name;
      }
    }
}

TEST(Wcsr, AnExactMultipleOfTheTileHasNoPadding) {
  std::vector<std::int32_t> row(48);
  for (int i = 0; i < 48; ++i) row[i] = 2 * i;
  const Wcsr wcsr = Wcsr::build(testing::from_rows(100, {row}), {});
  EXPECT_EQ(wcsr.window_ptr, (std::vector<std::int32_t>{0, 3}));
  EXPECT_EQ(std::count(wcsr.col_idx.begin(), wcsr.col_idx.end(), Wcsr::kPadding), 0);
  EXPECT_EQ(wcsr.values32.size(), 3U * 8 * 16);
}

TEST(Wcsr, ColumnsBeyond2To24AreKept) {
  const std::int32_t far = (1 << 30) + 1;
  CsrMatrix a = testing::from_rows(std::int64_t{far} + 1, {{5, 1 << 24, (1 << 24) + 1, far}});
  const Wcsr wcsr = Wcsr::build(a, {});
  EXPECT_EQ(wcsr.col_idx[3], far);
  EXPECT_TRUE(wcsr.unpack() == a);
}

TEST(Wcsr, BuildIsTheSameForEveryThreadCount) {
  const CsrMatrix matrix = testing::random_matrix(3001, 2000, 60, 3, 5);
  const int threads = omp_get_max_threads();
  for (const WcsrShape& shape : shapes(ElementType::f32)) {
    omp_set_num_threads(1);
    const Wcsr serial = Wcsr::build(matrix, shape);
    omp_set_num_threads(7);
    EXPECT_TRUE(Wcsr::build(matrix, shape) == serial);
    omp_set_num_threads(threads);
  }
}

TEST(Wcsr, StatsCountWhatTheKernelReads) {
  const CsrMatrix a = testing::from_rows(64, {{0, 1}, {0, 40}, {}, {}, {}, {}, {}, {}, {7}});
  const FormatStats stats = Wcsr::build(a, {8, 16, ElementType::f32}).stats();
  EXPECT_EQ(stats.windows, 2);
  EXPECT_EQ(stats.tiles, 2);
  EXPECT_EQ(stats.stored, 2 * 8 * 16);
  EXPECT_EQ(stats.index_bytes, 4 * (3 + 32));
  EXPECT_EQ(stats.bytes, stats.index_bytes + 4 * stats.stored);
  EXPECT_DOUBLE_EQ(stats.fill, 5.0 / 256);
  EXPECT_EQ(stats.extra.at("gathered_rows_of_b"), 4);
}

TEST(Wcsr, TheEstimateOfAUniformMatrixIsWhatTheBuildGives) {
  const CsrMatrix matrix = testing::random_matrix(20000, 3000, 40, 1, 9);
  for (const char* order : {"natural", "degree"}) {
    const Permutation rows = order_of(matrix, order);
    const WcsrEstimate estimate = estimate_wcsr(matrix, rows);
    for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
      const Wcsr wcsr = Wcsr::build(matrix, {kWcsrHeights[h], 16, ElementType::f32}, rows);
      const double gathered = wcsr.stats().extra.at("gathered_rows_of_b");
      EXPECT_NEAR(estimate.gathered_share[h], gathered / static_cast<double>(matrix.nnz()), 0.05);
      EXPECT_NEAR(estimate.stored_share[h],
                  static_cast<double>(wcsr.tiles() * 16) / static_cast<double>(matrix.nnz()), 0.05);
    }
  }
}

// Groups of many nonzeros are judged by some of their columns.
TEST(Wcsr, TheEstimateOfLongRowsIsCloseToWhatTheBuildGives) {
  const CsrMatrix matrix = testing::random_matrix(200, 20000, 4000, 0, 9);
  const WcsrEstimate estimate = estimate_wcsr(matrix, {});
  for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
    const Wcsr wcsr = Wcsr::build(matrix, {kWcsrHeights[h], 16, ElementType::f32});
    const double gathered = wcsr.stats().extra.at("gathered_rows_of_b");
    EXPECT_NEAR(estimate.gathered_share[h], gathered / static_cast<double>(matrix.nnz()), 0.03);
  }
}

// Cliques lie in a narrow range of the columns, so ranges of all columns would miss them.
TEST(Wcsr, TheEstimateOfFullBlocksIsTheirShare) {
  std::vector<std::vector<std::int32_t>> rows(640);
  for (std::int32_t row = 0; row < 640; ++row)
    for (std::int32_t i = 0; i < 64; ++i) rows[row].push_back(row / 64 * 1000 + i);
  const WcsrEstimate estimate = estimate_wcsr(testing::from_rows(10'000, rows), {});
  for (std::size_t h = 0; h < kWcsrHeights.size(); ++h)
    EXPECT_NEAR(estimate.gathered_share[h], 1.0 / kWcsrHeights[h], 0.01);
}

// Groups of 2048 nonzeros and more are judged by a range of their columns.
void expect_close_to_build(const CsrMatrix& matrix, const Permutation& order, double margin) {
  const WcsrEstimate estimate = estimate_wcsr(matrix, order);
  for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
    const Wcsr wcsr = Wcsr::build(matrix, {kWcsrHeights[h], 16, ElementType::f32}, order);
    const double gathered = wcsr.stats().extra.at("gathered_rows_of_b");
    const double share = gathered / static_cast<double>(matrix.nnz());
    EXPECT_NEAR(estimate.gathered_share[h] / share, 1, margin) << kWcsrHeights[h] << " rows";
  }
}

TEST(Wcsr, TheEstimateOfLongBlocksLooksWhereTheyAre) {
  std::vector<std::vector<std::int32_t>> rows(640);
  for (std::int32_t row = 0; row < 640; ++row)
    for (std::int32_t i = 0; i < 128; ++i) rows[row].push_back(row / 64 * 192 + i);
  expect_close_to_build(testing::from_rows(2048, rows), {}, 0.01);
}

TEST(Wcsr, TheEstimateOfASlidingWindowCountsItsEnds) {
  std::vector<std::vector<std::int32_t>> rows(2048);
  for (std::int32_t row = 0; row < 2048; ++row)
    for (std::int32_t i = 0; i < 300; ++i) rows[row].push_back(3 * row + i);
  expect_close_to_build(testing::from_rows(7000, rows), {}, 0.1);
}

// Half of every row is shared with all rows, the other half with none.
TEST(Wcsr, TheEstimateOfUnevenColumnsWeighsTheirRanges) {
  constexpr std::int32_t kShared = 100;
  std::vector<std::vector<std::int32_t>> rows(1024);
  for (std::int32_t row = 0; row < 1024; ++row)
    for (std::int32_t i = 0; i < 2 * kShared; ++i)
      rows[row].push_back(i < kShared ? i : kShared + (i - kShared) * 1024 + row);
  const CsrMatrix matrix = testing::from_rows(kShared * 1025, rows);
  expect_close_to_build(matrix, {}, 0.15);
  Permutation every_third;
  for (std::int32_t row = 0; row < 1024; ++row) every_third.push_back(row * 3 % 1024);
  expect_close_to_build(matrix, every_third, 0.15);
}

TEST(Wcsr, ARowIsSampledAsOftenAsItHasNonzeros) {
  std::vector<std::vector<std::int32_t>> rows(100);
  for (std::int32_t i = 0; i < 48; ++i) rows[20].push_back(i);
  for (std::int32_t i = 0; i < 16; ++i) rows[80].push_back(i);
  const std::vector<std::int64_t> sampled = rows_at_nonzeros(testing::from_rows(48, rows));
  ASSERT_EQ(sampled.size(), 64U);
  EXPECT_EQ(std::count(sampled.begin(), sampled.end(), 20), 48);
  EXPECT_EQ(std::count(sampled.begin(), sampled.end(), 80), 16);
  EXPECT_TRUE(rows_at_nonzeros(testing::from_rows(9, {{}, {}})).empty());
}

TEST(Wcsr, WhatIsExpectedByLengthIsWhatRowsByLengthGatherInAGraphWithHubs) {
  const CsrMatrix matrix = testing::hub_graph(1500);
  const WcsrEstimate expected = expect_by_length(matrix);
  for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
    const Wcsr wcsr =
        Wcsr::build(matrix, {kWcsrHeights[h], 16, ElementType::f32}, order_of(matrix, "degree"));
    const double gathered = wcsr.stats().extra.at("gathered_rows_of_b");
    EXPECT_NEAR(expected.gathered_share[h], gathered / static_cast<double>(matrix.nnz()), 0.08);
    EXPECT_NEAR(expected.stored_share[h],
                static_cast<double>(wcsr.tiles() * 16) / static_cast<double>(matrix.nnz()), 0.08);
  }
}

TEST(Wcsr, TheEstimateOfAnEmptyMatrixIsZero) {
  EXPECT_EQ(estimate_wcsr(testing::from_rows(9, {{}, {}}), {}).gathered_share[0], 0);
  EXPECT_EQ(row_length_variation(testing::from_rows(9, {{}, {}})), 0);
}

TEST(Wcsr, TheVariationOfRowLengthsIsOverTheirMean) {
  EXPECT_EQ(row_length_variation(testing::from_rows(9, {{1, 2}, {3, 4}})), 0);
  EXPECT_DOUBLE_EQ(row_length_variation(testing::from_rows(9, {{}, {3, 4}})), 1);
}

}  // namespace
}  // namespace spmmbench
