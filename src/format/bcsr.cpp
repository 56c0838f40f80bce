#include "format/bcsr.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <bit>

#include "core/parallel.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

constexpr int kMaxBlockSize = 1024;

// The column blocks of one block row, in time linear in its nonzeros. One per thread.
class ColumnBlocks {
 public:
  ColumnBlocks(std::int64_t cols, int bk) : bk_(bk), bits_(cols / bk / 64 + 1) {}

  void collect(const CsrMatrix& matrix, std::int64_t first_row, std::int64_t last_row) {
    for (const std::int32_t word : touched_) bits_[word] = 0;
    touched_.clear();
    for (std::int64_t e = matrix.row_ptr[first_row]; e < matrix.row_ptr[last_row]; ++e) {
      const std::int32_t block = matrix.col_idx[e] / bk_;
      std::uint64_t& word = bits_[block / 64];
      if (word == 0) touched_.push_back(block / 64);
      word |= std::uint64_t{1} << (block % 64);
    }
  }
  std::int64_t count() const {
    std::int64_t count = 0;
    for (const std::int32_t word : touched_) count += std::popcount(bits_[word]);
    return count;
  }
  void write_sorted(std::int32_t* out) {
    std::sort(touched_.begin(), touched_.end());
    for (const std::int32_t word : touched_)
      for (std::uint64_t rest = bits_[word]; rest != 0; rest &= rest - 1)
        *out++ = word * 64 + std::countr_zero(rest);
  }

 private:
  int bk_;
  std::vector<std::uint64_t> bits_;    // one per column block
  std::vector<std::int32_t> touched_;  // words that are not zero
};

class BcsrFormat final : public Format {
 public:
  explicit BcsrFormat(int size)
      : size_(size),
        rows_(integer_option("bm", size, 1, kMaxBlockSize, "rows of a block")),
        cols_(integer_option("bk", size, 1, kMaxBlockSize, "columns of a block")) {}
  std::string name() const override { return fmt::format("bcsr_{}", size_); }
  std::string summary() const override {
    return fmt::format("dense {0}x{0} blocks (AsyncSparse)", size_);
  }
  std::vector<OptionSpec> options() const override { return {rows_, cols_}; }
  FormatStats analyze(const CsrMatrix& matrix, const Options& options) const override {
    return BcsrPattern::build(matrix, rows_(options), cols_(options)).stats();
  }

 private:
  int size_;
  Option<int> rows_, cols_;
};

}  // namespace

BcsrPattern BcsrPattern::build(const CsrMatrix& matrix, int bm, int bk) {
  BcsrPattern out;
  out.rows = matrix.rows;
  out.cols = matrix.cols;
  out.nnz = matrix.nnz();
  out.bm = bm;
  out.bk = bk;
  const std::int64_t block_rows = (matrix.rows + bm - 1) / bm;
  const auto end_row = [&](std::int64_t block_row) {
    return std::min(matrix.rows, (block_row + 1) * bm);
  };
  const auto for_each_block_row = [&](const auto& body) {
    for_each_with_table(
        block_rows, 4, omp_get_max_threads(), [&] { return ColumnBlocks(matrix.cols, bk); },
        [&](ColumnBlocks& columns, std::int64_t i) {
          columns.collect(matrix, i * bm, end_row(i));
          body(columns, i);
        });
  };
  out.block_row_ptr.assign(block_rows + 1, 0);
  for_each_block_row([&](const ColumnBlocks& columns, std::int64_t i) {
    out.block_row_ptr[i + 1] = columns.count();
  });
  for (std::int64_t i = 0; i < block_rows; ++i) out.block_row_ptr[i + 1] += out.block_row_ptr[i];
  out.block_col.resize(out.blocks());
  for_each_block_row([&](ColumnBlocks& columns, std::int64_t i) {
    columns.write_sorted(out.block_col.data() + out.block_row_ptr[i]);
  });
  return out;
}

BcsrPattern::Totals BcsrPattern::totals() const {
  Totals out{.blocks = blocks()};
  for (std::int64_t i = 0; i < block_rows(); ++i) {
    const std::int64_t length = block_row_ptr[i + 1] - block_row_ptr[i];
    out.longest = std::max(out.longest, length);
    out.filled += length > 0;
  }
  return out;
}

FormatStats BcsrPattern::stats(int value_bytes) const { return stats(totals(), value_bytes); }

FormatStats BcsrPattern::stats(const Totals& totals, int value_bytes) const {
  const std::int64_t all_rows = (rows + bm - 1) / bm, all_columns = (cols + bk - 1) / bk;
  FormatStats out;
  out.name = bm == bk ? fmt::format("bcsr_{}", bm) : fmt::format("bcsr_{}x{}", bm, bk);
  out.index_bytes = 8 * (all_rows + 1) + 4 * totals.blocks;
  out.stored = totals.blocks * bm * bk;
  out.bytes = out.index_bytes + out.stored * value_bytes;
  out.tiles = totals.blocks;
  out.windows = totals.filled;
  if (totals.blocks == 0) return out;
  const auto entries = static_cast<double>(nnz), tiles = static_cast<double>(totals.blocks),
             windows = static_cast<double>(totals.filled);
  out.fill = entries / static_cast<double>(out.stored);
  out.nnz_per_tile = entries / tiles;
  out.nnz_per_window = entries / windows;
  out.window_imbalance = static_cast<double>(totals.longest) * windows / tiles;
  out.extra["block_density"] =
      tiles / (static_cast<double>(all_rows) * static_cast<double>(all_columns));
  return out;
}

Bcsr Bcsr::build(const CsrMatrix& matrix, BcsrPattern pattern) {
  Bcsr out{std::move(pattern), {}};
  const BcsrPattern& p = out.pattern;
  out.values.resize(p.stored());
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t i = 0; i < p.block_rows(); ++i) {
    const std::int64_t last_row = std::min(matrix.rows, (i + 1) * p.bm);
    for (std::int64_t row = i * p.bm; row < last_row; ++row) {
      std::int64_t block = p.block_row_ptr[i];
      for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
        const std::int32_t col = matrix.col_idx[e];
        while (p.block_col[block] < col / p.bk) ++block;
        out.values[(block * p.bm + row - i * p.bm) * p.bk + col % p.bk] = matrix.values[e];
      }
    }
  }
  return out;
}

CsrMatrix Bcsr::unpack() const {
  const BcsrPattern& p = pattern;
  CsrMatrix out{p.rows, p.cols, std::vector<std::int64_t>(p.rows + 1, 0), {}, {}};
  const auto for_each_entry = [&](std::int64_t row, auto&& visit) {
    const std::int64_t i = row / p.bm;
    for (std::int64_t block = p.block_row_ptr[i]; block < p.block_row_ptr[i + 1]; ++block) {
      const float* const line = values.data() + (block * p.bm + row % p.bm) * p.bk;
      for (int k = 0; k < p.bk; ++k)
        if (line[k] != 0) visit(p.block_col[block] * p.bk + k, line[k]);
    }
  };
#pragma omp parallel for schedule(dynamic, 256)
  for (std::int64_t row = 0; row < p.rows; ++row)
    for_each_entry(row, [&](std::int32_t, float) { ++out.row_ptr[row + 1]; });
  for (std::int64_t row = 0; row < p.rows; ++row) out.row_ptr[row + 1] += out.row_ptr[row];
  out.col_idx.resize(out.nnz());
  out.values.resize(out.nnz());
#pragma omp parallel for schedule(dynamic, 256)
  for (std::int64_t row = 0; row < p.rows; ++row) {
    std::int64_t next = out.row_ptr[row];
    for_each_entry(row, [&](std::int32_t col, float value) {
      out.col_idx[next] = col;
      out.values[next++] = value;
    });
  }
  return out;
}

SPMMBENCH_REGISTER_FORMAT(BcsrFormat, 16);
SPMMBENCH_REGISTER_FORMAT(BcsrFormat, 32);
SPMMBENCH_REGISTER_FORMAT(BcsrFormat, 64);
SPMMBENCH_REGISTER_FORMAT(BcsrFormat, 128);

}  // namespace spmmbench
