#pragma once
// Chooses the windows of a matrix and the division of the work. The constants are measured on an
// H200 (docs/decisions/windows.md).

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/tile_work.hpp"
#include "format/wcsr_estimate.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/option.hpp"
#include "spmmbench/problem.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/shared_parts.hpp"
#include "window/cost.hpp"
#include "window/cut.hpp"
#include "window/survey.hpp"

namespace spmmbench::window {

constexpr int kMaxWarps = 4;  // per CTA

struct Choice {
  std::string order = "natural";
  const Permutation* row_order = nullptr;  // as Surveyed::rows
  int height_index = 0;                    // into kWcsrHeights
};

// Another order must gain this factor, since the estimate is not exact.
constexpr double kOrderMargin = 1.06;
constexpr const char* kMatch = "match";
// Of wide rows of B only windows that share most of their columns gather enough less to be higher
// than 8 rows, so that `match` stops there (docs/decisions/row-orders.md).
constexpr const char* kMatchByNeed = "match?rows=auto";
// Rows of wide B that share columns come close to one another.
constexpr const char* kMatchByDistance = "match?rows=auto&sort=distance";

// Bytes of a feature tile where rows of B are longer than kNarrowRow.
constexpr int kShortRow = 128, kLongRow = 256;

// 256-byte tiles halve the reads of A but leave half as many warps: use them for low, short
// windows, or when tiles x window_rows keeps all warps busy (measured at N = 128, 256 and 512,
// docs/decisions/windows.md).
inline bool prefer_long_rows(std::int64_t tiles, std::int64_t windows, std::int64_t row_bytes,
                             int window_rows) {
  constexpr std::int64_t kEnoughNarrow = 1'000'000;                  // rows of B below kWideRow
  constexpr std::int64_t kEnoughLow = 40'000, kEnoughTall = 95'000;  // windows of 8 rows, of more
  constexpr std::int64_t kWideRow = 512;                             // bytes
  if (row_bytes <= kShortRow) return false;
  if (window_rows == 8 && tiles < 3 * windows) return true;
  const std::int64_t enough = row_bytes < kWideRow ? kEnoughNarrow
                              : window_rows == 8   ? kEnoughLow
                                                   : kEnoughTall;
  return tiles * window_rows >= enough;
}

// As wide as a short row of B: that takes fewer registers and less shared memory, so more warps
// hide the latency of the gathers (0.73, 0.72 and 0.81 of the time at N = 8, 16 and 32,
// docs/decisions/window-cuts.md).
inline int choose_feature_tile(std::int64_t tiles, std::int64_t windows, std::int64_t row_bytes,
                               int window_rows) {
  if (row_bytes <= kShortestRow) return kShortestRow;
  if (row_bytes <= kNarrowRow) return kNarrowRow;
  return prefer_long_rows(tiles, windows, row_bytes, window_rows) ? kLongRow : kShortRow;
}

// Whether the L1 cache keeps a B whose rows have at most kNarrowRow bytes. With wider rows more of
// that cache serves as shared memory. Measured on an H100 (docs/decisions/locality.md).
inline bool fits_l1(const DenseView& b) {
  constexpr std::int64_t kHalfTile = kShortestRow / 2;  // N up to 8
  constexpr std::size_t kMostHalfTiles = 160 << 10, kMostShortest = 128 << 10,
                        kMostNarrow = 64 << 10;  // bytes of B
  const std::int64_t row = b.ld * static_cast<std::int64_t>(bytes_of(b.type));
  const std::size_t most = row <= kHalfTile      ? kMostHalfTiles
                           : row <= kShortestRow ? kMostShortest
                                                 : kMostNarrow;
  return row <= kNarrowRow && b.bytes() <= most;
}

// Bytes of a row of B that a CTA gathers, at most. CTAs side by side gather the same part of all
// rows. With smaller parts more rows stay in the L2 cache, but A is read once for every part. That
// pays if the gathered rows have many times the bytes of B and C (docs/decisions/windows.md). A
// part of 8-bit values then has as many columns as one of 16-bit values.
constexpr int kMostCtaRow = 1024, kSmallCtaRow = 512, kSmallCtaRowOfBytes = 256;
inline int cta_row_bytes(std::int64_t gathered_rows, const SparseOperand& a) {
  constexpr double kManyGathers = 2.4;
  constexpr double kSumBytes = 4;  // of C
  const auto value_bytes = static_cast<double>(bytes_of(storage_type(a.precision)));
  const double gathered = static_cast<double>(gathered_rows) * value_bytes;
  const double operands =
      static_cast<double>(a.k()) * value_bytes + static_cast<double>(a.m()) * kSumBytes;
  if (gathered <= kManyGathers * operands) return kMostCtaRow;
  return value_bytes == 1 ? kSmallCtaRowOfBytes : kSmallCtaRow;
}

inline bool lengths_vary(Survey& survey) { return survey.length_variation() > kVariedLengths; }

// Options of a kernel of the window engine: windows, its own, the launch.
inline const auto kWindow = auto_choice_option<int>("window", {"8", "16", "32"}, "rows per window");
inline auto feature_tile_option(std::vector<std::string> bytes, std::string help) {
  return auto_choice_option<int>("feature_tile", std::move(bytes),
                                 "bytes of a row of B per warp; " + std::move(help));
}
inline const auto kFeatureTile = feature_tile_option(
    {"32", "64", "128", "256"}, "windows of 32 rows take 128 at most, tf32 and fp32 128 at least");
inline const auto kWarps = auto_integer_option("warps", 1, kMaxWarps, "warps per CTA");
inline const auto kCtaTiles =
    auto_integer_option("cta_tiles", 1, kMaxWarps, "most feature tiles per CTA");
inline const auto kSpan = auto_integer_option("span", 1, TileCut::kMaxSpanTiles, "tiles per warp");
inline const auto kWhole = auto_integer_option("whole", 1, TileCut::kMaxSpanTiles,
                                               "tiles up to which one warp keeps a window");
inline const auto kPart = auto_integer_option("part", 1, TileCut::kMaxSpanTiles,
                                              "most tiles per warp of a window that is cut");

inline bool is_order(const std::string& text) {
  return text == "natural" || text == "auto" || text == "search" || names_reordering(text);
}
// `searched`: what order=search considers beside natural, before `degree`.
inline Option<std::string> order_option(const std::string& value,
                                        const std::vector<std::string>& searched) {
  return text_option("order", value,
                     {"natural, auto, search or a reordering", is_order, {"natural", "degree"}},
                     fmt::format("row order inside the format; auto: natural or degree; search: "
                                 "also {}, where gathers dominate",
                                 fmt::join(searched, " or ")));
}

inline std::vector<OptionSpec> options_with(const OptionSpec& order, const OptionSpec& feature_tile,
                                            const std::vector<OptionSpec>& own) {
  std::vector<OptionSpec> all = {kWindow, order};
  all.insert(all.end(), own.begin(), own.end());
  all.insert(all.end(), {feature_tile, kWarps, kCtaTiles, kSpan, kWhole, kPart});
  return all;
}

inline int height_index(int rows) {
  return static_cast<int>(std::find(kWcsrHeights.begin(), kWcsrHeights.end(), rows) -
                          kWcsrHeights.begin());
}

// Chooses order and height for each N, from the options "order" and "window" and from estimates on
// the matrix. Orders and their estimates are kept for the next N.
class WindowChooser {
 public:
  // `survey`: of the matrix; by default that of the host.
  WindowChooser(const SparseOperand& a, const Options& options, const Option<std::string>& order,
                const std::vector<std::string>& searched, const FormatCost& format,
                const DeviceInfo& device, std::unique_ptr<Survey> survey = nullptr)
      : a_(a),
        survey_(survey ? std::move(survey) : std::make_unique<HostSurvey>(a)),
        value_bytes_(static_cast<int>(bytes_of(storage_type(a.precision)))),
        order_(order(options)),
        searched_(searched),
        format_(format),
        kept_bytes_(static_cast<std::int64_t>(device.l2_bytes / 2)),
        sms_(device.sm_count) {
    if (const auto rows = kWindow(options)) given_ = height_index(*rows);
  }

  Choice choose(std::int64_t n, StageTimer& stages) {
    if (order_ != "auto" && order_ != "search") {
      if (given_ && survey_->is_on_host())  // an order needs no survey
        return {order_, &a_.orders->get(order_, stages), *given_};
      return consider(order_, n, stages).choice;
    }
    std::vector<Costed> all = {consider("natural", n, stages)};
    const bool worth_it =
        worth_order(all[0].estimate, static_cast<double>(a_.m()), static_cast<double>(a_.k()),
                    static_cast<double>(a_.nnz()), n, value_bytes_, format_);
    if (!worth_it) return all[0].choice;
    std::optional<double> natural_returned;
    if (order_ == "search")
      for (const std::string& other : orders_to_search(natural_returned, n, stages))
        add(other, n, stages, all);
    // Rows may share the columns of hubs alone.
    if (&cheapest(all) == &all[0] && lengths_vary(*survey_) && degree_may_gain(all[0], n, stages))
      add("degree", n, stages, all);
    if (all.size() == 1) return all[0].choice;
    add_memory_costs(all, natural_returned, n, stages);
    return cheapest(all).choice;
  }

 private:
  struct Costed {
    double cost;  // per nonzero, in bytes through the L2 cache
    Choice choice;
    WcsrEstimate estimate;
    bool is_natural;  // also an order that came out so
  };

  Costed consider(const std::string& name, std::int64_t n, StageTimer& stages) {
    const auto& considered =
        considered_.get(name, [&](StageTimer& cost) { return survey_->order(name, cost); });
    stages.add(considered.cost);
    const auto& [is_natural, rows, estimate] = considered.part;
    const Height height =
        best_height(estimate, static_cast<double>(a_.m()), n, value_bytes_, format_, sms_, given_);
    return {height.cost * (is_natural ? 1 : kOrderMargin),
            {name, rows, height.index},
            estimate,
            is_natural};
  }

  static const Costed& cheapest(const std::vector<Costed>& all) {
    return *std::ranges::min_element(all, {}, &Costed::cost);
  }

  // Unless it comes out natural.
  void add(const std::string& name, std::int64_t n, StageTimer& stages, std::vector<Costed>& all) {
    Costed costed = consider(name, n, stages);
    if (!costed.is_natural) all.push_back(std::move(costed));
  }

  // `natural_returned`: as in fewer_may_return.
  std::vector<std::string> orders_to_search(std::optional<double>& natural_returned, std::int64_t n,
                                            StageTimer& stages) const {
    std::vector<std::string> orders = searched_;
    const auto match = std::ranges::find(orders, kMatch);
    if (match == orders.end()) return orders;
    const bool narrow = n * value_bytes_ <= kShortestRow;
    *match = narrow ? kMatch : kMatchByNeed;
    if (!narrow && fewer_may_return(natural_returned, n, stages))
      orders.emplace_back(kMatchByDistance);
    return orders;
  }

  // Whether rows by length should cost little more than rows in natural order. Only then are they
  // compared, since reading them takes longer than the rest of a choice
  // (docs/decisions/row-orders.md).
  bool degree_may_gain(const Costed& natural, std::int64_t n, StageTimer& stages) const {
    const auto timed = stages.scope("compare");
    const Height expected = best_height(survey_->expect_by_length(), static_cast<double>(a_.m()), n,
                                        value_bytes_, format_, sms_, given_);
    return expected.cost <= kSlackByLength * natural.cost;
  }

  // How many rows of B, or of the part of them that a CTA gathers, stay in the L2 cache; 0: all, or
  // it is not worth asking.
  // Each half of the cache keeps its own copy of the data read, so the cache holds half of its
  // size.
  std::int64_t kept_rows(std::int64_t n) const {
    if (!a_.thorough) return 0;
    const std::int64_t bytes = std::min<std::int64_t>(n * value_bytes_, kMostCtaRow);
    return a_.k() * bytes <= kept_bytes_ ? 0 : kept_bytes_ / bytes;
  }

  // Whether another order could let far fewer rows of B return from memory than the natural one:
  // each comes once at least, and rows by distance take little. `natural` becomes the share of the
  // natural order, if it is computed. Graphs with hubs have no order of that kind.
  bool fewer_may_return(std::optional<double>& natural, std::int64_t n, StageTimer& stages) const {
    constexpr double kFewer = 0.1;  // rows of B per nonzero (docs/decisions/row-orders.md)
    // Where each distance brings much of A, a step reads all of it: with more nonzeros a search
    // then takes 20 to 40 ms.
    constexpr std::int64_t kMostEntries = 1 << 22;
    const std::int64_t kept = kept_rows(n);
    if (kept == 0 || a_.nnz() > kMostEntries || lengths_vary(*survey_)) return false;
    natural = survey_->returned({"natural"}, kept, stages)[0];
    const double least = static_cast<double>(a_.k()) / static_cast<double>(a_.nnz());
    return *natural - least > kFewer;
  }

  // The cost of rows of B that return from memory. `natural`: the share of the first order, if it
  // is known.
  void add_memory_costs(std::vector<Costed>& all, const std::optional<double>& natural,
                        std::int64_t n, StageTimer& stages) const {
    const std::int64_t kept = kept_rows(n);
    if (kept == 0) return;
    std::vector<std::string> orders;
    for (std::size_t i = natural ? 1 : 0; i < all.size(); ++i)
      orders.push_back(all[i].choice.order);
    std::vector<double> shares = survey_->returned(orders, kept, stages);
    if (natural) shares.insert(shares.begin(), *natural);
    const auto row_bytes = static_cast<double>(n * value_bytes_);
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i].cost += shares[i] * row_bytes * kL2BytesPerUs / kMemoryBytesPerUs;
  }

  SparseOperand a_;
  std::unique_ptr<Survey> survey_;
  int value_bytes_;
  std::string order_;
  std::vector<std::string> searched_;
  FormatCost format_;
  std::int64_t kept_bytes_;   // of B, in the L2 cache
  double sms_;                // multiprocessors
  std::optional<int> given_;  // height index; empty: to be chosen
  SharedParts<std::string, Surveyed> considered_;
};

// The length of a span depends on the tiles for each warp that the device holds. With few tiles
// spans are short, so that all SMs have work and no chain is long; with many they are long, and
// windows stay whole. If a warp multiplies several tiles at once, a longer span costs less than
// another round of warps (docs/decisions/window-cuts.md).
inline TileCut choose_cut(const WindowWork& work) {
  const double per_warp = work.tiles * work.feature_tiles / work.warps;
  const double of_mean = work.mean_window();
  TileCut cut;
  cut.team = work.team;
  const bool many_short = per_warp > 40 && of_mean > 5 && of_mean < 16;
  const auto span = [&](double few, double some) {
    return many_short ? 16 : per_warp < few ? 2 : per_warp < some ? 4 : 8;
  };
  const int one_by_one = span(6, 16);
  cut.span_tiles = work.many_at_once ? span(2, 4) : one_by_one;
  // A window that the team shares costs a barrier.
  const int whole = std::max(one_by_one, 4);
  cut.whole_tiles = whole_tiles(
      work, work.team == 1 ? std::min(4 * whole, TileCut::kMaxSpanTiles) : whole * 3 / 2);
  const PartTiles of_warp = part_tiles(work);
  cut.part_tiles = of_warp.part;
  cut.split_tiles = of_warp.split;
  static_assert(kMostPart == TileCut::kMaxSpanTiles);
  return cut;
}

}  // namespace spmmbench::window
