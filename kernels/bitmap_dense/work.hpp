#pragma once
// The arguments of the device code of bitmap_dense.

#include <cstdint>

#include "format/bitmap_queues.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench::bitmap_dense {

// The same steps of consecutive panels, one per warp of a CTA: segments first_segment + warp.
struct Piece {
  std::int32_t first_segment;
  std::int32_t steps;
  std::int32_t first_step;
  std::int32_t part, parts;  // of the panels' sums
  std::int32_t tile;  // of the first panel's part 0 in the workspace; panels are `parts` apart
  std::int32_t first_panel;
  std::int32_t column;   // first of C's tile
  std::int32_t arrival;  // the first panel's counter of parts
};

struct Arguments {
  const Piece* pieces;
  const std::int32_t* piece_ptr;  // of a block
  const BitmapQueues::Segment* segments;
  const std::uint32_t* bits;
  const std::uint16_t* hand_over;
  const std::uint16_t* values;
  float* partial;      // [tile][fragment][column tile][lane][4]
  unsigned* arrivals;  // of a panel and tile; all zero between launches
};

}  // namespace spmmbench::bitmap_dense
