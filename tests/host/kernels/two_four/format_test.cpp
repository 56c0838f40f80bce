#include "two_four/format.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <array>
#include <set>

#include "core/two_of_four.hpp"
#include "matrices.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench::two_four {
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
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp8_e4m3}) {
      const CsrMatrix matrix = testing::rounded(drawn, precision);
      EXPECT_TRUE(TwoFour::build(matrix, storage_type(precision)).unpack() == matrix) << name;
    }
}

template <int kBytes>
void expect_places_of_their_own() {
  using Block = TwoFourBlock<kBytes>;
  std::set<int> values;
  std::set<std::pair<int, int>> indices;
  for (int row = 0; row < Block::kRows; ++row)
    for (int col = 0; col < Block::kCols; col += Block::kGroup) {
      for (int slot = 0; slot < Block::kKept; ++slot)
        values.insert(Block::value_at(row, col, slot));
      indices.emplace(Block::indices_at(row, col), Block::index_shift(col));
    }
  EXPECT_EQ(values.size(), Block::kRows * Block::kRowValues);
  EXPECT_EQ(*values.begin(), 0);
  EXPECT_EQ(*values.rbegin(), Block::kValueBytes - kBytes);
  EXPECT_EQ(indices.size(), Block::kRows * Block::kCols / Block::kGroup);
  EXPECT_EQ(indices.begin()->first, Block::kValueBytes);
  EXPECT_EQ(indices.rbegin()->first, Block::kBlockBytes - 2);
}

TEST(TwoFour, EveryValueAndIndexOfABlockHasAPlaceOfItsOwn) {
  expect_places_of_their_own<2>();
  expect_places_of_their_own<1>();
}

std::uint32_t bits_at(const unsigned char* block, int byte, int bytes) {
  std::uint32_t out = 0;
  for (int i = 0; i < bytes; ++i) out |= std::uint32_t{block[byte + i]} << 8 * i;
  return out;
}

// By hand, from the picture of the header.
TEST(TwoFour, APositionLiesWhereTheInstructionReadsIt) {
  std::vector<std::vector<std::int32_t>> rows(75);
  rows[74] = {64 + 21, 64 + 23};  // block 1 of panel 1: row 10, columns 21 and 23
  CsrMatrix matrix = testing::from_rows(128, rows);
  matrix.values = {1, 2};
  const TwoFour format = TwoFour::build(matrix, ElementType::f16);
  ASSERT_EQ(format.blocks.size(), 4 * 4608);
  const unsigned char* const block = format.blocks.data() + 3 * 4608;
  // Values 10 and 11 of the row, in its second 16 bytes; row 10 exchanges the pieces by 10 / 2 % 4.
  EXPECT_EQ(bits_at(block, 10 * 64 + (1 ^ 1) * 16 + 4, 2), 0x3C00);
  EXPECT_EQ(bits_at(block, 10 * 64 + (1 ^ 1) * 16 + 6, 2), 0x4000);
  // Warp 0, lane 4 * 2 + 1, high half, second group: indices 1 and 3. Others are empty: 0 and 1.
  EXPECT_EQ(bits_at(block, 4096 + 4 * (4 * 2 + 1), 4), 0x44D44444);
}

TEST(TwoFour, APositionOf8BitsLiesWhereTheInstructionReadsIt) {
  std::vector<std::vector<std::int32_t>> rows(75);
  rows[74] = {128 + 64 + 41, 128 + 64 + 43};  // block 1 of panel 1: row 10, columns 105 and 107
  CsrMatrix matrix = testing::from_rows(256, rows);
  matrix.values = {1, 2};
  const TwoFour format = TwoFour::build(matrix, ElementType::e4m3);
  ASSERT_EQ(format.blocks.size(), 4 * 5120);
  const unsigned char* const block = format.blocks.data() + 3 * 5120;
  // Values 52 and 53 of the row, in its last 16 bytes; row 10 exchanges the pieces by 10 / 2 % 4.
  EXPECT_EQ(bits_at(block, 10 * 64 + (3 ^ 1) * 16 + 4, 1), 0x38);
  EXPECT_EQ(bits_at(block, 10 * 64 + (3 ^ 1) * 16 + 5, 1), 0x40);
  // Second half of the columns, of which these are 41 and 43; warp 0, lane 4 * 2 + 2 * 1 + 1, third
  // group: indices 1 and 3. Others are empty: 0 and 1.
  EXPECT_EQ(bits_at(block, 4096 + 512 + 4 * (4 * 2 + 2 * 1 + 1), 4), 0x44444D44);
}

TEST(TwoFour, TheLesserIndexOfAGroupIsFirst) {
  const CsrMatrix matrix = testing::rounded(pruned(130, 260), Precision::fp16);
  using Block = TwoFourBlock<2>;
  const TwoFour format = TwoFour::build(matrix, ElementType::f16);
  for (std::size_t at = 0; at < format.blocks.size(); at += Block::kBlockBytes)
    for (int i = Block::kValueBytes; i < Block::kBlockBytes; ++i)
      for (int shift = 0; shift < 8; shift += 4) {
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
  EXPECT_EQ(stats.bytes, TwoFour::bytes(100, 200, ElementType::f16));
  const FormatStats of_bytes =
      TwoFour::build(testing::rounded(pruned(100, 200), Precision::fp8_e4m3), ElementType::e4m3)
          .stats();
  EXPECT_EQ(of_bytes.tiles, 2 * 2);
  EXPECT_EQ(of_bytes.stored, 128 * 256 / 2);
  EXPECT_EQ(of_bytes.bytes, 128 * 256 / 4 * 5 / 2);
}

}  // namespace
}  // namespace spmmbench::two_four
