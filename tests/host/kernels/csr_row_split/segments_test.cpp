// The segments into which csr_row_split cuts rows.

#include "csr_row_split/segments.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

namespace spmmbench::row_split {
namespace {

constexpr std::int64_t kSplit = 32;

TEST(Segments, OfAVeryLongRowAreLonger) {
  EXPECT_EQ(segments_of(kSplit, kSplit), 1);
  EXPECT_EQ(segments_of(kSplit + 1, kSplit), 2);
  EXPECT_EQ(segments_of(8 * kSplit * kSplit, kSplit), 8 * kSplit) << "no segment is longer yet";
  EXPECT_EQ(segments_of(8 * kSplit * kSplit + 1, kSplit), 4 * kSplit + 1);
  EXPECT_EQ(segments_of(100'000, kSplit), 782) << "of 128 nonzeros";
  EXPECT_LT(segments_of(INT32_MAX, 1), 1 << 18) << "nor does the longest row overflow";
}

TEST(Segments, HaveAllNonzerosOfALongRow) {
  constexpr std::int64_t kLong = 50'000;
  CsrMatrix a;
  a.rows = 3;
  a.cols = kLong;
  a.row_ptr = {0, 5, 5 + kLong, 5 + kLong};
  a.col_idx.resize(5 + kLong);
  std::iota(a.col_idx.begin(), a.col_idx.begin() + 5, 0);
  std::iota(a.col_idx.begin() + 5, a.col_idx.end(), 0);
  a.values.assign(5 + kLong, 1);
  const Segments cut = cut_rows(a, {}, kSplit);
  ASSERT_EQ(cut.split_rows.size(), 1U);
  EXPECT_EQ(cut.split_rows[0].segments, segments_of(kLong, kSplit));
  std::int64_t next = 5;
  for (const Segment& one : cut.segments) {
    if (one.target >= 0) continue;
    EXPECT_EQ(one.begin, next);
    EXPECT_LE(one.length, most_of_segment(kLong, kSplit));
    next += one.length;
  }
  EXPECT_EQ(next, 5 + kLong);
}

}  // namespace
}  // namespace spmmbench::row_split
