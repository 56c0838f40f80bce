#include "core/two_of_four.hpp"

#include <gtest/gtest.h>

#include "matrices.hpp"

namespace spmmbench {
namespace {

TEST(TwoOfFour, HoldsForTwoNonzerosInEveryAlignedGroup) {
  EXPECT_EQ(first_row_beyond_two_of_four(testing::from_rows(10, {{0, 3, 4, 5, 8, 9}, {}, {7}})),
            std::nullopt);
  EXPECT_EQ(first_row_beyond_two_of_four(testing::from_rows(8, {{2, 3, 4, 5}})), std::nullopt)
      << "a group begins at a multiple of four";
  EXPECT_EQ(first_row_beyond_two_of_four(CsrMatrix{}), std::nullopt);
}

TEST(TwoOfFour, NamesTheFirstRowThatBreaksIt) {
  EXPECT_EQ(first_row_beyond_two_of_four(testing::from_rows(8, {{0, 1}, {4, 5, 7}, {0, 1, 2}})), 1);
  EXPECT_EQ(first_row_beyond_two_of_four(testing::from_rows(7, {{}, {4, 5, 6}})), 1)
      << "the last group may be short";
}

TEST(TwoOfFour, CountsNoEntryThatIsZero) {
  CsrMatrix matrix = testing::from_rows(4, {{0, 1, 2, 3}});
  matrix.values = {1, 0, -0.0F, 2};
  EXPECT_EQ(first_row_beyond_two_of_four(matrix), std::nullopt);
  matrix.values[2] = 3;
  EXPECT_EQ(first_row_beyond_two_of_four(matrix), 0);
}

}  // namespace
}  // namespace spmmbench
