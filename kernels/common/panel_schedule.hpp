#pragma once
// Which CTA multiplies which steps of which panels of A, in pieces. A panel is the rows of one
// warp, a group the panels of all warps of a CTA, a unit the least number of steps of k that a
// piece may have.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace spmmbench {

// The same steps of the panels of a group, times one tile of columns of C.
struct PanelPiece {
  std::int32_t first_range;  // of the schedule's ranges: the first panel's
  std::int32_t steps;
  std::int32_t first_step;
  std::int32_t part, parts;  // of the panels' sums
  std::int32_t bundle;       // parts that are added together
  std::int32_t tile;  // of the first panel's part 0 in the workspace; panels are `parts` apart
  std::int32_t first_panel;
  std::int32_t column;  // first of C's tile
};

// Where the parts of sums wait. Parts are added in levels, `bundle` neighbours at a time:
//
//   parts of a panel   0 1 2 3   4 5 6 7   8 9        bundle = 4
//   level 0            0         4         8          sums of bundles, each by its last warp
//   level 1            0                              sum of all, by the last of those warps
struct PanelWorkspace {
  float* partial;  // [tile][fragment of rows][column tile of 8][lane][4]
  // One for each bundle of a panel, level after level, from the panel's first tile on: there are
  // fewer bundles than parts. All zero between launches.
  unsigned* arrivals;
};

struct PanelTiling {
  int warps;         // of a CTA, each with a panel of its own
  int tile_columns;  // of C
  int unit_steps;
  int piece_units = 0;  // what it costs to begin and to end a piece, with one tile of columns
  int least_units = 2;  // of a block: less costs more to join than to multiply
  int part_units = 1;  // what each part of a cut panel costs to join, with several tiles of columns
};

struct PanelSchedule {
  struct Range {
    std::int32_t panel, first_step, steps;
  };
  std::vector<Range> ranges;  // pieces that differ only in their columns share them
  std::vector<PanelPiece> pieces;
  std::vector<std::int32_t> piece_ptr = {0};  // of a CTA
  // Panels of partial sums in the workspace, each with a counter of arrivals.
  std::int32_t tiles = 0;

  int blocks() const { return static_cast<int>(piece_ptr.size()) - 1; }
};

// The size of bundles with which the last warp is done soonest.
inline std::int32_t choose_bundle(std::int32_t parts) {
  // A level's store, fence and count, in parts that are added: on an H200 12 parts of 64 x 8 sums
  // take 1.5 us more in two levels (docs/decisions/bitmap-dense.md).
  constexpr int kArrivalCost = 8;
  std::int32_t best = parts;
  int least = parts + kArrivalCost;
  for (std::int32_t bundle = 2; bundle < parts; ++bundle) {
    int cost = 0;
    for (int left = parts; left > 1; left = (left + bundle - 1) / bundle)
      cost += std::min(left, bundle) + kArrivalCost;
    if (cost >= least) continue;
    least = cost;
    best = bundle;
  }
  return best;
}

// A piece without its part and its places, and its ranges.
inline PanelPiece add_range(PanelSchedule& out, const PanelTiling& tiling, std::int64_t group,
                            std::int64_t first_unit, std::int64_t units) {
  PanelPiece piece{};
  piece.first_range = static_cast<std::int32_t>(out.ranges.size());
  piece.first_step = static_cast<std::int32_t>(first_unit * tiling.unit_steps);
  piece.steps = static_cast<std::int32_t>(units * tiling.unit_steps);
  piece.first_panel = static_cast<std::int32_t>(group * tiling.warps);
  for (int warp = 0; warp < tiling.warps; ++warp)
    out.ranges.push_back({piece.first_panel + warp, piece.first_step, piece.steps});
  return piece;
}

// One tile of columns: every block gets the same work, wherever panels end. A group counts
// `piece_units` more than its units, so a block in whose share a group begins, and which thus has a
// further piece, gets fewer units.
inline PanelSchedule share_evenly(const PanelTiling& tiling, std::int64_t groups,
                                  std::int64_t units, std::int64_t blocks) {
  PanelSchedule out;
  const std::int64_t length = units + tiling.piece_units, total = groups * length;
  blocks = std::min(blocks, std::max(groups, groups * units / tiling.least_units));
  // The unit, counted over all groups, before which a cut in the middle of their length is made.
  const auto cut_at = [&](std::int64_t cut) {
    std::int64_t first = cut % length - tiling.piece_units;
    if (first < tiling.piece_units) first = 0;
    else if (units - first < tiling.piece_units) first = units;
    return cut / length * units + first;
  };
  std::vector<std::int32_t> parts(groups);
  std::int64_t at = 0;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t end = cut_at(total * (block + 1) / blocks);
    if (at == end) continue;
    while (at < end) {
      const std::int64_t group = at / units, first = at % units;
      const std::int64_t count = std::min(end - at, units - first);
      out.pieces.push_back(add_range(out, tiling, group, first, count));
      out.pieces.back().part = parts[group]++;
      at += count;
    }
    // The first part of a panel comes before the last part of another, so that the block with a
    // panel's last part most often finds the others there.
    std::reverse(out.pieces.begin() + out.piece_ptr.back(), out.pieces.end());
    out.piece_ptr.push_back(static_cast<std::int32_t>(out.pieces.size()));
  }
  std::vector<std::int32_t> tile(groups), bundle(groups);
  for (std::int64_t group = 0; group < groups; ++group) {
    bundle[group] = choose_bundle(parts[group]);
    tile[group] = out.tiles;
    if (parts[group] > 1) out.tiles += parts[group] * tiling.warps;
  }
  for (PanelPiece& piece : out.pieces) {
    const std::int64_t group = piece.first_panel / tiling.warps;
    piece.parts = parts[group];
    piece.bundle = bundle[group];
    piece.tile = tile[group];
  }
  return out;
}

// Several tiles of columns: the first groups are multiplied whole, the last ones in parts of k, so
// that the last round of blocks is full as well.
struct TileRounds {
  std::int64_t whole_groups, parts;
};
inline TileRounds choose_rounds(const PanelTiling& tiling, std::int64_t groups, std::int64_t units,
                                std::int64_t column_tiles, std::int64_t blocks) {
  // The cost of beginning and ending a piece. PanelTiling::piece_units is that of share_evenly.
  constexpr std::int64_t kPieceUnits = 1;
  constexpr std::int64_t kMostParts = 8;
  TileRounds best{};
  std::int64_t least = INT64_MAX;
  const std::int64_t full_rounds = groups * column_tiles / blocks;
  for (std::int64_t rounds = full_rounds; rounds >= 0; --rounds) {
    const std::int64_t whole = rounds * blocks / column_tiles;
    // The groups that are left do not depend on how many rounds multiply `whole` groups, so only
    // the fewest such rounds are tried: never more than there are groups.
    rounds = (whole * column_tiles + blocks - 1) / blocks;
    for (std::int64_t parts = 1; parts <= std::min(kMostParts, units); ++parts) {
      const std::int64_t pieces = (groups - whole) * column_tiles * parts;
      const std::int64_t join = parts > 1 ? parts * tiling.part_units : 0;
      const std::int64_t of_parts = (units + parts - 1) / parts + kPieceUnits + join;
      const std::int64_t cost =
          rounds * (units + kPieceUnits) + (pieces + blocks - 1) / blocks * of_parts;
      if (cost >= least) continue;
      least = cost;
      best = {whole, parts};
    }
  }
  return best;
}

// Several tiles of columns, which all read the same panels.
inline PanelSchedule share_tiles(const PanelTiling& tiling, std::int64_t groups, std::int64_t units,
                                 std::int64_t column_tiles, std::int64_t blocks) {
  PanelSchedule out;
  const TileRounds rounds = choose_rounds(tiling, groups, units, column_tiles, blocks);
  std::vector<PanelPiece> items;
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t parts = group < rounds.whole_groups ? 1 : rounds.parts;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t first = units * part / parts, count = units * (part + 1) / parts - first;
      PanelPiece piece = add_range(out, tiling, group, first, count);
      piece.part = static_cast<std::int32_t>(part);
      piece.parts = static_cast<std::int32_t>(parts);
      piece.bundle = choose_bundle(piece.parts);
      for (std::int64_t column = 0; column < column_tiles; ++column) {
        piece.column = static_cast<std::int32_t>(column * tiling.tile_columns);
        // Tiles of the groups in parts lie by group, column, warp and part.
        const std::int64_t place =
            ((group - rounds.whole_groups) * column_tiles + column) * tiling.warps;
        piece.tile = parts > 1 ? static_cast<std::int32_t>(place * parts) : 0;
        items.push_back(piece);
      }
    }
  }
  const auto count = static_cast<std::int64_t>(items.size());
  blocks = std::min(blocks, count);
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::int64_t i = block; i < count; i += blocks) out.pieces.push_back(items[i]);
    out.piece_ptr.push_back(static_cast<std::int32_t>(out.pieces.size()));
  }
  if (rounds.parts > 1)
    out.tiles = static_cast<std::int32_t>((groups - rounds.whole_groups) * column_tiles *
                                          tiling.warps * rounds.parts);
  return out;
}

// The first of the variants of a kernel that fit and whose tile of columns covers N, or else the
// widest that fits. They are sorted by the width of their tiles.
template <class Variant, class Fits>
const Variant& narrowest_tile(const std::vector<Variant>& variants, std::int64_t n, Fits fits) {
  const Variant* widest = nullptr;
  for (const Variant& v : variants) {
    if (!fits(v)) continue;
    widest = &v;
    if (n <= v.tiling.tile_columns) break;
  }
  return *widest;
}

// `steps` of each panel: a multiple of the unit.
inline PanelSchedule make_panel_schedule(const PanelTiling& tiling, std::int64_t panels,
                                         std::int64_t steps, std::int64_t n, std::int64_t blocks) {
  const std::int64_t groups = (panels + tiling.warps - 1) / tiling.warps;
  const std::int64_t units = steps / tiling.unit_steps;
  if (groups * units * n == 0) return {};
  const std::int64_t column_tiles = (n + tiling.tile_columns - 1) / tiling.tile_columns;
  return column_tiles == 1 ? share_evenly(tiling, groups, units, blocks)
                           : share_tiles(tiling, groups, units, column_tiles, blocks);
}

// How much a schedule holds, without making it: with many tiles of columns it has many pieces.
struct PanelScheduleSize {
  std::int64_t pieces, tiles;
};
inline PanelScheduleSize panel_schedule_size(const PanelTiling& tiling, std::int64_t panels,
                                             std::int64_t steps, std::int64_t n,
                                             std::int64_t blocks) {
  const std::int64_t groups = (panels + tiling.warps - 1) / tiling.warps;
  const std::int64_t units = steps / tiling.unit_steps;
  const std::int64_t column_tiles = (n + tiling.tile_columns - 1) / tiling.tile_columns;
  if (groups * units == 0 || column_tiles <= 1) {
    const PanelSchedule schedule = make_panel_schedule(tiling, panels, steps, n, blocks);
    return {std::ssize(schedule.pieces), schedule.tiles};
  }
  const TileRounds rounds = choose_rounds(tiling, groups, units, column_tiles, blocks);
  const std::int64_t cut = (groups - rounds.whole_groups) * column_tiles * rounds.parts;
  return {rounds.whole_groups * column_tiles + cut, rounds.parts > 1 ? cut * tiling.warps : 0};
}

}  // namespace spmmbench
