// The time of a bit for each position of A, and the nonzeros behind them: of what one CTA does, all
// of which do about the same (common/panel_schedule.hpp).

#include <algorithm>
#include <cmath>

#include "bitmap_dense/bytes.hpp"
#include "bitmap_dense/factors.hpp"
#include "bitmap_dense/format.hpp"
#include "bitmap_dense/tiling.hpp"
#include "select/estimate.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::bitmap_dense {
namespace {

constexpr double kHundred = 100;  // columns

struct Share {
  double tile_columns;
  double tiles;  // of C, or of parts of their sums
  double units;  // of 256 columns of A and the rows of all warps, 512 columns in fp8
  double parts;  // in which K of a tile is cut
};

double tile_columns_of(const Product& p) {
  const int widest = is_scaled(p.precision) ? kWidestTileInFp8 : kWidestTile;
  int columns = kNarrowestTile;
  while (columns < widest && columns < p.n) columns *= 2;
  return columns;
}

// Tiles of C beside each other: whole ones while they fill the device, the others in the number of
// parts with which they take least.
Share share_of_tiles(double tile, double tiles, double units, double sms) {
  constexpr double kMostParts = 8;
  const double whole = std::floor(tiles / sms), left = tiles - whole * sms;
  Share best{tile, whole, whole * units, 1};
  if (left == 0) return best;
  double least = INFINITY;
  for (double parts = 1; parts <= std::min(kMostParts, units); ++parts) {
    const double rounds = std::ceil(left * parts / sms), of_part = std::ceil(units / parts);
    const double join = parts > 1 ? parts * kPartUnits : 0;
    const double cost = rounds * (of_part + kPieceUnits + join);
    if (cost >= least) continue;
    least = cost;
    best = {tile, whole + rounds, whole * units + rounds * of_part, parts};
  }
  return best;
}

Share share_of(const Product& p) {
  constexpr double kLeastUnits = 2;  // of a CTA, PanelTiling::least_units
  const double tile = tile_columns_of(p), beside = std::ceil(p.columns / tile);
  const int warps = 4 * warpgroups_of(static_cast<int>(tile));
  const double groups =
      std::ceil(std::max(1.0, p.f.rows) / (BitmapPanels::kPanelRows * double(warps)));
  const auto steps =
      BitmapPanels::panel_steps(static_cast<std::int64_t>(p.f.cols), storage_type(p.precision));
  const double units = std::max(1.0, static_cast<double>(steps) / BitmapPanels::kGroupSteps);
  if (beside > 1) return share_of_tiles(tile, groups * beside, units, p.device.sm_count);
  const double all = groups * units;
  const double ctas = std::min(p.device.sm_count, std::max(groups, all / kLeastUnits));
  return {tile, 1, all / ctas, std::max(1.0, ctas / groups)};
}

// Each warp writes its rows of a tile.
double ends(const Product& p) {
  const Share share = share_of(p);
  return share.tiles * share.tile_columns / kHundred;
}
double units(const Product& p) { return share_of(p).units; }
double wide_units(const Product& p) {
  const Share share = share_of(p);
  return share.units * share.tile_columns / kHundred;
}
// Whether sums of parts wait in memory for the last of them, which adds up the others.
double cut(const Product& p) { return share_of(p).parts > 1 ? 1 : 0; }
double joined(const Product& p) {
  const Share share = share_of(p);
  return (share.parts - 1) * share.tile_columns / kHundred;
}
// Bits and words that the L2 cache cannot hold, from memory.
double bitmap_spill(const Product& p) {
  const auto [count, fill] = places_of(p.entries, p.f.nnz, storage_type(p.precision));
  return p.spill_us(bitmap_dense::bytes_of(count, fill, p.columns, p.device.l2_bytes));
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "bitmap_dense",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"ends", "100 columns", ends},
                                     {"units", "256 columns", units},
                                     {"wide_units", "100 x 256 columns", wide_units},
                                     {"cut", "times", cut},
                                     {"joined", "100 columns", joined},
                                     {"bitmap_spill", "us", bitmap_spill}},
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = bitmap_dense::factors(),
                              .preparation = bitmap_dense::preparation(),
                              .on_device = true});

}  // namespace
}  // namespace spmmbench::bitmap_dense
