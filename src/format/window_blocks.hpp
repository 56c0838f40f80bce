#pragma once
// Blocks of formats whose windows are aligned runs of rows: the distinct columns of each window,
// packed, in blocks of 8.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "core/parallel.hpp"
#include "format/window_columns.hpp"
#include "reorder/threads.hpp"
#include "spmmbench/format.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

struct WindowBlocks {
  std::int64_t windows = 0;  // rows / window_rows, rounded up
  std::int64_t nonempty_windows = 0;
  std::int64_t blocks = 0;
  std::int64_t most_blocks = 0;  // of one window
};

inline WindowBlocks count_window_blocks(const CsrMatrix& matrix, std::int64_t window_rows) {
  constexpr std::int64_t kBlockColumns = 8;
  WindowBlocks out;
  out.windows = (matrix.rows + window_rows - 1) / window_rows;
  std::int64_t nonempty = 0, blocks = 0, most = 0;
  const int threads = threads_for_tables(matrix, WindowColumns::bytes(matrix.cols));
  ExceptionTrap trap;
#pragma omp parallel num_threads(threads) reduction(+ : nonempty, blocks) reduction(max : most)
  {
    std::unique_ptr<WindowColumns> columns;
    trap.run([&] { columns = std::make_unique<WindowColumns>(matrix.cols); });
#pragma omp for schedule(dynamic, 256)
    for (std::int64_t w = 0; w < out.windows; ++w) {
      if (trap.caught()) continue;
      const std::int64_t end = std::min((w + 1) * window_rows, matrix.rows);
      trap.run([&] {
        for (std::int64_t row = w * window_rows; row < end; ++row) columns->add_row(matrix, row);
      });
      const std::int64_t count = (columns->count() + kBlockColumns - 1) / kBlockColumns;
      nonempty += count > 0;
      blocks += count;
      most = std::max(most, count);
      columns->clear();
    }
  }
  trap.rethrow();
  out.nonempty_windows = nonempty;
  out.blocks = blocks;
  out.most_blocks = most;
  return out;
}

inline FormatStats block_stats(const CsrMatrix& matrix, const WindowBlocks& blocks,
                               std::int64_t window_rows, std::int64_t index_bytes) {
  FormatStats out;
  out.index_bytes = index_bytes;
  out.bytes = index_bytes + 4 * matrix.nnz();
  out.stored = matrix.nnz();
  out.tiles = blocks.blocks;
  out.windows = blocks.nonempty_windows;
  if (blocks.blocks > 0) {
    const auto nnz = static_cast<double>(matrix.nnz());
    out.nnz_per_tile = nnz / static_cast<double>(blocks.blocks);
    out.fill = out.nnz_per_tile / static_cast<double>(8 * window_rows);
    out.nnz_per_window = nnz / static_cast<double>(blocks.nonempty_windows);
    out.window_imbalance = static_cast<double>(blocks.most_blocks * blocks.nonempty_windows) /
                           static_cast<double>(blocks.blocks);
  }
  return out;
}

}  // namespace spmmbench
