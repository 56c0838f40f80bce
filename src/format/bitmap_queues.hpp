#pragma once
// Bitmap queues: unstructured 16-bit weights, one bit per position and the values of the nonzeros,
// laid out so that a warp decodes them straight into the A fragments of mma.m16n8k16.
//
// A panel is 16 rows. A step is four 16 x 16 fragments of a panel side by side, so a lane owns 32
// positions of it: one word of bits. Bit 4f + r of the low half is the low (even) column of
// register r of fragment f, the same bit of the high half its odd column:
//
//   lane 4g + t, register r:  row g + 8 * (r % 2),  columns 2t and 2t + 1, + 8 for r >= 2
//
// The values wait in 64 queues, a low and a high one per shared-memory bank: a level is 32 words of
// (low value, high value), word q in bank q. A lane takes the values of its low bits from one low
// queue and those of its high bits from one high queue, so no two lanes ever read the same bank.
// Every `kBlockSteps` steps the lanes exchange their queues: the fullest queue goes to the lane
// with the most nonzeros ahead. So all queues are consumed at nearly the same rate. Where a queue
// still lags by more than `kMaxLag` levels, explicit zeros make its lane take more.
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
  static constexpr int kStepFragments = 4;  // 8 positions per lane each: 32 bits
  static constexpr int kStepCols = 16 * kStepFragments;
  static constexpr int kBlockSteps = 8;   // between two hand-overs of the queues
  static constexpr int kGroupSteps = 4;   // whose words of one lane lie together: 16 bytes
  static constexpr int kUnitLevels = 16;  // copied and released together: 2 KB
  static constexpr int kRingUnits = 5;    // of one warp in shared memory
  // The kernel may ask for the next unit only when the slowest queue has left the one it replaces:
  // ceil((most + 16) / 16) - floor(least / 16) <= kRingUnits.
  static constexpr int kMaxLag = kRingUnits * kUnitLevels - 3 * kUnitLevels;

  struct Segment {
    std::int64_t first_block = 0;  // of the bits and hand-overs
    std::int64_t first_level = 0;  // of the values
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
  std::vector<std::uint32_t> bits;       // [block][step / 4][lane][step % 4]
  std::vector<std::uint16_t> hand_over;  // [block][lane], see hand_over_of
  std::vector<std::uint16_t> values;     // [level][queue][low, high], bits of `type`

  // One lane at the start of a block: which lanes held the queues that it takes, and, in lanes
  // 0 .. 7, whether step `lane` needs a unit more than the steps before it; in lanes 8 .. 15,
  // whether a unit is done with after step `lane - 8`.
  static constexpr std::uint16_t hand_over_of(int low_from, int high_from, bool flag) {
    return static_cast<std::uint16_t>(low_from | high_from << 5 | (flag ? 1 << 10 : 0));
  }

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
