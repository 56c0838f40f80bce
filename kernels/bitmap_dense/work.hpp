#pragma once
// The arguments of the device code of bitmap_dense.

#include <cstdint>

#include "common/panel_schedule.hpp"
#include "format/bitmap_queues.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench::bitmap_dense {

struct Arguments {
  const PanelPiece* pieces;
  const std::int32_t* piece_ptr;  // of a block
  const BitmapQueues::Segment* segments;
  const BitmapQueues::Segment* first_segments;  // of each block's first piece
  const BitmapQueues::Block* blocks;
  const std::uint32_t* pairs;
  PanelWorkspace workspace;
};

}  // namespace spmmbench::bitmap_dense
