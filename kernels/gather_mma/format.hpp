#pragma once
// Slot streams: the nonzeros of A in the order in which a tensor core multiplies them by gathered
// rows of B.
//
// mma.m16n8k16 sums over 16 columns of its A operand. Here those are 16 slots: each holds one
// nonzero of A, and the B operand gets, for each slot, the row of B that its nonzero asks for.
// Slots 0 to 7 belong to one row of A, slots 8 to 15 to another:
//
//   A operand   slots 0 1 2 3 4 5 6 7 | 8 ...      octet: the eight slots of a row, which load
//   their row 1             x x x x x x x x              rows of B together. Slot s takes the
//   columns row 9                               x ...      8 u + s, so that no two rows of B ever
//   lie in the other rows        zeros                        same banks of shared memory
//
// A chunk is a run of columns whose rows of B fit into shared memory. The nonzeros of a row in a
// chunk are dealt to its slots by their columns modulo 8, and each slot takes them from left to
// right. Its move to the next one is a byte: by how much u grows. Where it would grow by more there
// are zeros between them, and a slot that ends before the others gets zeros.
//
// Where B lies twice in shared memory, the second copy has each line u of eight rows turned: column
// 8 u + s lies in place (s + turn of u) % 8, so that a nonzero may go to that slot too. Nonzeros of
// long slots do, until all eight are about as long. A slot takes those of the first copy, and then
// those of the second, whose lines follow.
//
// In a chunk, rows are sorted by their longest slot and cut into slices of 16. A quad has one
// nonzero for every slot of a slice, in four steps of four octets, and four quads are a group,
// which a warp loads at once. A slice has whole groups.
//
// The groups of a chunk form a stream, which is cut evenly among the warps of some blocks; the part
// of a slice that one warp takes is a piece.
//
// Rows may be cut into bands first. Each band and chunk then has slices and a stream of its own,
// for one block, and the blocks of a band, which have all of its sums together, lie side by side:
//
//   bands 3, chunks 2     band 0  [block 0][block 1]
//                         band 1  [block 2][block 3]
//                         band 2  [block 4][block 5]

#include <array>
#include <cstdint>
#include <vector>

#include "spmmbench/format.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench::gather_mma {

struct SlotStreams {
  static constexpr int kOctet = 8;      // slots of a row of A
  static constexpr int kLanes = 32;     // of a warp; each names the row of B of one slot in a step
  static constexpr int kRows = 16;      // of a slice
  static constexpr int kQuadSteps = 4;  // whose moves of one lane fill a word
  static constexpr int kQuadSlots = kRows * kOctet;
  static constexpr int kGroupQuads = 4;
  static constexpr int kMostChunk = 4096;  // columns; 128 KB of shared memory for 16 columns of B
  // A word of moves never has all bits set. gather_mma relies on it.
  static constexpr int kMostMove = 254;
  static constexpr int kMostCopies = 2;
  // Words of a group in a stream whose values have 2 bytes, or 1.
  static constexpr int group_words(int bytes) {
    return kGroupQuads * (kLanes + kQuadSlots * bytes / 4);
  }

  // The turn of a slice's row: step, and place among the four octets of the step. The first two
  // octets are the slots of one mma, which has row g in its first and row g + 8 in its second.
  static constexpr int step_of(int row) { return row % 8 / 2; }
  static constexpr int octet_of(int row) { return row % 2 * 2 + row / 8; }
  static constexpr int move_of(std::uint32_t moves, int step) {
    return static_cast<int>(moves >> (8 * step) & 0xFFU);
  }
  // Places in the stream: the word with a lane's moves in a quad, and the bits with the value of a
  // slice's row in a slot. A lane has the moves of a group in four words. Of values in 16 bits it
  // has twice four words, each of a row in two slots; in 8 bits four words, each of the quad's
  // nonzeros that it has the moves of, byte s of step s. `bytes`: of a value.
  static constexpr std::int64_t move_word(int bytes, std::int64_t quad, int lane) {
    return quad / kGroupQuads * group_words(bytes) + lane * kGroupQuads + quad % kGroupQuads;
  }
  struct Bits {
    std::int64_t word;
    int shift;
  };
  static constexpr Bits value_bits(int bytes, std::int64_t quad, int row, int slot) {
    if (bytes == 1) {
      const int lane = octet_of(row) * kOctet + slot;
      return {move_word(bytes, quad, lane) + kLanes * kGroupQuads, 8 * step_of(row)};
    }
    const int lane = row % 8 * 4 + slot / 2, in_group = static_cast<int>(quad % kGroupQuads);
    const int half = 2 * in_group + row / 8;  // of a quad's two halves of rows
    constexpr int kPart = kLanes * kGroupQuads;
    return {quad / kGroupQuads * group_words(bytes) + (1 + half / 4) * kPart + lane * kGroupQuads +
                half % 4,
            16 * (slot % 2)};
  }
  std::int64_t move_word(std::int64_t quad, int lane) const {
    return move_word(value_bytes(), quad, lane);
  }
  Bits value_bits(std::int64_t quad, int row, int slot) const {
    return value_bits(value_bytes(), quad, row, slot);
  }
  int value_bytes() const { return static_cast<int>(bytes_of(type)); }

  struct Slice {
    std::int32_t stream = 0;  // band * chunks + chunk
    std::int32_t groups = 0;
    std::array<std::int32_t, kRows> rows{};  // -1: none
    bool operator==(const Slice&) const = default;
  };
  struct Piece {
    std::int32_t slice = 0;
    std::int32_t groups = 0;
    bool operator==(const Piece&) const = default;
  };
  // The work of one warp.
  struct Range {
    std::int64_t first_group = 0;
    std::int32_t groups = 0;
    std::int32_t first_piece = 0;
    std::int32_t pieces = 0;
    bool operator==(const Range&) const = default;
  };
  // Where a range begins in the middle of a slice: the u of one lane in each step.
  struct alignas(8) Start {
    std::uint16_t u[kQuadSteps] = {};
    bool operator==(const Start&) const = default;
  };

  // Which nonzeros of a row in a chunk are read from the second copy.
  struct Turns {
    // [s][t]: those in columns 8 u + s where line u has turn t, and how many of them, the first
    // ones, go to slot (s + t) % 8 of the second copy.
    std::uint16_t count[kOctet][kOctet], moved[kOctet][kOctet];
    std::uint16_t fixed[kOctet];  // [s]: those in columns that the second copy does not have

    // A row with fewer nonzeros stays in the first copy: its slots would need zeros on the way from
    // one to the other.
    static constexpr int kLeast = 128;
    static constexpr int slot_of(int column) { return column % kOctet; }
    // Each turn is that of an eighth of the lines. Of four lines side by side every other one is
    // turned by half more: so the kernel stores both copies without conflicts.
    static constexpr int of_line(int line) { return line % 2 * (kOctet / 2) + line / 4 % 4; }
    static constexpr int turn_of(int column) { return of_line(column / kOctet); }
    static constexpr int second_slot(int slot, int turn) { return (slot + turn) % kOctet; }
    // Sets `moved`.
    constexpr void level() {
      constexpr int kMostRounds = 64;
      int length[kOctet] = {}, all = 0;
      for (int slot = 0; slot < kOctet; ++slot) {
        length[slot] = fixed[slot];
        for (int turn = 0; turn < kOctet; ++turn) length[slot] += count[slot][turn];
      }
      for (const int of_slot : length) all += of_slot;
      if (all < kLeast) return;
      for (int round = 0; round < kMostRounds; ++round) {
        int longest = 0, shortest = 0;
        for (int slot = 1; slot < kOctet; ++slot) {
          if (length[slot] > length[longest]) longest = slot;
          if (length[slot] < length[shortest]) shortest = slot;
        }
        const int turn = (shortest - longest + kOctet) % kOctet;
        const int left = count[longest][turn] - moved[longest][turn];
        const int half = (length[longest] - length[shortest]) / 2;
        const int more = left < half ? left : half;
        if (more == 0) return;
        moved[longest][turn] = static_cast<std::uint16_t>(moved[longest][turn] + more);
        length[longest] -= more;
        length[shortest] += more;
      }
    }
  };

  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  ElementType type = ElementType::f16;
  int copies = 1;  // of B
  int warps = 1;   // of a block
  std::int64_t bands = 1, chunks = 0;
  std::int64_t band_rows = 0;
  std::int32_t chunk_cols = 0;   // a multiple of 8
  std::int32_t second_cols = 0;  // of a chunk, the first ones: those of the second copy of B
  std::vector<Slice> slices;
  std::vector<Piece> pieces;              // in the order of the stream
  std::vector<std::int32_t> block_chunk;  // whose rows of B the block holds
  std::vector<Range> ranges;              // [block][warp]
  std::vector<Start> starts;              // [range][lane]
  // All groups of the stream, as above. Byte s of a word of moves is for step s.
  std::vector<std::uint32_t> words;

  struct Cut {
    int blocks = 1;  // of a launch with one band; there are more where there are more chunks
    int warps = 1;   // of a block
    std::int64_t bands = 1;
    std::int64_t chunks = 0;  // at least; 0: as few as there can be
    int copies = 1;           // of B
    int second_part = 1;      // the second copy has this part of a chunk's columns, the first ones
    Cut in_one_band() const {
      return {.blocks = blocks,
              .warps = warps,
              .chunks = chunks,
              .copies = copies,
              .second_part = second_part};
    }
  };
  // With one band where several would leave blocks too uneven. The values must be exact in `type`.
  static SlotStreams build(const CsrMatrix& matrix, ElementType type, const Cut& cut);
  // The matrix without its entries of value zero, which cannot be told from padding.
  CsrMatrix unpack() const;
  std::int64_t groups() const;
  FormatStats stats() const;

  // Sets the sizes of bands and chunks; the matrix's size is known.
  void lay_out(const Cut& cut);
  std::int64_t streams() const { return bands * chunks; }
  // Lines of eight rows in a copy: the kernel writes 32 rows at a time.
  static constexpr int lines(std::int32_t chunk_cols) { return (chunk_cols + 31) / 32 * 4; }
  static constexpr std::int32_t second_cols_of(std::int32_t chunk_cols, int copies, int part) {
    if (copies == 1) return 0;
    return part == 1 ? chunk_cols : (chunk_cols / part + 31) / 32 * 32;
  }
  // The column of a chunk that lies in line u, counted over all copies, and a slot.
  static constexpr int column_at(std::int32_t chunk_cols, int u, int slot) {
    const int line = u - lines(chunk_cols);
    if (line < 0) return u * kOctet + slot;
    return line * kOctet + (slot + kOctet - Turns::of_line(line)) % kOctet;
  }
  // Whether several bands take little longer than if all of `blocks` blocks had the same share.
  bool bands_are_even(std::int64_t blocks) const;
  // Makes the pieces, blocks and ranges of the slices, whose rows it does not need.
  void share_out(std::int64_t most_blocks);

  static std::int64_t least_chunks(std::int64_t cols) {
    return (cols + kMostChunk - 1) / kMostChunk;
  }
};

}  // namespace spmmbench::gather_mma
