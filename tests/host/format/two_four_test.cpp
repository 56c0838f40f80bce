#include "format/two_four.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <array>
#include <set>

#include "core/two_of_four.hpp"
#include "matrices.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

// Each group of four keeps none, one or two columns, drawn by position.
CsrMatrix pruned(std::int64_t rows, std::int64_t cols) {
  constexpr std::array<unsigned, 11> kKept = {0b0000, 0b0001, 0b0010, 0b0100, 0b1000, 0b0011,
                                              0b0101, 0b1001, 0b0110, 0b1010, 0b1100};
  std::vector<std::vector<std::int32_t>> lists(rows);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t col = 0; col < cols; ++col)
      if ((kKept[hash_position(2, row, col / 4) % kKept.size()] >> (col % 4) & 1U) != 0)
        lists[row].push_back(static_cast<std::int32_t>(col));
  return testing::from_rows(cols, lists);
}

std::vector<std::pair<std::string, CsrMatrix>> pruned_matrices() {
  std::vector<std::pair<std::string, CsrMatrix>> out;
  for (auto& named : testing::adversarial_matrices())
    if (!first_row_beyond_two_of_four(named.second) &&
        named.second.rows * named.second.cols < 1 << 24)
      out.push_back(std::move(named));
  for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 3}, {64, 64}, {65, 129}, {300, 1001}})
    out.emplace_back(std::to_string(rows) + " x " + std::to_string(cols), pruned(rows, cols));
  return out;
}

TEST(TwoFour, UnpackGivesBackTheMatrix) {
  for (const auto& [name, drawn] : pruned_matrices())
    for (const Precision precision : {Precision::fp16, Precision::bf16}) {
      const CsrMatrix matrix = testing::rounded(drawn, precision);
      EXPECT_TRUE(TwoFour::build(matrix, storage_type(precision)).unpack() == matrix) << name;
    }
}

TEST(TwoFour, EveryValueAndIndexOfABlockHasAPlaceOfItsOwn) {
  std::set<int> values;
  std::set<std::pair<int, int>> indices;
  for (int row = 0; row < TwoFour::kRows; ++row)
    for (int col = 0; col < TwoFour::kCols; col += TwoFour::kGroup) {
      for (int slot = 0; slot < TwoFour::kKept; ++slot)
        values.insert(TwoFour::value_at(row, col, slot));
      indices.emplace(TwoFour::indices_at(row, col), TwoFour::index_shift(col));
    }
  EXPECT_EQ(values.size(), TwoFour::kValueHalves);
  EXPECT_EQ(*values.begin(), 0);
  EXPECT_EQ(*values.rbegin(), TwoFour::kValueHalves - 1);
  EXPECT_EQ(indices.size(), TwoFour::kRows * TwoFour::kCols / TwoFour::kGroup);
  EXPECT_EQ(indices.begin()->first, TwoFour::kValueHalves);
  EXPECT_EQ(indices.rbegin()->first, TwoFour::kBlockHalves - 1);
}

// By hand, from the picture of the header.
TEST(TwoFour, APositionLiesWhereTheInstructionReadsIt) {
  std::vector<std::vector<std::int32_t>> rows(75);
  rows[74] = {64 + 21, 64 + 23};  // block 1 of panel 1: row 10, columns 21 and 23
  CsrMatrix matrix = testing::from_rows(128, rows);
  matrix.values = {1, 2};
  const TwoFour format = TwoFour::build(matrix, ElementType::f16);
  ASSERT_EQ(format.blocks.size(), 4 * TwoFour::kBlockHalves);
  const std::uint16_t* const block = format.blocks.data() + 3 * TwoFour::kBlockHalves;
  // Values 10 and 11 of the row, in its second 16 bytes; row 10 exchanges the pieces by 10 / 2 % 4.
  EXPECT_EQ(block[10 * 32 + (1 ^ 1) * 8 + 2], 0x3C00);
  EXPECT_EQ(block[10 * 32 + (1 ^ 1) * 8 + 3], 0x4000);
  // Warp 0, lane 4 * 2 + 1, high half, second group: indices 1 and 3. Others are empty: 0 and 1.
  EXPECT_EQ(block[2048 + 2 * (4 * 2 + 1) + 1], 0x44D4);
  EXPECT_EQ(block[2048 + 2 * (4 * 2 + 1)], 0x4444);
}

TEST(TwoFour, TheLesserIndexOfAGroupIsFirst) {
  const CsrMatrix matrix = testing::rounded(pruned(130, 260), Precision::fp16);
  const TwoFour format = TwoFour::build(matrix, ElementType::f16);
  for (std::size_t at = 0; at < format.blocks.size(); at += TwoFour::kBlockHalves)
    for (int i = TwoFour::kValueHalves; i < TwoFour::kBlockHalves; ++i)
      for (int shift = 0; shift < 16; shift += 4) {
        const int pair = format.blocks[at + i] >> shift & 15;
        ASSERT_LT(pair & 3, pair >> 2);
      }
}

TEST(TwoFour, AThirdNonzeroOfAGroupIsRefused) {
  std::vector<std::vector<std::int32_t>> rows(1000, {0, 1, 6, 7});
  rows[900] = {1, 2, 3};
  EXPECT_THROW(TwoFour::build(testing::from_rows(8, rows), ElementType::f16), Error);
}

TEST(TwoFour, AnEntryOfValueZeroTakesNoSlot) {
  CsrMatrix matrix = testing::from_rows(4, {{0, 1, 3}});
  matrix.values = {1, 0, 2};
  const CsrMatrix back = TwoFour::build(matrix, ElementType::bf16).unpack();
  EXPECT_EQ(back.col_idx, (std::vector<std::int32_t>{0, 3}));
}

TEST(TwoFour, TheThreadCountDoesNotChangeTheResult) {
  const CsrMatrix matrix = testing::rounded(pruned(500, 300), Precision::fp16);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const TwoFour one = TwoFour::build(matrix, ElementType::f16);
  omp_set_num_threads(7);
  const TwoFour seven = TwoFour::build(matrix, ElementType::f16);
  omp_set_num_threads(threads);
  EXPECT_EQ(one.blocks, seven.blocks);
}

TEST(TwoFour, StatsCountFourAndAHalfBytesPerGroup) {
  const FormatStats stats =
      TwoFour::build(testing::rounded(pruned(100, 200), Precision::fp16), ElementType::f16).stats();
  EXPECT_EQ(stats.windows, 2);
  EXPECT_EQ(stats.tiles, 2 * 4);
  EXPECT_EQ(stats.stored, 128 * 256 / 2);
  EXPECT_EQ(stats.bytes, 128 * 256 / 4 * 9 / 2);
  EXPECT_EQ(stats.index_bytes, 128 * 256 / 4 / 2);
  EXPECT_EQ(stats.bytes, TwoFour::bytes(100, 200));
}

}  // namespace
}  // namespace spmmbench
