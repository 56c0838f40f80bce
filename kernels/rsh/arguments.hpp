#pragma once
// What the RSH kernel is given.

#include <cstdint>

#include "format/rs_tile.hpp"
#include "format/rs_work.hpp"

namespace spmmbench::rsh {

constexpr int kTileColumns = 2 * RsTile::kGroupColumns;  // one k step of the 16-bit mma

// Tiles of a span to aim at: cut_rs_windows may exceed them by a quarter.
constexpr int kMaxSpanTarget = RsCut::kMaxSpanTiles * 3 / 4;

// A span's columns, groups and values in the arrays of the format.
struct alignas(16) SpanRange {
  std::int32_t column, column_end;
  std::int32_t group, group_end;
  std::uint32_t value, value_end;
  std::int32_t unused[2];
};

// Rows of equal length together, as in RsTile; `rows` are rows of C, and the rows of A without any
// entry are those of length 0.
struct Residual {
  static constexpr int kLengths = RsTile::kMaxResidualLength + 1;

  const std::int32_t* rows;
  const std::int32_t* cols;
  const void* values;
  std::int32_t count;
  std::int32_t first[kLengths + 1];  // index into rows, per length
  std::int64_t entry[kLengths];      // index into cols and values, per length
};

struct Arguments {
  const RsSpan* spans;  // first_tile counts tiles of kTileColumns over all windows
  const SpanRange* ranges;
  const RsPart* parts;
  const RsTile::Window* windows;
  const std::uint64_t* row_bits;
  const std::uint64_t* bitmap;
  const std::int32_t* col_id;
  const void* values;
  const std::int32_t* row_ids;  // row of A -> row of C; null when they are the same
  std::int32_t window_count;
  unsigned span_blocks;  // blocks from here on have residual rows
  Residual residual;
  const void* b;
  std::uint32_t b_row_bytes;
  float* c;
  std::int64_t ldc;
  std::int64_t n;
  int strips;          // per block
  int value_bytes;     // of shared memory for the values of a warp's span
  float4* sums;        // of split windows: [part][strip][quad][lane]; all zero between launches
                       // where they are added to
  unsigned* arrivals;  // [first part of a window][strip]; all zero between launches
};

}  // namespace spmmbench::rsh
