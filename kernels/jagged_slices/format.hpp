#pragma once
// Rows of A as the lanes of a warp walk them: slices of jagged diagonals (after JDS and
// SELL-C-sigma, without padding), long rows dealt to several lanes.
//
// A slice is the work of one warp. It has `places`, one for each lane that walks entries, and in
// every step each place that still has entries takes one. The entries of a step lie side by side,
// in the order of the places, and the steps one after another, so a warp reads whole lines:
//
//     place      0   1   2   3   4   5   6   7          four rows, two places each
//     row        a   a   b   b   c   c   d   d          lengths 5, 2, 0, 4
//     step 0     a0  a1  b0  b1          d0  d1         stored: a0 a1 b0 b1 d0 d1 a2 a3 d2 d3 a4
//     step 1     a2  a3                  d2  d3
//     step 2     a4
//
// The lengths of the rows alone tell which places take part in a step. All rows of a slice have the
// same number of places, a power of two. A row that shares its slice with others has at most
// `most_steps` entries in each place, one that has a slice for itself at most `whole_steps`. Longer
// rows go to teams of slices, the work of one CTA. The longest rows are cut into parts, with a team
// for each.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spmmbench/host_device.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench::jagged {

struct JaggedShape {
  static constexpr int kTeam = 4;                     // slices: the warps of a CTA
  static constexpr std::int64_t kMostLength = 65535;  // of JaggedSlices::row_lengths
  // A long row's parts are added by one warp; beyond this many, longer parts end sooner.
  static constexpr std::int64_t kManyParts = 256;

  int places = 32;       // of a slice, a power of two
  int most_steps = 8;    // of a row that has fewer than `places` places
  int whole_steps = 16;  // of a row that one slice takes, and of a part of a cut row

  bool operator==(const JaggedShape&) const = default;

  SPMMBENCH_HOST_DEVICE constexpr int log2_places() const {
    int log2 = 0;
    while (1 << log2 < places) ++log2;
    return log2;
  }
  SPMMBENCH_HOST_DEVICE static constexpr std::int64_t steps_of(std::int64_t length,
                                                               int log2_places) {
    return (length + (std::int64_t{1} << log2_places) - 1) >> log2_places;
  }
  SPMMBENCH_HOST_DEVICE constexpr std::int64_t whole() const {  // entries
    return std::int64_t{whole_steps} << log2_places();
  }
  // Whether a row of that length goes to teams.
  SPMMBENCH_HOST_DEVICE constexpr bool is_too_long(std::int64_t length) const {
    return length > whole() || length > kMostLength;
  }
  // The places of any other row, as a power of two.
  SPMMBENCH_HOST_DEVICE constexpr int log2_places_of(std::int64_t length) const {
    int log2 = 0;
    while (1 << log2 < places && steps_of(length, log2) > most_steps) ++log2;
    return log2;
  }
  // The parts of a row that goes to teams.
  SPMMBENCH_HOST_DEVICE constexpr std::int64_t parts_of(std::int64_t length) const {
    const auto of_at_most = [&](std::int64_t entries) {
      return (length + kTeam * entries - 1) / (kTeam * entries);
    };
    const std::int64_t wanted = of_at_most(whole()), least = of_at_most(kMostLength);
    const std::int64_t parts = wanted < kManyParts ? wanted : kManyParts;
    return parts > least ? parts : least;
  }
};

struct JaggedSlices {
  // 16 bytes, read by the device as they are.
  struct alignas(16) Slice {
    static constexpr std::int32_t kListed = -1;

    std::uint64_t first_entry : 40;
    std::uint64_t steps : 16;
    std::uint64_t log2_places : 7;  // of a row
    std::uint64_t packed : 1;       // see pack
    std::int32_t first_row;         // into row_lengths and row_ids
    // The rows are target, target + 1, ... of C; or kListed: see row_ids; or kListed - 1 - p: one
    // of the kTeam slices of part p.
    std::int32_t target;

    constexpr std::int32_t part() const { return kListed - 1 - target; }
    bool operator==(const Slice&) const = default;
  };
  struct LongRow {
    std::int32_t row;         // of C
    std::int32_t first_part;  // its parts stand together, in the order of their entries
    std::int32_t parts;
    bool operator==(const LongRow&) const = default;
  };

  std::int64_t rows = 0;
  std::int64_t cols = 0;
  JaggedShape shape;
  std::vector<Slice> slices;               // teams first, then rows with fewer and fewer places
  std::vector<std::uint16_t> row_lengths;  // places >> log2_places of a slice
  std::vector<std::int32_t> row_ids;       // row of C, -1 for none: past the last row, or a part
  std::vector<std::int32_t> part_of;       // part -> its long row
  std::vector<LongRow> long_rows;
  std::vector<std::int32_t> col_idx;
  std::vector<float> values;
  std::vector<double> values64;  // where `a` has them

  // The device builds the same (kernels/jagged_slices/device_build.hpp). Slices take rows of
  // equally many places in the order `row_order`, which may lack empty rows, or as they come where
  // it is empty. Row i of `a` is row row_ids[i] of C, or i where row_ids is empty.
  static JaggedSlices build(const CsrMatrix& a, std::span<const std::int32_t> row_order,
                            std::span<const std::int32_t> row_ids, const JaggedShape& shape);
  CsrMatrix unpack() const;  // in the order of C
};

// Entries of 4 bytes for values of 8 or 16 bits: the value in the lower bits, and the column above
// it. In 16 bits it is less the slice's first column, and slices whose columns span more stay as
// they are. In 8 bits all slices are packed, of a matrix that has no more columns.
template <class Value>
inline constexpr int kPackedValueBits = 8 * static_cast<int>(sizeof(Value));
constexpr std::int32_t packed_span(std::size_t value_bytes) {
  return 1 << (32 - 8 * static_cast<int>(value_bytes));
}
struct PackedEntries {
  std::vector<std::uint32_t> entries;       // places of others are not used
  std::vector<std::int32_t> first_columns;  // slice -> least column, in 16 bits
  bool all = true;                          // every slice with entries is packed
};
// Sets Slice::packed. `value_bits`: slices.values as 8 or 16 bits each.
template <class Bits>
PackedEntries pack(JaggedSlices& slices, const std::vector<Bits>& value_bits);

}  // namespace spmmbench::jagged
