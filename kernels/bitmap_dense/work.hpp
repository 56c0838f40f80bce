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
  const std::uint32_t* bits;
  const std::uint16_t* hand_over;
  const std::uint16_t* values;
  PanelWorkspace workspace;
};

}  // namespace spmmbench::bitmap_dense
