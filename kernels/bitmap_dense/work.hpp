#pragma once
// The arguments of the device code of bitmap_dense.

#include <cstdint>

#include "bitmap_dense/format.hpp"
#include "common/panel_schedule.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench::bitmap_dense {

struct Arguments {
  const PanelPiece* pieces;
  const std::int32_t* piece_ptr;  // of a block
  const BitmapPanels::Segment* segments;
  const BitmapPanels::Segment* first_segments;  // of each block's first piece
  const char* blocks;                           // of PairQueues or ValueQueues
  const std::uint32_t* words;
  PanelWorkspace workspace;
  float scale = 1;  // of A times that of B, in fp8
};

}  // namespace spmmbench::bitmap_dense
