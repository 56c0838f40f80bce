#include "window/sum_order.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace spmmbench::window {
namespace {

// A row with every second column of a window of three tiles, which begin with tile 5.
struct OneWindow {
  CsrMatrix a{1, 48, {0, 24}, {}, std::vector<float>(24, 1)};
  std::vector<std::int32_t> columns = std::vector<std::int32_t>(48);

  OneWindow() {
    for (std::int32_t k = 0; k < 48; k += 2) a.col_idx.push_back(k);
    std::iota(columns.begin(), columns.end(), 0);
    columns.back() = -1;  // fills up the last tile
  }
  std::optional<SumOrder> order(Precision precision, const TileWork& work) const {
    return sum_order(a, 0, precision, columns, 7, 5, work);
  }
};

TEST(SumOrder, HasAnInstructionForEachTileAndOnePartForAWindowOfOneWarp) {
  const SumOrder order = *OneWindow().order(Precision::fp16, {{{0, 30, 0, -1}}, {}});
  EXPECT_EQ(order.entries.size(), 24U);
  EXPECT_EQ(order.instructions, (std::vector<std::size_t>{8, 16, 24}));
  EXPECT_EQ(order.parts, std::vector<std::size_t>{3});
}

TEST(SumOrder, InTf32TakesTwoOfEveryFourColumnsFirst) {
  const SumOrder order = *OneWindow().order(Precision::tf32, {});
  EXPECT_EQ(order.instructions, (std::vector<std::size_t>{4, 8, 12, 16, 20, 24}));
  EXPECT_EQ(order.entries[1], 2) << "column 4";
  EXPECT_EQ(order.entries[4], 1) << "column 2";
  EXPECT_EQ(order.parts, std::vector<std::size_t>{6});
}

TEST(SumOrder, HasAPartForEachWarpOfATeamAndNoneWhereCtasShareAWindow) {
  constexpr std::int32_t kShared = TileSpan::kShared;
  const OneWindow window;
  EXPECT_EQ(window.order(Precision::fp16, {{{5, 2 | kShared, 7, -1}, {7, 1 | kShared, 7, -1}}, {}})
                ->parts,
            (std::vector<std::size_t>{2, 3}));
  EXPECT_FALSE(
      window.order(Precision::fp16, {{{5, 2 | kShared, 7, 0}, {7, 1 | kShared, 7, 0}}, {}}));
}

}  // namespace
}  // namespace spmmbench::window
