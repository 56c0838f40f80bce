#include "async_bcsr/format.hpp"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "matrices.hpp"

namespace spmmbench::async_bcsr {
namespace {

constexpr BcsrGrouping kGroupings[] = {BcsrGrouping::consecutive, BcsrGrouping::overlap};

TEST(BcsrGroups, EveryUnitBlockIsVisitedOnceAndStepsAscend) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const auto& [bm, bk, unit_k] : {std::tuple{64, 64, 64}, {128, 128, 64}, {192, 64, 32}})
      for (const BcsrGrouping grouping : kGroupings) {
        const BcsrPattern pattern = BcsrPattern::build(matrix, bm, bk);
        const BcsrGroups groups = BcsrGroups::build(pattern, unit_k, grouping);
        // (unit row, k) -> row in the stack
        std::map<std::pair<int, int>, int> expected, seen;
        for (std::int64_t i = 0; i < pattern.block_rows(); ++i)
          for (std::int64_t b = pattern.block_row_ptr[i]; b < pattern.block_row_ptr[i + 1]; ++b)
            for (int r = 0; r < bm / 64 && i * bm + r * 64 < matrix.rows; ++r)
              for (int k = 0; k < bk && pattern.block_col[b] * bk + k < matrix.cols; k += unit_k)
                expected[{static_cast<int>(i * bm / 64 + r), pattern.block_col[b] * bk + k}] =
                    static_cast<int>(b * bm + r * 64);
        for (std::int64_t g = 0; g < groups.groups(); ++g)
          for (int s = groups.step_ptr[g]; s < groups.step_ptr[g + 1]; ++s) {
            const BcsrStep& step = groups.steps[s];
            EXPECT_TRUE(s == groups.step_ptr[g] || groups.steps[s - 1].k < step.k) << name;
            for (int r = 0; r < BcsrStep::kHeight; ++r) {
              if (step.a_row[r] < 0) continue;
              const int unit = groups.unit_row[g * BcsrStep::kHeight + r];
              EXPECT_TRUE(seen.emplace(std::pair{unit, step.k}, step.a_row[r]).second) << name;
            }
          }
        EXPECT_EQ(seen, expected) << name << " " << bm << "x" << bk;
      }
}

TEST(BcsrGroups, EveryUnitRowIsInOneGroupAndHeavyGroupsComeFirst) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const BcsrGrouping grouping : kGroupings) {
      const BcsrGroups groups = BcsrGroups::build(BcsrPattern::build(matrix, 64, 64), 64, grouping);
      std::vector<int> places((matrix.rows + 63) / 64, 0);
      for (const std::int32_t unit : groups.unit_row)
        if (unit >= 0) ++places[unit];
      EXPECT_EQ(std::count(places.begin(), places.end(), 1), std::ssize(places)) << name;
      for (std::int64_t g = 1; g < groups.groups(); ++g)
        EXPECT_GE(groups.step_ptr[g] - groups.step_ptr[g - 1],
                  groups.step_ptr[g + 1] - groups.step_ptr[g])
            << name;
    }
}

TEST(BcsrGroups, AGroupWithoutBlocksHasOneStep) {
  const BcsrGroups groups = BcsrGroups::build(
      BcsrPattern::build(testing::from_rows(70, std::vector<std::vector<std::int32_t>>(200)), 64,
                         64),
      64, BcsrGrouping::overlap);
  EXPECT_EQ(groups.step_ptr, (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(groups.blocks(0) + groups.blocks(1), 0);
}

TEST(BcsrGroups, OverlapFindsTheRowsOfOneLargeBlock) {
  // Unit rows 0 and 2 hold the same columns, as do 1 and 3.
  std::vector<std::vector<std::int32_t>> rows(256);
  for (std::size_t r = 0; r < rows.size(); ++r)
    rows[r] = r / 64 % 2 == 0 ? std::vector<std::int32_t>{0, 200} : std::vector<std::int32_t>{100};
  const BcsrPattern pattern = BcsrPattern::build(testing::from_rows(256, rows), 64, 64);
  EXPECT_EQ(BcsrGroups::build(pattern, 64, BcsrGrouping::consecutive).steps.size(), 6U);
  const BcsrGroups groups = BcsrGroups::build(pattern, 64, BcsrGrouping::overlap);
  EXPECT_EQ(groups.unit_row, (std::vector<std::int32_t>{0, 2, 1, 3}));
  EXPECT_EQ(groups.steps.size(), 3U);
  EXPECT_EQ(groups.blocks(0), 4);
}

}  // namespace
}  // namespace spmmbench::async_bcsr
