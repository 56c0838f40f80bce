#pragma once
// What the RSH kernel does with a matrix where the user leaves it open. The constants are measured
// on an H200 (results/NOTES.md, RSH).

#include <algorithm>
#include <cstdint>
#include <string>

#include "format/wcsr_estimate.hpp"
#include "format/wcsr_work.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/problem.hpp"

namespace spmmbench::rsh {

// Taller windows hold more registers, so fewer of them hide the latency of the gathers.
constexpr std::array<double, 3> kHeightPenalty = {1.0, 1.06, 1.25};
constexpr std::array<const char*, 3> kHeights = {"8", "16", "32"};

// Bytes through the L2 cache per nonzero decide the height: gathered rows of B, and A per strip.
inline std::string best_window(const Problem& problem) {
  const WcsrEstimate estimate = estimate_wcsr(*problem.a, {});
  const auto value_bytes = static_cast<double>(bytes_of(storage_type(problem.precision)));
  const double row_bytes = static_cast<double>(problem.n) * value_bytes;
  const double strips = std::max(1.0, row_bytes / 256);
  int best = 0;
  double least = 0;
  for (int h = 0; h < 3; ++h) {
    const double column_bytes = 4 + (1 << h);  // a column and its share of the bitmaps
    const double cost =
        estimate.gathered_share[h] * (row_bytes + strips * column_bytes) * kHeightPenalty[h];
    if (h == 0 || cost < least) best = h, least = cost;
  }
  return kHeights[best];
}

// Options of the format: the user's, and a height where it is open.
inline Options format_options(const Problem& problem) {
  Options out;
  for (const char* key : {"rule", "members", "tau_delta", "tau_nnz"})
    if (problem.options.has(key)) out.set(key, problem.options.get(key, ""));
  const std::string window =
      problem.options.get_choice("window", "auto", {"auto", "8", "16", "32"});
  out.set("window", window == "auto" ? best_window(problem) : window);
  return out;
}

// Strips of 256 bytes read A and the columns half as often, by half as many warps.
inline bool prefers_long_strips(std::int64_t row_bytes, std::int64_t tile_strips,
                                const DeviceInfo& device) {
  constexpr std::int64_t kTileStripsPerSm = 960;
  return row_bytes > 128 && tile_strips >= kTileStripsPerSm * device.sm_count;
}

// Short spans where there are few tiles for every resident warp, so that all have work and no chain
// of tiles is long; long spans, and whole windows, where there are many.
inline void choose_cut(std::int64_t tiles, std::int64_t windows, std::int64_t strips, int resident,
                       WcsrCut& cut) {
  const double per_warp = static_cast<double>(tiles * strips) / resident;
  const double per_window =
      static_cast<double>(tiles) / static_cast<double>(std::max<std::int64_t>(windows, 1));
  cut.span_tiles = per_warp < 10 ? 4 : per_warp > 40 && per_window > 5 ? 16 : 8;
  cut.whole_tiles =
      cut.team == 1 ? std::min(4 * cut.span_tiles, WcsrCut::kMaxSpanTiles) : cut.span_tiles * 3 / 2;
  cut.part_tiles = std::clamp(static_cast<int>(per_warp * 2), 8, WcsrCut::kMaxSpanTiles);
}

}  // namespace spmmbench::rsh
