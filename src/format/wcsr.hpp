#pragma once
// WCSR (AsyncSparse, arXiv 2604.17834): windows of rows whose distinct columns are packed, the
// window's part of A stored dense over its packed columns.
//
//               tile_columns    tile_columns
//               +-------------+-------------+
//   window_rows |   tile 0    |   tile 1    |   one window of two tiles; a tile is a row-major box
//               +-------------+-------------+
//   col_idx       c0 c1 .. c15  c16 .. -1 -1    ascending in a window, padded with kPadding
//
// A tile's box is contiguous: it is a plain dense box for bulk copies, and a lane of
// mma.m16n8k16 finds the four values of its fragment side by side (see
// kernels/async_wcsr/async_wcsr.cu). Padding holds +0. An entry whose value is zero is stored as
// -0, so that unpack() can tell the two apart; the sign of a zero entry is the only thing not kept.

#include <cstdint>
#include <optional>
#include <vector>

#include "format/tile_work.hpp"
#include "spmmbench/format.hpp"
#include "spmmbench/host_device.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {

// A stored zero becomes -0, since padding is +0. `stored`: the bits of a value.
template <class Bits>
SPMMBENCH_HOST_DEVICE constexpr Bits mark_entry(Bits stored) {
  constexpr Bits kMinusZero = Bits{1} << (8 * sizeof(Bits) - 1);
  return stored == 0 ? kMinusZero : stored;
}

struct WcsrShape {
  int window_rows = 8;
  int tile_columns = 16;  // packed columns of a tile: the k step
  ElementType value_type = ElementType::f32;

  bool operator==(const WcsrShape&) const = default;
};

struct Wcsr {
  static constexpr std::int32_t kPadding = -1;

  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  WcsrShape shape;
  // Place -> row; empty: the matrix's own order. Rows without nonzeros need no place.
  Permutation row_order;
  std::vector<std::int32_t> window_ptr;  // windows + 1, in tiles; every window has at least one
  std::vector<std::int32_t> col_idx;     // tiles * tile_columns
  std::vector<std::uint16_t> values16;   // tiles * window_rows * tile_columns, f16 or bf16
  std::vector<float> values32;           // the same for f32; the other one is empty

  std::int64_t windows() const { return static_cast<std::int64_t>(window_ptr.size()) - 1; }
  std::int64_t tiles() const { return window_ptr.back(); }
  std::int64_t places() const {
    return row_order.empty() ? rows : static_cast<std::int64_t>(row_order.size());
  }
  std::int64_t row(std::int64_t place) const {
    return row_order.empty() ? place : row_order[place];
  }

  // Parallel; the same result whatever the thread count. Values must be exact in `value_type`.
  // Throws Error when the tiles do not fit 31 bits.
  static Wcsr build(const CsrMatrix& matrix, const WcsrShape& shape, Permutation row_order = {});
  CsrMatrix unpack() const;
  FormatStats stats() const;
  bool operator==(const Wcsr&) const = default;
};

struct NonemptyRows {
  Permutation row_order;            // the rows with nonzeros
  std::vector<std::int32_t> empty;  // the others, ascending
};

// The other rows get an order of their own from this share of empty rows on, as a sample shows it.
inline constexpr double kLeastEmptyShare = 1.0 / 8;
// `row_order` (empty: the matrix's own order) without the rows that have no nonzeros, so that
// windows need not store them. Nothing where the share of empty rows is below kLeastEmptyShare, or
// where all rows are empty.
std::optional<NonemptyRows> leave_out_empty_rows(const CsrMatrix& matrix,
                                                 const Permutation& row_order);

// Stats of a WCSR matrix that need not be on the host; `gathered` is the distinct columns, summed
// over the windows, and `order_bytes` the size of its row order.
FormatStats wcsr_stats(const WcsrShape& shape, std::int64_t nnz, const WindowSizes& sizes,
                       std::int64_t gathered, std::int64_t order_bytes);

}  // namespace spmmbench
