// ME-TCF (DTC-SpMM, ASPLOS 2024) and BitTCF (Acc-SpMM, PPoPP 2025): blocks of 8 packed columns,
// each format also with what its load-balanced kernel reads. Only their sizes are needed, to
// compare formats.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "core/parallel.hpp"
#include "format/window_columns.hpp"
#include "reorder/threads.hpp"
#include "spmmbench/format.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::tcf {
namespace {

constexpr std::int64_t kBlockColumns = 8;

// The distinct columns of each window of rows, packed, in blocks.
struct WindowBlocks {
  std::int64_t windows = 0;  // rows / window_rows, rounded up
  std::int64_t nonempty_windows = 0;
  std::int64_t blocks = 0;
  std::int64_t most_blocks = 0;  // of one window
};

WindowBlocks count_window_blocks(const CsrMatrix& matrix, std::int64_t window_rows) {
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

FormatStats block_stats(const CsrMatrix& matrix, const WindowBlocks& blocks,
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
    out.fill = out.nnz_per_tile / static_cast<double>(kBlockColumns * window_rows);
    out.nnz_per_window = nnz / static_cast<double>(blocks.nonempty_windows);
    out.window_imbalance = static_cast<double>(blocks.most_blocks * blocks.nonempty_windows) /
                           static_cast<double>(blocks.blocks);
  }
  return out;
}

class Tcf final : public Format {
 public:
  // `own_bytes`: beside the offsets of windows and blocks and the columns of blocks.
  Tcf(const char* name, const char* summary, std::int64_t window_rows,
      std::int64_t (*own_bytes)(const WindowBlocks& blocks, std::int64_t nnz))
      : name_(name), summary_(summary), window_rows_(window_rows), own_bytes_(own_bytes) {}
  std::string name() const override { return name_; }
  std::string summary() const override { return summary_; }
  FormatStats analyze(const CsrMatrix& matrix, const Options& /*options*/) const override {
    const WindowBlocks blocks = count_window_blocks(matrix, window_rows_);
    const std::int64_t bytes = 4 * (blocks.windows + 1)             // row_window_offset
                               + 4 * (blocks.blocks + 1)            // tc_offset
                               + 4 * kBlockColumns * blocks.blocks  // col
                               + own_bytes_(blocks, matrix.nnz());
    FormatStats out = block_stats(matrix, blocks, window_rows_, bytes);
    out.name = name_;
    return out;
  }

 private:
  const char* name_;
  const char* summary_;
  std::int64_t window_rows_;
  std::int64_t (*own_bytes_)(const WindowBlocks&, std::int64_t);
};

// A local_id for each nonzero; balanced, block_row as well.
SPMMBENCH_REGISTER_FORMAT(Tcf, "me_tcf", "16x8 blocks, 8-bit place per nonzero (DTC-SpMM)", 16,
                          [](const WindowBlocks&, std::int64_t nnz) { return nnz; });
SPMMBENCH_REGISTER_FORMAT(Tcf, "me_tcf_balanced",
                          "ME-TCF with the row window of every block (DTC-SpMM, load-balanced)", 16,
                          [](const WindowBlocks& blocks, std::int64_t nnz) {
                            return nnz + 4 * blocks.blocks;
                          });

// A mask for each block; balanced, also its row index and the offsets of groups.
SPMMBENCH_REGISTER_FORMAT(Tcf, "bit_tcf", "8x8 blocks, 64-bit mask per block (Acc-SpMM)", 8,
                          [](const WindowBlocks& blocks, std::int64_t) {
                            return 8 * blocks.blocks;
                          });
SPMMBENCH_REGISTER_FORMAT(Tcf, "bit_tcf_balanced",
                          "BitTCF with group offsets and the row window of every block (Acc-SpMM)",
                          8, [](const WindowBlocks& blocks, std::int64_t) {
                            constexpr std::int64_t kGroupBlocks = 32;  // of the largest group
                            const std::int64_t groups =
                                (blocks.blocks + kGroupBlocks - 1) / kGroupBlocks;
                            return (8 + 4) * blocks.blocks + 4 * (groups + 1);
                          });

}  // namespace
}  // namespace spmmbench::tcf
