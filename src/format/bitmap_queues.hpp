#pragma once
// Bitmap queues: unstructured 16-bit weights, one bit for every pair of neighbouring columns and
// the pairs that are not zero, laid out so that a warp reads them straight into the A fragments of
// mma.m16n8k16 and wgmma.
//
// A panel is 16 rows. A step is four 16 x 16 fragments of a panel side by side, so a lane owns 16
// registers of it, one pair each. Bit 4f + r is that of register r of fragment f:
//
//   lane 4g + t, register r:  row g + 8 * (r % 2),  columns 2t and 2t + 1, + 8 for r >= 2
//
// The pairs wait in 32 queues, one per shared-memory bank: a level is 32 words (even column in the
// low half, odd one in the high half), word q in bank q. A lane takes its pairs from one queue, so
// no two lanes ever read the same bank. Every `kBlockSteps` steps the lanes exchange their queues:
// the fullest queue goes to the lane with the most pairs ahead. So all queues are consumed at
// nearly the same rate. Where a queue still lags by more than `kMaxLag` levels, explicit zeros make
// its lane take more.
//
// A segment is a run of steps of one panel that one warp walks; its queues start level.

#include <cstdint>
#include <vector>

#include "spmmbench/format.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

struct BitmapQueues {
  static constexpr int kLanes = 32;
  static constexpr int kPanelRows = 16;
  static constexpr int kStepFragments = 4;               // 4 pairs per lane each
  static constexpr int kStepPairs = 4 * kStepFragments;  // of a lane
  static constexpr int kStepPositions = kLanes * kStepPairs * 2;
  static constexpr int kStepCols = 16 * kStepFragments;
  static constexpr int kBlockSteps = 8;   // between two hand-overs of the queues
  static constexpr int kGroupSteps = 4;   // whose bits of one lane lie together: 8 bytes
  static constexpr int kUnitLevels = 16;  // copied and released together: 2 KB
  static constexpr int kRingUnits = 4;    // of one warp in shared memory
  // The kernel may ask for the next unit only when the slowest queue has left the one it replaces:
  // ceil((most + 16) / 16) - floor(least / 16) <= kRingUnits.
  static constexpr int kMaxLag = kRingUnits * kUnitLevels - 3 * kUnitLevels;

  // So many steps of a segment, the last ones perhaps empty, as they lie in memory.
  struct alignas(16) Block {
    static constexpr int kFlag = kLanes;
    std::uint16_t bits[kBlockSteps / kGroupSteps][kLanes][kGroupSteps] = {};
    // The lane that held the queue which this lane takes now, and a flag: in lanes 0 .. 7 whether
    // step `lane` needs a unit more than the steps before it; in lanes 8 .. 15 whether a unit is
    // done with after step `lane - 8`.
    std::uint8_t hand_over[kLanes] = {};
    bool operator==(const Block&) const = default;
  };

  struct Segment {
    std::int64_t first_block = 0;
    std::int64_t first_level = 0;  // of the pairs
    std::int32_t panel = 0;
    std::int32_t first_step = 0;  // of the panel
    std::int32_t steps = 0;       // a multiple of kGroupSteps, the last ones perhaps empty
    std::int32_t levels = 0;
    bool operator==(const Segment&) const = default;
  };
  // Where one segment lies, before its values are known.
  struct Range {
    std::int32_t panel, first_step, steps;
  };

  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  ElementType type = ElementType::f16;
  std::vector<Segment> segments;
  std::vector<Block> blocks;
  std::vector<std::uint32_t> pairs;  // [level][queue], values as bits of `type`

  static std::int64_t panels(std::int64_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }
  // Rounded up to a whole group.
  static std::int64_t panel_steps(std::int64_t cols) {
    constexpr std::int64_t kGroupCols = std::int64_t{kGroupSteps} * kStepCols;
    return (cols + kGroupCols - 1) / kGroupCols * kGroupSteps;
  }
  // One segment per panel.
  static std::vector<Range> whole_panels(std::int64_t rows, std::int64_t cols);

  // The ranges must cover every step of every panel once, begin and end at whole groups. The values
  // must be exact in `type`.
  static BitmapQueues build(const CsrMatrix& matrix, ElementType type,
                            const std::vector<Range>& ranges);
  // The matrix without its entries of value zero, which cannot be told from the zeros that keep the
  // queues level.
  CsrMatrix unpack() const;
  FormatStats stats() const;
};

}  // namespace spmmbench
