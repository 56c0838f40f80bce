// Which row order the window kernels take, without a device.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "matrices.hpp"
#include "window/choice.hpp"

namespace spmmbench {
namespace {

struct Chosen {
  std::string order;
  bool reordered;  // another order than the natural one was computed
};
Chosen choose(const CsrMatrix& matrix, const std::string& order,
              const MatrixFeatures* features = nullptr,
              std::size_t l2_bytes = std::size_t{60} << 20,
              std::unique_ptr<window::Survey> survey = nullptr) {
  const auto orders = make_row_orders(matrix, Spec::parse("none"));
  SparseOperand a;
  a.a = &matrix;
  a.precision = Precision::fp16;
  a.orders = orders.get();
  a.features = features;
  DeviceInfo device;
  device.l2_bytes = l2_bytes;
  const std::vector<std::string> searched = {"match"};
  window::WindowChooser chooser(a, Options({{std::string("window"), "8"}}),
                                window::order_option(order, searched), searched,
                                window::dense_box_cost(Precision::fp16), device, std::move(survey));
  StageTimer stages;
  const std::string chosen = chooser.choose(256, stages).order;
  return {chosen, stages.stages_ms().contains("reorder")};
}

TEST(Window, TheL1CacheKeepsLessOfWiderRows) {
  const auto most_rows = [](std::int64_t n) {  // of B in fp16
    std::int64_t rows = 1;
    while (window::fits_l1(make_b_view(rows + 1, n, Layout::row_major, ElementType::f16))) ++rows;
    return rows;
  };
  EXPECT_EQ(most_rows(2), 160 * 1024 / 16);
  EXPECT_EQ(most_rows(8), 160 * 1024 / 16);
  EXPECT_EQ(most_rows(9), 128 * 1024 / 32);
  EXPECT_EQ(most_rows(16), 128 * 1024 / 32);
  EXPECT_EQ(most_rows(17), 64 * 1024 / 64);
  EXPECT_EQ(most_rows(32), 64 * 1024 / 64);
  EXPECT_FALSE(window::fits_l1(make_b_view(8, 33, Layout::row_major, ElementType::f16)));
}

TEST(WindowChooser, SearchTakesThePackedOrderWhereItGathersLeast) {
  EXPECT_EQ(choose(testing::shuffled_grid(64), "search").order, "match?rows=auto");
}

TEST(WindowChooser, SortsClustersByDistanceWhereNeighboursLieFarApartAndTheCacheIsSmall) {
  // The points of a square, numbered at random.
  constexpr std::int32_t kSide = 192, kPoints = kSide * kSide;
  std::vector<std::int32_t> number(kPoints);
  std::iota(number.begin(), number.end(), 0);
  std::shuffle(number.begin(), number.end(), std::mt19937(1));
  std::vector<std::vector<std::int32_t>> rows(kPoints);
  for (std::int32_t point = 0; point < kPoints; ++point) {
    std::vector<std::int32_t>& row = rows[number[point]];
    for (const std::int32_t other : {point - kSide, point - 1, point, point + 1, point + kSide})
      if (other >= 0 && other < kPoints) row.push_back(number[other]);
    std::sort(row.begin(), row.end());
  }
  const CsrMatrix matrix = testing::from_rows(kPoints, rows);
  constexpr std::size_t kSmall = std::size_t{8} << 20;  // keeps 8192 of the 36864 rows of B
  EXPECT_EQ(choose(matrix, "search", nullptr, kSmall).order, "match?rows=auto&sort=distance");
  EXPECT_EQ(choose(matrix, "search").order, "match?rows=auto");
}

TEST(WindowChooser, AutoLooksForNoOrderOfItsOwn) {
  EXPECT_EQ(choose(testing::shuffled_grid(64), "auto").order, "natural");
}

TEST(WindowChooser, AutoTakesRowsByLengthWhereTheyShareHubs) {
  EXPECT_EQ(choose(testing::hub_graph(3000), "auto").order, "degree");
}

// Windows by order, of rows that differ in length.
class KnownSurvey final : public window::Survey {
 public:
  explicit KnownSurvey(std::map<std::string, double> gathered) : gathered_(std::move(gathered)) {}

  window::Surveyed order(const std::string& name, StageTimer&) override {
    return {name == "natural", &rows_, all_alike(gathered_.at(name))};
  }
  double length_variation() override { return 2; }
  WcsrEstimate expect_by_length() override { return all_alike(gathered_.at("degree")); }
  bool is_on_host() const override { return false; }
  std::vector<double> returned(const std::vector<std::string>&, std::int64_t,
                               StageTimer&) override {
    return {};
  }

 private:
  static WcsrEstimate all_alike(double share) {
    return {{share, share, share}, {share, share, share}};
  }
  std::map<std::string, double> gathered_;
  Permutation rows_;
};

TEST(WindowChooser, SearchTakesRowsByLengthWhereMatchedRowsGatherNoLess) {
  const CsrMatrix matrix = testing::hub_graph(3000);
  const auto chosen = [&](double matched, double by_length) {
    return choose(matrix, "search", nullptr, std::size_t{60} << 20,
                  std::make_unique<KnownSurvey>(std::map<std::string, double>{
                      {"natural", 0.9}, {"match?rows=auto", matched}, {"degree", by_length}}))
        .order;
  };
  EXPECT_EQ(chosen(0.95, 0.5), "degree");
  EXPECT_EQ(chosen(0.6, 0.5), "match?rows=auto");
  EXPECT_EQ(chosen(0.95, 0.89), "natural");
}

TEST(WindowChooser, AutoDoesNotSortRowsThatAreExpectedToGatherMoreThen) {
  // Rows of 8 or 64 nonzeros, whose columns lie in a range that neighbouring rows share.
  constexpr std::int32_t kRows = 8192, kRange = 256;
  std::vector<std::vector<std::int32_t>> rows(kRows);
  for (std::int32_t row = 0; row < kRows; ++row)
    for (std::int32_t i = 0; i < kRange; ++i)
      if (hash_position(4, row, i) % kRange < (row % 4 == 0 ? 64U : 8U))
        rows[row].push_back(row / kRange * kRange + i);
  const CsrMatrix matrix = testing::from_rows(kRows, rows);
  ASSERT_GT(row_length_variation(matrix), 0.8);
  const WcsrEstimate natural = estimate_wcsr(matrix, {});
  const auto nnz = static_cast<double>(matrix.nnz());
  ASSERT_TRUE(window::worth_order(natural, kRows, kRows, nnz, 256, 2,
                                  window::dense_box_cost(Precision::fp16)));
  const Chosen chosen = choose(matrix, "auto");
  EXPECT_EQ(chosen.order, "natural");
  EXPECT_FALSE(chosen.reordered);
}

TEST(WindowChooser, SearchKeepsAnOrderThatGathersNoMore) {
  // Groups of 8 equal rows: no order has fewer columns per window.
  std::vector<std::vector<std::int32_t>> rows;
  for (std::int32_t i = 0; i < 4096; ++i) {
    const std::int32_t first = i / 8 * 8;
    rows.push_back({first, first + 1, first + 2, first + 3, first + 4, first + 5, first + 6});
  }
  EXPECT_EQ(choose(testing::from_rows(4096, rows), "search").order, "natural");
}

TEST(WindowChooser, FeaturesThatTheCallerHasStandForTheEstimateOfTheNaturalOrder) {
  const CsrMatrix matrix = testing::shuffled_grid(64);
  MatrixFeatures features = features_of(matrix);
  EXPECT_EQ(windows_of(features).gathered_share, estimate_wcsr(matrix, {}).gathered_share);
  EXPECT_EQ(windows_of(features).stored_share, estimate_wcsr(matrix, {}).stored_share);
  EXPECT_EQ(choose(matrix, "search", &features).order, "match?rows=auto");
  features.gathered_8 = features.stored_8 = 0.1;  // far less than any order gathers
  EXPECT_EQ(choose(matrix, "search", &features).order, "natural");
}

TEST(FeatureTiles, AreAsWideAsAShortRow) {
  constexpr std::int64_t kTiles = 10'000'000, kWindows = 1'000'000;
  const auto tile = [](std::int64_t row_bytes) {
    return window::choose_feature_tile(kTiles, kWindows, row_bytes, 8);
  };
  EXPECT_EQ(tile(2), 32);
  EXPECT_EQ(tile(32), 32);
  EXPECT_EQ(tile(34), 64);
  EXPECT_EQ(tile(64), 64);
  EXPECT_EQ(tile(66), 128);
  EXPECT_EQ(tile(256), 256);
}

TEST(FeatureTiles, AreLongWhereWindowsAreShortOrTilesMany) {
  constexpr std::int64_t kTiles = 6000, kWindows = 500;
  EXPECT_FALSE(window::prefer_long_rows(kTiles, kWindows, 128, 8));
  EXPECT_FALSE(window::prefer_long_rows(kTiles, kWindows, 256, 8));
  EXPECT_TRUE(window::prefer_long_rows(kTiles, kTiles / 2, 256, 8));  // two tiles a window
  EXPECT_TRUE(window::prefer_long_rows(kTiles, kWindows, 512, 8));
  EXPECT_TRUE(window::prefer_long_rows(kTiles, kWindows, 512, 16));
  EXPECT_FALSE(window::prefer_long_rows(kTiles / 2, kWindows, 512, 16));
  EXPECT_TRUE(window::prefer_long_rows(30 * kTiles, kWindows, 256, 8));
}

TEST(FeatureTiles, OfACtaAreFewerWhereGathersAreMany) {
  const CsrMatrix matrix = testing::shuffled_grid(64);
  SparseOperand a;
  a.a = &matrix;
  a.precision = Precision::fp16;  // B and C have 6 bytes for each row and column
  EXPECT_EQ(window::cta_row_bytes(7 * matrix.rows, a), window::kMostCtaRow);
  EXPECT_EQ(window::cta_row_bytes(8 * matrix.rows, a), window::kSmallCtaRow);
  a.precision = Precision::fp8_e4m3;  // 5 bytes
  EXPECT_EQ(window::cta_row_bytes(11 * matrix.rows, a), window::kMostCtaRow);
  EXPECT_EQ(window::cta_row_bytes(13 * matrix.rows, a), window::kSmallCtaRowOfBytes);
}

TEST(Spans, GrowWithTheTilesOfAWarpAndSoonerWhereItMultipliesSeveralAtOnce) {
  const auto span = [](double per_warp, bool many_at_once) {
    return window::choose_cut({.tiles = per_warp * 1000,
                               .windows = 500,
                               .feature_tiles = 1,
                               .sms = 132,
                               .warps = 1000,
                               .many_at_once = many_at_once})
        .span_tiles;
  };
  for (const auto& [per_warp, one, several] :
       {std::tuple{1, 2, 2}, {3, 2, 4}, {5, 2, 8}, {7, 4, 8}, {17, 8, 8}}) {
    EXPECT_EQ(span(per_warp, false), one) << per_warp;
    EXPECT_EQ(span(per_warp, true), several) << per_warp;
  }
}

}  // namespace
}  // namespace spmmbench
