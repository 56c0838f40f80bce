// The segments into which csr_row_split cuts rows.

#include "csr_row_split/segments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace spmmbench::row_split {
namespace {

constexpr std::int64_t kSplit = 32;

TEST(Segments, AreAsManyAsTheRowNeeds) {
  EXPECT_EQ(segments_of(kSplit, kSplit), 1);
  EXPECT_EQ(segments_of(kSplit + 1, kSplit), 2);
  EXPECT_EQ(segments_of(100'000, kSplit), 3125);
  EXPECT_EQ(segments_of(INT32_MAX, 1), INT32_MAX) << "nor does the longest row overflow";
}

// Row 1 of 3, which has `length` nonzeros; row 0 has 5.
Segments cut_with_long_row(std::int64_t length) {
  CsrMatrix a;
  a.rows = 3;
  a.cols = length;
  a.row_ptr = {0, 5, 5 + length, 5 + length};
  a.col_idx.resize(5 + length);
  std::iota(a.col_idx.begin(), a.col_idx.begin() + 5, 0);
  std::iota(a.col_idx.begin() + 5, a.col_idx.end(), 0);
  a.values.assign(5 + length, 1);
  return cut_rows(a, {}, kSplit);
}

TEST(Segments, HaveAllNonzerosOfALongRow) {
  constexpr std::int64_t kLong = 50'000;
  std::int64_t next = 5;
  for (const Segment& one : cut_with_long_row(kLong).segments) {
    if (one.target >= 0) continue;
    EXPECT_EQ(one.begin, next);
    EXPECT_LE(one.length, kSplit);
    next += one.length;
  }
  EXPECT_EQ(next, 5 + kLong);
}

// Every slot that a segment or another slot goes to waits for all of these.
void expect_slots_wait_for_all(const Segments& cut) {
  std::vector<int> parts(cut.slots.size());
  for (const Segment& one : cut.segments)
    if (one.target < 0) ++parts.at(~one.target);
  for (const Slot& slot : cut.slots)
    if (slot.parts > 0 && slot.target < 0) ++parts.at(~slot.target);
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(cut.slots[i].parts, parts[i]) << i;
  EXPECT_LE(*std::ranges::max_element(parts), kMostOfOneSlot);
}

TEST(Segments, MeetInOneSlotUnlessTheyAreMany) {
  for (const std::int64_t segments : {5, 32, 255, 256, 257, 319, 320, 4097}) {
    SCOPED_TRACE(segments);
    const Segments cut = cut_with_long_row(segments * kSplit);
    EXPECT_EQ(cut.cut_rows, 1);
    expect_slots_wait_for_all(cut);
    EXPECT_EQ(cut.slots[0].target, 1) << "the row of C";
    EXPECT_EQ(cut.slots[0].parts,
              segments <= kMostOfOneSlot ? segments : segments / kSegmentsOfSlot);
  }
}

TEST(Segments, OfSeveralRowsMeetInSlotsOfTheirOwn) {
  CsrMatrix a;  // rows of 2 to 400 segments
  a.rows = 399;
  a.cols = 400 * kSplit;
  a.row_ptr = {0};
  for (std::int64_t row = 0; row < a.rows; ++row) {
    for (std::int64_t i = 0; i < (row * 73 % 399 + 2) * kSplit; ++i)
      a.col_idx.push_back(static_cast<std::int32_t>(i));
    a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
  }
  a.values.assign(a.col_idx.size(), 1);
  const Segments cut = cut_rows(a, {}, kSplit);
  EXPECT_LE(cut.slots.size(), most_slots(a.nnz(), kSplit));
  expect_slots_wait_for_all(cut);
  std::vector<std::int64_t> nonzeros(a.rows);
  for (const Segment& one : cut.segments) {
    std::int32_t target = one.target;
    while (target < 0) target = cut.slots.at(~target).target;
    nonzeros.at(target) += one.length;
  }
  for (std::int64_t row = 0; row < a.rows; ++row) EXPECT_EQ(nonzeros[row], a.row_length(row));
}

}  // namespace
}  // namespace spmmbench::row_split
