#include "rsh/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "core/parallel.hpp"
#include "format/window_columns.hpp"
#include "reorder/compact.hpp"
#include "reorder/threads.hpp"
#include "rsh/partition.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::rsh {
namespace {

// "auto": rows of one or two nonzeros that share no column with the rows around them. A longer row
// fills enough of a block to pay for it, and a shared column saves a fetch.
constexpr int kAutoTauNnz = 2;

// Rows of equal length together, ascending rows within a length.
void fill_residual(const CsrMatrix& matrix, std::vector<std::int32_t> rows, RsTile& out) {
  std::stable_sort(rows.begin(), rows.end(), [&](std::int32_t a, std::int32_t b) {
    return matrix.row_length(a) < matrix.row_length(b);
  });
  for (const std::int32_t row : rows) {
    ++out.residual_offset[matrix.row_length(row) + 1];
    const auto from = matrix.row_ptr[row], to = matrix.row_ptr[row + 1];
    out.residual_col.insert(out.residual_col.end(), matrix.col_idx.begin() + from,
                            matrix.col_idx.begin() + to);
    out.residual_value.insert(out.residual_value.end(), matrix.values.begin() + from,
                              matrix.values.begin() + to);
  }
  for (int length = 0; length <= RsTile::kMaxResidualLength; ++length)
    out.residual_offset[length + 1] += out.residual_offset[length];
  out.residual_row = std::move(rows);
}

// Sizes of every window, then their prefix sums.
void count_windows(const CsrMatrix& matrix, const std::vector<std::int32_t>& first_rows,
                   RsTile& out) {
  const auto nw = static_cast<std::int64_t>(first_rows.size());
  out.windows.assign(nw + 1, {});
  for (std::int64_t w = 0; w < nw; ++w) out.windows[w].row = first_rows[w];
  out.windows[nw].row = static_cast<std::int32_t>(matrix.rows);
  std::vector<std::int64_t> columns_of(nw), values_of(nw, 0);
  for_each_with_table(
      nw, 256, threads_for_tables(matrix, WindowColumns::bytes(matrix.cols)),
      [&] { return WindowColumns(matrix.cols); },
      [&](WindowColumns& columns, std::int64_t w) {
        for (const std::int32_t row : out.rows_of(w)) {
          columns.add_row(matrix, row);
          values_of[w] += matrix.row_length(row);
        }
        columns_of[w] = columns.count();
        columns.clear();
      });
  std::int64_t group = 0, column = 0, value = 0;
  for (std::int64_t w = 0; w <= nw; ++w) {
    out.windows[w].group = static_cast<std::int32_t>(group);
    out.windows[w].column = static_cast<std::int32_t>(column);
    out.windows[w].value = static_cast<std::uint32_t>(value);
    if (w == nw) break;
    group += (columns_of[w] + RsTile::kGroupColumns - 1) / RsTile::kGroupColumns;
    column += columns_of[w];
    value += values_of[w];
  }
  if (column > std::numeric_limits<std::int32_t>::max() ||
      value > std::numeric_limits<std::uint32_t>::max())
    throw Error(fmt::format(
        "RS-Tile: {} columns and {} values over all windows, at most 2^31 - 1 and 2^32 - 1", column,
        value));
}

// Columns, bitmaps and values of one window, whose place in the arrays is known.
void fill_window(const CsrMatrix& matrix, std::int64_t w, WindowColumns& columns,
                 std::vector<std::uint32_t>& cursor, RsTile& out) {
  const RsTile::Window begin = out.windows[w], end = out.windows[w + 1];
  const std::vector<std::int32_t> rows = out.rows_of(w);
  const int height = out.blocks_per_group();
  for (const std::int32_t row : rows) columns.add_row(matrix, row);
  columns.sorted(out.col_id.data() + begin.column);

  std::uint64_t* const bits = out.bitmap.data() + std::int64_t{begin.group} * height;
  const auto for_each_entry = [&](auto&& visit) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::int64_t e = matrix.row_ptr[rows[i]]; e < matrix.row_ptr[rows[i] + 1]; ++e) {
        const std::int32_t rank = columns.rank(matrix.col_idx[e]);
        const std::int64_t block = rank / RsTile::kGroupColumns * height + i / RsTile::kBlockRows;
        const int bit = static_cast<int>(i % RsTile::kBlockRows) * RsTile::kGroupColumns +
                        rank % RsTile::kGroupColumns;
        visit(block, bit, matrix.values[e]);
      }
  };
  for_each_entry(
      [&](std::int64_t block, int bit, float) { bits[block] |= std::uint64_t{1} << bit; });
  cursor.resize(std::int64_t{end.group - begin.group} * height);
  std::uint32_t next = begin.value;
  for (std::size_t block = 0; block < cursor.size(); ++block) {
    cursor[block] = next;
    next += static_cast<std::uint32_t>(std::popcount(bits[block]));
  }
  // Rows ascend and columns ascend within a row, so a block's entries come in bit order.
  for_each_entry(
      [&](std::int64_t block, int, float value) { out.values[cursor[block]++] = value; });
  columns.clear();
}

RsTile build_partitioned(const CsrMatrix& matrix, const RsPartitionOptions& options) {
  RsPartition partition = partition_rows(matrix, options);
  RsTile out;
  out.rows = matrix.rows;
  out.cols = matrix.cols;
  out.window_rows = options.window_rows;
  fill_residual(matrix, std::move(partition.residual), out);
  out.row_bits = std::move(partition.row_bits);
  count_windows(matrix, partition.window_row, out);
  const RsTile::Window totals = out.windows.back();
  out.bitmap.assign(std::int64_t{totals.group} * out.blocks_per_group(), 0);
  out.col_id.resize(totals.column);
  out.values.resize(totals.value);
  struct Tables {
    WindowColumns columns;
    std::vector<std::uint32_t> cursor;  // where each block's next value goes
  };
  for_each_with_table(
      out.window_count(), 256, threads_for_tables(matrix, WindowColumns::bytes(matrix.cols)),
      [&] {
        return Tables{WindowColumns(matrix.cols), {}};
      },
      [&](Tables& tables, std::int64_t w) {
        fill_window(matrix, w, tables.columns, tables.cursor, out);
      });
  return out;
}

// The same tiles, by way of a matrix whose columns are numbered without gaps.
RsTile build_without_empty_columns(const CsrMatrix& matrix, const RsPartitionOptions& options) {
  const std::vector<std::int32_t> columns = referenced_columns(matrix);
  const CsrMatrix dense_columns{matrix.rows, static_cast<std::int64_t>(columns.size()),
                                matrix.row_ptr, column_positions(matrix, columns), matrix.values};
  RsTile out = build_partitioned(dense_columns, options);
  out.cols = matrix.cols;
  for (std::int32_t& column : out.col_id) column = columns[column];
  for (std::int32_t& column : out.residual_col) column = columns[column];
  return out;
}

class RsTileFormat final : public Format {
 public:
  std::string name() const override { return "rs_tile"; }
  std::string summary() const override {
    return "row windows of bitmap-compressed 8x8 blocks, short rows apart (RSH-SpMM)";
  }
  std::vector<OptionSpec> options() const override {
    return {RsTile::kWindow, RsTile::kRule, RsTile::kMembers, RsTile::kTauDelta, RsTile::kTauNnz};
  }
  FormatStats analyze(const CsrMatrix& matrix, const Options& options) const override {
    return RsTile::build(matrix, options).stats();
  }
};

}  // namespace

RsPartitionOptions RsTile::partition_options(const Options& options) {
  RsPartitionOptions out;
  out.window_rows = kWindow(options);
  out.rule = kRule(options) == "printed" ? RsRule::printed : RsRule::overlap;
  out.members = kMembers(options) == "collected" ? RsMembers::collected : RsMembers::consecutive;
  out.tau_nnz = kTauNnz(options).value_or(kAutoTauNnz);
  out.tau_delta = kTauDelta(options).value_or(0);
  return out;
}

RsTile RsTile::build(const CsrMatrix& matrix, const Options& options) {
  const RsPartitionOptions partitioning = partition_options(options);
  // A byte per column would be more than the matrix.
  return matrix.cols > csr_bytes(matrix) ? build_without_empty_columns(matrix, partitioning)
                                         : build_partitioned(matrix, partitioning);
}

CsrMatrix RsTile::unpack() const {
  CsrMatrix out{rows, cols, std::vector<std::int64_t>(rows + 1, 0), {}, {}};
  const int height = blocks_per_group();
  const auto for_each_entry = [&](auto&& visit) {
    for (std::int64_t w = 0; w < window_count(); ++w) {
      const std::vector<std::int32_t> window = rows_of(w);
      std::int64_t value = windows[w].value;
      for (std::int64_t g = 0; g < windows[w + 1].group - windows[w].group; ++g)
        for (int b = 0; b < height; ++b)
          for (std::uint64_t rest = bitmap[(windows[w].group + g) * height + b]; rest != 0;
               rest &= rest - 1) {
            const int bit = std::countr_zero(rest);
            visit(window[b * kBlockRows + bit / kGroupColumns],
                  col_id[windows[w].column + g * kGroupColumns + bit % kGroupColumns],
                  values[value++]);
          }
    }
    for (int length = 1; length <= kMaxResidualLength; ++length)
      for (std::int32_t i = residual_offset[length]; i < residual_offset[length + 1]; ++i)
        for (int j = 0; j < length; ++j) {
          const std::int64_t e =
              residual_start(length) + std::int64_t{i - residual_offset[length]} * length + j;
          visit(residual_row[i], residual_col[e], residual_value[e]);
        }
  };
  for_each_entry([&](std::int32_t row, std::int32_t, float) { ++out.row_ptr[row + 1]; });
  for (std::int64_t row = 0; row < rows; ++row) out.row_ptr[row + 1] += out.row_ptr[row];
  out.col_idx.resize(nnz());
  out.values.resize(nnz());
  std::vector<std::int64_t> cursor(out.row_ptr.begin(), out.row_ptr.end() - 1);
  for_each_entry([&](std::int32_t row, std::int32_t col, float value) {
    out.col_idx[cursor[row]] = col;
    out.values[cursor[row]++] = value;
  });
  return out;
}

std::int64_t RsTile::residual_start(int length) const {
  std::int64_t start = 0;
  for (int shorter = 0; shorter < length; ++shorter)
    start += std::int64_t{residual_offset[shorter + 1] - residual_offset[shorter]} * shorter;
  return start;
}

std::vector<std::int32_t> RsTile::rows_of(std::int64_t window) const {
  std::vector<std::int32_t> out;
  for (std::int32_t row = windows[window].row; row < windows[window + 1].row; ++row)
    if (row_bits[row / 64] >> (row % 64) & 1) {
      out.push_back(row);
    } else if (row - windows[window].row >= 64) {
      break;
    }
  return out;
}

FormatStats RsTile::stats(int value_bytes) const {
  FormatStats out;
  out.name = "rs_tile";
  out.index_bytes =
      static_cast<std::int64_t>(sizeof(Window) * windows.size() + 8 * row_bits.size() +
                                8 * bitmap.size() + 4 * col_id.size() + 4 * residual_offset.size() +
                                4 * residual_row.size() + 4 * residual_col.size());
  out.bytes = out.index_bytes + nnz() * value_bytes;
  out.stored = nnz();
  out.tiles = static_cast<std::int64_t>(bitmap.size());
  out.windows = window_count();
  std::int64_t longest = 0;
  for (std::int64_t w = 0; w < window_count(); ++w)
    longest = std::max<std::int64_t>(longest, windows[w + 1].group - windows[w].group);
  const auto tc_nnz = static_cast<double>(values.size());
  if (out.tiles > 0) {
    out.fill = tc_nnz / (static_cast<double>(out.tiles) * kBlockRows * kGroupColumns);
    out.nnz_per_tile = tc_nnz / static_cast<double>(out.tiles);
    out.nnz_per_window = tc_nnz / static_cast<double>(out.windows);
    out.window_imbalance = static_cast<double>(longest) * static_cast<double>(out.windows) /
                           static_cast<double>(windows.back().group);
  }
  out.extra["residual_nnz_share"] =
      nnz() == 0 ? 0 : static_cast<double>(residual_value.size()) / static_cast<double>(nnz());
  out.extra["residual_rows"] = static_cast<double>(residual_row.size());
  out.extra["gathered_rows_of_b"] = static_cast<double>(col_id.size() + residual_col.size());
  return out;
}

SPMMBENCH_REGISTER_FORMAT(RsTileFormat);

}  // namespace spmmbench::rsh
