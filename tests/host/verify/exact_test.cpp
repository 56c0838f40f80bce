#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "spmmbench/precision.hpp"
#include "spmmbench/random.hpp"
#include "verify/exact.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kLongest = (1 << 24) - 1;  // of which the exact test can be made

TEST(Lattice, ValuesAreExactInTheirPrecisionAndNeverZero) {
  for (const Precision precision : kPrecisions)
    for (const std::int64_t longest : {std::int64_t{1}, std::int64_t{300}, kLongest}) {
      const Lattice lattice = *make_lattice(5, longest, precision);
      for (std::uint64_t i = 0; i < 2000; ++i)
        for (const double value : {lattice.a(i, i % 7), lattice.b(i % 7, i)}) {
          EXPECT_NE(value, 0);
          EXPECT_LT(std::abs(value), 1);
          EXPECT_EQ(round_to(precision, value), value);
        }
    }
}

TEST(Lattice, NoRowCanPassTwentyFourBits) {
  for (const Precision precision : kPrecisions)
    for (const std::int64_t row : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{400'000},
                                   std::int64_t{8'000'000}, kLongest}) {
      const Lattice lattice = *make_lattice(1, row, precision);
      EXPECT_LT(row * lattice.wide * lattice.narrow, 1 << 24) << row;
      EXPECT_LE(lattice.narrow, lattice.wide);
      // Where every value of A is 1, sums of B alone.
      EXPECT_LT(static_cast<double>(row) / lattice.wide_unit, 1 << 25) << row;
    }
  EXPECT_FALSE(make_lattice(1, kLongest + 1, Precision::fp16));
}

TEST(Lattice, NoRowOfSumsInFp16CanPassElevenBits) {
  for (const std::int64_t row : {1, 41, 42, 511, 512, 2047}) {
    const Lattice lattice = *make_lattice(1, row, Precision::fp16, 11);
    EXPECT_LT(row * lattice.wide * lattice.narrow, 1 << 11) << row;
  }
  EXPECT_FALSE(make_lattice(1, 2048, Precision::fp16, 11));
}

TEST(Lattice, NoChunkOfOneHundredAndTwentyEightColumnsInFp8CanPassFourteenBits) {
  for (const std::int64_t row : {1, 128, 100'000}) {
    const Lattice lattice = *make_lattice(1, row, Precision::fp8_e4m3);
    EXPECT_LT(std::min<std::int64_t>(row, 128) * lattice.wide * lattice.narrow, 1 << 14) << row;
  }
}

TEST(Lattice, NoRowInFp64CanPassFiftyThreeBits) {
  for (const std::int64_t row :
       {std::int64_t{1}, std::int64_t{1024}, std::int64_t{10'000'000}, std::int64_t{1} << 40}) {
    const Lattice lattice = *make_lattice(1, row, Precision::fp64, 53);
    EXPECT_LT(row * lattice.wide * lattice.narrow, std::int64_t{1} << 53) << row;
    EXPECT_LE(lattice.narrow, lattice.wide);
  }
  EXPECT_EQ(make_lattice(1, 1024, Precision::fp64, 53)->wide, (std::int64_t{1} << 42) - 1);
  EXPECT_FALSE(make_lattice(1, std::int64_t{1} << 53, Precision::fp64, 53));
}

// The longest sums of one sign.
TEST(Lattice, SumsInFp64AreExactAndThoseOfOperandsInFp32AreNot) {
  for (const std::int64_t row : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{1'000'000}}) {
    const Lattice lattice = *make_lattice(1, row, Precision::fp64, 53);
    double sum = 0, narrowed = 0;
    __int128 exact = 0;  // in units
    for (std::int64_t i = 0; i < row; ++i) {
      const double a = std::abs(lattice.a(0, i)), b = std::abs(lattice.b(i, 0));
      sum += a * b;
      narrowed += static_cast<double>(static_cast<float>(a)) * static_cast<float>(b);
      exact += static_cast<__int128>(a * b / (lattice.wide_unit * lattice.narrow_unit));
    }
    EXPECT_EQ(sum / (lattice.wide_unit * lattice.narrow_unit), static_cast<double>(exact));
    EXPECT_LT(exact, __int128{1} << 53);
    EXPECT_NE(narrowed, sum);
  }
}

TEST(Lattice, OperandsWithValuesInFp64GetThemInFp64) {
  const Lattice lattice = *make_lattice(1, 2, Precision::fp64, 53);
  const CsrMatrix a =
      with_lattice_values(CsrMatrix{1, 2, {0, 2}, {0, 1}, {1, 1}, {1, 1}}, {}, lattice);
  ASSERT_EQ(a.values64.size(), 2U);
  EXPECT_EQ(a.value(1), lattice.a(0, 1));
  const DenseMatrix b = with_lattice_values(DenseMatrix{2, 1, {1, 0}, {1, 0}}, lattice);
  EXPECT_EQ(b.values64, (std::vector<double>{lattice.b(0, 0), 0}));
}

TEST(Lattice, ValuesFillTheSignificandOfTheirPrecisionInRowsOfUpToAThousand) {
  for (const std::int64_t row : {10, 1000}) {
    EXPECT_GT(make_lattice(1, row, Precision::fp32)->wide, 1 << 12) << "more than tf32 holds";
    EXPECT_EQ(make_lattice(1, row, Precision::fp16)->wide, (1 << 11) - 1);
    EXPECT_EQ(make_lattice(1, row, Precision::bf16)->wide, (1 << 8) - 1);
  }
}

TEST(Lattice, WhoRoundsOneOperandToFewerBitsHasOtherValues) {
  const Lattice lattice = *make_lattice(1, 300, Precision::fp32);
  int a = 0, b = 0;
  for (std::uint64_t k = 0; k < 100; ++k) {
    a += round_to(Precision::tf32, lattice.a(3, k)) != lattice.a(3, k) ? 1 : 0;
    b += round_to(Precision::tf32, lattice.b(k, 3)) != lattice.b(k, 3) ? 1 : 0;
  }
  EXPECT_GT(a, 10);
  EXPECT_GT(b, 10);
}

// The longest sums of one sign, in fp32 and in the worst order for tensor cores: exact.
TEST(Lattice, SumsOfLongRowsAreExactInFp32) {
  for (const std::int64_t row : {1000, 1'000'000}) {
    const Lattice lattice = *make_lattice(1, row, Precision::fp32);
    float sum = 0;
    double exact = 0;
    for (std::int64_t i = 0; i < row; ++i) {
      const auto a = static_cast<float>(std::abs(lattice.a(0, i)));
      const auto b = static_cast<float>(std::abs(lattice.b(i, 0)));
      sum += a * b;
      exact += static_cast<double>(a) * b;
    }
    EXPECT_EQ(sum, exact);
  }
}

constexpr Lattice kLattice = {7, 63, 7, 1.0F / 64, 1.0F / 8};

TEST(Lattice, ValuesOfAFollowTheRowsOfTheOriginal) {
  const CsrMatrix a{3, 4, {0, 2, 3, 5}, {0, 3, 1, 0, 2}, {9, 9, 9, 9, 9}};
  const std::vector<std::int32_t> ids = {2, 0, 1};
  const CsrMatrix permuted{3, 4, {0, 2, 4, 5}, {0, 2, 0, 3, 1}, {9, 9, 9, 9, 9}};
  const CsrMatrix plain = with_lattice_values(a, {}, kLattice);
  const CsrMatrix ordered = with_lattice_values(permuted, ids, kLattice);
  EXPECT_EQ(std::vector(ordered.values.begin(), ordered.values.begin() + 2),
            std::vector(plain.values.begin() + 3, plain.values.end()));
  EXPECT_EQ(ordered.values[4], plain.values[2]);
}

TEST(Lattice, ValuesDifferFromRowToRowAndFromColumnToColumn) {
  const DenseMatrix b = with_lattice_values({8, 8, std::vector<float>(64, 1)}, kLattice);
  const CsrMatrix a = with_lattice_values(
      {1, 8, {0, 8}, {0, 1, 2, 3, 4, 5, 6, 7}, std::vector<float>(8, 1)}, {}, kLattice);
  std::set<float> column, row(b.values.begin(), b.values.begin() + 8);
  for (int i = 0; i < 8; ++i) column.insert(b.values[i * 8]);
  EXPECT_GT(column.size(), 2U);
  EXPECT_GT(row.size(), 2U);
  EXPECT_GT(std::set<float>(a.values.begin(), a.values.end()).size(), 2U);
}

TEST(Lattice, ZerosOfAGivenBStay) {
  const DenseMatrix b{2, 2, {1, 0, 0, -3}};
  const DenseMatrix exact = with_lattice_values(b, kLattice);
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
