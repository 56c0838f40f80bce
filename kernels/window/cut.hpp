#pragma once
// How the work on windows of rows is divided among warps and CTAs. The kernels of the window engine
// cut by it, and auto predicts their cuts. A CTA of four warps has up to four feature tiles side by
// side, and its team, the warps of a feature tile, shares a window. Long windows are cut into
// parts, which several CTAs share. All constants were measured on an H200
// (docs/decisions/window-cuts.md).

#include <algorithm>
#include <cmath>

namespace spmmbench::window {

// The most feature tiles of a CTA, `most` or less. Side by side they read A together. If windows
// are few, larger teams and more CTAs gain more. Four feature tiles leave a team of one warp, which
// cannot share its windows, so that they take more CTAs.
inline int cta_feature_tiles(int most, double windows, double feature_tiles, double sms) {
  constexpr int kNoTeam = 4;
  constexpr double kCtasOfSm = 2, kCtasWithoutTeam = 4;
  const auto wanted = [&] { return (most < kNoTeam ? kCtasOfSm : kCtasWithoutTeam) * sms; };
  while (most > 1 && windows * std::ceil(feature_tiles / most) < wanted()) most /= 2;
  return most;
}

// Limits of a kernel for typical windows, in tiles and measured. They are lower for a kernel whose
// tiles take longer.
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
  bool many_at_once = false;  // a warp multiplies several tiles at once
  MeanLimits limits = kDenseBoxLimits;

  double mean_window() const { return tiles / std::max(windows, 1.0); }
};

// Up to this many times the mean length a window counts as typical: splitting it would split nearly
// all of them, for more sums and no earlier finish.
constexpr double kTypical = 1.3;

// Tiles up to which one warp keeps a window, `rule` at least. Typical windows stay whole if they
// give work to a certain share of the warps that the device holds.
inline int whole_tiles(const WindowWork& work, int rule) {
  constexpr double kEnough = 0.7, kEnoughForTeamOfFour = 0.25;
  const double enough = work.team < 4 ? kEnough : kEnoughForTeamOfFour;
  if (work.team == 1 || work.mean_window() > work.limits.whole ||
      work.windows * work.feature_tiles < enough * work.warps)
    return rule;
  return std::max(rule, static_cast<int>(kTypical * work.mean_window()));
}

// The most tiles that a warp walks in a window that is cut: twice its share of all tiles, so that
// few tiles are spread over all SMs. If tiles are few, the longest window decides how long the
// launch takes, so a window that several CTAs share is then cut into shorter parts; teams of one
// warp gain nothing by that. Typical windows have one CTA each if these are nearly as many as SMs.
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
  const auto part = static_cast<int>(
      std::clamp<double>(std::max(wanted, alike ? kTypical * of_mean : 0), kLeastPart, kMostPart));
  return {part, work.team > 1 && wanted <= kLeastPart ? part / 2 : part};
}

}  // namespace spmmbench::window
