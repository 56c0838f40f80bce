#pragma once
// What the RSH kernel does with a matrix where the user leaves it open. The constants are measured
// on an H200 (results/NOTES.md, RSH).

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "format/rs_work.hpp"
#include "format/wcsr_estimate.hpp"
#include "rsh/arguments.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/problem.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::rsh {

// Taller windows hold more registers, so fewer of them hide the latency of the gathers.
constexpr std::array<double, 3> kHeightPenalty = {1.0, 1.3, 1.9};
constexpr std::array<const char*, 3> kHeights = {"8", "16", "32"};
// Rows by length lose the locality of neighbouring windows in the L2 cache.
constexpr double kDegreePenalty = 1.1;

inline Permutation degree_order(const CsrMatrix& matrix) {
  return Registry<Reordering>::instance().at("degree").compute(matrix, {});
}

// How the rows are put in windows.
struct Choice {
  Options format;          // of RsTile
  bool by_degree = false;  // longest rows first, so that hubs share windows
};

// What the user set; the rest by the bytes through the L2 cache per nonzero: gathered rows of B,
// and A per strip, estimated from a sample of windows.
inline Choice choose(const Problem& problem) {
  Choice out;
  for (const char* key : {"rule", "members", "tau_delta", "tau_nnz"})
    if (problem.options.has(key)) out.format.set(key, problem.options.get(key, ""));
  const std::string window =
      problem.options.get_choice("window", "auto", {"auto", "8", "16", "32"});
  const std::string order =
      problem.options.get_choice("order", "auto", {"auto", "natural", "degree"});
  out.format.set("window", window);
  out.by_degree = order == "degree";
  if (window != "auto" && order != "auto") return out;

  const double row_bytes = static_cast<double>(problem.n) *
                           static_cast<double>(bytes_of(storage_type(problem.precision)));
  const double strips = std::max(1.0, row_bytes / 256);
  double least = std::numeric_limits<double>::infinity();
  for (const bool by_degree : {false, true}) {
    if (order != "auto" && by_degree != (order == "degree")) continue;
    const WcsrEstimate estimate = by_degree ? estimate_wcsr(*problem.a, degree_order(*problem.a))
                                            : estimate_wcsr(*problem.a, {});
    for (std::size_t h = 0; h < kHeights.size(); ++h) {
      if (window != "auto" && window != kHeights[h]) continue;
      const double column_bytes = 4.0 + static_cast<double>(1 << h);  // and its share of bitmaps
      const double cost = estimate.gathered_share[h] * (row_bytes + strips * column_bytes) *
                          kHeightPenalty[h] * (by_degree ? kDegreePenalty : 1.0);
      if (cost >= least) continue;
      least = cost;
      out.by_degree = by_degree;
      out.format.set("window", kHeights[h]);
    }
  }
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
                       RsCut& cut) {
  const double per_warp = static_cast<double>(tiles * strips) / resident;
  const double per_window =
      static_cast<double>(tiles) / static_cast<double>(std::max<std::int64_t>(windows, 1));
  cut.span_tiles = per_warp < 10 ? 4 : per_warp > 40 && per_window > 5 ? 12 : 8;
  cut.whole_tiles =
      cut.team == 1 ? std::min(4 * cut.span_tiles, RsCut::kMaxSpanTiles) : cut.span_tiles * 3 / 2;
  cut.part_tiles = std::clamp(static_cast<int>(per_warp * 2), 8, RsCut::kMaxSpanTiles);
}

}  // namespace spmmbench::rsh
