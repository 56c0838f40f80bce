#include "format/rs_tile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "format/rs_partition.hpp"
#include "format/window_columns.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

// "auto": rows of one or two nonzeros that share no column with the rows around them. A longer row
// fills enough of a block to be worth one, and a shared column is a fetch saved.
constexpr int kAutoTauNnz = 2;

RsPartitionOptions partition_options(const Options& options) {
  RsPartitionOptions out;
  const std::string window = options.get_choice("window", "8", {"8", "16", "32"});
  out.window_rows = window == "8" ? 8 : window == "16" ? 16 : 32;
  out.rule = options.get_choice("rule", "overlap", {"printed", "overlap"}) == "printed"
                 ? RsRule::printed
                 : RsRule::overlap;
  out.members =
      options.get_choice("members", "collected", {"collected", "consecutive"}) == "collected"
          ? RsMembers::collected
          : RsMembers::consecutive;
  out.tau_nnz =
      options.get("tau_nnz", "auto") == "auto"
          ? kAutoTauNnz
          : static_cast<int>(options.get_int("tau_nnz", 0, 0, RsTile::kMaxResidualLength));
  out.tau_delta =
      options.get("tau_delta", "auto") == "auto"
          ? 0
          : static_cast<int>(options.get_int("tau_delta", 0, 0, RsTile::kMaxResidualLength));
  return out;
}

// Rows of equal length together, ascending rows within a length; the empty ones first.
void fill_residual(const CsrMatrix& matrix, const RsPartition& partition, RsTile& out) {
  out.residual_row = partition.empty;
  out.residual_row.insert(out.residual_row.end(), partition.residual.begin(),
                          partition.residual.end());
  std::stable_sort(
      out.residual_row.begin(), out.residual_row.end(),
      [&](std::int32_t a, std::int32_t b) { return matrix.row_length(a) < matrix.row_length(b); });
  for (const std::int32_t row : out.residual_row) {
    ++out.residual_offset[matrix.row_length(row) + 1];
    const auto from = matrix.row_ptr[row], to = matrix.row_ptr[row + 1];
    out.residual_col.insert(out.residual_col.end(), matrix.col_idx.begin() + from,
                            matrix.col_idx.begin() + to);
    out.residual_value.insert(out.residual_value.end(), matrix.values.begin() + from,
                              matrix.values.begin() + to);
  }
  for (int length = 0; length <= RsTile::kMaxResidualLength; ++length)
    out.residual_offset[length + 1] += out.residual_offset[length];
}

class RsTileFormat final : public Format {
 public:
  std::string name() const override { return "rs_tile"; }
  std::string summary() const override {
    return "row windows of bitmap-compressed 8x8 blocks, short rows apart (RSH-SpMM)";
  }
  std::vector<OptionSpec> options() const override { return RsTile::options(); }
  FormatStats analyze(const CsrMatrix& matrix, const Options& options) const override {
    options.require_known(RsTile::options(), name());
    return RsTile::build(matrix, options).stats();
  }
};

}  // namespace

std::vector<OptionSpec> RsTile::options() {
  return {{"window", "8", "rows per window: 8, 16 or 32"},
          {"rule", "overlap", "rows for the residual part: printed or overlap"},
          {"members", "collected", "rows of a window: collected or consecutive"},
          {"tau_delta", "auto",
           "printed: most new columns, overlap: most shared columns of a residual row"},
          {"tau_nnz", "auto", "longest residual row, 0 to 32; 0 keeps all rows in windows"}};
}

RsTile RsTile::build(const CsrMatrix& matrix, const Options& options) {
  const RsPartitionOptions partitioning = partition_options(options);
  RsPartition partition = partition_rows(matrix, partitioning);
  RsTile out;
  out.rows = matrix.rows;
  out.cols = matrix.cols;
  out.window_rows = partitioning.window_rows;
  fill_residual(matrix, partition, out);
  out.window_row = std::move(partition.window_row);
  out.row_delta = std::move(partition.row_delta);

  const std::int64_t nw = out.windows();
  const int height = out.blocks_per_group();
  std::vector<std::int64_t> group_end(nw + 1, 0);
  out.value_offset.assign(nw + 1, 0);
#pragma omp parallel
  {
    WindowColumns columns(matrix.cols);
#pragma omp for schedule(dynamic, 256)
    for (std::int64_t w = 0; w < nw; ++w) {
      for (int i = 0; i < out.used_rows(w); ++i) {
        columns.add_row(matrix, out.row(w, i));
        out.value_offset[w + 1] += matrix.row_length(out.row(w, i));
      }
      group_end[w + 1] = (columns.count() + kGroupColumns - 1) / kGroupColumns;
      columns.clear();
    }
  }
  for (std::int64_t w = 0; w < nw; ++w) {
    group_end[w + 1] += group_end[w];
    out.value_offset[w + 1] += out.value_offset[w];
  }
  if (group_end[nw] > std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("RS-Tile: {} column groups, at most 2^31 - 1", group_end[nw]));
  out.window_offset.assign(group_end.begin(), group_end.end());
  out.bitmap.assign(group_end[nw] * height, 0);
  out.col_id.resize(group_end[nw] * kGroupColumns);
  out.values.resize(out.value_offset[nw]);

#pragma omp parallel
  {
    WindowColumns columns(matrix.cols);
    std::vector<std::int64_t> cursor;  // where each block's next value goes
#pragma omp for schedule(dynamic, 256)
    for (std::int64_t w = 0; w < nw; ++w) {
      const std::int64_t first = group_end[w], last = group_end[w + 1];
      const int used = out.used_rows(w);
      for (int i = 0; i < used; ++i) columns.add_row(matrix, out.row(w, i));
      const std::int64_t distinct = columns.count();
      std::int32_t* const col = out.col_id.data() + first * kGroupColumns;
      columns.sorted(col);
      if (distinct > 0)
        std::fill(col + distinct, col + (last - first) * kGroupColumns, col[distinct - 1]);

      std::uint64_t* const bits = out.bitmap.data() + first * height;
      for (int i = 0; i < used; ++i)
        for (std::int64_t e = matrix.row_ptr[out.row(w, i)]; e < matrix.row_ptr[out.row(w, i) + 1];
             ++e) {
          const std::int32_t rank = columns.rank(matrix.col_idx[e]);
          bits[rank / kGroupColumns * height + i / kBlockRows] |=
              std::uint64_t{1} << (i % kBlockRows * kGroupColumns + rank % kGroupColumns);
        }
      cursor.resize((last - first) * height);
      std::int64_t next = out.value_offset[w];
      for (std::size_t block = 0; block < cursor.size(); ++block) {
        cursor[block] = next;
        next += std::popcount(bits[block]);
      }
      // Rows ascend and columns ascend within a row, so a block's entries come in bit order.
      for (int i = 0; i < used; ++i)
        for (std::int64_t e = matrix.row_ptr[out.row(w, i)]; e < matrix.row_ptr[out.row(w, i) + 1];
             ++e) {
          const std::int32_t rank = columns.rank(matrix.col_idx[e]);
          out.values[cursor[rank / kGroupColumns * height + i / kBlockRows]++] = matrix.values[e];
        }
      columns.clear();
    }
  }
  return out;
}

CsrMatrix RsTile::unpack() const {
  CsrMatrix out{rows, cols, std::vector<std::int64_t>(rows + 1, 0), {}, {}};
  const int height = blocks_per_group();
  const auto for_each_entry = [&](auto&& visit) {
    for (std::int64_t w = 0; w < windows(); ++w) {
      std::int64_t value = value_offset[w];
      for (std::int64_t g = window_offset[w]; g < window_offset[w + 1]; ++g)
        for (int b = 0; b < height; ++b)
          for (std::uint64_t rest = bitmap[g * height + b]; rest != 0; rest &= rest - 1) {
            const int bit = std::countr_zero(rest);
            visit(row(w, b * kBlockRows + bit / kGroupColumns),
                  col_id[g * kGroupColumns + bit % kGroupColumns], values[value++]);
          }
    }
    for (int length = 1; length <= kMaxResidualLength; ++length)
      for (std::int32_t i = residual_offset[length]; i < residual_offset[length + 1]; ++i)
        for (int j = 0; j < length; ++j) {
          const std::int64_t e =
              residual_start(length) + std::int64_t{i - residual_offset[length]} * length + j;
          visit(std::int64_t{residual_row[i]}, residual_col[e], residual_value[e]);
        }
  };
  for_each_entry([&](std::int64_t row, std::int32_t, float) { ++out.row_ptr[row + 1]; });
  for (std::int64_t row = 0; row < rows; ++row) out.row_ptr[row + 1] += out.row_ptr[row];
  out.col_idx.resize(nnz());
  out.values.resize(nnz());
  std::vector<std::int64_t> cursor(out.row_ptr.begin(), out.row_ptr.end() - 1);
  for_each_entry([&](std::int64_t row, std::int32_t col, float value) {
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

int RsTile::used_rows(std::int64_t window) const {
  const std::uint8_t* const delta = row_delta.data() + window * window_rows;
  int used = 1;
  while (used < window_rows && delta[used] > delta[used - 1]) ++used;
  return used;
}

FormatStats RsTile::stats(int value_bytes) const {
  FormatStats out;
  out.name = "rs_tile";
  out.index_bytes = static_cast<std::int64_t>(
      4 * window_row.size() + row_delta.size() + 4 * window_offset.size() +
      8 * value_offset.size() + 8 * bitmap.size() + 4 * col_id.size() + 4 * residual_offset.size() +
      4 * residual_row.size() + 4 * residual_col.size());
  out.bytes = out.index_bytes + nnz() * value_bytes;
  out.stored = nnz();
  out.tiles = static_cast<std::int64_t>(bitmap.size());
  out.windows = windows();
  std::int64_t longest = 0;
  for (std::int64_t w = 0; w < windows(); ++w)
    longest = std::max<std::int64_t>(longest, window_offset[w + 1] - window_offset[w]);
  const auto tc_nnz = static_cast<double>(values.size());
  if (out.tiles > 0) {
    out.fill = tc_nnz / (static_cast<double>(out.tiles) * kBlockRows * kGroupColumns);
    out.nnz_per_tile = tc_nnz / static_cast<double>(out.tiles);
    out.nnz_per_window = tc_nnz / static_cast<double>(out.windows);
    out.window_imbalance = static_cast<double>(longest) * static_cast<double>(out.windows) /
                           static_cast<double>(groups());
  }
  out.extra["residual_nnz_share"] =
      nnz() == 0 ? 0 : static_cast<double>(residual_value.size()) / static_cast<double>(nnz());
  out.extra["residual_rows"] =
      static_cast<double>(residual_row.size()) - static_cast<double>(residual_offset[1]);
  out.extra["gathered_rows_of_b"] =
      static_cast<double>(groups()) * kGroupColumns + static_cast<double>(residual_col.size());
  return out;
}

SPMMBENCH_REGISTER_FORMAT(RsTileFormat);

}  // namespace spmmbench
