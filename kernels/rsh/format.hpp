#pragma once
// RS-Tile (RSH-SpMM, arXiv 2603.08734, section 3.2): row windows of bitmap-compressed 8 x 8 blocks
// for tensor cores, and short rows set apart for CUDA cores.
//
// TC part. A window holds up to `window_rows` rows (8, 16 or 32). Its distinct columns, ascending,
// are cut in groups of 8; a group is h = window_rows / 8 blocks stacked, so that a taller window
// fetches each row of B for more rows of A:
//
//        8 columns of the window          bit = row * 8 + column of an 8 x 8 block
//      +---------+---------+----
//      | block 0 | block h |              rows 0..7 of the window
//      | block 1 | ...     |              rows 8..15
//      +---------+---------+----          bitmap[group * h + i]
//      group 0     group 1
//
// A window's last group may have fewer than 8 columns: the dummy ones that fill the paper's blocks
// are not stored, a reader fetches nothing for them.
//
// Residual part. Rows of equal length stand together in ascending length, so no row pointer is
// needed. Rows without entries are in neither part.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rsh/partition.hpp"
#include "spmmbench/format.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench::rsh {

struct RsTile {
  static constexpr int kBlockRows = 8;
  static constexpr int kGroupColumns = 8;
  static constexpr int kMaxResidualLength = 32;

  std::int64_t rows = 0;
  std::int64_t cols = 0;
  int window_rows = kBlockRows;

  // Window w: windows[w] to windows[w + 1]; the last entry is a sentinel with the totals.
  struct Window {
    std::int32_t row;     // its rows are the set row_bits from here up to the next window's row: at
                          // most window_rows of them, and less than 64 rows from first to last
    std::int32_t group;   // first column group
    std::int32_t column;  // first of col_id
    std::uint32_t value;  // first of values
    bool operator==(const Window&) const = default;
  };
  std::vector<Window> windows;          // nw + 1
  std::vector<std::uint64_t> row_bits;  // rows / 64 + 1: bit r % 64 of word r / 64
  std::vector<std::uint64_t> bitmap;    // groups * window_rows / 8
  std::vector<std::int32_t> col_id;     // a window's distinct columns, ascending
  std::vector<float> values;            // by block, ascending bit

  // Length L's rows are residual_row[residual_offset[L] .. residual_offset[L + 1]). Entry j of the
  // i-th of them is at residual_start(L) + i * L + j of residual_col and residual_value.
  std::array<std::int32_t, kMaxResidualLength + 2> residual_offset = {};
  std::vector<std::int32_t> residual_row;
  std::vector<std::int32_t> residual_col;
  std::vector<float> residual_value;

  std::int64_t window_count() const { return static_cast<std::int64_t>(windows.size()) - 1; }
  int blocks_per_group() const { return window_rows / kBlockRows; }
  std::int64_t nnz() const {
    return static_cast<std::int64_t>(values.size() + residual_value.size());
  }
  std::int64_t residual_start(int length) const;
  std::vector<std::int32_t> rows_of(std::int64_t window) const;

  static const Option<int> kWindow;
  static const Option<std::string> kRule, kMembers;
  static const Option<std::optional<int>> kTauDelta, kTauNnz;
  static RsPartitionOptions partition_options(const Options& options);  // of the five
  // `options` are the five above. Parallel; the same result whatever the thread count. Throws Error
  // beyond 2^31 - 1 columns over all windows or 2^32 - 1 values.
  static RsTile build(const CsrMatrix& matrix, const Options& options = {});
  CsrMatrix unpack() const;  // the matrix that was built from, exactly
  // `value_bytes` per stored value: 4, or 2 for the 16-bit precisions.
  FormatStats stats(int value_bytes = 4) const;
};

inline const Option<int> RsTile::kWindow =
    choice_option<int>("window", "8", {"8", "16", "32"}, "rows per window");
inline const Option<std::string> RsTile::kRule =
    choice_option("rule", "overlap", {"printed", "overlap"}, "rows for the residual part");
inline const Option<std::string> RsTile::kMembers =
    choice_option("members", "collected", {"collected", "consecutive"}, "rows of a window");
inline const Option<std::optional<int>> RsTile::kTauDelta = auto_integer_option(
    "tau_delta", 0, RsTile::kMaxResidualLength,
    "printed: most new columns, overlap: most shared columns of a residual row");
inline const Option<std::optional<int>> RsTile::kTauNnz = auto_integer_option(
    "tau_nnz", 0, RsTile::kMaxResidualLength, "longest residual row; 0 keeps all rows in windows");

}  // namespace spmmbench::rsh
