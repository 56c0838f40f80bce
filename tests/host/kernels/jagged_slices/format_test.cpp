#include "jagged_slices/format.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "matrices.hpp"

namespace spmmbench::jagged {
namespace {

using Slice = JaggedSlices::Slice;

const JaggedShape kShapes[] = {{32, 8, 32}, {16, 8, 32}, {8, 4, 8},
                               {4, 1, 1},   {32, 1, 1},  {4, 64, 64}};

std::vector<std::int32_t> reversed_ids(std::int64_t rows) {
  std::vector<std::int32_t> ids(rows);
  std::iota(ids.rbegin(), ids.rend(), 0);
  return ids;
}

// Row i of `a` becomes row ids[i].
CsrMatrix moved_rows(const CsrMatrix& a, const std::vector<std::int32_t>& ids) {
  std::vector<std::int64_t> source(a.rows);
  for (std::int64_t row = 0; row < a.rows; ++row) source[ids[row]] = row;
  CsrMatrix out{a.rows, a.cols, {0}, {}, {}};
  for (const std::int64_t row : source) {
    out.col_idx.insert(out.col_idx.end(), a.col_idx.begin() + a.row_ptr[row],
                       a.col_idx.begin() + a.row_ptr[row + 1]);
    out.values.insert(out.values.end(), a.values.begin() + a.row_ptr[row],
                      a.values.begin() + a.row_ptr[row + 1]);
    out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
  }
  return out;
}

TEST(JaggedSlices, UnpackGivesBackTheMatrix) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const JaggedShape& shape : kShapes)
      EXPECT_TRUE(JaggedSlices::build(matrix, {}, {}, shape).unpack() == matrix)
          << name << ", " << shape.places << " places of " << shape.most_steps << " steps";
}

TEST(JaggedSlices, UnpackGivesTheRowsInTheOrderOfC) {
  for (const auto& [name, matrix] : testing::adversarial_matrices()) {
    const std::vector<std::int32_t> ids = reversed_ids(matrix.rows);
    for (const JaggedShape& shape : kShapes)
      EXPECT_TRUE(JaggedSlices::build(matrix, {}, ids, shape).unpack() == moved_rows(matrix, ids))
          << name << ", " << shape.places << " places of " << shape.most_steps << " steps";
  }
}

TEST(JaggedSlices, SlicesTakeRowsInTheGivenOrder) {
  for (const auto& [name, matrix] : testing::adversarial_matrices()) {
    const std::vector<std::int32_t> order = reversed_ids(matrix.rows);
    for (const JaggedShape& shape : kShapes) {
      const JaggedSlices slices = JaggedSlices::build(matrix, order, {}, shape);
      EXPECT_TRUE(slices.unpack() == matrix) << name;
      for (const Slice& slice : slices.slices)
        for (int r = 1; slice.target >= Slice::kListed && r < shape.places >> slice.log2_places;
             ++r) {
          const std::int32_t row = slices.row_ids[slice.first_row + r];
          EXPECT_TRUE(row < 0 || row < slices.row_ids[slice.first_row + r - 1]) << name;
        }
    }
  }
}

TEST(JaggedSlices, AnOrderMayLackEmptyRows) {
  for (const auto& [name, matrix] : testing::adversarial_matrices()) {
    std::vector<std::int32_t> order;
    for (std::int32_t row = 0; row < matrix.rows; ++row)
      if (matrix.row_length(row) > 0) order.push_back(row);
    if (order.empty()) continue;  // which stands for the natural order
    for (const JaggedShape& shape : kShapes) {
      const JaggedSlices slices = JaggedSlices::build(matrix, order, {}, shape);
      EXPECT_TRUE(slices.unpack() == matrix) << name;
      for (const std::int32_t row : slices.row_ids)
        EXPECT_TRUE(row < 0 || matrix.row_length(row) > 0) << name << ", row " << row;
    }
  }
}

TEST(JaggedSlices, AnOrderOfRowsKeepsTheirPlacesInC) {
  for (const auto& [name, matrix] : testing::adversarial_matrices()) {
    const std::vector<std::int32_t> order = reversed_ids(matrix.rows);
    std::vector<std::int32_t> ids(matrix.rows);
    for (std::int64_t row = 0; row < matrix.rows; ++row)
      ids[row] = static_cast<std::int32_t>((row + matrix.rows / 2) % matrix.rows);
    for (const JaggedShape& shape : kShapes)
      EXPECT_TRUE(JaggedSlices::build(matrix, order, ids, shape).unpack() ==
                  moved_rows(matrix, ids))
          << name << ", " << shape.places << " places of " << shape.most_steps << " steps";
  }
}

TEST(JaggedSlices, EveryRowOfCIsWrittenByOneSliceOrIsALongRow) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const JaggedShape& shape : kShapes) {
      const JaggedSlices slices = JaggedSlices::build(matrix, {}, {}, shape);
      std::vector<int> written(matrix.rows, 0);
      for (const JaggedSlices::LongRow& row : slices.long_rows) ++written[row.row];
      for (const Slice& slice : slices.slices)
        for (int r = 0; slice.target >= Slice::kListed && r < shape.places >> slice.log2_places;
             ++r) {
          const std::int32_t row = slices.row_ids[slice.first_row + r];
          if (slice.target >= 0) {
            EXPECT_EQ(row, slice.target + r);
          }
          if (row >= 0) ++written[row];
        }
      EXPECT_EQ(std::count(written.begin(), written.end(), 1), matrix.rows) << name;
    }
}

TEST(JaggedSlices, NoPlaceTakesMoreStepsThanTheShapeAllows) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const JaggedShape& shape : kShapes)
      for (const Slice& slice : JaggedSlices::build(matrix, {}, {}, shape).slices) {
        if (slice.target < Slice::kListed) continue;  // a part of a row of any length
        const bool all_places = 1 << slice.log2_places == shape.places;
        const int most =
            all_places ? std::max(shape.whole_steps, shape.most_steps) : shape.most_steps;
        EXPECT_LE(static_cast<int>(slice.steps), most) << name;
      }
}

TEST(JaggedSlices, TheSlicesOfATeamStandTogetherAtTheBeginning) {
  constexpr int kTeam = JaggedShape::kTeam;
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const JaggedShape& shape : kShapes) {
      const JaggedSlices slices = JaggedSlices::build(matrix, {}, {}, shape);
      const auto parts = static_cast<std::int64_t>(slices.part_of.size());
      for (std::int64_t s = 0; s < static_cast<std::int64_t>(slices.slices.size()); ++s) {
        const bool of_a_team = slices.slices[s].target < Slice::kListed;
        ASSERT_EQ(of_a_team, s < parts * kTeam) << name;
        if (of_a_team) {
          EXPECT_EQ(slices.slices[s].part(), s / kTeam) << name;
        }
      }
      for (const JaggedSlices::LongRow& row : slices.long_rows)
        for (int part = 0; part < row.parts; ++part)
          EXPECT_EQ(&slices.long_rows[slices.part_of[row.first_part + part]], &row) << name;
    }
}

std::pair<std::size_t, std::size_t> entries_of(const JaggedSlices& slices, std::size_t slice) {
  return {slices.slices[slice].first_entry, slice + 1 < slices.slices.size()
                                                ? slices.slices[slice + 1].first_entry
                                                : slices.col_idx.size()};
}

TEST(JaggedSlices, PackedEntriesGiveBackColumnsAndValuesWhereTheColumnsAreNear) {
  CsrMatrix near_and_far =
      testing::from_rows(200'000, {{0, 3, 65'535}, {7, 65'543}, {100'000, 165'535}, {}, {199'999}});
  std::vector<std::pair<std::string, CsrMatrix>> matrices = testing::adversarial_matrices();
  matrices.emplace_back("near and far", near_and_far);
  for (const auto& [name, matrix] : matrices) {
    JaggedSlices slices =
        JaggedSlices::build(matrix, {}, {}, {1, 1, 1});  // a slice is a row's team
    std::vector<std::uint16_t> bits(slices.values.size());
    std::iota(bits.begin(), bits.end(), 1);
    const PackedEntries packed = pack(slices, bits);
    bool all = true;
    for (std::size_t s = 0; s < slices.slices.size(); ++s) {
      const auto [begin, end] = entries_of(slices, s);
      if (begin == end) continue;
      const auto [least, most] =
          std::minmax_element(slices.col_idx.begin() + begin, slices.col_idx.begin() + end);
      EXPECT_EQ(slices.slices[s].packed == 1, *most - *least <= 65'535) << name;
      all = all && slices.slices[s].packed == 1;
      for (std::size_t i = begin; slices.slices[s].packed == 1 && i < end; ++i) {
        EXPECT_EQ(packed.first_columns[s] + static_cast<std::int32_t>(packed.entries[i] >> 16),
                  slices.col_idx[i]);
        EXPECT_EQ(packed.entries[i] & 0xFFFF, bits[i]);
      }
    }
    EXPECT_EQ(packed.all, all) << name;
  }
}

TEST(JaggedSlices, PackedEntriesOf8BitsHaveTheColumnItself) {
  const CsrMatrix widest =
      testing::from_rows(1 << 24, {{5, (1 << 24) - 1}, {0, 70'000, 8'000'000}, {}, {7}});
  JaggedSlices slices = JaggedSlices::build(widest, {}, {}, {});
  std::vector<std::uint8_t> bits(slices.values.size());
  std::iota(bits.begin(), bits.end(), 250);
  const PackedEntries packed = pack(slices, bits);
  EXPECT_TRUE(packed.all);
  EXPECT_TRUE(packed.first_columns.empty());
  for (std::size_t s = 0; s < slices.slices.size(); ++s) {
    const auto [begin, end] = entries_of(slices, s);
    EXPECT_EQ(slices.slices[s].packed == 1, begin < end);
    for (std::size_t i = begin; i < end; ++i) {
      EXPECT_EQ(static_cast<std::int32_t>(packed.entries[i] >> 8), slices.col_idx[i]);
      EXPECT_EQ(packed.entries[i] & 0xFF, bits[i]);
    }
  }
}

TEST(JaggedSlices, TwentyMillionEntriesInOneRowAreCutIntoPartsThatRowLengthsCanHold) {
  constexpr std::int64_t kColumns = 20'000'000;
  CsrMatrix a{1, kColumns, {0, kColumns}, {}, {}};
  a.col_idx.resize(kColumns);
  std::iota(a.col_idx.begin(), a.col_idx.end(), 0);
  a.values.assign(kColumns, 1.0F);
  const JaggedSlices slices = JaggedSlices::build(a, {}, {}, {});
  ASSERT_EQ(slices.long_rows.size(), 1U);
  EXPECT_EQ(slices.long_rows[0].parts, 256);
  EXPECT_TRUE(slices.unpack() == a);
}

}  // namespace
}  // namespace spmmbench::jagged
