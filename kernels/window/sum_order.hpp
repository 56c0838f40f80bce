#pragma once
// The order in which the window engine adds up an element of C (window/multiply.cuh).

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/tile_work.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/sum_order.hpp"

namespace spmmbench::window {

// Of a row of A in this window, whose tiles begin with `first_tile` and have these columns. One
// instruction takes a tile; in tf32 the first two of every four columns, then the others. The warps
// of a team have a part each. None where several CTAs share the window: they add as they come.
inline std::optional<SumOrder> sum_order(const CsrMatrix& a, std::int64_t row, Precision precision,
                                         std::span<const std::int32_t> columns, std::int32_t window,
                                         std::int32_t first_tile, const TileWork& work) {
  constexpr std::int32_t kOfTile = 16;  // columns
  const auto tiles = static_cast<std::int32_t>(columns.size()) / kOfTile;
  std::vector<std::int32_t> ends;  // of the parts, in the window's tiles
  for (const TileSpan& span : work.spans) {
    if ((span.tiles & TileSpan::kShared) == 0 || span.first_window != window) continue;
    if (span.split >= 0) return std::nullopt;
    ends.push_back(span.first_tile + (span.tiles & ~TileSpan::kShared) - first_tile);
  }
  if (ends.empty()) ends.push_back(tiles);
  const auto begin = a.col_idx.begin() + a.row_ptr[row],
             end = a.col_idx.begin() + a.row_ptr[row + 1];
  const int steps = precision == Precision::tf32 ? 2 : 1;
  SumOrder order;
  auto part = ends.begin();
  for (std::int32_t tile = 0; tile < tiles; ++tile) {
    for (int step = 0; step < steps; ++step) {
      for (std::int32_t i = 0; i < kOfTile; ++i) {
        if (i % 4 / 2 % steps != step) continue;
        const std::int32_t column = columns[tile * kOfTile + i];
        const auto at = std::lower_bound(begin, end, column);
        if (at != end && *at == column) order.entries.push_back(at - a.col_idx.begin());
      }
      order.instructions.push_back(order.entries.size());
    }
    for (; part != ends.end() && *part == tile + 1; ++part)
      order.parts.push_back(order.instructions.size());
  }
  return order;
}

}  // namespace spmmbench::window
