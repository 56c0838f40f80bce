#include "reorder/first_columns.hpp"

#include <gtest/gtest.h>

#include "matrices.hpp"

namespace spmmbench {
namespace {

using Rows = std::vector<std::int32_t>;

TEST(FirstColumns, RowsAscendByTheirColumnsInTurnAndEmptyOnesAreLeftOut) {
  const CsrMatrix matrix = testing::from_rows(9, {{3, 4}, {}, {0, 8}, {3}, {0, 2, 5}, {}, {3, 4}});
  EXPECT_EQ(rows_by_first_columns(matrix), (Rows{4, 2, 0, 6, 3}));
}

TEST(FirstColumns, RowsOfOneColumnStayInNaturalOrder) {
  EXPECT_EQ(rows_by_first_columns(testing::from_rows(1, {{0}, {}, {0}, {0}})), (Rows{0, 2, 3}));
  EXPECT_TRUE(rows_by_first_columns(testing::from_rows(0, {{}, {}})).empty());
}

TEST(FirstColumns, TheFirstColumnIsWholeWhereAKeyHasRoomForIt) {
  constexpr std::int32_t kCols = (1 << kRowKeyBits) - 1;
  const CsrMatrix matrix = testing::from_rows(kCols, {{kCols - 1}, {kCols - 2}, {0, 1}, {0}});
  EXPECT_EQ(rows_by_first_columns(matrix), (Rows{2, 3, 1, 0}));
}

TEST(FirstColumns, NeighbouringColumnsAreOneWhereThereAreMoreThanAKeyNumbers) {
  constexpr std::int32_t kCols = 1 << 30;
  const RowKeys keys(kCols);
  const auto key = [&](std::int32_t column) { return keys.of_row(&column, 1); };
  EXPECT_EQ(key(0), key(100));
  EXPECT_LT(key(0), key(200));
  EXPECT_LT(key(kCols - 1), keys.of_row(nullptr, 0)) << "empty rows are last";
  EXPECT_LT(keys.of_row(nullptr, 0), std::uint32_t{1} << kRowKeyBits);
}

}  // namespace
}  // namespace spmmbench
