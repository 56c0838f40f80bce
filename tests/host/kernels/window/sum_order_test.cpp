#include "window/sum_order.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace spmmbench::window {
namespace {

constexpr std::int32_t kCut = TileSpan::kShared;
using Sizes = std::vector<std::size_t>;
using Levels = std::vector<SumOrder::Level>;

// A row with every second column of a window of three tiles, which begin with tile 5.
struct OneWindow {
  CsrMatrix a{1, 48, {0, 24}, {}, std::vector<float>(24, 1)};
  std::vector<std::int32_t> columns = std::vector<std::int32_t>(48);

  OneWindow() {
    for (std::int32_t k = 0; k < 48; k += 2) a.col_idx.push_back(k);
    std::iota(columns.begin(), columns.end(), 0);
    columns.back() = -1;  // fills up the last tile
  }
  SumOrder order(const std::vector<TileSpan>& spans, const SumRules& rules) const {
    return sum_order(a, 0, {columns, 7, 5}, {spans, {}}, rules);
  }
};

constexpr SumRules rules_of(int team, bool ordered = false, bool for_vector = false) {
  return {Precision::fp16, team, ordered, for_vector};
}

TEST(SumOrder, HasAnInstructionForEachTileAndOnePartForAWindowOfOneWarp) {
  const std::vector<TileSpan> spans = {
      {8, 2 | kCut, 9, -1}, {10, 2 | kCut, 9, -1}, {0, 8, 3, -1}, {12, 4, 10, -1}, {}, {}};
  const SumOrder order = OneWindow().order(spans, rules_of(2));
  EXPECT_EQ(order.entries.size(), 24U);
  EXPECT_EQ(order.instructions, (Sizes{8, 16, 24}));
  EXPECT_EQ(order.parts, Sizes{3});
  EXPECT_EQ(order.levels, Levels{});
}

TEST(SumOrder, InTf32TakesTwoOfEveryFourColumnsFirst) {
  const SumOrder order = OneWindow().order({{5, 3, 7, -1}}, {Precision::tf32, 1, false, false});
  EXPECT_EQ(order.instructions, (Sizes{4, 8, 12, 16, 20, 24}));
  EXPECT_EQ(order.entries[1], 2) << "column 4";
  EXPECT_EQ(order.entries[4], 1) << "column 2";
  EXPECT_EQ(order.parts, Sizes{6});
}

TEST(SumOrder, HasAPartForEachWarpOfATeam) {
  const SumOrder order =
      OneWindow().order({{5, 2 | kCut, 7, -1}, {7, 1 | kCut, 7, -1}}, rules_of(2));
  EXPECT_EQ(order.parts, (Sizes{2, 3}));
  EXPECT_EQ(order.levels, Levels{{2}});
}

TEST(SumOrder, HasTheSumsOfCtasInTheirOrderOrAsTheyCome) {
  const std::vector<TileSpan> spans = {{8, 1 | kCut, 9, -1}, {9, 1 | kCut, 9, -1},
                                       {5, 0 | kCut, 7, 0},  {5, 1 | kCut, 7, 0},
                                       {6, 1 | kCut, 7, 0},  {7, 1 | kCut, 7, 0}};
  for (const bool ordered : {false, true}) {
    const SumOrder order = OneWindow().order(spans, rules_of(2, ordered));
    EXPECT_EQ(order.parts, (Sizes{0, 1, 2, 3})) << "the first warp has no tile";
    EXPECT_EQ(order.levels, (Levels{{2}, {2, !ordered}}));
  }
}

TEST(SumOrder, OfAVectorHasEightSumsOfEachWarpThatAreAddedByPairs) {
  const OneWindow window;
  const SumOrder whole = window.order({{0, 10, 5, -1}}, rules_of(1, false, true));
  EXPECT_EQ(whole.parts, (Sizes{0, 0, 0, 0, 0, 1, 2, 3})) << "tiles 5, 6 and 7 of the span";
  EXPECT_EQ(whole.levels, (Levels{{2}, {2}, {2}}));

  const SumOrder cut =
      window.order({{5, 2 | kCut, 7, 0}, {7, 1 | kCut, 7, 0}}, rules_of(1, false, true));
  EXPECT_EQ(cut.instructions.size(), 3U);
  EXPECT_EQ(cut.entries[8], 16) << "the first tile of the second warp comes second";
  EXPECT_EQ(cut.parts, (Sizes{1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(cut.levels, (Levels{{1}, {2, true}, {2}, {2}, {2}}));
}

}  // namespace
}  // namespace spmmbench::window
