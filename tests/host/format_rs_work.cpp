#include "format/rs_work.hpp"

#include <gtest/gtest.h>

#include <cstdint>
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
    {16},
    {17},
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {3, 1, 70, 2, 2, 5, 1, 256, 9, 8, 1},  // 256 tiles: exactly two blocks of eight spans
    {257, 1, 257},
    {100000},
};

std::vector<RsCut> cuts(int team) {
  return {
      {team, 1, 1, 1}, {team, 4, 6, 16}, {team, 8, 16, 8}, {team, 12, 16, 16}, {team, 16, 16, 16}};
}

TEST(RsWork, EveryTileIsInExactlyOneSpan) {
  for (const auto& list : kWindowLists)
    for (const int team : {1, 2, 8})
      for (const RsCut& cut : cuts(team)) {
        const auto tiles_before = pointers(list);
        const RsWork work = cut_rs_windows(tiles_before, cut);
        std::vector<int> seen(tiles_before.back(), 0);
        EXPECT_EQ(work.spans.size() % team, 0U);
        for (const RsSpan& span : work.spans) {
          const int tiles = span.tiles & ~RsSpan::kShared;
          EXPECT_LE(tiles, RsCut::kMaxSpanTiles);
          for (int t = 0; t < tiles; ++t) ++seen[span.first_tile + t];
        }
        for (const int count : seen) EXPECT_EQ(count, 1);
      }
}

TEST(RsWork, SpansThatAreNotSharedHoldWholeWindows) {
  for (const auto& list : kWindowLists)
    for (const int team : {1, 2, 8}) {
      const auto tiles_before = pointers(list);
      for (const RsSpan& span : cut_rs_windows(tiles_before, {team, 4, 6, 16}).spans) {
        if (span.tiles == 0 || (span.tiles & RsSpan::kShared) != 0) continue;
        EXPECT_EQ(span.first_tile, tiles_before[span.first_window]);
        std::int32_t window = span.first_window;
        while (tiles_before[window] < span.first_tile + span.tiles) ++window;
        EXPECT_EQ(tiles_before[window], span.first_tile + span.tiles);
      }
    }
}

TEST(RsWork, ASharedWindowTakesTheWholeTeamOfABlock) {
  for (const auto& list : kWindowLists)
    for (const int team : {2, 8}) {
      const RsWork work = cut_rs_windows(pointers(list), {team, 4, 6, 16});
      for (std::int64_t block = 0; block < static_cast<std::int64_t>(work.spans.size()) / team;
           ++block)
        for (int i = 1; i < team; ++i) {
          const RsSpan& head = work.spans[block * team];
          const RsSpan& span = work.spans[block * team + i];
          EXPECT_EQ(head.tiles & RsSpan::kShared, span.tiles & RsSpan::kShared);
          if ((head.tiles & RsSpan::kShared) == 0) continue;
          EXPECT_EQ(head.first_window, span.first_window);
          EXPECT_EQ(head.part, span.part);
        }
    }
}

TEST(RsWork, PartsOfASplitWindowAreConsecutive) {
  const RsWork work = cut_rs_windows(pointers({3, 257, 1, 600}), {8, 4, 6, 16});
  ASSERT_EQ(work.parts.size(), 8U);  // 600 tiles: five blocks of eight spans, 257: three
  for (int p = 0; p < 8; ++p) {
    EXPECT_EQ(work.parts[p].first, p < 5 ? 0 : 5);
    EXPECT_EQ(work.parts[p].count, p < 5 ? 5 : 3);
    EXPECT_EQ(work.spans[8 * p].part, p);
  }
  EXPECT_EQ(work.spans[8 * 8].part, -1);
}

TEST(RsWork, TheLongestWindowsComeFirst) {
  const RsWork work = cut_rs_windows(pointers({2, 40, 7, 90, 1}), {2, 4, 6, 16});
  EXPECT_EQ(work.spans[0].first_window, 3);
  EXPECT_EQ(work.spans[3 * 2].first_window, 1);
}

}  // namespace
}  // namespace spmmbench
