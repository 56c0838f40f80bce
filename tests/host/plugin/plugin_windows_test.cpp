#include "spmmbench/plugin_windows.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace spmmbench::plugin {
namespace {

// 5 x 9, its second window of two rows without a nonzero, its columns in no order.
struct Matrix {
  std::vector<std::int32_t> row_ptr{0, 3, 5, 5, 5, 6}, col_idx{7, 1, 4, 4, 0, 8};
  spmmbench_csr csr() const {
    spmmbench_csr a = {};
    a.size = sizeof a;
    a.rows = 5;
    a.cols = 9;
    a.nnz = 6;
    a.row_ptr = row_ptr.data();
    a.col_idx = col_idx.data();
    a.memory = SPMMBENCH_HOST;
    a.row_ptr_type = a.col_idx_type = SPMMBENCH_I32;
    return a;
  }
};

TEST(PluginWindows, AWindowHasEachOfItsColumnsOnceAndEveryNonzeroItsPlace) {
  const Matrix matrix;
  const Windows windows = windows_of(matrix.csr(), 2);
  EXPECT_EQ(windows.count(), 3);
  EXPECT_EQ(windows.begin, (std::vector<std::int64_t>{0, 4, 4, 5}));
  EXPECT_EQ(windows.columns, (std::vector<std::int32_t>{0, 1, 4, 7, 8}));
  EXPECT_EQ(windows.place, (std::vector<std::int32_t>{3, 1, 2, 2, 0, 0}));
}

TEST(PluginWindows, ColumnsAreFilledUpToAMultipleByTheLast) {
  const Matrix matrix;
  const Windows windows = windows_of(matrix.csr(), 2, 3);
  EXPECT_EQ(windows.begin, (std::vector<std::int64_t>{0, 6, 6, 9}));
  EXPECT_EQ(windows.columns, (std::vector<std::int32_t>{0, 1, 4, 7, 7, 7, 8, 8, 8}));
}

TEST(PluginWindows, WhatCannotBeReadIsRefused) {
  const Matrix matrix;
  spmmbench_csr a = matrix.csr();
  EXPECT_THROW(windows_of(a, 0), std::invalid_argument);
  EXPECT_THROW(windows_of(a, 16, 0), std::invalid_argument);
  a.col_idx_type = SPMMBENCH_I64;
  EXPECT_THROW(windows_of(a, 16), std::invalid_argument);
}

}  // namespace
}  // namespace spmmbench::plugin
