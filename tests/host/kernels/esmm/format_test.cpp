// Operand patterns and the statistics made from them, against direct definitions.

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "esmm/format.hpp"
#include "matrices.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::esmm {
namespace {

DenseMatrix random_dense(std::int64_t rows, std::int64_t cols, double density, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> draw(0, 1);
  DenseMatrix d{rows, cols, std::vector<float>(static_cast<std::size_t>(rows * cols))};
  for (float& x : d.values) x = draw(engine) < density ? 1.5F : -0.0F;
  return d;
}

CsrMatrix to_csr(const DenseMatrix& d, bool keep_zeros) {
  CsrMatrix a;
  a.rows = d.rows;
  a.cols = d.cols;
  for (std::int64_t i = 0; i < d.rows; ++i) {
    for (std::int64_t j = 0; j < d.cols; ++j) {
      const float x = d.values[static_cast<std::size_t>(i * d.cols + j)];
      if (x == 0 && !keep_zeros) continue;
      a.col_idx.push_back(static_cast<std::int32_t>(j));
      a.values.push_back(x);
    }
    a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
  }
  return a;
}

OperandPattern empty_pattern(std::int64_t outer, std::int64_t length) {
  OperandPattern p = OperandPattern::of_shape(outer, length);
  p.bits.assign(static_cast<std::size_t>(p.strips * p.words), 0);
  return p;
}

void set(OperandPattern& p, std::int64_t strip, std::int64_t k) {
  p.bits[static_cast<std::size_t>(strip * p.words + k / 32)] |= std::uint32_t{1} << (k % 32);
}

OperandPattern pattern_of_rows(const CsrMatrix& a) {
  OperandPattern p = empty_pattern(a.rows, a.cols);
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i)
      if (a.values[i] != 0) set(p, row / OperandPattern::kStrip, a.col_idx[i]);
  return p;
}

OperandPattern pattern_of_columns(const DenseMatrix& b) {
  OperandPattern p = empty_pattern(b.cols, b.rows);
  for (std::int64_t k = 0; k < b.rows; ++k)
    for (std::int64_t j = 0; j < b.cols; ++j)
      if (b.values[k * b.cols + j] != 0) set(p, j / OperandPattern::kStrip, k);
  return p;
}

float at(const DenseMatrix& d, std::int64_t i, std::int64_t j) {
  return i < d.rows && j < d.cols ? d.values[static_cast<std::size_t>(i * d.cols + j)] : 0;
}

// Straight from the definition: a unit is needed when one of its k has a nonzero of A and of B.
double needed_by_definition(const DenseMatrix& a, const DenseMatrix& b, int group_a, int group_b,
                            int step) {
  std::int64_t needed = 0;
  std::int64_t units = 0;
  for (std::int64_t i = 0; i < a.rows; i += 32 * group_a) {
    for (std::int64_t j = 0; j < b.cols; j += 32 * group_b) {
      for (std::int64_t k = 0; k < a.cols; k += step) {
        bool any = false;
        for (std::int64_t kk = k; kk < k + step; ++kk) {
          bool in_a = false;
          bool in_b = false;
          for (int r = 0; r < 32 * group_a; ++r) in_a |= at(a, i + r, kk) != 0;
          for (int c = 0; c < 32 * group_b; ++c) in_b |= at(b, kk, j + c) != 0;
          any |= in_a && in_b;
        }
        ++units;
        needed += any ? 1 : 0;
      }
    }
  }
  return static_cast<double>(needed) / static_cast<double>(units);
}

TEST(OperandPattern, NeededFractionFollowsItsDefinition) {
  for (const double density : {0.0, 0.002, 0.02, 1.0}) {
    const DenseMatrix a = random_dense(150, 203, density, 1);
    const DenseMatrix b = random_dense(203, 170, density, 2);
    const OperandPattern of_a = pattern_of_rows(to_csr(a, false));
    const OperandPattern of_b = pattern_of_columns(b);
    for (const auto& [group_a, group_b] : {std::pair{1, 1}, {2, 4}, {4, 4}, {3, 1}}) {
      for (const int step : {1, 8}) {
        EXPECT_NEAR(needed_fraction(of_a, of_b, group_a, group_b, step),
                    needed_by_definition(a, b, group_a, group_b, step), 1e-12);
      }
    }
  }
}

TEST(OperandPattern, FormatCountsTheLinesThatSurvive) {
  CsrMatrix a{64, 20, {0}, {}, {}};
  for (int row = 0; row < 64; ++row) {
    if (row == 3 || row == 40) {
      a.col_idx.insert(a.col_idx.end(), {1, 9});
      a.values.insert(a.values.end(), {1.0F, row == 3 ? -0.0F : 2.0F});
    }
    a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
  }
  const FormatStats s = Registry<Format>::instance().at("esmm_pattern").analyze(a, {});
  EXPECT_EQ(s.stored, 3 * 32);  // column 1 of both strips, column 9 of the second
  EXPECT_EQ(s.tiles, 3);
  EXPECT_EQ(s.windows, 2);
  EXPECT_DOUBLE_EQ(s.extra.at("set_bit_fraction"), 3.0 / 40);
  EXPECT_DOUBLE_EQ(s.extra.at("nonzero_tile_fraction"), 3.0 / 6);
}

TEST(EsmmPattern, ItsStatisticsNeedNoBits) {
  for (auto& [name, matrix] : testing::adversarial_matrices()) {
    for (std::size_t i = 0; i < matrix.values.size(); i += 3) matrix.values[i] = 0;
    const FormatStats whole = pattern_of_rows(matrix).stats(matrix.nnz());
    const FormatStats counted = OperandPattern::stats_of_rows(matrix);
    EXPECT_EQ(counted.bytes, whole.bytes) << name;
    EXPECT_EQ(counted.index_bytes, whole.index_bytes) << name;
    EXPECT_EQ(counted.tiles, whole.tiles) << name;
    EXPECT_EQ(counted.windows, whole.windows) << name;
    EXPECT_EQ(counted.extra, whole.extra) << name;
  }
}

}  // namespace
}  // namespace spmmbench::esmm
