#include "select/used_columns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "matrices.hpp"
#include "select/product.hpp"

namespace spmmbench {
namespace {

using List = std::vector<std::int32_t>;

// Each row has `length` columns that `draw` makes.
template <class Draw>
CsrMatrix drawn(std::int64_t count, std::int64_t cols, int length, Draw draw) {
  std::mt19937 random(7);
  std::vector<List> rows(count);
  for (List& row : rows) {
    for (int i = 0; i < length; ++i) row.push_back(static_cast<std::int32_t>(draw(random)));
    std::ranges::sort(row);
    row.erase(std::ranges::unique(row).begin(), row.end());
  }
  return testing::from_rows(cols, rows);
}

double used(const CsrMatrix& a) { return features_of(a).used_cols; }

TEST(UsedColumns, AreFoundWhereTheyAreFew) {
  // 500 columns, 1,024 apart. The sample leaves a few percent of the nonzeros open.
  const CsrMatrix few = drawn(30'000, 512'000, 30, [](auto& r) { return r() % 500 * 1024; });
  EXPECT_GE(used(few), 490);
  EXPECT_LE(used(few), 30'000);
  const CsrMatrix same = drawn(3000, 100'000, 64, [](auto& r) { return r() % 100 * 7; });
  EXPECT_NEAR(used(same), 100, 3);
}

TEST(UsedColumns, AreAllWhereTheSampleDoesNotTell) {
  const auto all_count = [](const CsrMatrix& a) {
    EXPECT_EQ(used(a), static_cast<double>(a.cols));
  };
  all_count(drawn(5000, 20'000, 20, [](auto& r) { return r() % 20'000; }));
  // Long rows that are alike.
  all_count(testing::from_rows(3000, std::vector<List>(100, [] {
                                 List row(3000);
                                 for (int i = 0; i < 3000; ++i) row[i] = i;
                                 return row;
                               }())));
  // Half of the nonzeros lie in ten columns, the others anywhere.
  all_count(
      drawn(20'000, 100'000, 20, [](auto& r) { return r() % 2 == 0 ? r() % 10 : r() % 100'000; }));
  // Most columns are used, and the sizes tell as much.
  all_count(drawn(3000, 120, 40, [](auto& r) { return r() % 100; }));
}

TEST(UsedColumns, AreAtMostAsManyAsNonzeros) {
  const CsrMatrix row = drawn(1, 50'000, 4000, [](auto& r) { return r() % 50'000; });
  EXPECT_NEAR(used(row), static_cast<double>(row.nnz()), 100);
}

TEST(UsedColumns, DecideHowMuchOfBIsRead) {
  MatrixFeatures f;
  f.rows = 30'000;
  f.cols = 512'000;
  f.nnz = 900'000;
  const auto b_us = [&](double used_cols) {
    f.used_cols = used_cols;
    return amounts::b(Product(f, Shape{.n = 128}, Precision::fp16, device_model({}, {})));
  };
  EXPECT_DOUBLE_EQ(b_us(0), b_us(f.cols)) << "not looked for";
  EXPECT_NEAR(b_us(512) / b_us(f.cols), 1e-3, 1e-6);
}

TEST(UsedColumns, AreNoneOfAnEmptySample) { EXPECT_EQ(used_columns::estimate({}, 10, 100), 100); }

}  // namespace
}  // namespace spmmbench
