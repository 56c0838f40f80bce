#pragma once
// Gap slices: the nonzeros of A for the product with a vector that lies in shared memory.
//
// A slice is a few rows, 32 / row_lanes of them. Each row has row_lanes lanes of a warp, and each
// of these a part of the columns:
//
//   row_lanes = 2     lane 0      lane 1       lane 2      lane 3     ...   16 rows, 32 lanes
//                    [row 0, first half | second half][row 1, first half | second half] ...
//
// A lane walks its nonzeros from left to right. An entry is a value of 16 or 8 bits and the gap to
// it: by how many columns it lies right of the one before, or of the first column of the part. Gaps
// have 4 or 8 bits; where one is too wide there are zeros on the way. A group is eight entries of
// every lane, which a warp loads at once, and a slice has as many as its longest lane needs. Rows
// are sorted by that number, so lanes of a slice end at about the same time.
//
// The slices are dealt to blocks, in order and by their groups, and the groups of a block to its
// warps, wherever slices end.

#include <cstdint>
#include <vector>

#include "spmmbench/format.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench::gap_slices {

struct GapSlices {
  static constexpr int kLanes = 32;            // of a warp
  static constexpr int kGroup = 8;             // entries of a lane
  static constexpr int kMostBlockRows = 8192;  // whose sums take 32 KB of shared memory

  // How A is laid out.
  struct Shape {
    int row_lanes = 1;                                         // a power of two up to kLanes
    int gap_bits = 4;                                          // or 8
    int value_bits = 16;                                       // or 8
    constexpr int rows() const { return kLanes / row_lanes; }  // of a slice
    constexpr int gap_words() const { return kGroup * gap_bits / 32; }  // of a lane and group
    constexpr int value_words() const { return kGroup * value_bits / 32; }
    constexpr std::int64_t group_words() const {
      return std::int64_t{kLanes} * (value_words() + gap_words());
    }
    constexpr int most_gap() const { return (1 << gap_bits) - 1; }
    bool operator==(const Shape&) const = default;
  };
  // How the columns are divided among the lanes of a row.
  struct Parts {
    Shape shape;
    std::int64_t cols = 0, part_cols = 0;
    // Where the part of a lane begins. The last column where all parts before have them all, since
    // zeros at the end of a lane are multiplied by what lies there.
    constexpr std::int64_t first_column(int lane) const {
      const std::int64_t first = lane % shape.row_lanes * part_cols;
      return first < cols ? first : cols - 1;
    }
  };
  // The work of one warp.
  struct Range {
    std::int32_t first_group = 0, groups = 0;
    std::int32_t first_slice = 0;
    bool operator==(const Range&) const = default;
  };
  // The warps of a block that have groups of one slice. None where the slice has no groups.
  struct Warps {
    std::int16_t first = 0, end = 0;
    bool operator==(const Warps&) const = default;
  };

  // Within a group: the word with entry `at` of a lane, its value, whose bits begin at value_shift,
  // or its gap. Gaps of 4 bits begin at gap_shift: those of the first four entries are the low
  // halves of the bytes of a word, those of the others the high halves.
  static constexpr std::int64_t value_word(const Shape& shape, int lane, int at) {
    return lane * std::int64_t{shape.value_words()} + at * shape.value_bits / 32;
  }
  static constexpr int value_shift(const Shape& shape, int at) {
    return at * shape.value_bits % 32;
  }
  static constexpr std::int64_t gap_word(const Shape& shape, int lane, int at) {
    return std::int64_t{kLanes} * shape.value_words() + lane * std::int64_t{shape.gap_words()} +
           (shape.gap_bits == 4 ? 0 : at / 4);
  }
  static constexpr int gap_shift(const Shape& shape, int at) {
    return shape.gap_bits == 4 && at >= 4 ? 8 * (at % 4) + 4 : 8 * (at % 4);
  }

  std::int64_t rows = 0, cols = 0, nnz = 0;
  ElementType type = ElementType::f16;
  Shape shape;
  int warps = 1;                         // of a block
  std::int64_t part_cols = 0;            // columns of a lane
  std::vector<std::int32_t> slice_rows;  // [slice][row]; -1: none
  std::vector<std::int32_t> slice_ptr;   // first group of each slice, and the end
  std::vector<std::int32_t> block_ptr;   // first slice of each block, and the end
  std::vector<Warps> slice_warps;        // [slice]
  std::vector<Range> ranges;             // [block][warp]
  std::vector<std::int32_t> starts;      // [block][warp][lane]: column before its first entry
  std::vector<std::uint32_t> words;      // of all groups

  // What decides about the layout. An entry is a nonzero or a zero on the way to one.
  struct Counts {
    std::int64_t rows = 0, cols = 0, nnz = 0;
    std::int64_t longest_row = 0;               // nonzeros
    std::int64_t entries_4 = 0, entries_8 = 0;  // at gaps of 4 and of 8 bits, with one lane a row
  };
  // Lanes of a row, and how many times as long as even lanes full of nonzeros they are expected to
  // take.
  struct RowLanes {
    int count = 1;
    double times = 1;
  };
  // What is expected to be multiplied fastest by this many blocks at once. The first reads no
  // entries.
  static RowLanes choose_row_lanes(const Counts& counts, int blocks);
  static Shape choose(const Counts& counts, int blocks, int value_bits = 16);
  static Counts count(const CsrMatrix& matrix);
  // Sizes and columns of a lane, without anything that lies in arrays.
  static GapSlices header_of(std::int64_t rows, std::int64_t cols, std::int64_t nnz,
                             const Shape& shape);
  // Fills block_ptr, slice_warps and ranges; slice_ptr and `warps` are there.
  void deal(int blocks);
  // `blocks`: of a launch; there are more where each would have more than kMostBlockRows rows. The
  // values must be exact in `type`, which has shape.value_bits.
  static GapSlices build(const CsrMatrix& matrix, ElementType type, const Shape& shape, int blocks,
                         int warps);
  // The matrix without its entries of value zero, which cannot be told from padding.
  CsrMatrix unpack() const;
  FormatStats stats() const;
  // The statistics of what build would make, without making it.
  static FormatStats stats_of(const CsrMatrix& matrix, const Shape& shape);

  std::int64_t slices() const { return static_cast<std::int64_t>(slice_ptr.size()) - 1; }
  std::int64_t groups() const { return slice_ptr.back(); }
  std::int64_t first_column(int lane) const { return parts().first_column(lane); }
  Parts parts() const { return {shape, cols, part_cols}; }
};

}  // namespace spmmbench::gap_slices
