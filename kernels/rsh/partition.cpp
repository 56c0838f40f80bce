#include "rsh/partition.hpp"

#include <algorithm>

#include "core/parallel.hpp"
#include "reorder/threads.hpp"

namespace spmmbench::rsh {
namespace {

constexpr std::int64_t kChunkRows = 65536;
constexpr std::int64_t kWindowSpan = 64;
static_assert(kChunkRows % 64 == 0, "chunks must not share a word of row_bits");

// How often each column occurs in a sliding window of rows. Counts stay below 256 because a window
// has at most 32 rows and a row holds a column once.
class SlidingColumns {
 public:
  explicit SlidingColumns(std::int64_t cols) : count_(cols, 0) {}
  static std::int64_t bytes(const CsrMatrix& matrix) { return matrix.cols; }

  void add(const CsrMatrix& matrix, std::int64_t row) { change(matrix, row, 1); }
  void remove(const CsrMatrix& matrix, std::int64_t row) { change(matrix, row, -1); }

  // Columns of `row`, which is in the window, that no other row of the window holds.
  std::int64_t unique(const CsrMatrix& matrix, std::int64_t row) const {
    std::int64_t unique = 0;
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      unique += count_[matrix.col_idx[e]] == 1;
    return unique;
  }

 private:
  void change(const CsrMatrix& matrix, std::int64_t row, int by) {
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      count_[matrix.col_idx[e]] = static_cast<std::uint8_t>(count_[matrix.col_idx[e]] + by);
  }
  std::vector<std::uint8_t> count_;
};

bool is_residual(const CsrMatrix& matrix, std::int64_t row, const SlidingColumns& columns,
                 const RsPartitionOptions& options) {
  const std::int64_t length = matrix.row_length(row);
  if (length > options.tau_nnz) return false;
  const std::int64_t delta = columns.unique(matrix, row);
  return (options.rule == RsRule::printed ? delta : length - delta) <= options.tau_delta;
}

void scan_chunk(const CsrMatrix& matrix, const RsPartitionOptions& options, std::int64_t begin,
                std::int64_t end, SlidingColumns& columns, std::vector<std::uint64_t>& row_bits,
                std::vector<std::int32_t>& windows, std::vector<std::int32_t>& residual) {
  std::int64_t first = 0;  // row of the window being filled
  int filled = options.window_rows;
  const auto take = [&](std::int64_t row) {
    if (filled == options.window_rows || row - first >= kWindowSpan) {
      windows.push_back(static_cast<std::int32_t>(row));
      first = row;
      filled = 0;
    }
    row_bits[row / 64] |= std::uint64_t{1} << (row % 64);
    ++filled;
  };

  // The columns of rows [r, next) are counted. Looking past the chunk's end is harmless: those rows
  // are read, not assigned.
  std::int64_t next = begin;
  const bool counting = options.tau_nnz > 0;
  for (std::int64_t r = begin; r < end;) {
    if (counting)
      for (const std::int64_t last = std::min(r + options.window_rows, matrix.rows); next < last;
           ++next)
        columns.add(matrix, next);
    std::int64_t step = 1;
    if (matrix.row_length(r) == 0) {
      // in no part
    } else if (counting && is_residual(matrix, r, columns, options)) {
      residual.push_back(static_cast<std::int32_t>(r));
    } else if (options.members == RsMembers::consecutive) {
      step = std::min<std::int64_t>(options.window_rows, end - r);
      for (std::int64_t row = r; row < r + step; ++row) take(row);
      filled = options.window_rows;
    } else {
      take(r);
    }
    if (counting)
      for (std::int64_t row = r; row < r + step; ++row) columns.remove(matrix, row);
    r += step;
  }
  if (counting)
    for (std::int64_t row = end; row < next; ++row) columns.remove(matrix, row);
}

}  // namespace

RsPartition partition_rows(const CsrMatrix& matrix, const RsPartitionOptions& options) {
  const std::int64_t chunks = (matrix.rows + kChunkRows - 1) / kChunkRows;
  std::vector<std::vector<std::int32_t>> windows(chunks), residual(chunks);
  RsPartition out;
  out.row_bits.assign(matrix.rows / 64 + 1, 0);
  for_each_with_table(
      chunks, 1, threads_for_tables(matrix, SlidingColumns::bytes(matrix)),
      [&] { return SlidingColumns(options.tau_nnz > 0 ? matrix.cols : 0); },
      [&](SlidingColumns& columns, std::int64_t chunk) {
        scan_chunk(matrix, options, chunk * kChunkRows,
                   std::min((chunk + 1) * kChunkRows, matrix.rows), columns, out.row_bits,
                   windows[chunk], residual[chunk]);
      });
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    out.window_row.insert(out.window_row.end(), windows[chunk].begin(), windows[chunk].end());
    out.residual.insert(out.residual.end(), residual[chunk].begin(), residual[chunk].end());
  }
  return out;
}

}  // namespace spmmbench::rsh
