#include "format/wcsr.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "core/parallel.hpp"
#include "core/row_lengths.hpp"
#include "format/window_columns.hpp"
#include "reorder/threads.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

const auto kWindow = choice_option<int>("window", "8", {"8", "16", "32", "64"}, "rows per window");
const auto kTile = choice_option<int>("tile", "16", {"16", "64"}, "packed columns per tile");
const auto kValues =
    choice_option("values", "fp32", {"fp32", "fp16", "bf16"}, "type of the stored values");

class WcsrFormat final : public Format {
 public:
  std::string name() const override { return "wcsr"; }
  std::string summary() const override {
    return "row windows with packed columns, dense tiles over them (AsyncSparse)";
  }
  std::vector<OptionSpec> options() const override { return {kWindow, kTile, kValues}; }
  FormatStats analyze(const CsrMatrix& matrix, const Options& options) const override {
    WcsrShape shape;
    shape.window_rows = kWindow(options);
    shape.tile_columns = kTile(options);
    shape.value_type = parse_element_type(kValues(options));
    return Wcsr::build(matrix, shape).stats();
  }
};

}  // namespace

Wcsr Wcsr::build(const CsrMatrix& matrix, const WcsrShape& shape, Permutation row_order) {
  Wcsr out;
  out.rows = matrix.rows;
  out.cols = matrix.cols;
  out.nnz = matrix.nnz();
  out.shape = shape;
  out.row_order = std::move(row_order);
  const int height = shape.window_rows, width = shape.tile_columns;
  const std::int64_t windows = (out.places() + height - 1) / height;
  const auto places = [&](std::int64_t w) {
    return std::pair{w * height, std::min(out.places(), (w + 1) * height)};
  };

  const int threads = threads_for_tables(matrix, WindowColumns::bytes(matrix.cols));
  const auto for_each_window = [&](const auto& body) {
    for_each_with_table(
        windows, 256, threads, [&] { return WindowColumns(matrix.cols); }, body);
  };

  std::vector<std::int64_t> tile_end(windows + 1, 0);
  for_each_window([&](WindowColumns& columns, std::int64_t w) {
    const auto [first, last] = places(w);
    for (std::int64_t place = first; place < last; ++place) columns.add_row(matrix, out.row(place));
    tile_end[w + 1] = std::max<std::int64_t>(1, (columns.count() + width - 1) / width);
    columns.clear();
  });
  std::partial_sum(tile_end.begin(), tile_end.end(), tile_end.begin());
  if (tile_end[windows] > std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("WCSR: {} tiles, at most 2^31 - 1", tile_end[windows]));
  out.window_ptr.assign(tile_end.begin(), tile_end.end());
  out.col_idx.assign(tile_end[windows] * width, kPadding);
  const std::int64_t tile_values = std::int64_t{height} * width;
  const bool wide = bytes_of(shape.value_type) == sizeof(float);
  (wide ? out.values32.resize(tile_end[windows] * tile_values)
        : out.values16.resize(tile_end[windows] * tile_values));

  for_each_window([&](WindowColumns& columns, std::int64_t w) {
    const auto [first, last] = places(w);
    for (std::int64_t place = first; place < last; ++place) columns.add_row(matrix, out.row(place));
    columns.sorted(out.col_idx.data() + tile_end[w] * width);
    for (std::int64_t place = first; place < last; ++place) {
      const std::int64_t row = out.row(place);
      for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
        const std::int32_t rank = columns.rank(matrix.col_idx[e]);
        const std::int64_t at =
            (tile_end[w] + rank / width) * tile_values + (place - first) * width + rank % width;
        if (wide)
          out.values32[at] =
              std::bit_cast<float>(mark_entry(std::bit_cast<std::uint32_t>(matrix.values[e])));
        else
          out.values16[at] =
              mark_entry(static_cast<std::uint16_t>(encode(shape.value_type, matrix.values[e])));
      }
    }
    columns.clear();
  });
  return out;
}

CsrMatrix Wcsr::unpack() const {
  CsrMatrix out{rows, cols, std::vector<std::int64_t>(rows + 1, 0), {}, {}};
  const bool wide = bytes_of(shape.value_type) == sizeof(float);
  const auto for_each_entry = [&](auto&& visit) {
    for (std::int64_t w = 0; w < windows(); ++w)
      for (std::int64_t t = window_ptr[w]; t < window_ptr[w + 1]; ++t)
        for (int i = 0; i < shape.window_rows; ++i)
          for (int j = 0; j < shape.tile_columns; ++j) {
            const std::int64_t at = (t * shape.window_rows + i) * shape.tile_columns + j;
            const bool entry =
                wide ? std::bit_cast<std::uint32_t>(values32[at]) != 0 : values16[at] != 0;
            if (!entry) continue;
            const float value = wide ? values32[at] : decode(shape.value_type, values16[at]);
            visit(row(w * shape.window_rows + i), col_idx[t * shape.tile_columns + j],
                  value == 0 ? 0.0F : value);
          }
  };
  for_each_entry([&](std::int64_t row, std::int32_t, float) { ++out.row_ptr[row + 1]; });
  std::partial_sum(out.row_ptr.begin(), out.row_ptr.end(), out.row_ptr.begin());
  out.col_idx.resize(out.nnz());
  out.values.resize(out.nnz());
  // Tiles ascend in columns within a window, so a row's entries come in column order.
  std::vector<std::int64_t> cursor(out.row_ptr.begin(), out.row_ptr.end() - 1);
  for_each_entry([&](std::int64_t row, std::int32_t col, float value) {
    out.col_idx[cursor[row]] = col;
    out.values[cursor[row]++] = value;
  });
  return out;
}

std::optional<NonemptyRows> leave_out_empty_rows(const CsrMatrix& matrix,
                                                 const Permutation& row_order) {
  if (matrix.nnz() == 0 || share_of_empty_rows(matrix) < kLeastEmptyShare) return std::nullopt;
  NonemptyRows out;
  out.row_order.reserve(std::min(matrix.rows, matrix.nnz()));
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    if (matrix.row_length(row) == 0) out.empty.push_back(static_cast<std::int32_t>(row));
    else if (row_order.empty()) out.row_order.push_back(static_cast<std::int32_t>(row));
  for (const std::int32_t row : row_order)
    if (matrix.row_length(row) > 0) out.row_order.push_back(row);
  return out;
}

FormatStats Wcsr::stats() const {
  const auto padding = std::count(col_idx.begin(), col_idx.end(), kPadding);
  return wcsr_stats(shape, nnz, sizes_of(window_ptr),
                    static_cast<std::int64_t>(col_idx.size()) - padding,
                    static_cast<std::int64_t>(4 * row_order.size()));
}

FormatStats wcsr_stats(const WcsrShape& shape, std::int64_t nnz, const WindowSizes& sizes,
                       std::int64_t gathered, std::int64_t order_bytes) {
  FormatStats out;
  out.name = "wcsr";
  out.windows = sizes.windows;
  out.tiles = sizes.tiles;
  out.index_bytes = order_bytes + 4 * (out.windows + 1 + out.tiles * shape.tile_columns);
  out.stored = out.tiles * shape.window_rows * shape.tile_columns;
  out.bytes = out.index_bytes + out.stored * static_cast<std::int64_t>(bytes_of(shape.value_type));
  if (out.tiles > 0) {
    out.fill = static_cast<double>(nnz) / static_cast<double>(out.stored);
    out.nnz_per_tile = static_cast<double>(nnz) / static_cast<double>(out.tiles);
    out.nnz_per_window = static_cast<double>(nnz) / static_cast<double>(out.windows);
    out.window_imbalance = static_cast<double>(sizes.longest) * static_cast<double>(out.windows) /
                           static_cast<double>(out.tiles);
  }
  out.extra["gathered_rows_of_b"] = static_cast<double>(gathered);
  return out;
}

SPMMBENCH_REGISTER_FORMAT(WcsrFormat);

}  // namespace spmmbench
