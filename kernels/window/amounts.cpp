#include "window/amounts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "format/wcsr.hpp"
#include "window/cost.hpp"
#include "window/cut.hpp"

namespace spmmbench::window {
namespace {

struct Cut {         // of a window of mean length
  double parts = 0;  // CTAs that share it
  double depth = 0;  // tiles that each of their warps walks
};

// The warps that an SM holds at each height of windows. Feature tiles of 64 bytes take fewer
// registers; those of 32 bytes, which hold a few warps more, count as these.
double resident_warps(std::size_t height, const Product& p) {
  constexpr std::array<double, 3> kNarrow = {36, 32, 20}, kOthers = {28, 20, 16};
  return (p.value_bytes == 2 && p.row_bytes <= kNarrowRow ? kNarrow : kOthers)[height];
}

// Windows longer than four warps may walk are cut, and their sums added: what choose_cut does with
// windows of mean length. That it keeps short ones whole is not predicted.
Cut cut_of(double tiles, double windows, double warps_of_sm, double feature_tiles, double sms) {
  constexpr int kWarps = 4;  // of a CTA
  const int most = cta_feature_tiles(kWarps, windows, feature_tiles, sms);
  const double groups = std::ceil(feature_tiles / most);
  const WindowWork work = {
      .tiles = tiles,
      .windows = windows,
      .feature_tiles = feature_tiles,
      .ctas_of_window = groups,
      .team = std::max(1, kWarps / static_cast<int>(std::ceil(feature_tiles / groups))),
      .sms = sms,
      .warps = sms * warps_of_sm};
  const PartTiles of_warp = part_tiles(work);
  const double of_window = work.mean_window();
  const bool is_split = of_window > work.team * of_warp.part;
  const double parts = is_split ? std::ceil(of_window / (work.team * of_warp.split)) : 1;
  return {parts, of_window / (work.team * parts)};
}

// Rows that are in windows: async_wcsr leaves out empty ones where they are many. One at least,
// since all rows of the sample may be empty.
double rows_in_windows(const MatrixFeatures& f) {
  return std::max(1.0, f.empty_rows < kLeastEmptyShare ? f.rows : f.rows * (1 - f.empty_rows));
}

// Shares of windows of `height` rows by those of the three measured heights: a straight line over
// the logarithm of the height between two of them. Beyond the highest the line goes on, but twice
// the rows share at most half of the columns.
double at_height(const std::array<double, 3>& shares, double height) {
  const double place = std::log2(height / kWcsrHeights[0]);  // 0, 1 and 2 at these heights
  const std::size_t i = place < 1 ? 0 : 1;
  const double share = shares[i] + (place - static_cast<double>(i)) * (shares[i + 1] - shares[i]);
  return std::max(share, shares[2] / 2);
}

// The shares of windows that hold rows with nonzeros only. Where half of the rows are empty, eight
// such rows have the columns of sixteen neighbours.
WcsrEstimate filled_windows(const MatrixFeatures& f) {
  const WcsrEstimate all = windows_of(f);
  const double apart = f.rows / rows_in_windows(f);
  WcsrEstimate out = all;
  for (std::size_t h = 0; h < kWcsrHeights.size() && apart > 1; ++h) {
    const double height = std::min(kWcsrHeights[h] * apart, 2.0 * kWcsrHeights.back());
    out.gathered_share[h] = std::min(all.gathered_share[h], at_height(all.gathered_share, height));
    out.stored_share[h] = std::max(
        out.gathered_share[h], std::min(all.stored_share[h], at_height(all.stored_share, height)));
  }
  return out;
}

// Windows of the height that async_wcsr takes.
struct Windows {
  explicit Windows(const Product& p)
      : format(dense_box_cost(p.precision)),
        height(static_cast<std::size_t>(best_height(windows_of(p.f), p.f.rows, p.n,
                                                    static_cast<int>(p.value_bytes), format,
                                                    p.device.sm_count)
                                            .index)),
        shares(filled_windows(p.f)),
        count(std::max(1.0, rows_in_windows(p.f) / kWcsrHeights[height])),
        stored_tiles(std::max(shares.stored_share[height] * p.f.nnz / 16, count)),
        feature_tiles(std::ceil(p.row_bytes / 128)) {}

  Cut cut(const Product& p) const {
    return cut_of(stored_tiles, count, resident_warps(height, p), feature_tiles, p.device.sm_count);
  }

  FormatCost format;
  std::size_t height;
  WcsrEstimate shares;
  double count, stored_tiles, feature_tiles;
};

double left_in_windows(const Product& p) { return searches_order(p) ? left_by_order(p.f) : 1; }

}  // namespace

bool searches_order(const Product& p) {
  const auto value_bytes = static_cast<int>(p.value_bytes);
  return worth_order(windows_of(p.f), p.f.rows, p.f.cols, p.f.nnz, p.n, value_bytes,
                     dense_box_cost(p.precision));
}

double gather_window(const Product& p) {
  const Windows windows(p);
  const double fetched = std::max(p.row_bytes, amounts::kSectorBytes);
  return windows.shares.gathered_share[windows.height] * p.f.nnz * fetched /
         p.device.gather_bytes_per_us;
}
double tiles(const Product& p) {
  const Windows windows(p);
  const GatherCost& gathers = windows.format.gathers(p.n, static_cast<int>(p.value_bytes));
  return p.per_sm(windows.stored_tiles * windows.feature_tiles) * gathers.penalty[windows.height];
}
double cut(const Product& p) { return Windows(p).cut(p).parts > 1 ? 1 : 0; }
double depth(const Product& p) { return Windows(p).cut(p).depth / 10; }
double filled_rows(const Product& p) {
  return amounts::rows(p) * rows_in_windows(p.f) / std::max(1.0, p.f.rows);
}
double ordered_gather(const Product& p) { return left_in_windows(p) * gather_window(p); }
double tiles_of_search(const Product& p) {
  return std::lerp(1.0, left_in_windows(p), equal_rows(p.f)) * tiles(p);
}
double ordered_tiles(const Product& p) { return left_in_windows(p) * tiles(p); }

double search(const Product& p) { return searches_order(p) ? 1 : 0; }
double search_nonzeros(const Product& p) { return search(p) * prepare_amounts::nonzeros(p); }
double search_rows(const Product& p) { return search(p) * prepare_amounts::rows(p); }

// Kernels of their own count and build the parts of a long row's window
// (kernels/window/device_build.cu). Of limits of 4,000, 8,000, 16,000 and 32,000 this one has the
// least errors on 38 matrices that took no part in the fit (docs/decisions/few-calls.md).
double windows_of_longest(const Product& p) {
  constexpr double kMost = 16000, kUnit = 1000;  // nonzeros
  return std::min(p.f.max_row, kMost) / kUnit;
}

std::vector<Amount> prepare() {
  std::vector<Amount> all = prepare_amounts::of_csr();
  all.push_back({"windows_of_longest", "1000 nonzeros", windows_of_longest});
  return all;
}

std::vector<Amount> prepare_with_search() {
  std::vector<Amount> all = prepare();
  all.push_back({"search", "times", search});
  all.push_back({"search_nonzeros", "10^6", search_nonzeros});
  all.push_back({"search_rows", "10^6", search_rows});
  return all;
}

}  // namespace spmmbench::window
