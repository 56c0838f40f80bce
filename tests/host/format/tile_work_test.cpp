#include "format/tile_work.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace spmmbench {
namespace {

std::vector<std::int32_t> pointers(const std::vector<int>& tiles) {
  std::vector<std::int32_t> out = {0};
  for (const int count : tiles) out.push_back(out.back() + count);
  return out;
}

const std::vector<std::vector<int>> kWindowLists = {
    {},
    {1},
    {32},
    {33},
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {3, 1, 70, 2, 2, 5, 1, 256, 9, 8, 1},  // 256 tiles: exactly one CTA of eight spans
    {257, 1, 257},
    {100000},
};

std::vector<TileCut> cuts(int team) {
  return {{team, 1, 1, 1, 1}, {team, 4, 6, 32, 5}, {team, 8, 32, 8, 4}, {team, 32, 32, 32, 32}};
}

TEST(TileWork, EveryTileIsInExactlyOneSpan) {
  for (const auto& list : kWindowLists)
    for (const int team : {1, 2, 8})
      for (const TileCut& cut : cuts(team)) {
        const auto window_ptr = pointers(list);
        const TileWork work = cut_windows(window_ptr, cut);
        std::vector<int> seen(window_ptr.back(), 0);
        EXPECT_EQ(work.spans.size() % team, 0U);
        for (const TileSpan& span : work.spans) {
          const int tiles = span.tiles & ~TileSpan::kShared;
          EXPECT_LE(tiles, TileCut::kMaxSpanTiles);
          for (int t = 0; t < tiles; ++t) ++seen[span.first_tile + t];
        }
        for (const int count : seen) EXPECT_EQ(count, 1);
      }
}

TEST(TileWork, SpansThatAreNotSharedHoldWholeWindows) {
  for (const auto& list : kWindowLists)
    for (const int team : {1, 2, 8}) {
      const auto window_ptr = pointers(list);
      for (const TileSpan& span : cut_windows(window_ptr, {team, 4, 6, 32}).spans) {
        if (span.tiles == 0 || (span.tiles & TileSpan::kShared) != 0) continue;
        EXPECT_EQ(span.first_tile, window_ptr[span.first_window]);
        std::int32_t window = span.first_window;
        while (window_ptr[window] < span.first_tile + span.tiles) ++window;
        EXPECT_EQ(window_ptr[window], span.first_tile + span.tiles);
      }
    }
}

TEST(TileWork, ASharedWindowTakesTheWholeTeamOfACta) {
  for (const auto& list : kWindowLists)
    for (const int team : {2, 8}) {
      const TileWork work = cut_windows(pointers(list), {team, 4, 6, 32});
      for (std::int64_t cta = 0; cta < static_cast<std::int64_t>(work.spans.size()) / team; ++cta)
        for (int i = 1; i < team; ++i) {
          const TileSpan& head = work.spans[cta * team];
          const TileSpan& span = work.spans[cta * team + i];
          EXPECT_EQ(head.tiles & TileSpan::kShared, span.tiles & TileSpan::kShared);
          if ((head.tiles & TileSpan::kShared) == 0) continue;
          EXPECT_EQ(head.first_window, span.first_window);
          EXPECT_EQ(head.split, span.split);
        }
    }
}

TEST(TileWork, AWindowBeyondOneCtaIsSplit) {
  const TileWork work = cut_windows(pointers({3, 257, 1, 600, 256}), {8, 4, 6, 32});
  // 600 tiles are three CTAs of eight spans, 257 two, 256 one, and 3 and 1 share a span.
  EXPECT_EQ(work.splits, (std::vector<TileSplit>{{0, 3}, {3, 2}}));
  for (int cta = 0; cta < 7; ++cta)
    EXPECT_EQ(work.spans[8 * cta].split, cta < 3 ? 0 : cta < 5 ? 1 : -1);
}

TEST(TileWork, ASplitWindowHasShorterParts) {
  const TileWork work = cut_windows(pointers({64, 65}), {8, 4, 6, 8, 4});
  // 65 tiles are three CTAs of eight spans of about four, 64 stay in one CTA.
  EXPECT_EQ(work.splits, (std::vector<TileSplit>{{0, 3}}));
  for (int span = 0; span < 24; ++span)
    EXPECT_LE(work.spans[span].tiles & ~TileSpan::kShared, 4) << span;
  EXPECT_EQ(work.spans.size(), 32U);
}

TEST(TileWork, TileNumbersReachTheirLastValue) {
  constexpr std::int32_t kLast = std::numeric_limits<std::int32_t>::max();
  const TileWork work = cut_windows({kLast - 1003, kLast - 3, kLast - 2, kLast}, {4, 8, 12, 32});
  std::int64_t tiles = 0;
  for (const TileSpan& span : work.spans) {
    EXPECT_GE(span.first_tile, span.tiles == 0 ? 0 : kLast - 1003);
    EXPECT_LE(std::int64_t{span.first_tile} + (span.tiles & ~TileSpan::kShared), kLast);
    tiles += span.tiles & ~TileSpan::kShared;
  }
  EXPECT_EQ(tiles, 1003);
}

TEST(TileWork, TheLongestWindowsComeFirst) {
  const TileWork work = cut_windows(pointers({2, 40, 7, 90, 1}), {2, 4, 6, 32});
  EXPECT_EQ(work.spans[0].first_window, 3);
  EXPECT_EQ(work.spans[2 * 2].first_window, 1);
}

TEST(TileWork, HasTheSizeOfItsLists) {
  const std::vector<std::int32_t> windows = pointers({3, 257, 1, 600, 256});
  const WindowSizes sizes = sizes_of(windows);
  EXPECT_EQ(sizes.windows, 5);
  EXPECT_EQ(sizes.tiles, 1117);
  EXPECT_EQ(sizes.longest, 600);
  const TileWork work = cut_windows(windows, {8, 4, 6, 32});
  const WorkSize size = size_of(work);
  EXPECT_EQ(size.spans, std::ssize(work.spans));
  EXPECT_EQ(size.splits, 2);  // of 600 and 257 tiles: 3 and 2 CTAs
  EXPECT_EQ(size.most_ctas, 3);
  EXPECT_EQ(size.split_ctas, 5);
  EXPECT_TRUE(size.is_shared);
  EXPECT_FALSE(size_of(cut_windows(pointers({1, 2}), {8, 4, 6, 32})).is_shared);
}

}  // namespace
}  // namespace spmmbench
