#pragma once
// Slot streams: the nonzeros of A in the order in which a tensor core multiplies them by gathered
// rows of B.
//
// mma.m16n8k16 sums over 16 columns of its A operand. Here those are 16 slots: each holds one
// nonzero of A, and the B operand gets, for each slot, the row of B that its nonzero asks for. Rows
// 2t and 8 + 2t of a slice own slots 2t, 2t + 1 and 8 + 2t, 8 + 2t + 1 of a first mma, the odd rows
// those of a second one:
//
//   A operand, even rows   slots 0 1 2 3 4 5 6 7 | 8 ..          one step of a slice: 16 rows,
//   row 0                        x x                             two nonzeros each = 32 slots;
//   row 2                            x x                         slot s's nonzero is value s of
//   row 4                                x x                     the step, and its column is lane
//   row 6                                    x x                 s's last column + move s
//   row 8                                          x x
//
// A chunk is a run of columns whose rows of B fit into shared memory. In a chunk, rows are sorted
// by length and cut into slices of 16, so that the rows of a slice end together. The nonzeros of a
// row go to its two slots in turn. A slot takes them in an order in which the 8 slots of a load
// never ask for two rows of B from the same banks, as far as possible. A move is at most 155
// columns forward or 100 back.
//
// All steps of all slices form one stream, cut evenly among `blocks` x `warps` warps; the part of a
// slice that one warp takes is a piece.

#include <array>
#include <cstdint>
#include <vector>

#include "spmmbench/format.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

struct SlotStreams {
  static constexpr int kSlots = 32;     // a lane names the row of B of each
  static constexpr int kRows = 16;      // of a slice, two slots each
  static constexpr int kQuadSteps = 4;  // whose moves of one slot fill a word
  static constexpr int kMoveWords = kSlots;
  static constexpr int kValueWords = kQuadSteps * kSlots / 2;
  static constexpr int kQuadWords = kMoveWords + kValueWords;
  static constexpr int kMostChunk = 4096;  // columns; 128 KB of shared memory for 16 columns of B
  static constexpr int kBankGroups = 8;    // rows of B, 16 bytes each, that lie in different banks

  // A move is stored as a byte, kMostBackward more than it is.
  static constexpr int kMostBackward = 100;
  static constexpr int move_of(std::uint32_t moves, int step) {
    return static_cast<int>(moves >> (8 * step) & 0xFFU) - kMostBackward;
  }
  // Of a quad: the word with the two values of a slice's row in a step.
  static constexpr int value_word(int step, int row) {
    return kMoveWords + (step / 2 * 8 + row % 8) * 4 + step % 2 * 2 + row / 8;
  }

  struct Slice {
    std::int32_t chunk = 0;
    std::int32_t quads = 0;
    std::array<std::int32_t, kRows> rows{};  // -1: none
    bool operator==(const Slice&) const = default;
  };
  struct Piece {
    std::int32_t slice = 0;
    std::int32_t quads = 0;
    bool operator==(const Piece&) const = default;
  };
  // The work of one warp in one phase of its CTA.
  struct Range {
    std::int64_t first_quad = 0;
    std::int32_t quads = 0;
    std::int32_t first_piece = 0;
    std::int32_t pieces = 0;
    bool operator==(const Range&) const = default;
  };

  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  ElementType type = ElementType::f16;
  int warps = 1;
  std::int32_t chunk_cols = 0;  // a multiple of 8
  std::vector<Slice> slices;
  std::vector<Piece> pieces;            // in the order of the stream
  std::vector<std::uint16_t> starts;    // [piece][slot]: column in the chunk before the first move
  std::vector<std::int32_t> phase_ptr;  // of a block
  std::vector<std::int32_t> phase_chunk;  // whose rows of B the block holds in a phase
  std::vector<Range> ranges;              // [phase][warp]
  // [quad]: 32 words of moves, byte s of word l = slot l in step s; then the values of its four
  // steps, of step s and row g + 8h at word [s / 2][g][s % 2][h]: the row's first and second slot.
  std::vector<std::uint32_t> words;
  std::int64_t bank_turns = 0;  // of all loads of 8 rows of B; one each when no two ever collide

  // The values must be exact in `type`.
  static SlotStreams build(const CsrMatrix& matrix, ElementType type, int blocks, int warps);
  // The matrix without its entries of value zero, which cannot be told from padding.
  CsrMatrix unpack() const;
  std::int64_t quads() const;
  FormatStats stats() const;

  static std::int64_t chunks(std::int64_t cols) { return (cols + kMostChunk - 1) / kMostChunk; }
};

}  // namespace spmmbench
