#include "gap_slices/format.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <numeric>
#include <set>
#include <utility>

#include "matrices.hpp"

namespace spmmbench::gap_slices {
namespace {

using testing::drawn;

TEST(GapSlices, UnpackGivesBackTheMatrix) {
  auto matrices = testing::adversarial_matrices();
  matrices.emplace_back("wide gaps", drawn(70, 5000, 1));
  matrices.emplace_back("full", drawn(65, 130, 100));
  for (const auto& [name, raw] : matrices) {
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp8_e4m3}) {
      const CsrMatrix matrix = testing::rounded(raw, precision);
      const int bits = 8 * static_cast<int>(bytes_of(storage_type(precision)));
      for (const GapSlices::Shape shape :
           {GapSlices::Shape{1, 4, bits}, {4, 8, bits}, {32, 4, bits}})
        for (const int blocks : {1, 7})
          EXPECT_TRUE(
              GapSlices::build(matrix, storage_type(precision), shape, blocks, 4).unpack() ==
              matrix)
              << name << " " << shape.row_lanes << " " << shape.gap_bits << " " << blocks;
    }
  }
}

// What a warp reads is one run of the groups, and every warp of a block has the same share.
TEST(GapSlices, TheRangesOfAllWarpsCoverTheGroupsInOrderAndEvenly) {
  constexpr int kBlocks = 7, kWarps = 4;
  const GapSlices format =
      GapSlices::build(drawn(3000, 900, 20), ElementType::f16, {2, 4}, kBlocks, kWarps);
  ASSERT_EQ(format.block_ptr.size(), kBlocks + 1);
  ASSERT_EQ(format.ranges.size(), kBlocks * kWarps);
  std::int32_t group = 0;
  for (std::size_t i = 0; i < format.ranges.size(); ++i) {
    const GapSlices::Range& range = format.ranges[i];
    EXPECT_EQ(range.first_group, group);
    EXPECT_LE(format.slice_ptr[range.first_slice], group);
    EXPECT_GT(format.slice_ptr[range.first_slice + 1], group);
    group += range.groups;
    if ((i + 1) % kWarps == 0) {
      EXPECT_EQ(group, format.slice_ptr[format.block_ptr[i / kWarps + 1]]);
    }
    EXPECT_NEAR(range.groups, format.groups() / (kBlocks * kWarps), 2);
  }
  EXPECT_EQ(group, format.groups());
}

// The kernel adds what these warps have of a slice, and nothing else.
TEST(GapSlices, EverySliceKnowsTheWarpsThatHaveItsGroups) {
  constexpr int kWarps = 8;
  std::vector<std::vector<std::int32_t>> rows(300);
  for (int row = 0; row < 200; ++row)
    for (int col = 0; col < 3 + row; ++col) rows[row].push_back(2 * col);
  const GapSlices format =
      GapSlices::build(testing::from_rows(500, rows), ElementType::f16, {1, 4}, 3, kWarps);
  std::vector<GapSlices::Warps> found(format.slices());
  for (std::int32_t i = 0; i < std::ssize(format.ranges); ++i)
    for (std::int32_t g = 0; g < format.ranges[i].groups; ++g) {
      std::int32_t slice = 0;
      while (format.slice_ptr[slice + 1] <= format.ranges[i].first_group + g) ++slice;
      const auto warp = static_cast<std::int16_t>(i % kWarps);
      if (found[slice].end == 0) found[slice].first = warp;
      found[slice].end = static_cast<std::int16_t>(warp + 1);
    }
  EXPECT_EQ(format.slice_warps, found);
  EXPECT_EQ(format.slice_warps.back(), GapSlices::Warps{});  // of empty rows
}

TEST(GapSlices, NoBlockHasMoreRowsThanItHasSumsFor) {
  const CsrMatrix empty = testing::from_rows(3, std::vector<std::vector<std::int32_t>>(40000));
  for (const int row_lanes : {1, 32}) {
    const GapSlices format = GapSlices::build(empty, ElementType::f16, {row_lanes, 4}, 2, 4);
    std::int32_t first = 0;
    for (std::size_t block = 0; block + 1 < format.block_ptr.size(); ++block) {
      const std::int32_t slices = format.block_ptr[block + 1] - format.block_ptr[block];
      EXPECT_LE(slices * format.shape.rows(), GapSlices::kMostBlockRows);
      first += slices;
    }
    EXPECT_EQ(first, format.slices());
  }
}

TEST(GapSlices, ZerosStandBetweenNonzerosThatAreFartherApartThanAGap) {
  // Gaps of 15 and 16 with 4 bits, of 255 and 256 with 8.
  const CsrMatrix narrow = testing::from_rows(32, {{15}, {16}}),
                  wide = testing::from_rows(4096,
                                            {{255, 510, 765, 1020, 1275, 1530, 1785, 2040}, {256}});
  EXPECT_EQ(GapSlices::build(narrow, ElementType::f16, {1, 4}, 1, 1).groups(), 1);
  const GapSlices format = GapSlices::build(wide, ElementType::f16, {1, 8}, 1, 1);
  EXPECT_EQ(format.groups(), 1);
  EXPECT_TRUE(format.unpack() == testing::rounded(wide, Precision::fp16));
}

// What does not exist is multiplied by zeros, but a product of zero and what lies behind B may not
// be a number.
TEST(GapSlices, NoLaneBeginsBehindTheLastColumn) {
  const CsrMatrix matrix = drawn(100, 5, 50);
  const GapSlices format = GapSlices::build(matrix, ElementType::f16, {32, 4}, 2, 4);
  for (int lane = 0; lane < GapSlices::kLanes; ++lane) EXPECT_LT(format.first_column(lane), 5);
  EXPECT_TRUE(format.unpack() == matrix);
}

TEST(GapSlices, LanesOfARowBeginInDifferentBanks) {
  constexpr int kBanks = 32;
  for (const int cols : {448, 3584, 4096, 18944})
    for (int row_lanes = 2; row_lanes <= GapSlices::kLanes; row_lanes *= 2) {
      const GapSlices format =
          GapSlices::build(drawn(3, cols, 50), ElementType::f16, {row_lanes, 4}, 1, 1);
      std::set<std::int64_t> banks;
      for (int lane = 0; lane < row_lanes; ++lane)
        banks.insert(lane * format.part_cols / 2 % kBanks);
      EXPECT_EQ(std::ssize(banks), row_lanes) << cols;
      EXPECT_GE(format.part_cols * row_lanes, cols);
      EXPECT_LT(format.part_cols, cols / row_lanes + 1 + 128 / row_lanes);
    }
}

TEST(GapSlices, ANonzeroTakesItsValueItsGapAndLittlePadding) {
  // 70 and 90 % zeros: 2.5 and 3 bytes, and at most 3 % for zeros on the way and at the end.
  for (const auto& [percent, bytes] : {std::pair{30U, 2.575}, {10U, 3.09}}) {
    const CsrMatrix matrix = drawn(512, 4096, percent);
    const GapSlices format = GapSlices::build(matrix, ElementType::f16,
                                              GapSlices::choose(GapSlices::count(matrix), 1), 1, 1);
    EXPECT_EQ(format.shape.gap_bits, percent == 30 ? 4 : 8);
    EXPECT_LT(format.stats().bytes, bytes * static_cast<double>(matrix.nnz()));
  }
}

TEST(GapSlices, RowsAreSharedByLanesWhereBlocksWouldBeUneven) {
  const CsrMatrix tall = drawn(18944, 100, 30), flat = drawn(512, 4000, 30);
  EXPECT_EQ(GapSlices::choose(GapSlices::count(tall), 132).row_lanes, 1);
  EXPECT_GT(GapSlices::choose(GapSlices::count(flat), 132).row_lanes, 4);
  // One row of 4,000 nonzeros among rows of 200 would keep one block busy.
  const CsrMatrix even = drawn(4000, 4000, 5);
  EXPECT_EQ(GapSlices::choose(GapSlices::count(even), 125).row_lanes, 1);
  std::vector<std::vector<std::int32_t>> rows(4000);
  for (int row = 0; row < 4000; ++row)
    for (std::int64_t e = even.row_ptr[row]; e < even.row_ptr[row + 1]; ++e)
      rows[row].push_back(even.col_idx[e]);
  rows[7].resize(4000);
  std::iota(rows[7].begin(), rows[7].end(), 0);
  EXPECT_GT(GapSlices::choose(GapSlices::count(testing::from_rows(4000, rows)), 125).row_lanes, 1);
}

TEST(GapSlices, ShortRowsAndALongOneAreExpectedToTakeLonger) {
  constexpr std::int64_t kRows = 100'000, kCols = 1000;
  const auto times = [](std::int64_t length, std::int64_t longest) {
    const GapSlices::Counts counts = {
        .rows = kRows, .cols = kCols, .nnz = kRows * length, .longest_row = longest};
    return GapSlices::choose_row_lanes(counts, 132).times;
  };
  EXPECT_LT(times(200, 240), 1.1);
  EXPECT_NEAR(times(2, 2), 4, 0.1) << "a group has eight entries";
  const GapSlices::Counts one_long = {
      .rows = 8192, .cols = 8192, .nnz = 8192 * 150, .longest_row = 8192};
  EXPECT_GT(GapSlices::choose_row_lanes(one_long, 132).times, 2);
}

TEST(GapSlices, TheThreadCountDoesNotChangeTheResult) {
  const CsrMatrix matrix =
      testing::rounded(testing::random_matrix(700, 5700, 300, 1, 11), Precision::bf16);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const GapSlices one = GapSlices::build(matrix, ElementType::bf16, {2, 4}, 3, 2);
  omp_set_num_threads(7);
  const GapSlices seven = GapSlices::build(matrix, ElementType::bf16, {2, 4}, 3, 2);
  omp_set_num_threads(threads);
  EXPECT_EQ(one.slice_rows, seven.slice_rows);
  EXPECT_EQ(one.words, seven.words);
  EXPECT_EQ(one.starts, seven.starts);
}

TEST(GapSlices, InspectCountsWhatIsBuilt) {
  auto matrices = testing::adversarial_matrices();
  matrices.emplace_back("random", drawn(300, 500, 20));
  for (const auto& [name, matrix] : matrices)
    for (const int row_lanes : {1, 8})
      for (const int gap_bits : {4, 8}) {
        const GapSlices::Shape shape = {row_lanes, gap_bits};
        const GapSlices format = GapSlices::build(matrix, ElementType::f16, shape, 1, 1);
        const FormatStats stats = GapSlices::stats_of(matrix, shape);
        EXPECT_EQ(stats.bytes, static_cast<std::int64_t>(format.words.size() * 4)) << name;
        EXPECT_EQ(stats.windows, format.slices()) << name;
        EXPECT_EQ(stats.bytes, format.stats().bytes) << name;
        EXPECT_EQ(stats.window_imbalance, format.stats().window_imbalance) << name;
      }
}

}  // namespace
}  // namespace spmmbench::gap_slices
