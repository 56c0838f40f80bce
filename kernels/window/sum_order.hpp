#pragma once
// The order in which the window engine adds up an element of C (window/multiply.cuh, and for a
// vector async_wcsr/multiply_vector.cuh).

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "format/tile_work.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/sum_order.hpp"

namespace spmmbench::window {

struct WindowOfRow {
  std::span<const std::int32_t> columns;  // of its tiles, kOfTile each
  std::int32_t window;
  std::int32_t first_tile;
};

// What of a launch decides the order.
struct SumRules {
  Precision precision;
  int team;         // warps that share a window
  bool ordered;     // as in Arguments
  bool for_vector;  // N = 1: tile i of a warp is added to sum i % 8 of eight, which are then added
                    // by pairs
};

// The spans that share a window, or the one that has all of it.
inline std::span<const TileSpan> spans_of(const TileWork& work, const WindowOfRow& w) {
  const auto is_shared = [](const TileSpan& s) { return (s.tiles & TileSpan::kShared) != 0; };
  const auto begin = work.spans.begin(), end = work.spans.end();
  const auto whole = std::partition_point(begin, end, is_shared);  // shared ones come first
  const auto is_of_window = [&](const TileSpan& s) { return s.first_window == w.window; };
  const auto first = std::find_if(begin, whole, is_of_window);
  if (first != whole) return {first, std::find_if_not(first, whole, is_of_window)};
  const auto after = std::partition_point(
      whole, end, [&](const TileSpan& s) { return s.tiles > 0 && s.first_tile <= w.first_tile; });
  return {after - 1, after};
}

// Adds a tile's instructions: one, or in tf32 the first two of every four columns, then the others.
inline void add_tile(const CsrMatrix& a, std::int64_t row, Precision precision,
                     std::span<const std::int32_t> columns, SumOrder& order) {
  const auto begin = a.col_idx.begin() + a.row_ptr[row],
             end = a.col_idx.begin() + a.row_ptr[row + 1];
  const bool halves = precision == Precision::tf32;
  for (std::size_t step = 0; step < (halves ? 2 : 1); ++step) {
    // Columns of a tile are few and mostly ascend, so that the next entry is near.
    auto at = std::lower_bound(begin, end, columns.front());
    std::int32_t last = columns.front();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (halves && i / 2 % 2 != step) continue;
      if (columns[i] < last) at = std::lower_bound(begin, end, columns[i]);
      last = columns[i];
      while (at != end && *at < last) ++at;
      if (at != end && *at == last) order.entries.push_back(at - a.col_idx.begin());
    }
    order.instructions.push_back(order.entries.size());
  }
}

// How a row of A in this window is summed. Each span is a part; for a vector it is eight parts, and
// those of one sum of all spans are neighbours.
inline SumOrder sum_order(const CsrMatrix& a, std::int64_t row, const WindowOfRow& w,
                          const TileWork& work, const SumRules& rules) {
  constexpr std::int32_t kOfTile = 16;  // columns
  const std::span<const TileSpan> spans = spans_of(work, w);
  const std::int32_t sums = rules.for_vector ? 8 : 1;
  const auto window_end = w.first_tile + static_cast<std::int32_t>(w.columns.size()) / kOfTile;
  SumOrder order;
  order.on_cuda_cores = rules.precision == Precision::fp32;
  order.entries.reserve(a.row_length(row));
  order.instructions.reserve(w.columns.size() / kOfTile);
  for (std::int32_t sum = 0; sum < sums; ++sum)
    for (const TileSpan& span : spans) {
      const std::int32_t end = span.first_tile + (span.tiles & ~TileSpan::kShared);
      for (std::int32_t tile = span.first_tile + sum; tile < std::min(end, window_end);
           tile += sums) {
        if (tile >= w.first_tile)
          add_tile(a, row, rules.precision,
                   w.columns.subspan((tile - w.first_tile) * kOfTile, kOfTile), order);
      }
      order.parts.push_back(order.instructions.size());
    }
  if (spans.size() > 1) order.levels.push_back({static_cast<std::size_t>(rules.team)});
  if (spans.front().split >= 0) order.levels.push_back({spans.size() / rules.team, !rules.ordered});
  for (std::int32_t pairs = sums; pairs > 1; pairs /= 2) order.levels.push_back({2});
  return order;
}

}  // namespace spmmbench::window
