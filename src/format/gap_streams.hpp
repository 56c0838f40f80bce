#pragma once
// Gap streams: unstructured 16-bit weights as nonzeros and 4-bit gaps, laid out so that a warp
// scatters them into a dense tile in shared memory without bank conflicts. Relative indices of four
// bits with explicit zeros where a gap is longer are those of Deep Compression (ICLR 2016).
//
// A panel is 64 rows, a slot 64 rows x 32 columns of it. A slot lies in shared memory as 32 words
// for each of the 32 banks, in the 64-byte swizzle: the 16 bytes with columns 8c .. 8c + 7 of row r
// are chunk c ^ (r / 2 % 4) of line r. Lane L of the warp owns bank L:
//
//   word w:  row 2w + L / 16,  columns 8 ((L / 4 % 4) ^ (w % 4)) + 2 (L % 4), + 1
//
// So a lane has two streams, `kHalves`: the even columns of its words and the odd ones. An entry of
// a stream is a value and a gap, the number of words by which it lies beyond the entry before (the
// first: beyond word 0). Words count on from slot to slot.
//
// All streams of a warp advance together, `kBatch` entries at a time. Where a stream has run ahead
// as far as the ring of slots in shared memory allows, it repeats its last entry (gap 0).
//
// A segment is a run of slots of one panel that one warp walks.

#include <cstdint>
#include <vector>

#include "spmmbench/format.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

struct GapStreams {
  static constexpr int kLanes = 32;
  static constexpr int kHalves = 2;
  static constexpr int kPanelRows = 64;
  static constexpr int kSlotCols = 32;
  static constexpr int kSlotWords = 32;  // of a lane
  static constexpr int kRingSlots = 4;   // of one warp in shared memory
  // The slot that is multiplied next and those after it, which entries may go to meanwhile. The
  // fourth is being cleared.
  static constexpr int kOpenSlots = 3;
  static constexpr int kMostGap = 15;
  static constexpr int kBatch = 4;         // entries of a stream
  static constexpr int kGroupBatches = 4;  // batches that are loaded together
  static constexpr int kEndBatches = 2;    // slots end after every second batch only
  // A reader loads so many groups beyond the end of a segment. They exist, and are not used.
  static constexpr int kGroupsAhead = 1;

  // A group, as it lies in memory.
  struct Group {
    std::uint16_t values[kGroupBatches][kLanes][kHalves][kBatch];  // bits of `type`
    // Of a batch; entry i of half h has the bits 8i + 4h .. 8i + 4h + 3.
    std::uint32_t gaps[kLanes][kGroupBatches];
    bool operator==(const Group&) const = default;
  };

  struct Segment {
    std::int64_t first_group = 0;
    std::int32_t panel = 0;
    std::int32_t first_slot = 0;  // of the panel
    std::int32_t slots = 0;
    std::int32_t groups = 0;
    bool operator==(const Segment&) const = default;
  };
  // Where one segment lies, before its values are known.
  struct Range {
    std::int32_t panel, first_slot, slots;
  };

  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  ElementType type = ElementType::f16;
  std::vector<Segment> segments;
  std::vector<Group> groups;
  std::vector<std::uint32_t> ends;  // of a group: bits 8b .. are the slots that batch b completes

  static std::int64_t panels(std::int64_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }
  // Rounded up to whole units of work.
  static std::int64_t panel_slots(std::int64_t cols) { return (cols + kSlotCols - 1) / kSlotCols; }
  // One segment per panel.
  static std::vector<Range> whole_panels(std::int64_t rows, std::int64_t cols);

  // The ranges must cover every slot of every panel once. The values must be exact in `type`.
  static GapStreams build(const CsrMatrix& matrix, ElementType type,
                          const std::vector<Range>& ranges);
  // The matrix without its entries of value zero, which cannot be told from those that bridge gaps.
  CsrMatrix unpack() const;
  FormatStats stats() const;
};

}  // namespace spmmbench
