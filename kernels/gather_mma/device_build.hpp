#pragma once
// Slot streams built on the device: the same bytes as SlotStreams::build. To the host come how many
// rows each chunk has and how long each slice is; it cuts the stream among warps.

#include <cstdint>

#include "gather_mma/format.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::gather_mma {

struct DeviceStreams {
  FormatStats stats;
  std::int32_t chunk_cols = 0, second_cols = 0;
  std::int64_t bands = 1, chunks = 0, band_rows = 0;
  std::int64_t block_count = 0, piece_count = 0;
  // As the members of SlotStreams.
  Buffer block_chunk, ranges, pieces, starts, words;
  // One band: for each row, the rows of the workspace that hold its sums, in the order of k: piece
  // * kRows + place in the slice. int32.
  Buffer part_ptr, parts;
  std::int32_t most_parts = 0;  // of a row
  // Several bands: [chunk][row], a RowParts.
  Buffer row_parts;
  std::int64_t most_pieces = 0;  // of a block
};

// Where the sums of a row lie among those of a block, [piece][row]: the first, kRows apart, and how
// many there are.
struct alignas(4) RowParts {
  std::uint16_t first, count;
};

// Returns when all is there. Throws DeviceError, and Error where rows times chunks are 2^31 and
// more.
DeviceStreams build_streams(const DeviceCsr& a, const SlotStreams::Cut& cut, Device& device);

}  // namespace spmmbench::gather_mma
