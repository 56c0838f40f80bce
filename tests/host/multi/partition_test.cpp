// Which rows each part of a product has, which it lacks, and what moves for them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "matrices.hpp"
#include "multi/partition.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

using testing::from_rows;
using testing::random_matrix;

// Rows 0, 1 and rows 2, 3 are the parts of two; each needs one row of the other.
CsrMatrix four_rows() { return from_rows(4, {{0, 1}, {0, 2}, {2, 3}, {1, 3}}); }

RowParts split(const CsrMatrix& a, int parts) { return split_rows(a, balanced_rows(a, parts)); }

// Entry (i, j) of the parts put together, by row of A and row of B.
std::map<std::pair<std::int64_t, std::int64_t>, float> joined(const CsrMatrix& a,
                                                              const RowParts& parts, Way way) {
  std::map<std::pair<std::int64_t, std::int64_t>, float> entries;
  for (int part = 0; part < parts.count(); ++part) {
    const Gather gather = make_gather(parts, way, part);
    const CsrMatrix local = part_of_a(a, parts, gather, part);
    validate(local);
    for (std::int64_t row = 0; row < local.rows; ++row)
      for (std::int64_t e = local.row_ptr[row]; e < local.row_ptr[row + 1]; ++e)
        entries[{parts.a[part].begin + row, gather.original[local.col_idx[e]]}] = local.values[e];
  }
  return entries;
}

TEST(Partition, EqualRangesCoverAllAndDifferByAtMostOne) {
  EXPECT_EQ(equal_ranges(10, 4), (std::vector<Range>{{0, 2}, {2, 5}, {5, 7}, {7, 10}}));
  EXPECT_EQ(equal_ranges(1, 2), (std::vector<Range>{{0, 0}, {0, 1}}));
}

TEST(Partition, RowsAreCutWhereTheirNonzerosAndTheRowsThemselvesAreEqual) {
  // The first row weighs as much as the four others: 20 nonzeros against 4 rows.
  std::vector<std::int32_t> long_row(20);
  for (int i = 0; i < 20; ++i) long_row[i] = i;
  const CsrMatrix a = from_rows(20, {long_row, {0}, {1}, {2}, {3}});
  EXPECT_EQ(balanced_rows(a, 2), (std::vector<Range>{{0, 1}, {1, 5}}));
  EXPECT_EQ(balanced_rows(a, 1), (std::vector<Range>{{0, 5}}));
}

TEST(Partition, APartNeedsTheRowsOfBThatItsRowsOfAReferToAndOthersHave) {
  const RowParts parts = split(four_rows(), 2);
  EXPECT_EQ(parts.a, (std::vector<Range>{{0, 2}, {2, 4}}));
  EXPECT_EQ(parts.b, parts.a);
  EXPECT_EQ(parts.needed, (std::vector<std::vector<std::int32_t>>{{2}, {1}}));
}

TEST(Partition, AnOrderPutsTheRowsFirstThatReferToNoOtherPart) {
  const CsrMatrix a = from_rows(6, {{0, 5}, {1}, {0, 2}, {3, 4}, {0}, {5}});
  const RowParts parts = split_rows(a, {{0, 3}, {3, 6}});
  EXPECT_EQ(parts.inner, (std::vector<std::int64_t>{0, 1}));
  const Permutation order = inner_rows_first(a, parts);
  // Row 2 of B is read by its own part alone, row 0 by the other as well.
  EXPECT_EQ(order, (Permutation{1, 2, 0, 3, 5, 4}));
  const RowParts ordered = split_rows(permute_both(a, order), parts.a);
  EXPECT_EQ(ordered.inner, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(most_moved_by_needed(ordered).received, most_moved_by_needed(parts).received);
}

// How often rows that another part needs begin after one that it does not need.
int runs_of_sent_rows(const RowParts& parts) {
  int runs = 0;
  for (int from = 0; from < parts.count(); ++from)
    for (int to = 0; to < parts.count(); ++to) {
      const std::vector<std::int32_t> sent = make_gather(parts, Way::needed_rows, from).to[to];
      for (std::size_t i = 0; i < sent.size(); ++i) runs += i == 0 || sent[i] != sent[i - 1] + 1;
    }
  return runs;
}

TEST(Partition, InThatOrderRowsThatAnotherPartNeedsLieInFewRuns) {
  const CsrMatrix a = random_matrix(240, 240, 2, 1, 6);
  for (const int count : {2, 3}) {
    const RowParts parts = split(a, count);
    const RowParts ordered = split_rows(permute_both(a, inner_rows_first(a, parts)), parts.a);
    EXPECT_GT(runs_of_sent_rows(parts), 20);
    // A receiver's rows lie in one run, of three parts that of every other one in two.
    EXPECT_EQ(runs_of_sent_rows(ordered), count == 2 ? 2 : 9);
    EXPECT_EQ(most_moved_by_needed(ordered).sent, most_moved_by_needed(parts).sent);
  }
}

TEST(Partition, PartsPutTogetherAreTheMatrix) {
  for (const CsrMatrix& a :
       {four_rows(), random_matrix(60, 60, 9, 1, 3), random_matrix(40, 70, 5, 0, 4)})
    for (const int count : {1, 2, 3, 4})
      for (const Way way : {Way::all_gather, Way::needed_rows, Way::peer, Way::pulled}) {
        const RowParts parts = split(a, count);
        const auto entries = joined(a, parts, way);
        ASSERT_EQ(static_cast<std::int64_t>(entries.size()), a.nnz());
        for (std::int64_t row = 0; row < a.rows; ++row)
          for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
            EXPECT_EQ(entries.at({row, a.col_idx[e]}), a.values[e]);
      }
}

TEST(Partition, WhatOneSendsIsWhatTheOtherReceives) {
  const CsrMatrix a = random_matrix(80, 80, 12, 1, 5);
  const RowParts parts = split(a, 4);
  std::vector<Gather> gathers;
  for (int part = 0; part < 4; ++part)
    gathers.push_back(make_gather(parts, Way::needed_rows, part));
  for (const Gather& gather : gathers) EXPECT_EQ(gather.own.begin % kOwnAlign, 0);
  std::int64_t most_received = 0, most_sent = 0;
  for (int to = 0; to < 4; ++to) {
    for (int from = 0; from < 4; ++from) {
      const Range& place = gathers[to].from[from];
      const std::vector<std::int32_t>& sent = gathers[from].to[to];
      ASSERT_EQ(place.size(), static_cast<std::int64_t>(sent.size()));
      for (std::int64_t i = 0; i < place.size(); ++i)
        EXPECT_EQ(gathers[to].original[place.begin + i], parts.b[from].begin + sent[i]);
    }
    most_received = std::max(most_received, gathers[to].rows_received());
    most_sent = std::max(most_sent, gathers[to].rows_sent());
  }
  EXPECT_EQ(most_moved_by_needed(parts).received, most_received);
  EXPECT_EQ(most_moved_by_needed(parts).sent, most_sent);
}

TEST(Partition, AnAllGatherHasBlocksOfOneSize) {
  const CsrMatrix a = from_rows(5, {{0, 1, 2, 3, 4}, {0}, {1}, {2}, {3}});
  const RowParts parts = split(a, 2);
  const std::int64_t block = parts.largest_b();
  for (int part = 0; part < 2; ++part) {
    const Gather gather = make_gather(parts, Way::all_gather, part);
    EXPECT_EQ(gather.rows, 2 * block);
    EXPECT_EQ(gather.own, (Range{part * block, (part + 1) * block}));
    EXPECT_EQ(gather.rows_received(), block);
    EXPECT_EQ(gather.rows_sent(), block);
    EXPECT_EQ(std::ranges::count(gather.original, -1), 2 * block - 5);
  }
}

TEST(Partition, TheWayIsChosenByCountsUnlessItIsAskedFor) {
  std::vector<std::vector<std::int32_t>> band, full;
  for (std::int32_t row = 0; row < 20; ++row) {
    band.push_back({row});
    full.emplace_back();
    for (std::int32_t column = 0; column < 20; ++column) full.back().push_back(column);
  }
  EXPECT_EQ(choose_way(Split::rows, split(from_rows(20, band), 2)), Way::needed_rows);
  EXPECT_EQ(choose_way(Split::rows, split(from_rows(20, full), 2)), Way::all_gather);
  EXPECT_EQ(choose_way(Split::rows_all, split(from_rows(20, band), 2)), Way::all_gather);
  EXPECT_EQ(choose_way(Split::rows_needed, split(from_rows(20, full), 2)), Way::needed_rows);
  EXPECT_EQ(choose_way(Split::peer, split(from_rows(20, band), 2)), Way::peer);
  EXPECT_EQ(choose_way(Split::peer, split(from_rows(20, full), 2)), Way::pulled);
  EXPECT_EQ(choose_way(Split::peer_pulled, split(from_rows(20, band), 2)), Way::pulled);
  EXPECT_EQ(choose_way(Split::peer_in_place, split(from_rows(20, full), 2)), Way::peer);
}

TEST(Partition, AnOrderMovesRowsAndColumnsOfASquareMatrix) {
  const CsrMatrix a = four_rows();
  const Permutation order = {2, 0, 3, 1};
  const CsrMatrix moved = permute_both(a, order);
  validate(moved);
  const auto dense = [](const CsrMatrix& m) {
    std::vector<float> all(m.rows * m.cols);
    for (std::int64_t row = 0; row < m.rows; ++row)
      for (std::int64_t e = m.row_ptr[row]; e < m.row_ptr[row + 1]; ++e)
        all[row * m.cols + m.col_idx[e]] = m.values[e];
    return all;
  };
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      EXPECT_EQ(dense(moved)[i * 4 + j], dense(a)[order[i] * 4 + order[j]]);
  const CsrMatrix wide = from_rows(3, {{0, 2}, {1}});
  EXPECT_EQ(permute_both(wide, {1, 0}), permute_rows(wide, {1, 0}));
}

TEST(Partition, AGridIsNearASquareAndHasMorePartsByRows) {
  const auto sides = [](Split split, int gpus) {
    const Grid grid = grid_of(split, gpus);
    return std::pair(grid.rows, grid.columns);
  };
  EXPECT_EQ(sides(Split::columns, 6), std::pair(1, 6));
  EXPECT_EQ(sides(Split::rows_all, 6), std::pair(6, 1));
  EXPECT_EQ(sides(Split::grid, 6), std::pair(3, 2));
  EXPECT_EQ(sides(Split::grid, 8), std::pair(4, 2));
  EXPECT_EQ(sides(Split::grid, 16), std::pair(4, 4));
  EXPECT_EQ(sides(Split::grid, 3), std::pair(3, 1));
  const Grid grid = grid_of(Split::grid, 6);
  EXPECT_EQ(grid.same_columns(3), (std::vector<int>{1, 3, 5}));
  EXPECT_EQ(std::pair(grid.row_of(3), grid.column_of(3)), std::pair(1, 1));
}

TEST(Partition, PagesEndWhereThePartsDoOrNear) {
  const Pages two = make_pages({{0, 10}, {10, 40}}, 256, 4096);
  EXPECT_EQ(two.lead, 4096 - 10 * 256U);
  EXPECT_EQ(two.bytes, (std::vector<std::size_t>{4096, 8192}));
  const Pages three = make_pages({{0, 16}, {16, 50}, {50, 64}}, 256, 4096);
  EXPECT_EQ(three.lead, 0U);
  EXPECT_EQ(three.bytes, (std::vector<std::size_t>{4096, 8192, 4096}));
  // Rows of 48 bytes do not end at multiples of 256.
  const Pages narrow = make_pages({{0, 1}, {1, 20}}, 48, 4096);
  EXPECT_EQ(narrow.lead, 3840U);
  EXPECT_EQ(narrow.bytes, (std::vector<std::size_t>{4096, 4096}));
  EXPECT_THROW(make_pages({{0, 10}, {10, 11}, {11, 12}}, 256, 4096), Unsupported);
}

TEST(Partition, APartReadsRowsOfOthersWhereTheyLie) {
  const CsrMatrix a = random_matrix(80, 80, 12, 1, 5);
  const RowParts parts = split(a, 3);
  const Gather gather = make_gather(parts, Way::peer, 1);
  EXPECT_EQ(gather.rows, 80);
  EXPECT_EQ(gather.own, parts.b[1]);
  EXPECT_EQ(gather.rows_received(), static_cast<std::int64_t>(parts.needed[1].size()));
  EXPECT_EQ(gather.in_place, parts.needed[1]);
  EXPECT_EQ(gather.rows_sent(), 0);
}

TEST(Partition, NeighbouringRowsReadARowOfAnotherPartOnce) {
  std::vector<std::vector<std::int32_t>> rows(3 * kRowsReadTogether);
  for (std::int64_t row = 0; row < kRowsReadTogether; ++row) rows[row] = {0, 40};
  rows[kRowsReadTogether] = {40, 41};
  const CsrMatrix a = from_rows(static_cast<std::int64_t>(rows.size()), rows);
  const RowParts parts =
      split_rows(a, {{0, 2 * kRowsReadTogether}, {2 * kRowsReadTogether, a.rows}});
  EXPECT_EQ(parts.reads_in_place, (std::vector<std::int64_t>{3, 0}));
  EXPECT_EQ(parts.most_reads_in_place, (std::vector<std::int64_t>{kRowsReadTogether + 2, 0}));
}

TEST(Partition, RowsAreReadInPlaceWhereEvenOneReadForEachNonzeroIsLittle) {
  // So many rows of the first part refer to one row of the second.
  const auto way = [](std::int64_t rows, std::int64_t referring) {
    std::vector<std::vector<std::int32_t>> columns(2 * rows);
    for (std::int64_t row = 0; row < referring; ++row)
      columns[row] = {static_cast<std::int32_t>(rows)};
    return choose_way(Split::peer,
                      split_rows(from_rows(2 * rows, columns), {{0, rows}, {rows, 2 * rows}}));
  };
  EXPECT_EQ(way(400, 100), Way::peer);
  EXPECT_EQ(way(400, 101), Way::pulled);
  EXPECT_EQ(way(5 * kFewReads, kFewReads), Way::peer);
  EXPECT_EQ(way(5 * kFewReads, kFewReads + 1), Way::pulled);
}

TEST(Partition, ASplitIsReadFromItsName) {
  EXPECT_EQ(parse_split("rows_needed"), Split::rows_needed);
  EXPECT_THROW(parse_split("row"), Error);
}

}  // namespace
}  // namespace spmmbench
