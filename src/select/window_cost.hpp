#pragma once
// The cost of windows of rows of each height. The kernels of the window engine choose the height by
// it, and auto predicts their choice. Constants without another source were measured on an H200
// (docs/log/irregular-windows.md).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "format/wcsr_estimate.hpp"

namespace spmmbench::window {

// Rates of an H200, in bytes per microsecond.
constexpr double kL2BytesPerUs = 8.4e6, kMemoryBytesPerUs = 3.4e6;

// Taller windows hold more registers, so fewer of them hide the latency of the gathers.
constexpr std::array<double, 3> kHeightPenalty = {1.0, 1.25, 1.9};

// The cost of a window of each height in a kernel's format.
struct FormatCost {
  std::array<double, 3> bytes_per_column;  // of A, per packed column and without its index
  double bytes_per_nonzero;                // of A
  std::array<double, 3> height_penalty;
};

// For async_wcsr, whose tiles are dense boxes.
inline FormatCost dense_box_cost(double value_bytes) {
  return {.bytes_per_column = {8 * value_bytes, 16 * value_bytes, 32 * value_bytes},
          .bytes_per_nonzero = 0,
          .height_penalty = kHeightPenalty};
}

// Bytes through the L2 cache per nonzero: the gathered rows of B, and A once per feature tile. A
// padding column fetches nothing, but takes about half the time of a column that does.
inline double gather_cost(const WcsrEstimate& estimate, std::size_t height_index, std::int64_t n,
                          int value_bytes, const FormatCost& format) {
  const auto row_bytes = static_cast<double>(n) * value_bytes;
  const double feature_tiles = std::max(1.0, row_bytes / 256);
  const double gathered = estimate.gathered_share[height_index];
  const double stored = estimate.stored_share[height_index];
  return ((gathered + stored) / 2 * row_bytes +
          feature_tiles *
              (stored * (4 + format.bytes_per_column[height_index]) + format.bytes_per_nonzero)) *
         format.height_penalty[height_index];
}

struct Height {
  int index = 0;                                          // into kWcsrHeights
  double cost = std::numeric_limits<double>::infinity();  // gather_cost
};

inline Height best_height(const WcsrEstimate& estimate, std::int64_t n, int value_bytes,
                          const FormatCost& format) {
  Height best;
  for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
    const double cost = gather_cost(estimate, h, n, value_bytes, format);
    if (cost < best.cost) best = {static_cast<int>(h), cost};
  }
  return best;
}

// How the work on windows is divided (docs/log/irregular-windows.md). A CTA of four warps has up to
// four feature tiles side by side, and its team, the warps of a feature tile, shares a window. Long
// windows are cut into parts, which several CTAs share.

// The most feature tiles of a CTA, `most` or less. Side by side they read A together. Where windows
// are few, larger teams and more CTAs gain more than that.
inline int cta_feature_tiles(int most, double windows, double feature_tiles, double sms) {
  constexpr double kCtasOfSm = 2;
  while (most > 1 && windows * std::ceil(feature_tiles / most) < kCtasOfSm * sms) most /= 2;
  return most;
}

// Limits of a kernel for windows that are like the others, in tiles and measured. A kernel whose
// tiles take longer has lower ones.
struct MeanLimits {
  double whole;  // of the mean window that one warp keeps
  double part;   // of the mean window, for each warp of a team that shares it
};
constexpr MeanLimits kDenseBoxLimits = {.whole = 12.5, .part = 23};  // of async_wcsr

// What a launch has to do, and what the device holds at a time.
struct WindowWork {
  double tiles = 0, windows = 0;  // of the matrix
  double feature_tiles = 0;
  double ctas_of_window = 1;  // side by side, for different feature tiles
  int team = 1;
  double sms = 1, warps = 1;  // of the device
  MeanLimits limits = kDenseBoxLimits;

  double mean_window() const { return tiles / std::max(windows, 1.0); }
};

// A window of at most so many times the mean length is like the others. Where more warps or CTAs
// share it, they share the others too: all have sums to add, and none is done sooner.
constexpr double kLikeTheOthers = 1.3;

// Tiles up to which one warp keeps a window, `rule` at least. Windows that are like the others stay
// whole where they are enough to give work to a certain share of the warps that the device holds.
inline int whole_tiles(const WindowWork& work, int rule) {
  constexpr double kEnough = 0.7, kEnoughForTeamOfFour = 0.25;
  const double enough = work.team < 4 ? kEnough : kEnoughForTeamOfFour;
  if (work.team == 1 || work.mean_window() > work.limits.whole ||
      work.windows * work.feature_tiles < enough * work.warps)
    return rule;
  return std::max(rule, static_cast<int>(kLikeTheOthers * work.mean_window()));
}

// The most tiles that a warp walks of a window that is cut: twice its share of all tiles, so that
// few tiles are spread over all SMs. Where tiles are few, the longest window decides how long the
// launch takes. So a window that several CTAs share has shorter parts then; teams of one warp gain
// nothing by them. Windows that are like the others have one CTA each, where those are nearly as
// many as SMs.
constexpr int kLeastPart = 8, kMostPart = 32;
struct PartTiles {
  int part = kMostPart;   // of a window that one CTA has for itself
  int split = kMostPart;  // of one that several CTAs share
};
inline PartTiles part_tiles(const WindowWork& work) {
  constexpr double kNearlyAll = 0.7, kMostOfFew = 16;
  const double wanted = 2 * work.tiles * work.feature_tiles / work.warps;
  const double ctas = work.windows * work.ctas_of_window;
  const double of_mean = work.mean_window() / work.team;
  const double most = ctas < work.sms ? std::min(work.limits.part, kMostOfFew) : work.limits.part;
  const bool alike = ctas >= kNearlyAll * work.sms && of_mean <= most;
  const auto part = static_cast<int>(std::clamp<double>(
      std::max(wanted, alike ? kLikeTheOthers * of_mean : 0), kLeastPart, kMostPart));
  return {part, work.team > 1 && wanted <= kLeastPart ? part / 2 : part};
}

// Whether to search for an order that brings rows with the same columns together. It is worth it
// where the gathers in natural order take longer than a certain share of the time of the compulsory
// bytes.
inline bool worth_order(double rows, double cols, double nnz, double natural_cost, std::int64_t n,
                        int value_bytes) {
  constexpr double kWorth = 0.45;
  const auto columns = static_cast<double>(n);
  const double memory_bytes =
      nnz * (4 + value_bytes) + cols * columns * value_bytes + rows * columns * 4;
  return nnz * natural_cost / kL2BytesPerUs > kWorth * memory_bytes / kMemoryBytesPerUs;
}

}  // namespace spmmbench::window
