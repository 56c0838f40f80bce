#pragma once
// The rows of A cut into segments, as the kernel walks them. device_segments.cu makes the same ones
// on the device.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"
#include "spmmbench/host_device.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench::row_split {

// A run of nonzeros of one row, the work of one group.
struct alignas(16) Segment {
  std::int64_t begin;
  std::int32_t length;
  std::int32_t target;  // row of C, or ~index into the split rows

  bool operator==(const Segment&) const = default;
};

struct SplitRow {
  std::int32_t row;       // of C
  std::int32_t segments;  // it was cut into

  bool operator==(const SplitRow&) const = default;
};

constexpr int kMostJoined = 4;  // segments of a row in one CTA; a CTA has 4, 8 or 16 groups

// A warp runs as long as the longest row among its groups. So within this many rows, rows of equal
// length stand side by side. A larger number would separate rows that share columns.
constexpr std::int64_t kSortedRows = 1024;

// Rows of two to four segments are joined in a CTA where these are more than a tenth of all
// segments: that takes 0.53 to 1.06 of the time (docs/decisions/csr-row-split.md).
SPMMBENCH_HOST_DEVICE constexpr bool worth_joining(std::int64_t joined, std::int64_t all) {
  constexpr double kLeastShare = 0.1;
  return static_cast<double>(joined) > kLeastShare * static_cast<double>(all);
}

// length * part / parts, where the product has at most 63 bits. A GPU divides numbers of 32 bits
// far faster.
SPMMBENCH_HOST_DEVICE constexpr std::int64_t share_of(std::int64_t length, std::int64_t part,
                                                      std::int64_t parts) {
  const std::int64_t product = length * part;
  if (product >> 32 == 0)
    return static_cast<std::uint32_t>(product) / static_cast<std::uint32_t>(parts);
  return product / parts;
}

// The most nonzeros of a segment of a row that is cut. The sums of its segments meet at one place,
// where each takes about 10 ns (H200), while a group takes about 75 ns for a nonzero. Together that
// is the least where the square of a segment is an eighth of the row: so those of very long rows
// are longer than `split`.
SPMMBENCH_HOST_DEVICE constexpr std::int64_t most_of_segment(std::int64_t length,
                                                             std::int64_t split) {
  constexpr std::int64_t kNonzerosForASum = 8;
  constexpr std::int64_t kMost = 1 << 14;  // then no row of 2^31 nonzeros is longer
  while (split < kMost && length > kNonzerosForASum * split * split) split *= 2;
  return split;
}
// How many segments a row of that length is cut into.
SPMMBENCH_HOST_DEVICE constexpr std::int64_t segments_of(std::int64_t length, std::int64_t split) {
  if (length <= split) return 1;
  const std::int64_t most = most_of_segment(length, split);
  return share_of(length + most - 1, 1, most);
}
// The same where rows may be joined: in two or in four.
SPMMBENCH_HOST_DEVICE constexpr std::int64_t parts_of(std::int64_t length, std::int64_t split,
                                                      bool join) {
  const std::int64_t parts = segments_of(length, split);
  return join && parts == kMostJoined - 1 ? kMostJoined : parts;
}

struct Segments {
  std::vector<Segment> segments;  // those of split rows first: they must not start last
  // With joined rows, those of four segments come first, then those of two.
  std::int64_t fours_end = 0, twos_end = 0;
  std::vector<SplitRow> split_rows;  // whose segments are not joined in a CTA
};

// Row i of `a` is row row_ids[i] of C, or i where `row_ids` is empty.
Segments cut_rows(const CsrMatrix& a, std::span<const std::int32_t> row_ids, std::int64_t split);

struct DeviceSegments {
  Buffer segments, split_rows;  // with room for more
  std::int64_t count = 0, fours_end = 0, twos_end = 0, split_count = 0;
};

DeviceSegments upload(const Segments& segments, Device& device);
// cut_rows on the device, whose memory has `row_ids`, or null. Returns when all is there.
DeviceSegments cut_rows(const DeviceCsr& a, const std::int32_t* row_ids, std::int64_t split,
                        Device& device);

}  // namespace spmmbench::row_split
