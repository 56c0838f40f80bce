#pragma once
// The arguments of the device code of scatter_mma.

#include <cstdint>

#include "common/panel_schedule.hpp"
#include "format/gap_streams.hpp"

namespace spmmbench::scatter_mma {

struct Arguments {
  const PanelPiece* pieces;       // a step of theirs is a slot
  const std::int32_t* piece_ptr;  // of a block
  const GapStreams::Segment* segments;
  const GapStreams::Group* groups;
  const std::uint32_t* ends;
  PanelWorkspace workspace;
};

}  // namespace spmmbench::scatter_mma
