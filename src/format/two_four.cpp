#include "format/two_four.hpp"

#include <algorithm>
#include <array>

#include "core/two_of_four.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

using Halves = std::uint16_t;
constexpr Halves kFirstPair = 0b0100;  // indices 0 and 1, of an empty group
constexpr Halves kEmptyGroups = 0x1111 * kFirstPair;

// The nonzeros of one group of a row.
struct GroupEntries {
  std::array<std::int64_t, TwoFour::kGroup> at;  // among the entries of the matrix
  int count = 0;
};

// Calls `take(first_col, group)` for each group of a row that has nonzeros, in their order.
template <class Take>
void walk_groups(const CsrMatrix& matrix, std::int64_t row, Take&& take) {
  const std::int64_t end = matrix.row_ptr[row + 1];
  for (std::int64_t i = matrix.row_ptr[row]; i < end;) {
    const std::int32_t first_col = matrix.col_idx[i] / TwoFour::kGroup * TwoFour::kGroup;
    GroupEntries group;
    for (; i < end && matrix.col_idx[i] - first_col < TwoFour::kGroup; ++i)
      if (matrix.values[i] != 0) group.at[group.count++] = i;
    if (group.count > 0) take(first_col, group);
  }
}

// The two slots of a group: the entries that they hold, or -1 for a zero, and their indices.
struct Slots {
  std::array<std::int64_t, TwoFour::kKept> at;
  std::array<int, TwoFour::kKept> index;
};
Slots slots_of(const CsrMatrix& matrix, const GroupEntries& group) {
  const auto index = [&](int i) { return matrix.col_idx[group.at[i]] % TwoFour::kGroup; };
  constexpr int kLast = TwoFour::kGroup - 1;
  if (group.count == TwoFour::kKept) return {{group.at[0], group.at[1]}, {index(0), index(1)}};
  if (index(0) == kLast) return {{-1, group.at[0]}, {0, kLast}};
  return {{group.at[0], -1}, {index(0), kLast}};
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
  const std::int64_t blocks = panel_blocks(matrix.cols), panel_count = panels(matrix.rows);
  out.blocks.resize(panel_count * blocks * kBlockHalves);
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t panel = 0; panel < panel_count; ++panel) {
    Halves* const first = out.blocks.data() + panel * blocks * kBlockHalves;
    for (std::int64_t block = 0; block < blocks; ++block)
      std::fill_n(first + block * kBlockHalves + kValueHalves, kIndexHalves, kEmptyGroups);
    const std::int64_t last_row = std::min(matrix.rows, (panel + 1) * kRows);
    for (std::int64_t row = panel * kRows; row < last_row; ++row) {
      const auto r = static_cast<int>(row % kRows);
      walk_groups(matrix, row, [&](std::int32_t first_col, const GroupEntries& group) {
        Halves* const to = first + first_col / kCols * std::int64_t{kBlockHalves};
        const int col = first_col % kCols;
        const Slots slots = slots_of(matrix, group);
        for (int slot = 0; slot < kKept; ++slot)
          if (slots.at[slot] >= 0)
            to[value_at(r, col, slot)] =
                static_cast<Halves>(encode(type, matrix.values[slots.at[slot]]));
        const int pair = slots.index[0] | slots.index[1] << 2;
        to[indices_at(r, col)] ^= static_cast<Halves>((pair ^ kFirstPair) << index_shift(col));
      });
    }
  }
  return out;
}

CsrMatrix TwoFour::unpack() const {
  CsrMatrix out{rows, cols, {0}, {}, {}};
  const std::int64_t row_blocks = panel_blocks(cols);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto r = static_cast<int>(row % kRows);
    for (std::int64_t block = 0; block < row_blocks; ++block) {
      const Halves* const from = blocks.data() + (row / kRows * row_blocks + block) * kBlockHalves;
      for (int col = 0; col < kCols; col += kGroup)
        for (int slot = 0; slot < kKept; ++slot) {
          const float value = decode(type, from[value_at(r, col, slot)]);
          if (value == 0) continue;
          const int index = from[indices_at(r, col)] >> (index_shift(col) + 2 * slot) & 3;
          out.col_idx.push_back(static_cast<std::int32_t>(block * kCols + col + index));
          out.values.push_back(value);
        }
    }
    out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
  }
  return out;
}

FormatStats TwoFour::stats() const {
  FormatStats out;
  out.name = "two_four";
  out.tiles = static_cast<std::int64_t>(blocks.size()) / kBlockHalves;
  out.windows = panels(rows);
  out.stored = out.tiles * kValueHalves;
  out.index_bytes = out.tiles * kIndexHalves * std::int64_t{sizeof(Halves)};
  out.bytes = out.tiles * kBlockBytes;
  if (out.tiles == 0) return out;
  const auto entries = static_cast<double>(nnz);
  out.fill = entries / static_cast<double>(out.stored);
  out.nnz_per_tile = entries / static_cast<double>(out.tiles);
  out.nnz_per_window = entries / static_cast<double>(out.windows);
  out.window_imbalance = 1;
  return out;
}

}  // namespace spmmbench
