#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "spmmbench/precision.hpp"
#include "spmmbench/random.hpp"
#include "verify/exact.hpp"

namespace spmmbench {
namespace {

TEST(Lattice, ValuesAreExactInEveryPrecisionAndNeverZero) {
  for (const int top : {1, 3, 7})
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const float value = lattice_at(5, i, i % 7, top);
      EXPECT_NE(value, 0);
      EXPECT_LE(std::abs(value), static_cast<float>(top) / 8);
      EXPECT_EQ(value * 8, std::round(value * 8));
      for (const Precision precision : kPrecisions) EXPECT_EQ(round_to(precision, value), value);
    }
}

TEST(Lattice, NoRowCanPassTwentyFourBits) {
  EXPECT_EQ(lattice_top(0), 7);
  EXPECT_EQ(lattice_top(342'392), 7);
  EXPECT_EQ(lattice_top(342'393), 6);
  EXPECT_EQ(lattice_top(1'000'000), 4);
  EXPECT_EQ(lattice_top((1 << 24) - 1), 1);
  EXPECT_EQ(lattice_top(1 << 24), std::nullopt);
  for (const std::int64_t row : {1, 1000, 400'000, 16'000'000})
    EXPECT_LT(row * *lattice_top(row) * *lattice_top(row), 1 << 24);
}

TEST(Lattice, NoRowOfSumsInFp16CanPassElevenBits) {
  for (const auto& [row, top] : {std::pair(41, 7), {42, 6}, {511, 2}, {512, 1}, {2047, 1}})
    EXPECT_EQ(lattice_top(row, ElementType::f16), top) << row;
  EXPECT_EQ(lattice_top(2048, ElementType::f16), std::nullopt);
}

// The longest sums of one sign, in fp32 and in the worst order for tensor cores: exact.
TEST(Lattice, SumsOfLongRowsAreExactInFp32) {
  constexpr std::int64_t kRow = 1'000'000;
  const int top = *lattice_top(kRow);
  float sum = 0;
  std::int64_t units = 0;
  for (std::int64_t i = 0; i < kRow; ++i) {
    const float a = std::abs(lattice_at(1, 0, i, top)), b = std::abs(lattice_at(2, i, 0, top));
    sum += a * b;
    units += std::lround(a * 8) * std::lround(b * 8);
  }
  EXPECT_EQ(static_cast<double>(sum), static_cast<double>(units) / 64);
}

TEST(Lattice, ValuesOfAFollowTheRowsOfTheOriginal) {
  const CsrMatrix a{3, 4, {0, 2, 3, 5}, {0, 3, 1, 0, 2}, {9, 9, 9, 9, 9}};
  const std::vector<std::int32_t> ids = {2, 0, 1};
  const CsrMatrix permuted{3, 4, {0, 2, 4, 5}, {0, 2, 0, 3, 1}, {9, 9, 9, 9, 9}};
  const CsrMatrix plain = with_lattice_values(a, {}, 7, 7);
  const CsrMatrix ordered = with_lattice_values(permuted, ids, 7, 7);
  EXPECT_EQ(std::vector(ordered.values.begin(), ordered.values.begin() + 2),
            std::vector(plain.values.begin() + 3, plain.values.end()));
  EXPECT_EQ(ordered.values[4], plain.values[2]);
}

TEST(Lattice, ValuesDifferFromRowToRowAndFromColumnToColumn) {
  const DenseMatrix b = with_lattice_values({8, 8, std::vector<float>(64, 1)}, 7, 7);
  const CsrMatrix a = with_lattice_values(
      {1, 8, {0, 8}, {0, 1, 2, 3, 4, 5, 6, 7}, std::vector<float>(8, 1)}, {}, 7, 7);
  std::set<float> column, row(b.values.begin(), b.values.begin() + 8);
  for (int i = 0; i < 8; ++i) column.insert(b.values[i * 8]);
  EXPECT_GT(column.size(), 2U);
  EXPECT_GT(row.size(), 2U);
  EXPECT_GT(std::set<float>(a.values.begin(), a.values.end()).size(), 2U);
}

TEST(Lattice, ZerosOfAGivenBStay) {
  const DenseMatrix b{2, 2, {1, 0, 0, -3}};
  const DenseMatrix exact = with_lattice_values(b, 7, 7);
  EXPECT_EQ(exact.values[1], 0);
  EXPECT_EQ(exact.values[2], 0);
  EXPECT_NE(exact.values[0], 0);
  EXPECT_NE(exact.values[3], 0);
}

TEST(OneProduct, AnElementOfCIsAtMostOneAndEveryRowIsReached) {
  const CsrMatrix a{3, 5, {0, 3, 5, 6}, {0, 2, 4, 1, 2, 3}, {1.5F, -3, 0.1F, 7, 1e-40F, 0}};
  const std::int64_t n = 64;
  const DenseMatrix b = with_one_product(a, n, 5).value();
  std::vector<bool> reached(a.rows);
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (std::int64_t j = 0; j < n; ++j) {
      int products = 0;
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
        const float value = b.values[a.col_idx[e] * n + j];
        EXPECT_TRUE(value == 0 || std::abs(value) == 1);
        products += value != 0 ? 1 : 0;
      }
      EXPECT_LE(products, 1);
      if (products == 1) reached[row] = true;
    }
  EXPECT_EQ(reached, std::vector<bool>(a.rows, true));
  for (std::int64_t j = 0; j < n; ++j)
    EXPECT_EQ(b.values[2 * n + j], 0) << "a column with a value that sums may flush to zero";
  EXPECT_NE(b.values, with_one_product(a, n, 6)->values);
}

TEST(OneProduct, ThereIsNoneForAnAWithOtherThanNumbers) {
  for (const float value : {INFINITY, NAN})
    EXPECT_FALSE(with_one_product({1, 1, {0, 1}, {0}, {value}}, 4, 1));
}

TEST(GivenB, ProductsAreZeroWhereNoNonzeroOfAMeetsOneOfB) {
  const CsrMatrix a{2, 3, {0, 1, 2}, {0, 2}, {1, 1}};
  DenseMatrix b{3, 2, {0, 0, 1, 1, 0, -0.0F}};
  EXPECT_TRUE(only_zero_products(a, b));
  b.values[5] = 1;
  EXPECT_FALSE(only_zero_products(a, b));
  EXPECT_TRUE(only_zero_products({2, 3, {0, 0, 0}, {}, {}}, b)) << "A without nonzeros";
}

}  // namespace
}  // namespace spmmbench
