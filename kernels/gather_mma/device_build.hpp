#pragma once
// Slot streams built on the device: the same bytes as SlotStreams::build. To the host come how many
// rows each chunk has and how long each slice is; it cuts the stream among warps.

#include <cstdint>

#include "format/slot_streams.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::gather_mma {

struct DeviceStreams {
  FormatStats stats;
  std::int32_t chunk_cols = 0;
  std::int64_t block_count = 0, piece_count = 0;
  // As the members of SlotStreams.
  Buffer block_chunk, ranges, pieces, starts, words;
  // For each row, the rows of the workspace that hold its sums, in the order of k: piece * kRows +
  // place in the slice. int32.
  Buffer part_ptr, parts;
  std::int32_t most_parts = 0;  // of a row
};

// For a launch of so many blocks, at least, of so many warps. Returns when all is there. Throws
// DeviceError, and Error where rows times chunks are 2^31 and more.
DeviceStreams build_streams(const DeviceCsr& a, int blocks, int warps, Device& device);

}  // namespace spmmbench::gather_mma
