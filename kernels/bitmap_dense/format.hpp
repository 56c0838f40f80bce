#pragma once
// Bitmap queues: unstructured 16-bit weights as bits and nonzeros, laid out so that a warp reads
// them straight into the A fragments of mma.m16n8k16 and wgmma. Of 8-bit weights two neighbours
// take the place of one value: a column below then stands for two, and a nonzero for two values of
// which one is not zero.
//
// A panel is 16 rows. A step is four 16 x 16 fragments of a panel side by side. A lane owns four
// registers of each, with two neighbouring columns in each register. Position 2 * (4f + r) + c % 2
// is column c in register r of fragment f:
//
//   lane 4g + t, register r:  row g + 8 * (r % 2),  columns 2t and 2t + 1, + 8 for r >= 2
//
// What is stored has a bit, and fills words of two values, low half first. Two kinds:
//
//   pairs:   a register that is not zero, both of its values  bit 4f + r, a word
//   values:  a nonzero                                        bit 2 * (4f + r) + c % 2; those of a
//            fragment follow each other, and zero fills their last word
//
// Pairs are decoded in fewer instructions, values take fewer bytes where zeros are few.
//
// The words wait in 32 queues, one per shared-memory bank: a level is 32 words, word q in bank q.
// A lane takes its words from one queue, so no two lanes ever read the same bank. Every
// `kBlockSteps` steps the lanes exchange their queues: the fullest queue goes to the lane with the
// most words ahead. So all queues are consumed at nearly the same rate. Where a queue still lags by
// more than `kMaxLag` levels, explicit zeros make its lane take more.
//
// A segment is a run of steps of one panel that one warp walks; its queues start level.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "spmmbench/format.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench::bitmap_dense {

// What both kinds share.
struct BitmapPanels {
  static constexpr int kLanes = 32;
  static constexpr int kPanelRows = 16;
  static constexpr int kStepFragments = 4;  // 4 registers of a lane each
  static constexpr int kStepRegisters = 4 * kStepFragments;
  static constexpr int kLanePositions = 2 * kStepRegisters;  // of a step
  static constexpr int kStepPositions = kLanes * kLanePositions;
  static constexpr int kStepCols = 16 * kStepFragments;
  static constexpr int kBlockSteps = 8;   // between two hand-overs of the queues
  static constexpr int kGroupSteps = 4;   // whose bits of one lane lie together
  static constexpr int kUnitLevels = 16;  // copied and released together: 2 KB
  static constexpr int kRingUnits = 4;    // of one warp in shared memory
  // The kernel may ask for the next unit only when the slowest queue has left the one it replaces:
  // ceil((most + 16) / 16) - floor(least / 16) <= kRingUnits.
  static constexpr int kMaxLag = kRingUnits * kUnitLevels - 3 * kUnitLevels;

  struct Segment {
    std::int64_t first_block = 0;
    std::int64_t first_level = 0;  // of the words
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

  static std::int64_t panels(std::int64_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }
  // Columns of A that are one column here.
  static constexpr int columns_in(ElementType type) { return 2 / static_cast<int>(bytes_of(type)); }
  // Rounded up to a whole group.
  static std::int64_t panel_steps(std::int64_t cols, ElementType type = ElementType::f16) {
    const std::int64_t group_cols = std::int64_t{kGroupSteps} * kStepCols * columns_in(type);
    return (cols + group_cols - 1) / group_cols * kGroupSteps;
  }
  static constexpr std::int64_t blocks_of(std::int64_t steps) {
    return (steps + kBlockSteps - 1) / kBlockSteps;
  }
  // One for each range, before any levels are known.
  static std::vector<Segment> segments_of(const std::vector<Range>& ranges);
  static std::int64_t blocks_in(const std::vector<Segment>& segments) {
    return segments.empty() ? 0 : segments.back().first_block + blocks_of(segments.back().steps);
  }
  // One segment per panel.
  static std::vector<Range> whole_panels(std::int64_t rows, std::int64_t cols,
                                         ElementType type = ElementType::f16);
};

enum class BitmapKind { pairs, values };

template <BitmapKind kKind>
struct BitmapQueues : BitmapPanels {
  static constexpr bool kPairs = kKind == BitmapKind::pairs;
  using Bits = std::conditional_t<kPairs, std::uint16_t, std::uint32_t>;  // of a lane and a step

  // This many steps of a segment, the last ones perhaps empty, as they lie in memory.
  struct alignas(16) Block {
    static constexpr int kFlag = kLanes;
    Bits bits[kBlockSteps / kGroupSteps][kLanes][kGroupSteps] = {};
    // The lane that held the queue which this lane takes now, and a flag: in lanes 0 .. 7 whether
    // step `lane` needs a unit more than the steps before it; in lanes 8 .. 15 whether a unit is
    // done with after step `lane - 8`.
    std::uint8_t hand_over[kLanes] = {};
    bool operator==(const Block&) const = default;
  };

  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  ElementType type = ElementType::f16;
  std::vector<Segment> segments;
  std::vector<Block> blocks;
  std::vector<std::uint32_t> words;  // [level][queue], values as bits of `type`, the left one low

  // Words that a lane takes for a step.
  static constexpr int words_of(Bits bits) {
    if constexpr (kPairs) return std::popcount(bits);
    int words = 0;
    for (int fragment = 0; fragment < kStepFragments; ++fragment)
      words += (std::popcount(bits >> 8 * fragment & 0xFFU) + 1) / 2;
    return words;
  }
  // Words that the kernel reads for them, counted from the first: for values one or two that belong
  // to what follows, since it reads two for every four positions.
  static constexpr int words_read(Bits bits) {
    if constexpr (kPairs) return words_of(bits);
    int read = 0, taken = 0;
    for (int fragment = 0; fragment < kStepFragments; ++fragment) {
      const std::uint32_t of_fragment = bits >> 8 * fragment & 0xFFU;
      read = std::max(read, taken + std::popcount(of_fragment & 15U) / 2 + 2);
      taken += (std::popcount(of_fragment) + 1) / 2;
    }
    return read;
  }
  // Calls half(position, h) for every half of a lane's words, in order; h = 0 begins a word.
  template <class Half>
  static constexpr void for_each_half(Bits bits, Half half) {
    if constexpr (kPairs) {
      for (unsigned rest = bits; rest != 0; rest &= rest - 1) {
        half(2 * std::countr_zero(rest), 0);
        half(2 * std::countr_zero(rest) + 1, 1);
      }
    } else {
      for (int fragment = 0; fragment < kStepFragments; ++fragment) {
        int taken = 0;
        for (Bits rest = bits & 0xFFU << 8 * fragment; rest != 0; rest &= rest - 1)
          half(std::countr_zero(rest), taken++ % 2);
      }
    }
  }

  // The ranges must cover every step of every panel once, begin and end at whole groups. The values
  // must be exact in `type`.
  static BitmapQueues build(const CsrMatrix& matrix, ElementType type,
                            const std::vector<Range>& ranges);
  // The matrix without its entries of value zero, which cannot be told from the zeros that keep the
  // queues level.
  CsrMatrix unpack() const;
  FormatStats stats() const;
  // The statistics of what holds so much.
  struct Counts {
    std::int64_t segments, blocks, words;
    ElementType type = ElementType::f16;
  };
  static FormatStats stats_of(std::int64_t rows, std::int64_t nnz, const Counts& counts);
};

using PairQueues = BitmapQueues<BitmapKind::pairs>;
using ValueQueues = BitmapQueues<BitmapKind::values>;
extern template struct BitmapQueues<BitmapKind::pairs>;
extern template struct BitmapQueues<BitmapKind::values>;

}  // namespace spmmbench::bitmap_dense
