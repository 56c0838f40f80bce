#include "../../../../kernels/common/empty_rows.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace spmmbench {
namespace {

TEST(EmptyRows, AWarpClearsAPowerOfTwoOfRowsThatItsLanesHaveBitsOf) {
  for (const std::int64_t rows : {1, 31, 1000, 20'000, 3'000'000})
    for (const std::int64_t empty : {std::int64_t{1}, rows / 2 + 1, rows})
      for (const std::int64_t bytes : {2, 4, 32, 48, 512, 2048, 40'000}) {
        const auto share = static_cast<std::uint64_t>(Clearing::share_of_warp(rows, empty, bytes));
        EXPECT_TRUE(std::has_single_bit(share)) << rows << ", " << empty << ", " << bytes;
        EXPECT_LE(share, 1024U);
      }
}

TEST(EmptyRows, WarpsHaveAboutEquallyManyBytesWhateverN) {
  EXPECT_EQ(Clearing::share_of_warp(3'000'000, 3'000'000, 4), 1024);
  EXPECT_EQ(Clearing::share_of_warp(3'000'000, 3'000'000, 32), 128);
  EXPECT_EQ(Clearing::share_of_warp(3'000'000, 3'000'000, 512), 8);
  EXPECT_EQ(Clearing::share_of_warp(3'000'000, 3'000'000, 1 << 16), 1);
  EXPECT_EQ(Clearing::share_of_warp(3'000'000, 750'000, 32), 512);
}

TEST(EmptyRows, FewRowsAreClearedByManyWarps) {
  EXPECT_EQ(Clearing::share_of_warp(20'000, 19'000, 4), 32);
  EXPECT_EQ(Clearing::share_of_warp(20'000, 19'000, 128), 16);
}

}  // namespace
}  // namespace spmmbench
