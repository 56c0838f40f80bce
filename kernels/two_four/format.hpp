#pragma once
// 2:4 structured sparsity: at most two nonzeros in every group of four neighbours of a row, stored
// as two values of 16 or 8 bits and two 2-bit indices a group, in the order in which
// wgmma.mma_async.sp (PTX ISA, "Asynchronous Warpgroup Level Multiply-and-Accumulate Operation
// using wgmma.mma_async.sp") reads them from shared memory. Nothing is rearranged on the device.
//
// A panel is 64 rows, a block 64 columns of it (8-bit values: 128), in this order in memory:
//
//   values   64 rows of 64 bytes (32 or 64 values), in the 64-byte swizzle: the 16 bytes c of row r
//            are at c ^ (r / 2 % 4). The lesser column of a group first.
//   indices  128 words, one per thread of a warpgroup; 8-bit values: 128 for each half of the
//            columns. Four bits a group, the index of the first value in the lower two.
//              16 bits   Thread 32w + 4g + t has columns 16t .. 16t + 15 of row 16w + g in its low
//                        half and of row 16w + g + 8 in its high half.
//              8 bits    Thread 32w + 4g + 2t + h has columns 32t .. 32t + 31 of row 16w + g + 8h.
//
// One instruction multiplies half of the columns of a block. With 16-bit values a pair of them
// shares the words: threads t = 0, 1 have the first one's (sparsity selector 0), t = 2, 3 the
// second one's (selector 1).
//
// The blocks of a panel follow each other, so any run of them is one copy.

#include <cstdint>
#include <vector>

#include "spmmbench/format.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench::two_four {

// Where things lie in a block of values of this many bytes; all in bytes from its start.
template <int kBytes>
struct TwoFourBlock {
  static_assert(kBytes == 1 || kBytes == 2);
  static constexpr int kGroup = 4;  // columns
  static constexpr int kKept = 2;   // of a group
  static constexpr int kRows = 64;
  static constexpr int kRowBytes = 64;  // of values
  static constexpr int kRowValues = kRowBytes / kBytes;
  static constexpr int kCols = kRowValues / kKept * kGroup;
  static constexpr int kValueBytes = kRows * kRowBytes;
  static constexpr int kIndexBytes = kRows * kCols / 8;
  static constexpr int kBlockBytes = kValueBytes + kIndexBytes;

  // Where the value of slot 0 or 1 of a group lies; `row`, `col`: the group's in the block.
  static constexpr int value_at(int row, int col, int slot) {
    const int at = (col / kGroup * kKept + slot) * kBytes;  // in the row
    return row * kRowBytes + ((at / 16) ^ (row / 2 % 4)) * 16 + at % 16;
  }
  // Where the half word with the group's indices lies.
  static constexpr int indices_at(int row, int col) {
    constexpr int kWordBytes = 4, kHalfBytes = 2, kInstructionBytes = 128 * kWordBytes;
    const int first = row / 16 * 32 + row % 8 * 4;  // thread
    if constexpr (kBytes == 2)
      return kValueBytes + (first + col / 16) * kWordBytes + row % 16 / 8 * kHalfBytes;
    else
      return kValueBytes + col / 64 * kInstructionBytes +
             (first + col % 64 / 32 * 2 + row % 16 / 8) * kWordBytes + col % 32 / 16 * kHalfBytes;
  }
  static constexpr int index_shift(int col) { return col % 16; }  // of the group's four bits
};

// Calls `function` with the TwoFourBlock of a type of 8 or 16 bits.
template <class Function>
auto visit_two_four_block(ElementType type, Function&& function) {
  return bytes_of(type) == 1 ? function(TwoFourBlock<1>{}) : function(TwoFourBlock<2>{});
}

struct TwoFour {
  static constexpr int kRows = 64;       // of a panel
  static constexpr int kUnitBlocks = 2;  // a panel has a multiple of them

  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  ElementType type = ElementType::f16;  // of 16 or 8 bits
  std::vector<unsigned char> blocks;    // [panel][block][kBlockBytes]

  static std::int64_t panels(std::int64_t rows) { return (rows + kRows - 1) / kRows; }
  static std::int64_t panel_blocks(std::int64_t cols, ElementType type) {
    const std::int64_t unit_cols =
        kUnitBlocks * visit_two_four_block(type, [](auto block) { return block.kCols; });
    return (cols + unit_cols - 1) / unit_cols * kUnitBlocks;
  }
  static std::int64_t bytes(std::int64_t rows, std::int64_t cols, ElementType type) {
    return panels(rows) * panel_blocks(cols, type) *
           visit_two_four_block(type, [](auto block) { return block.kBlockBytes; });
  }

  // The matrix must be in 2:4 (core/two_of_four.hpp), else this throws Error; its values must be
  // exact in `type`.
  static TwoFour build(const CsrMatrix& matrix, ElementType type);
  // The matrix without its entries of value zero, which cannot be told from empty slots.
  CsrMatrix unpack() const;
  FormatStats stats() const;
};

}  // namespace spmmbench::two_four
