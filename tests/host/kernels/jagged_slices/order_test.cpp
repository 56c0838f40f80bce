// Which row order jagged_slices takes, without a device.

#include <gtest/gtest.h>

#include "jagged_slices/gathered_sectors.hpp"
#include "jagged_slices/order.hpp"
#include "matrices.hpp"

namespace spmmbench {
namespace {

Options with_order(const std::string& order) {
  Options options;
  options.set("order", order);
  return options;
}

// What blocks of rows gather, counted on the host.
jagged::GatheredShare counted(const SparseOperand& a) {
  return [&a](const std::string& order, std::int64_t rows_of_sector, StageTimer& cost) {
    return jagged::gathered_sector_share(*a.a, a.orders->get(order, cost), rows_of_sector);
  };
}

struct SliceChoice {
  std::string order;
  StageTimer stages;
};
SliceChoice choose_slices(const CsrMatrix& matrix, const std::string& order, std::int64_t n) {
  const auto orders = make_row_orders(matrix, Spec::parse("none"));
  SparseOperand a;
  a.a = &matrix;
  a.precision = Precision::fp16;
  a.orders = orders.get();
  jagged::OrderChooser chooser(a, with_order(order), counted(a));
  SliceChoice out;
  out.order = chooser.choose(n, out.stages);
  return out;
}

TEST(SliceOrder, SearchTakesThePackedOrderWhereBlocksOfRowsThenGatherLess) {
  const CsrMatrix grid = testing::shuffled_grid(128);
  for (const std::int64_t n : {2, 8, 16, 32})
    EXPECT_EQ(choose_slices(grid, "search", n).order, "match") << n;
}

TEST(SliceOrder, ShortRowsKeepTheirOrderInProductsWithAVector) {
  const SliceChoice chosen = choose_slices(testing::shuffled_grid(128), "search", 1);
  EXPECT_EQ(chosen.order, "natural");
  EXPECT_FALSE(chosen.stages.stages_ms().contains("reorder"));
}

TEST(SliceOrder, NoOrderIsComputedWhereNeighboursShareWhatTheyGather) {
  std::vector<std::vector<std::int32_t>> rows(4096);
  for (std::int32_t i = 0; i < std::ssize(rows); ++i)
    for (std::int32_t c = 0; c < 32; ++c) rows[i].push_back(i / 64 * 32 + c);
  const SliceChoice chosen = choose_slices(testing::from_rows(4096, rows), "search", 8);
  EXPECT_EQ(chosen.order, "natural");
  EXPECT_FALSE(chosen.stages.stages_ms().contains("reorder"));
}

TEST(SliceOrder, NoOrderIsComputedWhereMostRowsAreEmpty) {
  CsrMatrix grid = testing::shuffled_grid(128);
  grid.cols = 4 * grid.nnz() - grid.rows;
  EXPECT_EQ(choose_slices(grid, "search", 8).order, "match");
  ++grid.cols;
  const SliceChoice chosen = choose_slices(grid, "search", 8);
  EXPECT_EQ(chosen.order, "natural");
  EXPECT_FALSE(chosen.stages.stages_ms().contains("reorder"));
}

TEST(SliceOrder, TheDefaultIsTheNaturalOrderAndAnyReorderingMayBeNamed) {
  const CsrMatrix grid = testing::shuffled_grid(64);
  EXPECT_EQ(choose_slices(grid, "natural", 8).order, "natural");
  EXPECT_EQ(choose_slices(grid, "rcm", 1).order, "rcm");
  EXPECT_EQ(choose_slices(testing::from_rows(3, {}), "search", 8).order, "natural");
}

TEST(SliceOrder, EveryWidthCountsTheOrderOnce) {
  const CsrMatrix grid = testing::shuffled_grid(128);
  StageTimer alone;
  const auto orders = make_row_orders(grid, Spec::parse("none"));
  orders->get("match", alone);
  SparseOperand a;
  a.a = &grid;
  a.precision = Precision::fp16;
  a.orders = orders.get();
  jagged::OrderChooser chooser(a, with_order("search"), counted(a));
  for (const std::int64_t n : {8, 16, 8}) {
    StageTimer stages;
    chooser.choose(n, stages);
    EXPECT_DOUBLE_EQ(stages.stages_ms().at("reorder"), alone.stages_ms().at("reorder")) << n;
  }
}

}  // namespace
}  // namespace spmmbench
