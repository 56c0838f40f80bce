#pragma once
// RS-Tile (RSH-SpMM, arXiv 2603.08734, section 3.2): row windows of bitmap-compressed 8 x 8 blocks
// for tensor cores, and short rows set apart for CUDA cores.
//
// TC part. A window holds up to `window_rows` rows (8, 16 or 32). Its distinct columns, ascending,
// are cut in groups of 8; a group is `window_rows / 8` blocks stacked, so that a taller window
// fetches each row of B for more rows of A:
//
//        8 columns of the window          bit = row * 8 + column of an 8 x 8 block
//      +---------+---------+----
//      | block 0 | block h |      rows 0..7 of the window       h = window_rows / 8
//      | block 1 | ...     |      rows 8..15                    bitmap[group * h + i]
//      +---------+---------+----
//      group 0     group 1
//
// Residual part. Rows of equal length stand together in ascending length, so no row pointer is
// needed; length 0 are the empty rows, which have no entries but whose rows of C must be written.

#include <array>
#include <cstdint>
#include <vector>

#include "spmmbench/format.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {

struct RsTile {
  static constexpr int kBlockRows = 8;
  static constexpr int kGroupColumns = 8;
  static constexpr int kMaxResidualLength = 32;

  std::int64_t rows = 0;
  std::int64_t cols = 0;
  int window_rows = kBlockRows;

  // Window w's place i holds row window_row[w] + row_delta[w * window_rows + i], ascending. Unused
  // places at its end repeat the last delta and have no bits set. A row has at most one place.
  std::vector<std::int32_t> window_row;     // nw
  std::vector<std::uint8_t> row_delta;      // nw * window_rows
  std::vector<std::int32_t> window_offset;  // nw + 1, in column groups
  std::vector<std::int64_t> value_offset;   // nw + 1, into values
  std::vector<std::uint64_t> bitmap;        // groups * window_rows / 8
  std::vector<std::int32_t> col_id;         // groups * 8; padding repeats the last column
  std::vector<float> values;                // by block, ascending bit

  // Length L's rows are residual_row[residual_offset[L] .. residual_offset[L + 1]). Entry j of the
  // i-th of them is at residual_start(L) + i * L + j of residual_col and residual_value.
  std::array<std::int32_t, kMaxResidualLength + 2> residual_offset = {};
  std::vector<std::int32_t> residual_row;
  std::vector<std::int32_t> residual_col;
  std::vector<float> residual_value;

  std::int64_t windows() const { return static_cast<std::int64_t>(window_row.size()); }
  std::int64_t groups() const { return window_offset.empty() ? 0 : window_offset.back(); }
  int blocks_per_group() const { return window_rows / kBlockRows; }
  std::int64_t nnz() const {
    return static_cast<std::int64_t>(values.size() + residual_value.size());
  }
  std::int64_t residual_start(int length) const;
  int used_rows(std::int64_t window) const;
  std::int64_t row(std::int64_t window, int place) const {
    return std::int64_t{window_row[window]} + row_delta[window * window_rows + place];
  }

  // Options: window, rule, members, tau_delta, tau_nnz (see options()). Parallel; the same result
  // whatever the thread count. Throws Error on a bad option.
  static RsTile build(const CsrMatrix& matrix, const Options& options = {});
  static std::vector<OptionSpec> options();
  CsrMatrix unpack() const;  // the matrix that was built from, exactly
  // `value_bytes` per stored value: 4, or 2 for the 16-bit precisions.
  FormatStats stats(int value_bytes = 4) const;
};

}  // namespace spmmbench
