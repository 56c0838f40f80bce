#pragma once
// 2:4 structured sparsity: at most two nonzeros in every group of four neighbours of a row, stored
// as two 16-bit values and two 2-bit indices a group, in the order in which wgmma.mma_async.sp
// (PTX ISA, "Asynchronous Warpgroup Level Multiply-and-Accumulate Operation using
// wgmma.mma_async.sp") reads them from shared memory. Nothing is rearranged on the device.
//
// A panel is 64 rows, a block 64 columns of it, in this order in memory: values, then indices.
//
//   values   64 rows of 64 bytes (32 values), in the 64-byte swizzle: the 16 bytes c of row r are
//            at c ^ (r / 2 % 4). The lesser column of a group first.
//   indices  128 words, one per thread of a warpgroup. Thread 32w + 4g + t has columns 16t .. 16t
//            + 15 of row 16w + g in its low half and of row 16w + g + 8 in its high half: four bits
//            a group, the index of the first value in the lower two.
//
// One instruction multiplies 32 columns; a pair of them shares the words: threads t = 0, 1 have the
// first one's (sparsity selector 0), t = 2, 3 the second one's (selector 1).
//
// The blocks of a panel follow each other, so any run of them is one copy.

#include <cstdint>
#include <vector>

#include "spmmbench/format.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

struct TwoFour {
  static constexpr int kGroup = 4;  // columns
  static constexpr int kKept = 2;   // of a group
  static constexpr int kRows = 64;  // of a panel
  static constexpr int kCols = 64;  // of a block
  static constexpr int kRowValues = kCols / kGroup * kKept;
  static constexpr int kValueHalves = kRows * kRowValues;  // 16 bits each
  static constexpr int kIndexHalves = kRows * kCols / 16;  // 16 columns each
  static constexpr int kBlockHalves = kValueHalves + kIndexHalves;
  static constexpr int kBlockBytes = 2 * kBlockHalves;
  static constexpr int kIndexOffset = 2 * kValueHalves;  // bytes from the start of a block
  static constexpr int kUnitBlocks = 2;                  // a panel has a multiple of them

  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  ElementType type = ElementType::f16;
  std::vector<std::uint16_t> blocks;  // [panel][block][kBlockHalves]

  static std::int64_t panels(std::int64_t rows) { return (rows + kRows - 1) / kRows; }
  static std::int64_t panel_blocks(std::int64_t cols) {
    constexpr std::int64_t kUnitCols = std::int64_t{kUnitBlocks} * kCols;
    return (cols + kUnitCols - 1) / kUnitCols * kUnitBlocks;
  }
  static std::int64_t bytes(std::int64_t rows, std::int64_t cols) {
    return panels(rows) * panel_blocks(cols) * kBlockBytes;
  }
  // Where the value of slot 0 or 1 of a group lies, and the half word of its indices, from the
  // start of the block; `row` and `col` are those of the group in the block.
  static constexpr int value_at(int row, int col, int slot) {
    const int at = col / kGroup * kKept + slot;  // in the row
    return row * kRowValues + ((at / 8) ^ (row / 2 % 4)) * 8 + at % 8;
  }
  static constexpr int indices_at(int row, int col) {
    const int thread = row / 16 * 32 + row % 8 * 4 + col / 16;
    return kValueHalves + 2 * thread + row % 16 / 8;
  }
  static constexpr int index_shift(int col) { return col % 16; }  // of the group's four bits

  // The matrix must be in 2:4 (core/two_of_four.hpp), else this throws Error; its values must be
  // exact in `type`.
  static TwoFour build(const CsrMatrix& matrix, ElementType type);
  // The matrix without its entries of value zero, which cannot be told from empty slots.
  CsrMatrix unpack() const;
  FormatStats stats() const;
};

}  // namespace spmmbench
