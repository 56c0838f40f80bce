#include "two_four/format.hpp"

#include <algorithm>
#include <array>

#include "core/two_of_four.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench::two_four {
namespace {

constexpr int kGroup = TwoFourBlock<2>::kGroup, kKept = TwoFourBlock<2>::kKept;
constexpr int kFirstPair = 0b0100;  // indices 0 and 1, of an empty group
constexpr unsigned char kEmptyGroups = 0x11 * kFirstPair;

// The nonzeros of one group of a row.
struct GroupEntries {
  std::array<std::int64_t, kGroup> at;  // among the entries of the matrix
  int count = 0;
};

// Calls `take(first_col, group)` for each group of a row that has nonzeros, in their order.
template <class Take>
void walk_groups(const CsrMatrix& matrix, std::int64_t row, Take&& take) {
  const std::int64_t end = matrix.row_ptr[row + 1];
  for (std::int64_t i = matrix.row_ptr[row]; i < end;) {
    const std::int32_t first_col = matrix.col_idx[i] / kGroup * kGroup;
    GroupEntries group;
    for (; i < end && matrix.col_idx[i] - first_col < kGroup; ++i)
      if (matrix.values[i] != 0) group.at[group.count++] = i;
    if (group.count > 0) take(first_col, group);
  }
}

// The two slots of a group: the entries that they hold, or -1 for a zero, and their indices.
struct Slots {
  std::array<std::int64_t, kKept> at;
  std::array<int, kKept> index;
};
Slots slots_of(const CsrMatrix& matrix, const GroupEntries& group) {
  const auto index = [&](int i) { return matrix.col_idx[group.at[i]] % kGroup; };
  constexpr int kLast = kGroup - 1;
  if (group.count == kKept) return {{group.at[0], group.at[1]}, {index(0), index(1)}};
  if (index(0) == kLast) return {{-1, group.at[0]}, {0, kLast}};
  return {{group.at[0], -1}, {index(0), kLast}};
}

// Writes the rows of a panel to its blocks, which are zero.
template <class Block>
void build_panel(const CsrMatrix& matrix, std::int64_t panel, std::int64_t blocks, ElementType type,
                 unsigned char* first) {
  for (std::int64_t block = 0; block < blocks; ++block)
    std::fill_n(first + block * Block::kBlockBytes + Block::kValueBytes, Block::kIndexBytes,
                kEmptyGroups);
  const std::int64_t last_row = std::min(matrix.rows, (panel + 1) * Block::kRows);
  for (std::int64_t row = panel * Block::kRows; row < last_row; ++row) {
    const auto r = static_cast<int>(row % Block::kRows);
    walk_groups(matrix, row, [&](std::int32_t first_col, const GroupEntries& group) {
      unsigned char* const to = first + first_col / Block::kCols * std::int64_t{Block::kBlockBytes};
      const int col = first_col % Block::kCols;
      const Slots slots = slots_of(matrix, group);
      for (int slot = 0; slot < kKept; ++slot)
        if (slots.at[slot] >= 0)
          store_element(type, to + Block::value_at(r, col, slot), 0, matrix.values[slots.at[slot]]);
      const int pair = slots.index[0] | slots.index[1] << 2;
      const int shift = Block::index_shift(col);
      to[Block::indices_at(r, col) + shift / 8] ^=
          static_cast<unsigned char>((pair ^ kFirstPair) << shift % 8);
    });
  }
}

// Appends the entries of a row of the panel.
template <class Block>
void unpack_row(const TwoFour& format, std::int64_t row, CsrMatrix& out) {
  const std::int64_t blocks = TwoFour::panel_blocks(format.cols, format.type);
  const auto r = static_cast<int>(row % Block::kRows);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const unsigned char* const from =
        format.blocks.data() + (row / Block::kRows * blocks + block) * Block::kBlockBytes;
    for (int col = 0; col < Block::kCols; col += kGroup)
      for (int slot = 0; slot < kKept; ++slot) {
        const double value = load_element(format.type, from + Block::value_at(r, col, slot), 0);
        if (value == 0) continue;
        const int shift = Block::index_shift(col);
        const int pair = from[Block::indices_at(r, col) + shift / 8] >> shift % 8;
        out.col_idx.push_back(
            static_cast<std::int32_t>(block * Block::kCols + col + (pair >> 2 * slot & 3)));
        out.values.push_back(static_cast<float>(value));
      }
  }
}

}  // namespace

TwoFour TwoFour::build(const CsrMatrix& matrix, ElementType type) {
  if (first_row_beyond_two_of_four(matrix))
    throw Unsupported("two_four: a group of four columns has more than two nonzeros");
  TwoFour out;
  out.rows = matrix.rows;
  out.cols = matrix.cols;
  out.nnz = matrix.nnz();
  out.type = type;
  out.blocks.resize(bytes(matrix.rows, matrix.cols, type));
  const std::int64_t blocks = panel_blocks(matrix.cols, type), panel_count = panels(matrix.rows);
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t panel = 0; panel < panel_count; ++panel)
    visit_two_four_block(type, [&](auto block) {
      build_panel<decltype(block)>(matrix, panel, blocks, type,
                                   out.blocks.data() + panel * blocks * block.kBlockBytes);
    });
  return out;
}

CsrMatrix TwoFour::unpack() const {
  CsrMatrix out{rows, cols, {0}, {}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    visit_two_four_block(type, [&](auto block) { unpack_row<decltype(block)>(*this, row, out); });
    out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
  }
  return out;
}

FormatStats TwoFour::stats() const {
  FormatStats out;
  out.name = "two_four";
  out.windows = panels(rows);
  out.tiles = out.windows * panel_blocks(cols, type);
  visit_two_four_block(type, [&](auto block) {
    out.stored = out.tiles * block.kRows * block.kRowValues;
    out.index_bytes = out.tiles * block.kIndexBytes;
    out.bytes = out.tiles * block.kBlockBytes;
  });
  if (out.tiles == 0) return out;
  const auto entries = static_cast<double>(nnz);
  out.fill = entries / static_cast<double>(out.stored);
  out.nnz_per_tile = entries / static_cast<double>(out.tiles);
  out.nnz_per_window = entries / static_cast<double>(out.windows);
  out.window_imbalance = 1;
  return out;
}

}  // namespace spmmbench::two_four
