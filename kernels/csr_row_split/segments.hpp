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
  std::int32_t target;  // row of C, or ~index of a slot

  bool operator==(const Segment&) const = default;
};

// Where the sums of segments of one row are added up, or those of other slots.
struct Slot {
  std::int32_t target;  // of what they amount to: as of a segment
  std::int32_t parts;   // that are added up

  bool operator==(const Slot&) const = default;
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

// How many segments a row of that length is cut into.
SPMMBENCH_HOST_DEVICE constexpr std::int64_t segments_of(std::int64_t length, std::int64_t split) {
  return length <= split ? 1 : share_of(length + split - 1, 1, split);
}
// The same where rows may be joined: in two or in four.
SPMMBENCH_HOST_DEVICE constexpr std::int64_t parts_of(std::int64_t length, std::int64_t split,
                                                      bool join) {
  const std::int64_t parts = segments_of(length, split);
  return join && parts == kMostJoined - 1 ? kMostJoined : parts;
}

// Additions in one slot wait for each other, 4 to 14 ns each (H200), and a second slot takes about
// 1 us. So a row of more segments than the first number has a slot for each of the second number,
// the last of which takes what is left (docs/decisions/csr-row-split.md).
constexpr std::int64_t kMostOfOneSlot = 256, kSegmentsOfSlot = 32;

// The first slot of a row, from the rows before that are cut and their segments: no row before has
// as many slots, and some slots are of no row.
SPMMBENCH_HOST_DEVICE constexpr std::int64_t slots_before(std::int64_t segments,
                                                          std::int64_t rows) {
  return segments / kSegmentsOfSlot + rows;
}

// Of a matrix: a row that is cut has more than `split` nonzeros, and at most twice as many segments
// as it has times `split` nonzeros.
constexpr std::int64_t most_slots(std::int64_t nnz, std::int64_t split) {
  return slots_before(2 * (nnz / split), nnz / split);
}

// The slots of a row that is cut, from number `first` on: one for all of its segments, or one where
// those of the segments, which follow, meet.
struct SlotsOfRow {
  std::int64_t first, segments;

  SPMMBENCH_HOST_DEVICE constexpr bool one() const { return segments <= kMostOfOneSlot; }
  // Of the segments, if one does not take all.
  SPMMBENCH_HOST_DEVICE constexpr std::int64_t lower_slots() const {
    return segments / kSegmentsOfSlot;
  }
  SPMMBENCH_HOST_DEVICE constexpr std::int32_t target_of(std::int64_t segment) const {
    const std::int64_t slot = segment / kSegmentsOfSlot, last = lower_slots() - 1;
    return ~static_cast<std::int32_t>(one() ? first : first + 1 + (slot < last ? slot : last));
  }
  SPMMBENCH_HOST_DEVICE constexpr Slot upper_slot(std::int32_t row_of_c) const {
    return {row_of_c, static_cast<std::int32_t>(one() ? segments : lower_slots())};
  }
  SPMMBENCH_HOST_DEVICE constexpr Slot lower_slot(std::int64_t index) const {
    const std::int64_t before = index * kSegmentsOfSlot;
    return {
        ~static_cast<std::int32_t>(first),
        static_cast<std::int32_t>(index + 1 < lower_slots() ? kSegmentsOfSlot : segments - before)};
  }
};

struct Segments {
  std::vector<Segment> segments;  // those of cut rows first: they must not start last
  // With joined rows, those of four segments come first, then those of two.
  std::int64_t fours_end = 0, twos_end = 0;
  std::vector<Slot> slots;    // of rows whose segments are not joined in a CTA; 0 parts: of none
  std::int64_t cut_rows = 0;  // these rows
};

// Row i of `a` is row row_ids[i] of C, or i where `row_ids` is empty.
Segments cut_rows(const CsrMatrix& a, std::span<const std::int32_t> row_ids, std::int64_t split);

struct DeviceSegments {
  Buffer segments, slots;  // with room for more
  std::int64_t count = 0, fours_end = 0, twos_end = 0, slot_count = 0, cut_rows = 0;
};

DeviceSegments upload(const Segments& segments, Device& device);
// cut_rows on the device, whose memory has `row_ids`, or null. Returns when all is there.
DeviceSegments cut_rows(const DeviceCsr& a, const std::int32_t* row_ids, std::int64_t split,
                        Device& device);

}  // namespace spmmbench::row_split
