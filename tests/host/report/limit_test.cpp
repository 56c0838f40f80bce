// What a row on a GPU spends its time on.

#include "report/limit.hpp"

#include <gtest/gtest.h>

#include "result_rows.hpp"

namespace spmmbench {
namespace {

// 1000 rows with 10 nonzeros each at N = 128 in fp16: C has 512,000 bytes, and the bound says that
// the device copies 1000 bytes in a microsecond.
ResultRow on_gpu(double hot_us) {
  ResultRow row = row_of("k", "fp16", hot_us);
  row.device_index = 0;
  row.matrix.rows = row.matrix.cols = 1000;
  row.matrix.nnz = 10'000;
  row.compulsory_bytes = 1e6;
  row.bound_us = 1000;
  return row;
}

// Of the nonzeros of on_gpu, without padding.
FormatStats tiles_that_gather(double rows_of_b) {
  FormatStats format;
  format.bytes = 60'000;
  format.stored = 10'000;
  format.tiles = 100;
  format.extra["gathered_rows_of_b"] = rows_of_b;
  return format;
}

TEST(Limit, IsTheLargestPartOfWhatMustMove) {
  ResultRow row = on_gpu(1500);
  EXPECT_EQ(limit_of(row), "gathers") << "10,000 rows of 256 bytes, at twice the rate";
  row.format = tiles_that_gather(1000);
  EXPECT_EQ(limit_of(row), "output");
  row.format->stored = 1'000'000;
  row.format->bytes = 2'040'000;
  EXPECT_EQ(limit_of(row), "padding");
  row.format->stored = 10'000;
  EXPECT_EQ(limit_of(row), "A") << "the bytes are indices";
}

TEST(Limit, CountsASectorOfTheCacheForAShortRowOfB) {
  ResultRow row = on_gpu(300);
  row.n = 8;  // 16 bytes of B; C has 32,000
  row.format = tiles_that_gather(5000);
  EXPECT_EQ(limit_of(row), "gathers") << "160,000 bytes at twice the rate, not half of them";
}

TEST(Limit, IsNotNamedWhereBytesExplainLittle) {
  EXPECT_EQ(limit_of(on_gpu(20'000)), "");
  EXPECT_EQ(limit_of(on_gpu(2)), "launch");
}

TEST(Limit, IsOfRowsOnAGpuThatHaveATime) {
  ResultRow row = on_gpu(1500);
  row.hot.reset();
  EXPECT_EQ(limit_of(row), "");
  EXPECT_FALSE(gb_per_s(row));
  row = on_gpu(1500);
  row.device_index.reset();
  EXPECT_EQ(limit_of(row), "") << "of a CPU";
  EXPECT_DOUBLE_EQ(*gb_per_s(on_gpu(500)), 2);
}

}  // namespace
}  // namespace spmmbench
