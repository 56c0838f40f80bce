#pragma once
// Which CTA multiplies which steps of which panels, in pieces.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bitmap_dense/work.hpp"

namespace spmmbench::bitmap_dense {

struct Tiling {
  int panel_fragments;  // a panel has 16 times as many rows
  int warps;            // of a CTA, each with a panel of its own
  int tile_columns;     // of C
};

struct Schedule {
  std::vector<BitmapQueues::Range> ranges;  // in the order of the segments
  std::vector<Piece> pieces;
  std::vector<std::int32_t> piece_ptr = {0};  // of a block
  std::int32_t tiles = 0;                     // panels of partial sums in the workspace
  std::int32_t arrivals = 0;                  // counters

  int blocks() const { return static_cast<int>(piece_ptr.size()) - 1; }
};

// Adds the segments of `warps` panels.
inline std::int32_t add_segments(Schedule& out, const Tiling& tiling, std::int64_t group,
                                 std::int64_t first_unit, std::int64_t units) {
  const auto first = static_cast<std::int32_t>(out.ranges.size());
  for (int warp = 0; warp < tiling.warps; ++warp)
    out.ranges.push_back({static_cast<std::int32_t>(group * tiling.warps + warp),
                          static_cast<std::int32_t>(first_unit * BitmapQueues::kGroupSteps),
                          static_cast<std::int32_t>(units * BitmapQueues::kGroupSteps)});
  return first;
}

inline Piece make_piece(const Tiling& tiling, std::int32_t first_segment, std::int64_t group,
                        std::int64_t first_unit, std::int64_t units, int part) {
  Piece piece{};
  piece.first_segment = first_segment;
  piece.first_step = static_cast<std::int32_t>(first_unit * BitmapQueues::kGroupSteps);
  piece.steps = static_cast<std::int32_t>(units * BitmapQueues::kGroupSteps);
  piece.part = part;
  piece.first_panel = static_cast<std::int32_t>(group * tiling.warps);
  return piece;
}

// One tile of columns: every CTA takes the same number of units (groups of steps), wherever panels
// end.
inline Schedule share_evenly(const Tiling& tiling, std::int64_t groups, std::int64_t units,
                             std::int64_t blocks) {
  Schedule out;
  constexpr std::int64_t kLeastUnits = 2;  // less than that costs more to join than to multiply
  const std::int64_t total = groups * units;
  blocks = std::min(blocks, std::max(groups, total / kLeastUnits));
  std::vector<std::int32_t> parts(groups);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t end = total * (block + 1) / blocks;
    for (std::int64_t at = total * block / blocks; at < end;) {
      const std::int64_t group = at / units, first = at % units;
      const std::int64_t count = std::min(end - at, units - first);
      const std::int32_t segment = add_segments(out, tiling, group, first, count);
      out.pieces.push_back(make_piece(tiling, segment, group, first, count, parts[group]++));
      at += count;
    }
    out.piece_ptr.push_back(static_cast<std::int32_t>(out.pieces.size()));
  }
  std::vector<std::int32_t> tile(groups);
  for (std::int64_t group = 0; group < groups; ++group) {
    tile[group] = out.tiles;
    if (parts[group] > 1) out.tiles += parts[group] * tiling.warps;
  }
  for (Piece& piece : out.pieces) {
    const std::int64_t group = piece.first_panel / tiling.warps;
    piece.parts = parts[group];
    piece.tile = tile[group];
    piece.arrival = piece.first_panel;
  }
  out.arrivals = static_cast<std::int32_t>(groups) * tiling.warps;
  return out;
}

// The number of parts of k with which `items` pieces of `units` fill the rounds of `blocks` CTAs
// best.
inline std::int64_t choose_parts(std::int64_t items, std::int64_t units, std::int64_t blocks) {
  constexpr std::int64_t kPieceUnits = 1;  // the cost of beginning and ending a piece
  constexpr std::int64_t kMostParts = 8;
  std::int64_t best = 1, least = INT64_MAX;
  for (std::int64_t parts = 1; parts <= std::min(kMostParts, units); ++parts) {
    const std::int64_t rounds = (items * parts + blocks - 1) / blocks;
    const std::int64_t cost =
        rounds * ((units + parts - 1) / parts + kPieceUnits + (parts > 1 ? kPieceUnits : 0));
    if (cost < least) {
      least = cost;
      best = parts;
    }
  }
  return best;
}

// Several tiles of columns, which all read the same segments.
inline Schedule share_tiles(const Tiling& tiling, std::int64_t groups, std::int64_t units,
                            std::int64_t column_tiles, std::int64_t blocks) {
  Schedule out;
  const std::int64_t parts = choose_parts(groups * column_tiles, units, blocks);
  std::vector<Piece> items;
  for (std::int64_t group = 0; group < groups; ++group)
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t first = units * part / parts, count = units * (part + 1) / parts - first;
      const std::int32_t segment = add_segments(out, tiling, group, first, count);
      for (std::int64_t column = 0; column < column_tiles; ++column) {
        Piece piece = make_piece(tiling, segment, group, first, count, static_cast<int>(part));
        const std::int64_t place = (group * column_tiles + column) * tiling.warps;
        piece.parts = static_cast<std::int32_t>(parts);
        piece.column = static_cast<std::int32_t>(column * tiling.tile_columns);
        piece.arrival = static_cast<std::int32_t>(place);
        piece.tile = static_cast<std::int32_t>(place * parts);
        items.push_back(piece);
      }
    }
  const auto count = static_cast<std::int64_t>(items.size());
  blocks = std::min(blocks, count);
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::int64_t i = block; i < count; i += blocks) out.pieces.push_back(items[i]);
    out.piece_ptr.push_back(static_cast<std::int32_t>(out.pieces.size()));
  }
  out.arrivals = static_cast<std::int32_t>(groups * column_tiles * tiling.warps);
  if (parts > 1) out.tiles = static_cast<std::int32_t>(out.arrivals * parts);
  return out;
}

inline Schedule make_schedule(const Tiling& tiling, std::int64_t rows, std::int64_t cols,
                              std::int64_t n, std::int64_t blocks) {
  const std::int64_t panels = BitmapQueues::panels(rows, tiling.panel_fragments);
  const std::int64_t groups = (panels + tiling.warps - 1) / tiling.warps;
  const std::int64_t units =
      BitmapQueues::panel_steps(cols, tiling.panel_fragments) / BitmapQueues::kGroupSteps;
  if (groups * units * n == 0) return {};
  const std::int64_t column_tiles = (n + tiling.tile_columns - 1) / tiling.tile_columns;
  return column_tiles == 1 ? share_evenly(tiling, groups, units, blocks)
                           : share_tiles(tiling, groups, units, column_tiles, blocks);
}

}  // namespace spmmbench::bitmap_dense
